//! Addresses of nodes: which are allowed, and which belong to the same network.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rootlight::types::site;

use crate::rlpx::NodeId;

/// The lowest port that is accepted in a NEIGHBORS message. Lower ports belong to services of other kinds, to which a false address
/// could make this node send datagrams.
const FIRST_PORT: u16 = 1024;

/// A node and its address. UDP and TCP have one port: the reference implementation (rskj) passes on one only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRecord {
    /// The public key of the node.
    pub id: NodeId,
    /// Its address. An IPv4 address that is mapped into IPv6 is written as IPv4.
    pub address: SocketAddr,
}

impl NodeRecord {
    /// A node with its address in canonical form, so that addresses can be compared.
    pub(super) fn new(id: NodeId, address: SocketAddr) -> Self {
        Self { id, address: canonical(address) }
    }
}

/// The address without the mapping of IPv4 into IPv6, and without scope and flow.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether a node can have this address. Addresses that the whole internet does not reach are allowed only if `private` is set;
/// unspecified, multicast and reserved addresses and port 0 never are.
pub fn allowed(address: SocketAddr, private: bool) -> bool {
    if address.port() == 0 {
        return false;
    }
    match address.ip() {
        IpAddr::V4(ip) => !unusable_v4(ip) && (private || public_v4(ip)),
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()) && (private || public_v6(ip)),
    }
}

/// As [`allowed`], for an address that comes from another node.
pub(super) fn allowed_from_others(address: SocketAddr, private: bool) -> bool {
    address.port() >= FIRST_PORT && allowed(address, private)
}

/// Whether the address is public, so that the limits by network apply to it.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => public_v4(ip) && !unusable_v4(ip),
        IpAddr::V6(ip) => public_v6(ip),
    }
}

/// Whether no node can have this address, according to the registry of special addresses of IPv4 (RFC 6890).
fn unusable_v4(ip: Ipv4Addr) -> bool {
    let [a, ..] = ip.octets();
    // This network; multicast, reserved and broadcast.
    a == 0 || a >= 224
}

/// Whether the address is reached from the whole internet (RFC 6890).
fn public_v4(ip: Ipv4Addr) -> bool {
    let special = match ip.octets() {
        // Shared by the customers of a provider; protocol assignments; benchmarks.
        [100, b, ..] => b & 0xc0 == 64,
        [192, 0, 0, _] => true,
        [198, 18 | 19, ..] => true,
        _ => false,
    };
    !(special || ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation())
}

/// Whether the address is reached from the whole internet: it is in 2000::/3, and not in the ranges for tunnels and documentation
/// (RFC 6890).
fn public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// A number for the smallest network, in which one owner commonly has all addresses: the IPv4 address itself, or the /64 of IPv6.
/// Different networks have different numbers.
pub fn one_owner(ip: IpAddr) -> u64 {
    match ip {
        IpAddr::V4(ip) => u64::from(ip.to_bits()) | (1 << 32),
        // IPv4 has the numbers from 2^32 to 2^33. No /64 in use has a number below 2^33: 2000::/3 starts at 2^61, and fc00::/7
        // higher.
        IpAddr::V6(ip) => u64::try_from(ip.to_bits() >> 64).unwrap_or(0),
    }
}

/// Numbers for the smaller and the larger network of an address: /24 and /16, in IPv6 /48 and /32.
pub fn networks(ip: IpAddr) -> (u64, u64) {
    let large = match ip {
        IpAddr::V4(ip) => u64::from(ip.to_bits() >> 16) | (1 << 48),
        IpAddr::V6(ip) => u64::try_from(ip.to_bits() >> 96).unwrap_or(0),
    };
    (site(ip), large)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ip: &str, port: u16) -> SocketAddr {
        SocketAddr::new(ip.parse().unwrap(), port)
    }

    #[test]
    fn special_addresses_are_no_nodes() {
        for ip in
            ["8.8.8.8", "100.63.0.1", "100.128.0.1", "172.32.0.1", "198.20.0.1", "2600::1", "2a00:1450::1"]
        {
            assert!(allowed(at(ip, 5050), false), "{ip}");
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
        let private = [
            "10.1.2.3",
            "127.0.0.1",
            "169.254.1.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "2001:db8::1",
            "2002::1",
            "2001::1",
            "64:ff9b::1",
        ];
        for ip in private {
            assert!(!allowed(at(ip, 5050), false), "{ip}");
            assert!(allowed(at(ip, 5050), true), "{ip}");
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["0.0.0.0", "0.1.2.3", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "ff02::1"] {
            assert!(!allowed(at(ip, 5050), true), "{ip}");
        }
        assert!(!allowed(at("8.8.8.8", 0), true));
        assert!(allowed(at("8.8.8.8", 53), false) && !allowed_from_others(at("8.8.8.8", 53), false));
    }

    #[test]
    fn mapped_addresses_are_those_they_map() {
        let mapped = canonical(at("::ffff:127.0.0.1", 5050));
        assert_eq!(mapped, at("127.0.0.1", 5050));
        assert!(!allowed(mapped, false));
    }

    #[test]
    fn neighbours_share_their_networks() {
        let of = |ip: &str| networks(ip.parse().unwrap());
        assert_eq!(of("1.2.3.4"), of("1.2.3.250"));
        assert_ne!(of("1.2.3.4").0, of("1.2.4.4").0);
        assert_eq!(of("1.2.3.4").1, of("1.2.4.4").1);
        assert_ne!(of("1.2.3.4").1, of("1.3.3.4").1);
        assert_eq!(of("2600:1:2:3::1"), of("2600:1:2:4::1"));
        assert_eq!(of("2600:1:2:3::1").1, of("2600:1:9::1").1);
        assert_ne!(of("2600:1:2:3::1").0, of("2600:1:9::1").0);
        let owner = |ip: &str| one_owner(ip.parse().unwrap());
        assert_eq!(owner("2600::1:0:0:0:1"), owner("2600::1:0:0:0:2"));
        assert_ne!(owner("1.2.3.4"), owner("1.2.3.5"));
    }
}
