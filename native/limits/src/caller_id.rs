//! The identity of a caller by which limits tell callers apart.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use rootlight::rpc::Caller;
use rootlight::types::{Asker, KEY_ASKERS};

use crate::quota_owner::QuotaOwner;

/// Identifies the connection that a message comes from. Work and memory are divided among addresses or API keys, within an
/// address or key among programs and pages, and then among connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId {
    /// The client's address; for IPv6 its /64 network, because one client controls all addresses in it. For a client with
    /// an API key the address that stands for the key ([`Self::of_key`]).
    pub address: IpAddr,
    /// The number of the web page of another origin that sends the message ([`Asker::page`]); 0 for programs.
    pub page: u128,
    /// A number that distinguishes the connections of one address.
    pub connection: u64,
}

impl CallerId {
    /// A new connection of an address.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        // Static, because the numbers only tell connections apart: they do not run out, and mean nothing to others.
        static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(0);
        // A listener for both protocols sees IPv4 clients at addresses of one /64 network, ::ffff:0:0.
        let address = match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            v4 => v4,
        };
        Self { address, page: 0, connection: NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed) }
    }

    /// The id of a caller that [`Self::caller`] made. A caller's number below 2^32 becomes an IPv4 address ([`Self::quota_owner`]).
    /// An IPv6 network has such a number only in `::/32`, of which `::1` alone is in use: for this machine itself.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        let Asker { number, page } = caller.owner().asker.counts_as();
        let address = match u32::try_from(number) {
            Ok(bits) => IpAddr::V4(Ipv4Addr::from_bits(bits)),
            Err(_) => IpAddr::V6(Ipv6Addr::from_bits(u128::from(number) << 64)),
        };
        Self { address, page, connection: caller.connection() }
    }

    /// A caller with this id, who is not the operator and cannot receive notifications: a program, or a page of this origin
    /// that may not call methods that use keys or change the chain.
    #[must_use]
    pub fn caller(self, foreign_page: Option<String>) -> Caller {
        // Frames that send no origin may share a connection, so that each message over HTTP is one of another frame. Static,
        // because the numbers only tell frames apart: they do not run out, and no caller sees them.
        static NEXT_FRAME: AtomicU64 = AtomicU64::new(0);
        let frame = NEXT_FRAME.fetch_add(1, Ordering::Relaxed);
        let caller = Caller::new(self.quota_owner().number, self.connection).with_operator(false);
        caller.from_foreign_page(foreign_page, frame)
    }

    /// The id of the same connection for a client with an API key, given by the key's number. Work and memory are then divided
    /// among keys, whatever the addresses of their clients. No client has the address that stands for the key, because
    /// `::/8` is reserved (RFC 4291).
    #[must_use]
    pub fn of_key(self, key: u32) -> Self {
        let network = u128::from(KEY_ASKERS.start.saturating_add(key.into()));
        Self { address: IpAddr::V6(Ipv6Addr::from_bits(network << 64)), ..self }
    }

    /// The owner of the share of memory and of requests to upstreams that messages of this caller take.
    #[must_use]
    pub fn quota_owner(&self) -> QuotaOwner {
        let number = match self.address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            // IPv4 addresses give numbers below 2^32; no /64 network in use begins with 32 zero bits.
            IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).unwrap_or(u64::MAX),
        };
        QuotaOwner { number, is_page: self.page != 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn at(address: &str, page: Option<&str>, key: Option<u32>) -> Caller {
        let id = CallerId::new(address.parse().unwrap());
        key.map_or(id, |key| id.of_key(key)).caller(page.map(str::to_owned))
    }

    #[test]
    fn the_id_of_a_caller_is_the_one_that_the_caller_was_made_of() {
        for address in ["127.0.0.1", "192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8:0:7::1"] {
            let id = CallerId::new(address.parse().unwrap());
            for id in [id, id.of_key(0), id.of_key(u32::MAX)] {
                assert_eq!(CallerId::of(&id.caller(None)), id, "{address}");
                let on_page = CallerId::of(&id.caller(Some("https://a.example".into())));
                assert_eq!(CallerId { page: id.page, ..on_page }, id, "{address}");
            }
        }
    }

    #[test]
    fn the_clients_of_a_key_share_its_work_and_memory() {
        let at = |address, key| CallerId::of(&at(address, None, key));
        let (one, two) = (at("192.0.2.1", Some(7)), at("2001:db8::1", Some(7)));
        assert_eq!((one.address, one.quota_owner()), (two.address, two.quota_owner()));
        assert_ne!(one.connection, two.connection);
        assert_eq!(one.quota_owner().number, KEY_ASKERS.start + 7);
        let last = at("192.0.2.1", Some(u32::MAX));
        assert!(KEY_ASKERS.contains(&last.quota_owner().number));
        for other in [at("192.0.2.1", Some(8)), at("192.0.2.1", None), last] {
            assert!(one.address != other.address && one.quota_owner() != other.quota_owner());
        }
    }

    #[test]
    fn a_page_shares_work_as_its_origin_and_a_key_as_the_key() {
        let at = |page, key| at("127.0.0.1", page, key);
        let page = |page| CallerId::of(&at(page, None)).page;
        assert_eq!(page(None), 0);
        let pages = [None, Some("https://a.example"), Some("https://b.example"), Some("null")];
        assert_eq!(BTreeSet::from(pages.map(page)).len(), pages.len());
        assert_eq!(pages.map(page), pages.map(page));
        assert_eq!(CallerId::of(&at(Some("https://a.example"), Some(7))).page, 0);
        // An attacker can open pages of many origins, so all foreign pages of an address share one quota beside its programs.
        let owner = |page| CallerId::of(&at(page, None)).quota_owner();
        let [program, page] = [None, Some("https://a.example")].map(owner);
        assert!(program != page && program.number == page.number);
        assert!([Some("https://b.example"), Some("null")].map(owner) == [page; 2]);
        // Frames that send no origin still have different ids: one for each message over HTTP, and one for each WebSocket.
        let frames = [at(Some("null"), None), at(Some("null"), None)];
        let sockets = frames.each_ref().map(|frame| frame.for_socket(9));
        let shared_id = |caller: &Caller| caller.owner().asker.shared_id();
        assert_eq!(shared_id(&sockets[0]), shared_id(&frames[0].for_socket(1)));
        let senders = frames.iter().chain(&sockets).map(shared_id);
        assert_eq!(senders.collect::<BTreeSet<_>>().len(), 4);
    }
}
