//! Networks that one owner has as a whole.

use core::net::IpAddr;

/// A number for the network of an address that one owner has as a whole: a /24, in IPv6 a /48 (RFC 6177). Networks of IPv4
/// and of IPv6 have different numbers.
pub fn site(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits() >> 8) | (1 << 48),
        IpAddr::V6(address) => u64::try_from(address.to_bits() >> 80).unwrap_or(0),
    }
}
