//! Why JSON is not what it claims to be.

use alloy_primitives::B256;
use thiserror::Error;

use crate::types::error::FieldError;

/// Why a JSON text was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Not JSON.
    #[error("{object}: not JSON (line {line}, column {column})")]
    Syntax {
        /// What was expected.
        object: &'static str,
        /// Line of the error, from 1.
        line: usize,
        /// Column of the error, from 1.
        column: usize,
    },
    /// JSON, but not an object with each field at most once.
    #[error("{0}: not a JSON object with each field once")]
    NotAnObject(&'static str),
    /// A field breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// No way to fill in what the JSON hides gives the claimed hash.
    #[error("{object}: none of {tried} possible encodings has the hash {claimed}")]
    Hash {
        /// Header or transaction.
        object: &'static str,
        /// The hash that was claimed.
        claimed: B256,
        /// Encodings tried.
        tried: usize,
    },
}

impl JsonError {
    /// Keeps of a parser error what cannot hold parts of the input.
    pub(super) fn from_serde(object: &'static str, error: &serde_json::Error) -> Self {
        if error.is_data() {
            Self::NotAnObject(object)
        } else {
            Self::Syntax { object, line: error.line(), column: error.column() }
        }
    }
}
