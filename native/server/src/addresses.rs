//! Whether an address is in a network that an operator has named: for proxies, bans and the clients of API keys.

use std::net::IpAddr;

use ipnet::IpNet;

/// Bits of an IPv6 address before the IPv4 address that it stands for (`::ffff:0:0/96`, RFC 4291).
const MAPPED_BITS: u8 = 96;

/// Whether an address is in a network. All bits of the address are compared, where other limits compare only the /64 network of
/// an IPv6 address. An IPv4 address and the IPv6 address that stands for it are the same, both in the network and as the
/// address.
pub(crate) fn has(network: &IpNet, address: IpAddr) -> bool {
    let address = address.to_canonical();
    network.contains(&address)
        || match address {
            IpAddr::V4(v4) if network.prefix_len() >= MAPPED_BITS => {
                network.contains(&IpAddr::V6(v4.to_ipv6_mapped()))
            }
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_are_written_and_no_others() {
        for (network, inside, outside) in [
            ("::1/128", &["::1"][..], &["::2", "::", "127.0.0.1"][..]),
            ("2001:db8::7/128", &["2001:db8::7"], &["2001:db8::8", "2001:db8::"]),
            ("2001:db8::/64", &["2001:db8::8", "2001:db8::ffff:0:0:1"], &["2001:db8:0:1::"]),
            ("2001:db8::100/120", &["2001:db8::1ff"], &["2001:db8::200", "2001:db8::"]),
            ("10.0.0.7/32", &["10.0.0.7", "::ffff:10.0.0.7"], &["10.0.0.8", "::10.0.0.7"]),
            ("::ffff:10.0.0.0/104", &["10.1.2.3", "::ffff:10.1.2.3"], &["11.0.0.0"]),
            ("::/0", &["::1"], &["10.0.0.1", "::ffff:10.0.0.1"]),
            ("0.0.0.0/0", &["10.0.0.1", "::ffff:10.0.0.1"], &["::1"]),
        ] {
            let network: IpNet = network.parse().unwrap();
            let has = |address: &&str| has(&network, address.parse().unwrap());
            assert!(inside.iter().all(has), "{network}");
            assert!(!outside.iter().any(has), "{network}");
        }
    }
}
