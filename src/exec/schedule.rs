//! Assignment of transactions to the lists of a new block (RSKIP-144): parallel lists, which must not depend on each other, and a
//! sequential one, which runs after them. A transaction depends on a list that has written a key it reads or writes, or read one it writes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use alloy_primitives::Address;

use super::sublists::ListLimits;
use crate::consensus::network::EXECUTION_THREADS;
use crate::state::{AccessKey, Touches};

/// Index of the sequential list. The parallel lists have lower indices.
pub(super) const SEQUENTIAL: usize = EXECUTION_THREADS;

/// The lists of a block under construction.
pub(super) struct Schedule {
    limits: ListLimits,
    /// Gas used in each list.
    used: [u64; SEQUENTIAL + 1],
    /// The last list that has written each key.
    writers: BTreeMap<AccessKey, usize>,
    /// The lists that have read each key.
    readers: BTreeMap<AccessKey, BTreeSet<usize>>,
    /// The list of each sender's later transactions.
    senders: BTreeMap<Address, usize>,
}

/// An executed transaction that is to be assigned to a list.
pub(super) struct Placed<'a> {
    pub(super) sender: Address,
    pub(super) gas_limit: u64,
    pub(super) gas_used: u64,
    pub(super) touches: &'a Touches,
    /// Whether it called the Bridge or REMASC, which only the sequential list may.
    pub(super) shared: bool,
}

impl Schedule {
    pub(super) fn new(limits: ListLimits) -> Self {
        Self {
            limits,
            used: [0; SEQUENTIAL + 1],
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
            senders: BTreeMap::new(),
        }
    }

    /// Gas used in a list.
    pub(super) fn used(&self, list: usize) -> u64 {
        self.used.get(list).copied().unwrap_or(0)
    }

    /// Whether a transaction with this gas limit fits into a list.
    pub(super) fn fits(&self, list: usize, gas_limit: u64) -> bool {
        let limit = if list == SEQUENTIAL { self.limits.sequential } else { self.limits.parallel };
        self.used(list).saturating_add(gas_limit) <= limit
    }

    /// Assigns a transaction to a list and returns the list; `None` if it does not fit into any permitted
    /// list.
    pub(super) fn place(&mut self, placed: &Placed<'_>) -> Option<usize> {
        let wanted = if placed.shared { SEQUENTIAL } else { self.candidate(placed) };
        let list = [wanted, SEQUENTIAL].into_iter().find(|list| self.fits(*list, placed.gas_limit))?;
        if let Some(used) = self.used.get_mut(list) {
            *used = used.saturating_add(placed.gas_used);
        }
        for key in &placed.touches.reads {
            self.readers.entry(*key).or_default().insert(list);
        }
        for key in &placed.touches.writes {
            self.writers.insert(*key, list);
        }
        if list == SEQUENTIAL {
            self.senders.insert(placed.sender, list);
        } else {
            self.senders.entry(placed.sender).or_insert(list);
        }
        Some(list)
    }

    /// The list on which the transaction depends. If it depends on several, the sequential list; if on none,
    /// the parallel list with the least gas used.
    fn candidate(&self, placed: &Placed<'_>) -> usize {
        let sender = self.senders.get(&placed.sender).copied();
        let mut lists: BTreeSet<usize> = sender.into_iter().collect();
        for key in &placed.touches.reads {
            lists.extend(self.writers.get(key));
        }
        for key in &placed.touches.writes {
            lists.extend(self.writers.get(key));
            lists.extend(self.readers.get(key).into_iter().flatten());
        }
        match (lists.len(), lists.first()) {
            (0, _) => self.emptiest(placed.gas_limit),
            (1, Some(list)) => *list,
            _ => SEQUENTIAL,
        }
    }

    /// The parallel list with the least gas used into which a gas limit fits; else the sequential list.
    fn emptiest(&self, gas_limit: u64) -> usize {
        let open = (0..SEQUENTIAL).filter(|list| self.fits(*list, gas_limit));
        open.min_by_key(|list| (self.used(*list), *list)).unwrap_or(SEQUENTIAL)
    }
}

/// Ends of parallel lists of these sizes. Empty lists have no edge.
pub(super) fn edges(sizes: [usize; SEQUENTIAL]) -> Vec<u16> {
    let mut edges = Vec::new();
    let mut end = 0usize;
    for size in sizes.into_iter().filter(|size| *size > 0) {
        end = end.saturating_add(size);
        edges.push(u16::try_from(end).unwrap_or(u16::MAX));
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;

    const LIMITS: ListLimits = ListLimits { parallel: 100, sequential: 200 };

    fn touches(reads: &[u64], writes: &[u64]) -> Touches {
        let key = |slot: &u64| AccessKey::Cell(Address::ZERO, U256::from(*slot));
        Touches { reads: reads.iter().map(key).collect(), writes: writes.iter().map(key).collect() }
    }

    fn place(schedule: &mut Schedule, sender: u8, gas: u64, touches: &Touches) -> Option<usize> {
        let sender = Address::repeat_byte(sender);
        schedule.place(&Placed { sender, gas_limit: gas, gas_used: gas, touches, shared: false })
    }

    #[test]
    fn independent_transactions_are_spread_and_dependent_ones_stay_together() {
        let mut schedule = Schedule::new(LIMITS);
        assert_eq!(place(&mut schedule, 1, 30, &touches(&[], &[1])), Some(0));
        assert_eq!(place(&mut schedule, 2, 20, &touches(&[], &[2])), Some(1));
        assert_eq!(place(&mut schedule, 3, 10, &touches(&[1], &[3])), Some(0), "reads what list 0 wrote");
        assert_eq!(
            place(&mut schedule, 4, 10, &touches(&[1, 2], &[])),
            Some(SEQUENTIAL),
            "depends on both lists"
        );
        assert_eq!(place(&mut schedule, 2, 10, &touches(&[], &[9])), Some(1), "its sender's list");
        assert_eq!(place(&mut schedule, 4, 10, &touches(&[], &[8])), Some(SEQUENTIAL), "its sender's list");
        assert_eq!(place(&mut schedule, 5, 10, &touches(&[], &[1])), Some(SEQUENTIAL), "read sequentially");
        assert_eq!(place(&mut schedule, 6, 65, &touches(&[], &[7])), Some(1), "the emptier list");
        assert_eq!(place(&mut schedule, 7, 65, &touches(&[], &[6])), Some(SEQUENTIAL), "both are full");
        assert_eq!(place(&mut schedule, 8, 150, &touches(&[], &[5])), None);
    }

    #[test]
    fn calls_of_the_bridge_or_remasc_go_to_the_sequential_list() {
        let mut schedule = Schedule::new(LIMITS);
        let touches = touches(&[], &[1]);
        let placed =
            Placed { sender: Address::ZERO, gas_limit: 1, gas_used: 1, touches: &touches, shared: true };
        assert_eq!(schedule.place(&placed), Some(SEQUENTIAL));
    }

    #[test]
    fn empty_lists_have_no_edge() {
        assert_eq!(edges([0, 0]), Vec::<u16>::new());
        assert_eq!(edges([0, 3]), [3]);
        assert_eq!(edges([2, 3]), [2, 5]);
    }
}
