//! Traces of the transactions of a block: their calls, creations, destructions and logs, all executed
//! instructions, or the state that they use. A trace is made by executing the block again on its parent's state.
//!
//! | file | holds |
//! |---|---|
//! | `run` | the choice of tracers, and the trace of one run by all of them |
//! | `block` | traces of the transactions of a block |
//! | `calls`, `steps`, `state`, `selectors`, `validation`, `vm` | one tracer each |
//! | `script`, `script_tracer` | tracers that callers write as scripts |
//! | `budget` | the limit of the size of traces |
//!
//! Browser modules leave the feature `catalogue` out, and with it `script`, `script_tracer` and the effect of `vm`.
//!
//! The crate `revm-inspectors` does not fit: its inspectors are called by the frame loop and the instructions of `revm`, both of which
//! Rootstock replaces (native contracts, gas of calls, REMASC), and its JSON types would make the browser module too large.

mod block;
mod budget;
mod calls;
mod run;
#[cfg(feature = "catalogue")]
mod script;
#[cfg(feature = "catalogue")]
mod script_tracer;
mod selectors;
mod state;
mod steps;
mod validation;
mod vm;

pub use block::BlockTracer;
pub use budget::{MAX_TRACE_BYTES, TraceBudget};
pub use calls::{CallTrace, CallTracer, TraceAction, TraceNode, TracedLog};
pub use run::{CallOptions, HAS_VM_TRACES, RunTracer, Tracer, TransactionTrace};
#[cfg(feature = "catalogue")]
pub use script::{
    Script, ScriptContext, ScriptEngine, ScriptError, ScriptFrame, ScriptHooks, ScriptRun, ScriptStep,
};
#[cfg(feature = "catalogue")]
pub use script_tracer::{ScriptBlock, ScriptTrace, ScriptTracer};
pub use selectors::Selectors;
pub use state::{StateTrace, UsedAccount};
pub use steps::{StepLog, StepOptions, StepTrace, StepTracer};
pub use validation::{CallAccess, OpcodeSet, ValidationTrace};
pub use vm::{VmCall, VmEffect, VmStep, VmTrace};
