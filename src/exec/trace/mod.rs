//! Traces of the transactions of a block: their calls, creations, destructions and logs, or all executed
//! instructions. A trace is made by executing the block again on its parent's state.

mod block;
mod calls;
mod room;
mod steps;

pub use block::{BlockTracer, Tracer, TransactionTrace};
pub use calls::{CallTrace, CallTracer, TraceAction, TraceNode};
pub use room::{MAX_TRACE_BYTES, Room};
pub use steps::{StepLog, StepOptions, StepTrace, StepTracer};
