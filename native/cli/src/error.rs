//! Why a command did not succeed, and the exit code that says so.

use std::process::ExitCode;

use rootlight_upstream::OpenError;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The command line or the configuration file is wrong.
    #[error("{0}")]
    Usage(String),
    /// The command failed for another reason.
    #[error("{0}")]
    Failed(String),
    /// A check of `rootlight verify` failed; the printed report says which.
    #[error("verification failed")]
    Refused,
}

impl CommandError {
    /// Wraps an error's text as a failure.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    pub(super) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) | Self::Refused => ExitCode::from(1),
        }
    }
}

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Scheme(_) => Self::Usage(error.to_string()),
            other => Self::failed(other),
        }
    }
}
