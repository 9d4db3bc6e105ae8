//! Askers: the senders of messages, who own filters and transactions that wait for a block, and to whom limits apply.

use core::ops::Range;

use alloy_primitives::keccak256;

/// The numbers of askers that are API keys: 2^32 numbers, none of which stands for an address.
pub const KEY_ASKERS: Range<u64> = 1 << 32..2 << 32;

/// The origin of messages: a caller, or a web page of another origin that calls from there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker {
    /// Identifies the caller: its address, or its API key ([`KEY_ASKERS`]).
    pub number: u64,
    /// Stands for the web page: odd for a page with an origin, even for one without; 0 for programs and for pages that may call every
    /// method.
    pub page: u128,
}

impl From<u64> for Asker {
    fn from(number: u64) -> Self {
        Self { number, page: 0 }
    }
}

/// The page number as which all pages without an origin share limits of work and memory: the least even number that is not 0.
const OPAQUE_ORIGIN: u128 = 2;

impl Asker {
    /// The same caller's page of this origin; without one, the caller itself. Every sandboxed frame sends the origin `null`, so pages
    /// whose origin names no host are told apart by `frame`, a number of their WebSocket or, without one, of the message.
    #[must_use]
    pub fn on_page(self, origin: Option<&str>, frame: u64) -> Self {
        // The first 128 bits of a hash.
        let half = |seed: &[u8]| {
            let [half @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = keccak256(seed).0;
            u128::from_be_bytes(half)
        };
        let page = |origin: &str| match origin.contains("://") {
            true => half(origin.as_bytes()) | 1,
            // Even, and not 0.
            false => (half(&frame.to_be_bytes()) & !1).max(OPAQUE_ORIGIN),
        };
        Self { page: origin.map_or(0, page), ..self }
    }

    /// Whether the asker is a page without an origin.
    pub fn has_opaque_origin(&self) -> bool {
        self.page != 0 && self.page & 1 == 0
    }

    /// The asker as which this one counts in limits. All pages without an origin of one caller share limits. All askers
    /// with the same API key share limits too, because a page that has a key was given the key.
    #[must_use]
    pub fn counts_as(self) -> Self {
        let page = match self.page {
            _ if self.has_key() => 0,
            _ if self.has_opaque_origin() => OPAQUE_ORIGIN,
            page => page,
        };
        Self { page, ..self }
    }

    /// Whether the caller has an API key.
    fn has_key(&self) -> bool {
        // Only servers have API keys.
        KEY_ASKERS.contains(&self.number)
    }

    /// Whether the asker sees only its own filters and waiting transactions, and others do not see those: it is a page of
    /// another origin, or an API key.
    pub fn is_isolated(&self) -> bool {
        self.page != 0 || self.has_key()
    }

    /// A number for the asker, by which hosts that answer together name it to each other. The number of a page begins with the bits 1110,
    /// which no API key's number and no IPv6 address in use begins with (RFC 4291).
    pub fn shared_id(&self) -> u64 {
        if self.page == 0 {
            return self.number;
        }
        let seed = [&self.number.to_be_bytes()[..], &self.page.to_be_bytes()].concat();
        let [first, second, third, fourth, fifth, sixth, seventh, eighth, ..] = keccak256(seed).0;
        let number = u64::from_be_bytes([first, second, third, fourth, fifth, sixth, seventh, eighth]);
        number >> 4 | 0xe << 60
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_one_caller_are_askers_of_their_own() {
        let caller = Asker::from(7);
        let of = |origin| caller.on_page(Some(origin), 1);
        assert_eq!(caller.on_page(None, 1), caller);
        assert_eq!(of("https://a.example"), of("https://a.example"));
        let askers = [caller, of("https://a.example"), of("https://b.example"), of("null")];
        for (index, one) in askers.iter().enumerate() {
            assert_eq!(one.is_isolated(), index > 0);
            let others = askers.iter().skip(index + 1);
            assert!(others.clone().all(|other| one != other && one.shared_id() != other.shared_id()));
            assert_eq!(one.shared_id() >> 60, if index > 0 { 0xe } else { 0 });
        }
        assert_ne!(of("null"), Asker::from(8).on_page(Some("null"), 1));
        assert!(Asker::from(KEY_ASKERS.start).is_isolated());
    }
    /// Sandboxed frames of all pages send the same origin.
    #[test]
    fn pages_without_an_origin_are_told_apart_but_share_work_and_memory_as_one() {
        let caller = Asker::from(7);
        let named = |frame| caller.on_page(Some("https://a.example"), frame);
        assert_eq!((named(1), named(1).counts_as()), (named(2), named(2)));
        assert!(!named(1).has_opaque_origin() && !caller.has_opaque_origin());
        for origin in ["null", "ORIGIN", ""] {
            let frame = |frame| caller.on_page(Some(origin), frame);
            assert_eq!(frame(1), frame(1));
            assert!(frame(1) != frame(2) && frame(1).shared_id() != frame(2).shared_id());
            assert!((0..99).all(|number| frame(number).has_opaque_origin() && frame(number).is_isolated()));
            assert_eq!(frame(1).counts_as(), frame(2).counts_as());
            assert!(frame(1).counts_as() != caller && frame(1).counts_as() != named(1));
        }
        let key = Asker::from(KEY_ASKERS.start);
        let shares_with_key = key.on_page(Some("https://a.example"), 1).counts_as() == key;
        assert!(shares_with_key);
    }
}
