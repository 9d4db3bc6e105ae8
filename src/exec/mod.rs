//! Execution on proven state: calls that answer, or say what they lack.

mod call;
mod limits;
mod recorder;
mod result;

pub use crate::evm::HaltReason;
pub use call::{call, BlockEnvironment, BlockHashes, CallContext, CallMessage};
pub use limits::{RunLimits, CALL_GAS_CAP, MAX_KEYS, MAX_MISSING};
pub use result::{CallOutcome, CallResult, CallStop, OverrideError};
