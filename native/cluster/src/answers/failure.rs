//! The reasons why the index gives no answer to a light client. "Its database" in the messages is that of the index.

use rootlight_index::IndexError;

/// Why the index gives no answer. Requests that backends can answer are then sent to a backend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum NoAnswer {
    /// The database failed a moment ago, and gets no questions for a while.
    #[error("its database failed and is tried again soon")]
    Paused,
    #[error("too many questions are open; ask again")]
    Busy,
    #[error("its database took longer than {0} ms; ask for fewer blocks or name more topics")]
    Slow(u128),
    #[error("its block {0} is not on the proven chain; ask again")]
    OtherBranch(u64),
    #[error("answers in memory use up their budget; ask again")]
    BudgetUsedUp,
    /// The light client has no proven chain yet with which blocks could be compared.
    #[error("no chain is proven yet; ask again")]
    NoChain,
    #[error("a check was interrupted: {0}")]
    Interrupted(String),
    /// A log or trace could not be written as JSON, which is a defect.
    #[error("an answer cannot be written: {0}")]
    Written(#[from] serde_json::Error),
    /// The index refused, or its database failed.
    #[error("{}", caller_text(.0))]
    Index(#[from] IndexError),
}

/// The text for callers. Of a failure of the database it tells no details, which are the operator's.
fn caller_text(error: &IndexError) -> String {
    match error {
        error if is_about_contents(error) => error.to_string(),
        IndexError::NoneFree => "its database is busy; ask again".into(),
        _ => "its database failed".into(),
    }
}

/// Whether an error is about the contents of the index, so that the database works.
const fn is_about_contents(error: &IndexError) -> bool {
    matches!(
        error,
        IndexError::NotCovered { .. }
            | IndexError::TracesNotLoaded { .. }
            | IndexError::TracesTooLong { .. }
            | IndexError::Damaged { .. }
    )
}

impl NoAnswer {
    /// Whether the database is the cause, so that it gets no questions for a while. Of [`Self::Slow`] the cause may also be a question
    /// about too much; the limiter of the question decides (`query_limiter.rs`).
    pub(super) const fn is_outage(&self) -> bool {
        match self {
            Self::Index(IndexError::NoneFree) => false,
            Self::Index(error) => !is_about_contents(error),
            _ => false,
        }
    }
}
