//! The sender of a message, as far as limits tell senders apart.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use rootlight::types::{Asker, KEY_ASKERS};

/// The connection that a message comes from. Work and memory are divided among addresses or API keys, within these among
/// programs and pages, and among connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId {
    /// The client's address; for IPv6 its /64 network, because one client controls all addresses in it. For a client with
    /// an API key the address that stands for the key ([`Self::of_key`]).
    pub address: IpAddr,
    /// Stands for the web page of another origin that the connection belongs to; 0 for programs.
    pub page: u128,
    /// A number that distinguishes the connections of one address.
    pub connection: u64,
}

impl CallerId {
    /// A new connection of an address.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        // Static, because the numbers only tell connections apart: they do not run out, and mean nothing to others.
        static MADE: AtomicU64 = AtomicU64::new(0);
        // A listener for both protocols sees IPv4 clients at addresses of one /64 network, ::ffff:0:0.
        let address = match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            v4 => v4,
        };
        Self { address, page: 0, connection: MADE.fetch_add(1, Ordering::Relaxed) }
    }

    /// The same connection as one of an API key: work and memory are divided among keys then, whatever the addresses of
    /// their clients. No client has the address that stands for the key: `::/8` is reserved (RFC 4291).
    #[must_use]
    pub fn of_key(self, key: u32) -> Self {
        let network = u128::from(KEY_ASKERS.start.saturating_add(key.into()));
        Self { address: IpAddr::V6(Ipv6Addr::from_bits(network << 64)), ..self }
    }

    /// The asker by which memory and questions to upstreams are divided: the address or the API key. All web pages of
    /// other origins at an address are one asker, because one page can have many origins.
    #[must_use]
    pub fn asker(&self) -> Asker {
        let number = match self.address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            // IPv4 addresses give numbers below 2^32; no /64 network in use begins with 32 zero bits.
            IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).unwrap_or(u64::MAX),
        };
        Asker { number, page: u128::from(self.page != 0) }
    }
}
