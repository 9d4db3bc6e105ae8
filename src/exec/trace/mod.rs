//! Traces: what the transactions of a block called, created, destroyed and wrote, or every
//! instruction they ran. Made by executing the block again from its parent's state.

mod block;
mod calls;
mod steps;

pub use block::{BlockTracer, Tracer, TransactionTrace};
pub use calls::{CallTrace, CallTracer, TraceAction, TraceNode};
pub use steps::{StepLog, StepOptions, StepTrace, StepTracer};

/// Bytes that the traces of one question may hold; a run that would keep more keeps nothing more and
/// says so. A little more than the largest answer can show.
pub const MAX_TRACE_BYTES: usize = 24 << 20;

/// Room for what a trace keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    left: usize,
    exceeded: bool,
}

impl Default for Room {
    fn default() -> Self {
        Self::new(MAX_TRACE_BYTES)
    }
}

impl Room {
    /// Room for this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes, exceeded: false }
    }

    /// Whether something did not fit: the trace is not whole.
    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// Takes room; `false` once it does not suffice, and ever after.
    fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) if !self.exceeded => {
                self.left = left;
                true
            }
            _ => {
                self.exceeded = true;
                false
            }
        }
    }
}
