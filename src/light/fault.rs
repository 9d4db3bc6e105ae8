//! Why synchronization with an upstream stops.

use alloc::string::String;
use core::fmt;

use thiserror::Error;

use super::upstream::RequestFailure;
use crate::consensus::ChainError;

/// The block at which synchronization with an upstream stopped, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncFault {
    /// Height of the block.
    pub number: u64,
    /// The reason.
    pub cause: SyncCause,
}

impl core::error::Error for SyncFault {}

impl fmt::Display for SyncFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            // These causes are not about a block.
            SyncCause::BadHeight | SyncCause::Dishonest(_) | SyncCause::TooLittleWork(_) => self.cause.fmt(f),
            cause => write!(f, "block {}: {cause}", self.number),
        }
    }
}

impl SyncFault {
    /// The fault without the texts of the upstream and of libraries, for pages of another origin.
    pub(super) fn redacted(self) -> Self {
        const INSTEAD: &str = "the client's log has the reason";
        let cause = match self.cause {
            SyncCause::Call(failure) => SyncCause::Call(match failure {
                RequestFailure::Rpc { code, .. } => RequestFailure::Rpc { code, message: INSTEAD.into() },
                RequestFailure::Reverted { code, output, .. } => {
                    RequestFailure::Reverted { code, message: INSTEAD.into(), output }
                }
                RequestFailure::Transport(_) => RequestFailure::Transport(INSTEAD.into()),
                RequestFailure::False(_) => RequestFailure::False(INSTEAD.into()),
                // The other texts are the host's own.
                failure => failure,
            }),
            // The text lists what the upstream responded in each form, with its error messages.
            SyncCause::Uncles(_) => SyncCause::Uncles(INSTEAD.into()),
            // The other texts name the rule that a response broke, with numbers and hashes.
            cause => cause,
        };
        Self { cause, ..self }
    }
}

/// Why an upstream is no longer followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum SyncCause {
    /// The request failed.
    #[error(transparent)]
    Call(#[from] RequestFailure),
    /// The response is `null`, or there is none for this block.
    #[error("the upstream did not return this block")]
    Missing,
    /// The response to `eth_blockNumber` is not a number.
    #[error("eth_blockNumber did not return a number")]
    BadHeight,
    /// The response does not decode as a header.
    #[error("{0}")]
    Decode(String),
    /// The response decodes as a header with another hash than it states. JSON may omit header fields, so the upstream may be honest.
    #[error("{0} (the JSON form hides part of a header, and the upstream did not return the raw form)")]
    Hidden(String),
    /// The response is another block than the requested one.
    #[error("asked for block {asked}, got block {got}")]
    OtherBlock { asked: u64, got: u64 },
    /// The header breaks a rule.
    #[error(transparent)]
    Header(ChainError),
    /// The headers do not link to any verified header down to the checkpoint.
    #[error("no link to a verified header: the upstream follows another chain, or withholds part of it")]
    Unlinked,
    /// Where no checkpoint is trusted, the upstream's chain is too short or shows too little work to start from.
    #[error("cannot start by work from this upstream's chain: {0}")]
    TooLittleWork(String),
    /// The uncles that the upstream showed for a block are not those that its header commits to.
    #[error("{0}")]
    Uncles(String),
    /// Responses to requests for facts failed verification repeatedly.
    #[error("its responses do not verify: {0}")]
    Dishonest(String),
}

impl SyncCause {
    /// Whether no honest upstream gives such a response, whichever chain it follows and whatever data it keeps.
    pub fn is_lie(&self) -> bool {
        match self {
            Self::Header(error) => error.is_misbehaviour(),
            Self::Call(RequestFailure::False(_))
            | Self::BadHeight
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

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn pages_get_no_words_of_upstreams() {
        let words = || String::from("words of the upstream");
        let causes = [
            RequestFailure::Rpc { code: -32000, message: words() }.into(),
            RequestFailure::Reverted { code: 3, message: words(), output: Default::default() }.into(),
            RequestFailure::Transport(words()).into(),
            RequestFailure::False(words()).into(),
            SyncCause::Uncles(words()),
        ];
        for cause in causes {
            let fault = SyncFault { number: 7, cause };
            assert!(fault.to_string().contains(&words()), "{fault}");
            let redacted = fault.redacted().to_string();
            assert!(!redacted.contains(&words()) && redacted.contains("log"), "{redacted}");
        }
    }
}
