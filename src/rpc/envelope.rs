//! The JSON-RPC 2.0 envelope: ids, outcomes and limits of messages. Answers repeat ids byte for byte, so that a number of 128 bits
//! does not change.

use alloc::{boxed::Box, string::String};

use serde_json::value::RawValue;

use super::error::{RpcError, error_object};
pub use super::limits::{BATCH_LIMIT, MAX_BATCH, MAX_DEPTH, MAX_ID, MAX_RESPONSE};

/// The `id` of a call.
#[derive(Debug, Clone)]
pub enum Id {
    /// No id: a notification, never answered.
    Absent,
    /// A string, a number or `null`, exactly as received.
    Given(Box<RawValue>),
    /// The id could not be read: answered with `null`.
    Unknown,
    /// The id is longer than [`MAX_ID`]: the call is refused, and answered with `null`.
    TooLong,
}

impl Id {
    /// The id as an answer has it: `null` in place of one that is absent, unreadable or too long.
    pub fn as_json(&self) -> &str {
        match self {
            Self::Given(raw) => raw.get(),
            Self::Absent | Self::Unknown | Self::TooLong => "null",
        }
    }

    /// The addition to the text of an error, so that the caller learns why its id is not repeated; empty for other ids.
    pub fn remark(&self) -> &'static str {
        match self {
            Self::TooLong => " (the id is longer than 1024 bytes, so it is not repeated)",
            _ => "",
        }
    }
}

/// The answer to one call: its result as JSON, or its error.
pub type Outcome = Result<Box<RawValue>, RpcError>;

/// The response of a host that cannot answer a message: an error under the id of a single call, or under `null`.
pub fn write_error(id: &Id, code: i32, text: &str) -> String {
    let error = error_object(code, &[text, id.remark()].concat(), None);
    alloc::format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.as_json())
}
