//! The result of a call. The types ensure that only a run without missing data has a result.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Deref;

use alloy_primitives::{Address, Bytes, Log};
use thiserror::Error;

use super::recorder::Complete;
use crate::evm::precompiles::Unsimulated;
use crate::evm::HaltReason;
use crate::state::{Corrupt, StateKey};

/// The outcome of a call for which no data were missing.
///
/// Other layers cannot create it. This layer creates it only with the proof that no data were missing:
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

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallStop {
    /// These facts are missing. With them, the call can proceed further.
    #[error("{} facts are missing", .0.len())]
    Lacking(BTreeSet<StateKey>),
    /// The root commits to state that is invalid.
    #[error("state at {key:?} is corrupt: {fault}")]
    Corrupt {
        /// The key that was read.
        key: StateKey,
        /// The fault of the data.
        fault: Corrupt,
    },
    /// The call needs a method of a native contract that this version does not implement.
    #[error("{0} is not simulated")]
    NotSimulated(Unsimulated),
    /// The call reads the balance of a sender that spends more than it has. In the reference node this
    /// balance is negative.
    #[error("balance of {0} is below zero during this call")]
    OverdrawnBalance(Address),
    /// An overridden nonce makes the call create a contract at the address of an existing one.
    #[error("creation over the contract at {0} is not simulated")]
    TakenAddress(Address),
    /// Overridden balances sum up to 2^256 wei or more.
    #[error("balances overflow")]
    BalanceOverflow,
    /// Under the rules before RSKIP-150, the call writes more memory without paying for it than this version
    /// allows.
    #[error("call writes far beyond its memory")]
    UnpaidMemory,
    /// The call reads more facts than one run may.
    #[error("call reads more than {limit} facts")]
    TooManyKeys {
        /// The limit.
        limit: usize,
    },
    /// The interrupt callback ended the run.
    #[error("call was interrupted")]
    Interrupted,
    /// The overrides are refused.
    #[error(transparent)]
    Override(#[from] OverrideError),
}

/// Why state overrides are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// A native contract cannot be overridden.
    #[error("Precompiled contracts can not be overridden")]
    Precompile(Address),
}
