//! Why a call has no result: an error, or missing data, which a light client then fetches.

use alloc::collections::BTreeSet;

use alloy_primitives::Address;
use thiserror::Error;

use crate::evm::precompiles::Unsimulated;
use crate::state::{Corrupt, StateKey};

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum CallStop {
    /// These facts are missing. The caller fetches them and runs the call again.
    #[error("{} facts are missing", .0.len())]
    Missing(BTreeSet<StateKey>),
    /// The state root commits to a value that does not decode.
    #[error("state at {key:?} is corrupt: {fault}")]
    Corrupt { key: StateKey, fault: Corrupt },
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
    /// Overridden or edited balances sum up to 2^256 wei or more.
    #[error("a balance would reach 2^256 wei: give the account a lower one")]
    BalanceOverflow,
    /// Under the rules before RSKIP-150, the call writes more memory without paying for it than this version
    /// allows.
    #[error("call writes far beyond its memory")]
    UnpaidMemory,
    /// The call reads more facts than one run may.
    #[error("call reads more than {limit} facts")]
    TooManyKeys { limit: usize },
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
