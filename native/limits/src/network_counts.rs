//! Counts of connections by network. When all connection slots of a server or of its peers are taken, these counts show which
//! network holds the most of them, so that a connection of that network is closed for a newcomer.
//!
//! Addresses are cheap in bulk: whoever has one IPv6 /64 network often has a /48, with 65,536 of them (RFC 6177). So slots are
//! compared by site first, which is a /48 network (IPv4: /24), and among clients of one site by address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rootlight::types::site;

/// The number of connection slots that are taken by each site and by each address.
pub struct NetworkCounts {
    sites: BTreeMap<u64, usize>,
    addresses: BTreeMap<IpAddr, usize>,
}

impl NetworkCounts {
    /// Counts the slots, given by the addresses of their holders, one for each slot.
    pub fn of(holders: impl Iterator<Item = IpAddr>) -> Self {
        let mut networks = Self { sites: BTreeMap::new(), addresses: BTreeMap::new() };
        for address in holders {
            *networks.sites.entry(site(address)).or_default() += 1;
            *networks.addresses.entry(address).or_default() += 1;
        }
        networks
    }

    /// The number of slots of the site of an address, and that of the address itself.
    pub fn counts(&self, address: IpAddr) -> (usize, usize) {
        let of_site = self.sites.get(&site(address)).copied().unwrap_or(0);
        (of_site, self.addresses.get(&address).copied().unwrap_or(0))
    }

    /// The number of slots of a holder and that of a newcomer: of their sites, or of their addresses if the site is the same.
    pub fn compare(&self, holder: IpAddr, newcomer: IpAddr) -> (usize, usize) {
        let (holder_counts, newcomer_counts) = (self.counts(holder), self.counts(newcomer));
        match site(holder) == site(newcomer) {
            true => (holder_counts.1, newcomer_counts.1),
            false => (holder_counts.0, newcomer_counts.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_compared_by_site_and_in_a_site_by_address() {
        let at = |address: &str| -> IpAddr { address.parse().unwrap() };
        let [one, two, house, v4] = ["2001:db8:0:1::", "2001:db8:0:2::", "2001:db8:7::", "192.0.2.7"].map(at);
        let networks = NetworkCounts::of([one, two, two, house, house, v4].into_iter());
        assert_eq!((networks.counts(two), networks.counts(house)), ((3, 2), (2, 2)));
        for (holder, newcomer, expected) in [
            (two, one, (2, 1)),
            (one, house, (3, 2)),
            (house, at("2001:db8:0:9::"), (2, 3)),
            (two, at("2001:db8:0:9::"), (2, 0)),
            (v4, at("192.0.2.8"), (1, 0)),
            (v4, at("192.0.3.7"), (1, 0)),
            (two, v4, (3, 1)),
        ] {
            assert_eq!(networks.compare(holder, newcomer), expected, "{holder}, {newcomer}");
        }
    }
}
