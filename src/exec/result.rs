//! The result of a call. The types ensure that only a run without missing data has a result.

use alloc::vec::Vec;
use core::ops::Deref;

use alloy_primitives::{Bytes, Log};

use super::recorder::Complete;
use crate::evm::HaltReason;

/// The outcome of a call for which no data were missing.
///
/// Other layers cannot create the type. This layer creates it only with the proof that no data were missing:
///
/// ```compile_fail
/// use rootlight::exec::{CallOutcome, CallResult};
/// let outcome = CallOutcome::Revert { output: Default::default(), gas_used: 0 };
/// let result = CallResult { outcome };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    outcome: CallOutcome,
}

impl CallResult {
    pub(super) fn new(outcome: CallOutcome, _: Complete) -> Self {
        Self { outcome }
    }

    /// Returns the outcome.
    pub fn into_outcome(self) -> CallOutcome {
        self.outcome
    }
}

impl Deref for CallResult {
    type Target = CallOutcome;

    fn deref(&self) -> &CallOutcome {
        &self.outcome
    }
}

/// The outcome of a call. Gas includes the intrinsic gas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The call returned. A creation returns the new code.
    Success {
        /// Return data.
        output: Bytes,
        /// Gas used, after refunds.
        gas_used: u64,
        /// Logs in order.
        logs: Vec<Log>,
    },
    /// The call reverted.
    Revert {
        /// Revert data.
        output: Bytes,
        /// Gas used.
        gas_used: u64,
    },
    /// The call failed and used all its gas.
    Halt {
        /// Reason of the failure.
        reason: HaltReason,
        /// Gas used: the whole limit.
        gas_used: u64,
    },
}
