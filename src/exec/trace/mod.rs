//! Traces of the transactions of a block: their calls, creations, destructions and logs, or all executed
//! instructions. A trace is made by executing the block again on its parent's state.

mod block;
mod budget;
mod calls;
mod steps;

pub use block::{BlockTracer, Tracer, TransactionTrace};
pub use budget::{MAX_TRACE_BYTES, TraceBudget};
pub use calls::{CallTrace, CallTracer, TraceAction, TraceNode};
pub use steps::{StepLog, StepOptions, StepTrace, StepTracer};
