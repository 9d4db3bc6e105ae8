//! How a call ends. Only a run that lacked nothing has a result, and the types say so.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Deref;

use alloy_primitives::{Address, Bytes, Log};
use thiserror::Error;

use super::recorder::Complete;
use crate::evm::precompiles::Unsimulated;
use crate::evm::HaltReason;
use crate::state::{Corrupt, StateKey};

/// Outcome of a call that had everything it read.
///
/// It cannot be made outside this layer, and inside only with a witness that the run missed
/// nothing:
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

    /// The outcome itself.
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

/// What a call does in the end. Gas includes the intrinsic price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It returned; a creation returns the new code.
    Success {
        /// Return data.
        output: Bytes,
        /// Gas used, refunds taken off.
        gas_used: u64,
        /// Logs in order.
        logs: Vec<Log>,
    },
    /// It reverted.
    Revert {
        /// Revert data.
        output: Bytes,
        /// Gas used.
        gas_used: u64,
    },
    /// It failed and used all its gas.
    Halt {
        /// Why.
        reason: HaltReason,
        /// Gas used: the whole limit.
        gas_used: u64,
    },
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallStop {
    /// These facts are missing; with them the call gets further.
    #[error("{} facts are missing", .0.len())]
    Lacking(BTreeSet<StateKey>),
    /// The state is committed to, yet unreadable.
    #[error("state at {key:?} is corrupt: {fault}")]
    Corrupt {
        /// What was read.
        key: StateKey,
        /// What is wrong with it.
        fault: Corrupt,
    },
    /// A method of a native contract that this version does not execute.
    #[error("{0} is not simulated")]
    NotSimulated(Unsimulated),
    /// The balance of a sender that spends more than it has was read: in the reference it is
    /// negative then.
    #[error("balance of {0} is below zero during this call")]
    OverdrawnBalance(Address),
    /// A creation that an overridden nonce leads to an existing contract.
    #[error("creation over the contract at {0} is not simulated")]
    TakenAddress(Address),
    /// Overridden balances that add up to 2^256 wei or more.
    #[error("balances overflow")]
    BalanceOverflow,
    /// Memory that the rules before RSKIP-150 give away, beyond what this version gives.
    #[error("call writes far behind its memory")]
    UnpaidMemory,
    /// More facts read than one run may.
    #[error("call reads more than {limit} facts")]
    TooManyKeys {
        /// The limit.
        limit: usize,
    },
    /// The interrupt callback ended it.
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
    /// A native contract cannot be changed.
    #[error("Precompiled contracts can not be overridden")]
    Precompile(Address),
}
