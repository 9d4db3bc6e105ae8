//! How many datagrams are looked at.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use super::address::one_owner;

/// Milliseconds over which datagrams are counted.
const WINDOW_MS: u64 = 10_000;
/// Datagrams of one address (a /64 in IPv6) in a window. A node of the reference sends a few.
const PER_OWNER: u16 = 50;
/// Datagrams in a window. Recovering a sender takes about 0.2 ms, so this is a twentieth of one processor; it also bounds the
/// addresses that are remembered.
const IN_ALL: u16 = 2000;

/// Datagrams of the current window.
#[derive(Debug, Clone, Default)]
pub(super) struct DatagramMeter {
    window: u64,
    total: u16,
    by_owner: BTreeMap<u64, u16>,
}

impl DatagramMeter {
    /// Counts a datagram; whether it is to be looked at.
    pub(super) fn take(&mut self, ip: IpAddr, now_ms: u64) -> bool {
        let window = now_ms / WINDOW_MS;
        if window > self.window {
            *self = Self { window, ..Self::default() };
        }
        let owner = one_owner(ip);
        let count = self.by_owner.get(&owner).copied().unwrap_or(0);
        if count >= PER_OWNER || self.total >= IN_ALL {
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
        let mut meter = DatagramMeter::default();
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
