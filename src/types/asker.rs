//! Who asks: filters, and transactions that wait for a block, belong to askers.

use core::ops::Range;

use alloy_primitives::keccak256;

/// The numbers of askers that are API keys. Addresses have other numbers.
pub const KEY_ASKERS: Range<u64> = 1 << 32..2 << 32;

/// The origin of messages: a caller, or a web page of another origin that calls from there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker {
    /// Identifies the caller: its address, or its API key ([`KEY_ASKERS`]).
    pub number: u64,
    /// Stands for the origin of the web page; 0 for programs and for pages that may call every method.
    pub page: u128,
}

impl From<u64> for Asker {
    fn from(number: u64) -> Self {
        Self { number, page: 0 }
    }
}

impl Asker {
    /// The same caller's page of this origin; without one, the caller itself.
    #[must_use]
    pub fn on_page(self, origin: Option<&str>) -> Self {
        let half = |origin: &str| {
            let [half @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = keccak256(origin).0;
            u128::from_be_bytes(half).max(1)
        };
        Self { page: origin.map_or(0, half), ..self }
    }

    /// Whether the asker sees only its own filters and waiting transactions, and others do not see those: it is a page of
    /// another origin, or an API key.
    pub fn is_apart(&self) -> bool {
        // Only servers have API keys.
        self.page != 0 || cfg!(feature = "hosted") && KEY_ASKERS.contains(&self.number)
    }

    /// A number for the asker, by which hosts that answer together name it to each other. That of a page is none of an
    /// address in use or an API key: no address begins with the bits 1110 (RFC 4291).
    pub fn told(&self) -> u64 {
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
        let of = |origin| caller.on_page(Some(origin));
        assert_eq!(caller.on_page(None), caller);
        assert_eq!(of("https://a.example"), of("https://a.example"));
        let askers = [caller, of("https://a.example"), of("https://b.example"), of("null"), of("")];
        for (place, one) in askers.iter().enumerate() {
            assert_eq!(one.is_apart(), place > 0);
            let others = askers.iter().skip(place + 1);
            assert!(others.clone().all(|other| one != other && one.told() != other.told()));
            assert_eq!(one.told() >> 60, if place > 0 { 0xe } else { 0 });
        }
        assert_ne!(of("null"), Asker::from(8).on_page(Some("null")));
        assert_eq!(Asker::from(KEY_ASKERS.start).is_apart(), cfg!(feature = "hosted"));
    }
}
