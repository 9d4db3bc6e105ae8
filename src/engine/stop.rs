//! The results of look-ups in a view, and why a handler stops without a result.

use super::Refusal;
use crate::state::{Fact, Facts};

/// Why a handler stopped without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The handler misses these facts; run it again once they are known.
    Missing(Facts),
    /// There is no proven answer.
    Refused(Refusal),
}

impl Stop {
    pub(crate) fn missing(fact: Fact) -> Self {
        // Collecting into a set would sort, which takes several kilobytes of code for each type.
        let mut facts = Facts::new();
        facts.insert(fact);
        Self::Missing(facts)
    }
}

/// A value of the view, or why it is unavailable.
pub type ViewResult<T> = Result<T, Stop>;

/// Combines two results, so that one round fetches the missing facts of both.
///
/// # Errors
/// The first refusal, else all missing facts.
pub(crate) fn both<A, B>(a: ViewResult<A>, b: ViewResult<B>) -> ViewResult<(A, B)> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(Stop::Missing(mut facts)), Err(Stop::Missing(more))) => {
            facts.extend(more);
            Err(Stop::Missing(facts))
        }
        (Err(refused @ Stop::Refused(_)), _) | (_, Err(refused @ Stop::Refused(_))) => Err(refused),
        (Err(missing), _) | (_, Err(missing)) => Err(missing),
    }
}
