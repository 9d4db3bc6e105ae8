//! The method selectors that a transaction calls, as geth's `4byteTracer` counts them.

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, FixedBytes};

use super::TraceBudget;
use crate::evm::FrameStart;
use crate::exec::Executed;

/// Bytes that an entry takes from the budget: about those of its JSON, such as `"0x12345678-64":1`.
const ENTRY_BYTES: usize = 40;

/// How often each selector was called, by the selector and the number of bytes after it.
pub type Selectors = BTreeMap<(FixedBytes<4>, usize), u64>;

/// Counts the selectors that one transaction calls.
#[derive(Clone, Debug, Default)]
pub(super) struct SelectorTracer {
    counts: Selectors,
    /// Whether the run reported a frame.
    framed: bool,
    /// The bytes that are left.
    pub(super) budget: TraceBudget,
}

impl SelectorTracer {
    /// Creates a tracer with this budget.
    pub(super) fn new(budget: TraceBudget) -> Self {
        Self { budget, ..Self::default() }
    }

    /// A call or creation starts.
    pub(super) fn frame(&mut self, start: &FrameStart) {
        self.framed = true;
        if let Some(to) = start.to {
            self.count(to, &start.input);
        }
    }

    /// Returns the counts. A transaction directly to a native contract runs without a frame (`evm/native.rs`); it is counted here, as a
    /// single call.
    pub(super) fn finish(mut self, executed: &Executed<'_>) -> Selectors {
        if let (false, Some(to)) = (self.framed, executed.transaction.to) {
            self.count(to, &executed.transaction.data);
        }
        self.counts
    }

    /// Counts the selector of a call, if it has one.
    fn count(&mut self, to: Address, input: &[u8]) {
        let Some((selector, rest)) = input.split_first_chunk::<4>().filter(|_| !is_ethereum_native(&to))
        else {
            return;
        };
        let key = (FixedBytes(*selector), rest.len());
        if !self.counts.contains_key(&key) && !self.budget.take(ENTRY_BYTES) {
            return;
        }
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(1);
    }
}

/// Whether the address is one of Ethereum's native contracts, whose input has no selector. All addresses from 0x01 to 0xff count as such.
/// The native contracts of Rootstock have methods with selectors.
fn is_ethereum_native(address: &Address) -> bool {
    matches!(address.split_last(), Some((last, rest)) if *last != 0 && rest.iter().all(|byte| *byte == 0))
}
