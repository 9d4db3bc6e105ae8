//! Networks of IP addresses that belong to one owner, by which limits count connections and nodes.

use core::net::IpAddr;

/// A number for the network of an address that probably belongs to one owner: its /24, in IPv6 its /48 (RFC 6177). Networks of IPv4
/// have bit 48 set, so that their numbers differ from those of IPv6, which have 48 bits.
pub fn site(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits() >> 8) | (1 << 48),
        IpAddr::V6(address) => u64::try_from(address.to_bits() >> 80).unwrap_or(0),
    }
}
