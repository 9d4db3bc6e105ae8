//! Errors of the readers of headers, transactions and receipts in JSON.

use alloy_primitives::B256;
use thiserror::Error;

use super::members::MembersError;
use crate::types::error::FieldError;

/// Why a JSON text was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum JsonError {
    #[error("{object}: not JSON (line {line}, column {column})")]
    Syntax { object: &'static str, line: usize, column: usize },
    /// The text is JSON, but not an object with each field at most once.
    #[error("{0}: not a JSON object with each field once")]
    NotAnObject(&'static str),
    /// A field breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("{object}: none of {tried} possible encodings has the hash {claimed}")]
    Hash { object: &'static str, claimed: B256, tried: usize },
}

impl JsonError {
    /// Converts an error of the reader of members, dropping its message, which can quote parts of the input.
    pub(super) fn of(object: &'static str, error: &MembersError) -> Self {
        match error {
            MembersError::Syntax(error) => {
                Self::Syntax { object, line: error.line(), column: error.column() }
            }
            _ => Self::NotAnObject(object),
        }
    }
}
