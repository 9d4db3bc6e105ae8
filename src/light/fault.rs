//! What stops synchronization.

use alloc::string::String;
use core::fmt;

use thiserror::Error;

use super::upstream::CallFailure;
use crate::consensus::ChainError;

/// The block at which synchronization stopped, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncFault {
    /// Height of the block.
    pub number: u64,
    /// What was wrong with it.
    pub cause: SyncCause,
}

impl core::error::Error for SyncFault {}

impl fmt::Display for SyncFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}: {}", self.number, self.cause)
    }
}

/// Why a header could not be taken over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SyncCause {
    /// The question has no answer.
    #[error(transparent)]
    Call(#[from] CallFailure),
    /// The upstream announced this block but does not have it.
    #[error("the upstream announced this block but gives none")]
    Missing,
    /// The answer is no height.
    #[error("eth_blockNumber answered no number")]
    BadHeight,
    /// The answer does not rebuild to the hash it claims.
    #[error("{0}")]
    Decode(String),
    /// The answer does not rebuild to the hash it claims, for which something that JSON hides may be the reason.
    #[error("{0} (the JSON form hides part of a header, and the raw form was not to be had)")]
    Hidden(String),
    /// The answer is another block than the one asked for.
    #[error("asked for block {asked}, got block {got}")]
    OtherBlock {
        /// The height asked for.
        asked: u64,
        /// The height of the answer.
        got: u64,
    },
    /// The header breaks a rule.
    #[error(transparent)]
    Header(ChainError),
    /// The headers do not link to any verified header down to the checkpoint.
    #[error("no link to a verified header: the upstream follows another chain, or withholds part of it")]
    Unlinked,
    /// In a start by work, its chain shows too little of it.
    #[error("no start by work with this upstream's chain: {0}")]
    TooLittleWork(String),
    /// The uncles do not verify.
    #[error("{0}")]
    Uncles(String),
    /// Its answers to questions for facts do not verify, again and again.
    #[error("its answers do not verify: {0}")]
    Dishonest(String),
}

impl SyncCause {
    /// Whether no honest upstream would give this, whichever chain it follows and whatever it keeps.
    pub fn is_lie(&self) -> bool {
        match self {
            Self::Header(error) => error.is_misbehaviour(),
            Self::BadHeight
            | Self::Decode(_)
            | Self::OtherBlock { .. }
            | Self::Uncles(_)
            | Self::Dishonest(_) => true,
            Self::Call(_) | Self::Missing | Self::Unlinked | Self::TooLittleWork(_) | Self::Hidden(_) => {
                false
            }
        }
    }
}
