//! Why a command did not succeed, and the exit code that says so.

use std::process::ExitCode;

use rootlight_upstream::OpenError;

/// The flag that names the folder of a store, for error texts.
pub(super) const DATA_DIR: &str = "--data-dir";

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

    /// Wraps an error's text as a failure that the value of a flag caused.
    pub(super) fn of_flag(flag: &str, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{flag}: {error}"))
    }

    /// The upstream that a flag names cannot be opened. The text repeats nothing of the address, which may contain a key.
    pub(super) fn of_upstream(flag: &str, error: OpenError) -> Self {
        let taken = match flag {
            "--fork" => "mainnet, testnet, an http(s) or ws(s) URL, or a node's ID@HOST:PORT",
            _ => "an http(s) or ws(s) URL, or replay:PATH",
        };
        match error {
            OpenError::Scheme(fault) => Self::Usage(format!("{flag} takes {taken}; this one {fault}")),
            OpenError::Url(error) => Self::Usage(format!("{flag}: {error}")),
            other => Self::of_flag(flag, other),
        }
    }

    /// The exit code of the program.
    pub(super) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) | Self::Refused => ExitCode::from(1),
        }
    }
}
