//! Why the index gives no answer.

use rootlight_index::IndexError;

/// Why the index gives no answer. Requests that backends can answer go on to them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum NoAnswer {
    /// The database failed a moment ago, and is left alone for a while.
    #[error("its database failed and is tried again soon")]
    Paused,
    #[error("too many questions are open; ask again")]
    Busy,
    #[error("its database took longer than {0} ms; ask for fewer blocks or name more topics")]
    Slow(u128),
    #[error("its block {0} is not on the proven chain; ask again")]
    OtherBranch(u64),
    #[error("answers in memory use up their budget; ask again")]
    NoRoom,
    /// The client that verifies has no chain yet.
    #[error("no chain is proven yet; ask again")]
    NoChain,
    #[error("a check was interrupted: {0}")]
    Interrupted(String),
    /// A log or trace cannot be written as JSON, which is a defect.
    #[error("an answer cannot be written: {0}")]
    Written(#[from] serde_json::Error),
    /// The index refused, or its database failed.
    #[error("{}", text(.0))]
    Index(#[from] IndexError),
}

/// The text for callers, who need not know about the database.
fn text(error: &IndexError) -> String {
    match error {
        error if is_of_blocks(error) => error.to_string(),
        IndexError::NoneFree => "its database is busy; ask again".into(),
        _ => "its database failed".into(),
    }
}

/// Whether an error is about what the index has, so that the database works.
const fn is_of_blocks(error: &IndexError) -> bool {
    matches!(
        error,
        IndexError::NotCovered { .. }
            | IndexError::NotTraced { .. }
            | IndexError::Untraced { .. }
            | IndexError::Damaged { .. }
    )
}

impl NoAnswer {
    /// Whether the database is the cause, so that it is left alone for a while.
    pub(super) const fn is_outage(&self) -> bool {
        match self {
            Self::Slow(_) => true,
            Self::Index(IndexError::NoneFree) => false,
            Self::Index(error) => !is_of_blocks(error),
            _ => false,
        }
    }
}
