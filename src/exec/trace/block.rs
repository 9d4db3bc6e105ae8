//! Traces of a block's transactions.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256};

use super::TraceBudget;
use super::calls::{CallTrace, CallTracer};
use super::steps::{StepOptions, StepTrace, StepTracer};
use crate::evm::Inspector;
use crate::exec::{BlockObserver, Executed};
use crate::types::{REMASC_ADDRESS, Receipt, Transaction};

/// The kind of trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// Calls, with or without logs.
    Calls {
        /// Whether logs are collected too.
        with_logs: bool,
    },
    /// Instructions.
    Steps(StepOptions),
}

/// The trace of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionTrace {
    /// Index of the transaction in the block.
    pub index: usize,
    /// The transaction.
    pub transaction: Transaction,
    /// Hash of the transaction.
    pub hash: B256,
    /// Sender of the transaction; the zero address for REMASC.
    pub sender: Address,
    /// Receipt of the transaction.
    pub receipt: Receipt,
    /// Number of logs in the block before its own.
    pub first_log: usize,
    /// Whether logs were requested with the calls.
    pub with_logs: bool,
    /// Calls of the transaction, if traced.
    pub calls: Option<CallTrace>,
    /// Instructions of the transaction, if traced.
    pub steps: Option<StepTrace>,
}

/// Traces the transactions of a block, or one of them, while the block is executed.
#[derive(Clone, Debug)]
pub struct BlockTracer {
    tracer: Tracer,
    only: Option<usize>,
    running: Option<RunningTracer>,
    first_log: usize,
    room: TraceBudget,
    traces: Vec<TransactionTrace>,
}

#[derive(Clone, Debug)]
enum RunningTracer {
    Calls(CallTracer),
    Steps(StepTracer),
}

impl BlockTracer {
    /// Traces all transactions, or only the one at the index `only`.
    pub fn new(tracer: Tracer, only: Option<usize>) -> Self {
        Self { tracer, only, running: None, first_log: 0, room: TraceBudget::default(), traces: Vec::new() }
    }

    /// The traces in block order; `None` if they exceed the size limit.
    pub fn finish(self) -> Option<Vec<TransactionTrace>> {
        (!self.room.exceeded()).then_some(self.traces)
    }

    fn start(&self) -> RunningTracer {
        match self.tracer {
            Tracer::Calls { with_logs } => {
                let mut tracer = CallTracer::new(with_logs);
                tracer.room = self.room;
                RunningTracer::Calls(tracer)
            }
            Tracer::Steps(options) => {
                let mut tracer = StepTracer::new(options);
                tracer.room = self.room;
                RunningTracer::Steps(tracer)
            }
        }
    }
}

impl BlockObserver for BlockTracer {
    fn inspector(&mut self, index: usize) -> Option<&mut dyn Inspector> {
        if self.only.is_some_and(|only| only != index) {
            return None;
        }
        self.running = Some(self.start());
        match self.running.as_mut()? {
            RunningTracer::Calls(tracer) => Some(tracer),
            RunningTracer::Steps(tracer) => Some(tracer),
        }
    }

    fn remasc_payment(&mut self, to: Address, value: U256) {
        if let Some(RunningTracer::Calls(tracer)) = &mut self.running {
            tracer.payment(REMASC_ADDRESS, to, value);
        }
    }

    fn executed(&mut self, index: usize, executed: &Executed<'_>) {
        let first_log = self.first_log;
        self.first_log = first_log.saturating_add(executed.receipt.logs.len());
        let Some(running) = self.running.take() else { return };
        let (calls, steps) = match running {
            RunningTracer::Calls(tracer) => {
                self.room = tracer.room;
                (Some(tracer.finish(executed)), None)
            }
            RunningTracer::Steps(tracer) => {
                self.room = tracer.room;
                (None, Some(tracer.finish(executed)))
            }
        };
        self.traces.push(TransactionTrace {
            index,
            transaction: executed.transaction.clone(),
            hash: executed.transaction.hash(),
            with_logs: matches!(self.tracer, Tracer::Calls { with_logs: true }),
            sender: executed.sender,
            receipt: executed.receipt.clone(),
            first_log,
            calls,
            steps,
        });
    }
}
