//! Taking a document apart.

use alloc::{format, string::String};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Largest document taken, in bytes: a full block with its receipts stays far below.
pub(super) const MAX_DOCUMENT: usize = 32 * 1024 * 1024;

/// Parses a document, or the `result` of a JSON-RPC answer.
pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    if text.len() > MAX_DOCUMENT {
        return Err(format!("{} bytes, at most {MAX_DOCUMENT} are taken", text.len()));
    }
    serde_json::from_str(result(text)?).map_err(|error| format!("{error}"))
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// The text of `result` where this is a JSON-RPC answer, else the text itself.
pub(super) fn result(text: &str) -> Result<&str, String> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| format!("{error}"))?;
    // serde would read a list of one or two as the fields in order.
    if !raw.get().starts_with('{') {
        return Ok(raw.get());
    }
    match serde_json::from_str::<Answer<'_>>(raw.get()) {
        Ok(Answer { jsonrpc: Some(_), result: Some(result) }) => Ok(result.get()),
        Ok(Answer { jsonrpc: Some(_), result: None }) => Err("the JSON-RPC answer holds no result".into()),
        _ => Ok(raw.get()),
    }
}

/// For serde: a value, bare or as the `result` of a JSON-RPC answer.
pub(super) fn unwrapped<'de, D: Deserializer<'de>, T: for<'a> Deserialize<'a>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    let text = result(raw.get()).map_err(serde::de::Error::custom)?;
    serde_json::from_str(text).map_err(serde::de::Error::custom)
}
