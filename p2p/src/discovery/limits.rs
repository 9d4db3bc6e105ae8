//! Limits the datagrams that are read: checking a signature costs far more than sending a datagram. Answers to own questions are not
//! counted.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use super::address::one_owner;

/// Milliseconds over which datagrams are counted.
const WINDOW_MS: u64 = 10_000;
/// Most datagrams of one owner in a window: an IPv4 address, or a /64 of IPv6. A node of the reference implementation sends a few.
const PER_OWNER: u16 = 50;
/// As [`PER_OWNER`], for the address of a node of the table or a boot host. Others can forge datagrams of this address, and those of
/// the node itself must still be read then.
const PER_KNOWN: u16 = 400;
/// Most datagrams of one meter in a window. Recovering a sender takes about 0.2 ms, so those of one meter take at most 0.4 s of the 10 s,
/// and those of both meters 8 % of one processor. The number also bounds the addresses in memory.
const MAX_TOTAL: u16 = 2000;

/// The meters of datagrams that answer no question of ours. Those of known addresses are counted apart, so that strangers cannot use
/// up their limit.
#[derive(Debug, Clone)]
pub(super) struct DatagramMeters {
    strangers: DatagramMeter,
    known: DatagramMeter,
}

impl Default for DatagramMeters {
    fn default() -> Self {
        Self { strangers: DatagramMeter::new(PER_OWNER), known: DatagramMeter::new(PER_KNOWN) }
    }
}

impl DatagramMeters {
    /// Counts a datagram; returns whether it may be read. `known`: the address is of a node of the table or a boot host. The address
    /// can be forged.
    pub(super) fn take(&mut self, ip: IpAddr, known: bool, now_ms: u64) -> bool {
        let meter = if known { &mut self.known } else { &mut self.strangers };
        meter.take(ip, now_ms)
    }
}

/// Counts the datagrams of the current window.
#[derive(Debug, Clone)]
struct DatagramMeter {
    /// The limit for one owner.
    per_owner: u16,
    /// The number of the window: its start divided by [`WINDOW_MS`].
    window: u64,
    total: u16,
    by_owner: BTreeMap<u64, u16>,
}

impl DatagramMeter {
    const fn new(per_owner: u16) -> Self {
        Self { per_owner, window: 0, total: 0, by_owner: BTreeMap::new() }
    }

    /// Counts a datagram; returns whether it is within the limits.
    fn take(&mut self, ip: IpAddr, now_ms: u64) -> bool {
        let window = now_ms / WINDOW_MS;
        // A clock that goes back opens no new window.
        if window > self.window {
            *self = Self { window, ..Self::new(self.per_owner) };
        }
        let owner = one_owner(ip);
        let count = self.by_owner.get(&owner).copied().unwrap_or(0);
        if count >= self.per_owner || self.total >= MAX_TOTAL {
            return false;
        }
        self.by_owner.insert(owner, count.saturating_add(1));
        self.total = self.total.saturating_add(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_use_up_what_all_have() {
        let mut meter = DatagramMeter::new(PER_OWNER);
        let taken = |meter: &mut DatagramMeter, ip: [u8; 4], now| {
            (0..100).filter(|_| meter.take(ip.into(), now)).count()
        };
        assert_eq!(taken(&mut meter, [1, 2, 3, 4], 0), 50);
        assert_eq!(taken(&mut meter, [1, 2, 3, 5], 9_999), 50);
        assert_eq!(taken(&mut meter, [1, 2, 3, 4], 10_000), 50);
        let all: usize = (0..200).map(|host| taken(&mut meter, [9, 9, 9, host], 20_000)).sum();
        assert_eq!((all, meter.by_owner.len()), (2000, 40));
        // A clock that goes back opens no new window.
        assert_eq!(taken(&mut meter, [9, 9, 9, 201], 5), 0);
    }
}
