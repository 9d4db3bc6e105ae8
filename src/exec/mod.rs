//! Execution on proven state: calls that answer, or say what they lack.

mod call;
mod estimate;
mod limits;
mod observer;
mod recorder;
mod result;
pub mod trace;

pub use crate::evm::{FrameClose, FrameKind, FrameStart, HaltReason, Inspector, Step, StepEnd};
pub use call::{call, call_watched, BlockEnvironment, BlockHashes, CallContext, CallMessage};
pub use estimate::{estimate, Estimate};
pub use limits::{CallPolicy, RunLimits, CALL_GAS_CAP, MAX_KEYS, MAX_MISSING};
pub use observer::{BlockObserver, Executed, NoObserver};
pub use result::{CallOutcome, CallResult, CallStop, OverrideError};
