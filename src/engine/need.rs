//! Why a handler stops without a result.

use super::Refusal;
use crate::state::{Fact, Facts};

/// Why a handler stopped without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It misses these facts; run it again once they are known.
    Lacking(Facts),
    /// There is no proven answer.
    Refused(Refusal),
}

impl Stop {
    /// The stop of a handler that misses one fact.
    pub(crate) fn lacking(fact: Fact) -> Self {
        // Collecting into a set would sort, which takes several kilobytes of code for each type.
        let mut facts = Facts::new();
        facts.insert(fact);
        Self::Lacking(facts)
    }
}

/// A value of the view, or why it is unavailable.
pub type Need<T> = Result<T, Stop>;

/// Combines two results, so that one round fetches the missing facts of both.
///
/// # Errors
/// The first refusal, else all missing facts.
pub(crate) fn both<A, B>(a: Need<A>, b: Need<B>) -> Need<(A, B)> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(Stop::Lacking(mut facts)), Err(Stop::Lacking(more))) => {
            facts.extend(more);
            Err(Stop::Lacking(facts))
        }
        (Err(refused @ Stop::Refused(_)), _) | (_, Err(refused @ Stop::Refused(_))) => Err(refused),
        (Err(lacking), _) | (_, Err(lacking)) => Err(lacking),
    }
}
