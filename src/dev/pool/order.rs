//! The order in which the transactions of the pool go into a block.

use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use alloy_primitives::U256;

use super::pooled::Pooled;

/// A sender's next transaction, with the later ones of the same sender.
struct SenderTransactions {
    /// The gas price of the next transaction in wei.
    price: U256,
    next: Arc<Pooled>,
    /// The sender's later transactions, highest nonce first.
    rest: Vec<Arc<Pooled>>,
}

impl Ord for SenderTransactions {
    /// Higher gas price first, then earlier arrival.
    fn cmp(&self, other: &Self) -> Ordering {
        self.price.cmp(&other.price).then(other.next.arrival.cmp(&self.next.arrival))
    }
}

impl PartialOrd for SenderTransactions {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SenderTransactions {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SenderTransactions {}

impl SenderTransactions {
    /// Splits a list in descending order of nonces; `None` if it is empty.
    fn new(mut rest: Vec<Arc<Pooled>>) -> Option<Self> {
        let next = rest.pop()?;
        Some(Self { price: next.transaction.gas_price.value(), next, rest })
    }
}

/// Orders transactions by gas price, but keeps the transactions of each sender in the order of their nonces: among the first remaining
/// transactions of all senders, the one with the highest price is next. Each list has one sender's transactions by descending nonce.
pub(super) fn by_price(senders: impl Iterator<Item = Vec<Arc<Pooled>>>) -> Vec<Arc<Pooled>> {
    let mut heap: BinaryHeap<SenderTransactions> = senders.filter_map(SenderTransactions::new).collect();
    let mut out = Vec::new();
    while let Some(best) = heap.pop() {
        out.push(best.next);
        heap.extend(SenderTransactions::new(best.rest));
    }
    out
}
