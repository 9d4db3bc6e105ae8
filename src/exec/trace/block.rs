//! Traces of a block's transactions: an observer of the block's execution that makes a [`RunTracer`] for each transaction.

use alloc::vec::Vec;

use alloy_primitives::{Address, U256};

use super::TraceBudget;
use super::run::{RunTracer, Tracer, TransactionTrace};
use super::state::{StateTrace, between};
use crate::evm::Inspector;
use crate::exec::{BlockObserver, Executed};
use crate::state::{Access, World};
use crate::types::REMASC_ADDRESS;

/// Traces the transactions of a block, or one of them, while the block is executed.
#[derive(Clone, Debug)]
pub struct BlockTracer {
    tracer: Tracer,
    /// Index of the only transaction that is traced.
    only: Option<usize>,
    /// The tracer of the transaction that runs.
    running: Option<RunTracer>,
    /// The state that this transaction has used.
    state: Option<StateTrace>,
    /// Number of logs in the block before this transaction.
    first_log: usize,
    budget: TraceBudget,
    traces: Vec<TransactionTrace>,
}

impl BlockTracer {
    /// Traces all transactions, or only the one at the index `only`.
    pub fn new(tracer: Tracer, only: Option<usize>) -> Self {
        Self {
            tracer,
            only,
            running: None,
            state: None,
            first_log: 0,
            budget: TraceBudget::default(),
            traces: Vec::new(),
        }
    }

    /// The traces in block order; `None` if they exceed the size limit.
    pub fn finish(self) -> Option<Vec<TransactionTrace>> {
        (!self.budget.exceeded()).then_some(self.traces)
    }

    /// Whether the transaction at this index is traced.
    fn wants(&self, index: usize) -> bool {
        self.only.is_none_or(|only| only == index)
    }
}

impl BlockObserver for BlockTracer {
    fn inspector(&mut self, index: usize) -> Option<&mut dyn Inspector> {
        if !self.wants(index) {
            return None;
        }
        Some(self.running.insert(RunTracer::new(&self.tracer, self.budget)))
    }

    fn watches_state(&self, index: usize) -> bool {
        self.tracer.state && self.wants(index) && !self.budget.exceeded()
    }

    fn state(&mut self, _: usize, before: &mut World, after: &mut World, access: &Access) {
        self.state = Some(between(before, after, &access.keys, &mut self.budget));
    }

    fn remasc_payment(&mut self, to: Address, value: U256) {
        if let Some(running) = &mut self.running {
            running.payment(REMASC_ADDRESS, to, value);
        }
    }

    fn executed(&mut self, index: usize, executed: &Executed<'_>) {
        let first_log = self.first_log;
        self.first_log = first_log.saturating_add(executed.logs.len());
        let Some(running) = self.running.take() else { return };
        let mut trace = running.finish((index, first_log), executed, &mut self.budget);
        // The run's own trace of the state is empty: only local calls and simulations report accounts to their inspector.
        trace.state = self.state.take().or(trace.state);
        self.traces.push(trace);
    }
}
