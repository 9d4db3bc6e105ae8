//! How many datagrams are looked at.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use super::address::one_owner;

/// Milliseconds over which datagrams are counted.
const WINDOW_MS: u64 = 10_000;
/// Datagrams of one address (a /64 in IPv6) in a window. A node of the reference sends a few.
const PER_OWNER: u16 = 50;
/// As [`PER_OWNER`], for an address that we know: others can use it as theirs, and then the node itself must still be heard.
const PER_KNOWN: u16 = 400;
/// Datagrams in a window. Recovering a sender takes about 0.2 ms, so this is a twentieth of one processor; it also bounds the
/// addresses that are remembered.
const IN_ALL: u16 = 2000;

/// Datagrams that answer no question of ours: those of known addresses are counted apart, so that strangers do not use up
/// what they have.
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
    /// Counts a datagram; whether it is to be looked at. The address of a datagram can be forged.
    pub(super) fn take(&mut self, ip: IpAddr, known: bool, now_ms: u64) -> bool {
        let meter = if known { &mut self.known } else { &mut self.strangers };
        meter.take(ip, now_ms)
    }
}

/// Datagrams of the current window.
#[derive(Debug, Clone)]
struct DatagramMeter {
    per_owner: u16,
    window: u64,
    total: u16,
    by_owner: BTreeMap<u64, u16>,
}

impl DatagramMeter {
    const fn new(per_owner: u16) -> Self {
        Self { per_owner, window: 0, total: 0, by_owner: BTreeMap::new() }
    }

    fn take(&mut self, ip: IpAddr, now_ms: u64) -> bool {
        let window = now_ms / WINDOW_MS;
        if window > self.window {
            *self = Self { window, ..Self::new(self.per_owner) };
        }
        let owner = one_owner(ip);
        let count = self.by_owner.get(&owner).copied().unwrap_or(0);
        if count >= self.per_owner || self.total >= IN_ALL {
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
