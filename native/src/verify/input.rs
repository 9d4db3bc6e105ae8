//! The forms an input may have: raw bytes as hex, a JSON value, or a whole JSON-RPC response.

use alloy_primitives::hex;
use rootlight::consensus::{Candidate, Network};
use rootlight::types::json::header_from_json;
use rootlight::types::{Bytes, B256};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::VerifyError;

/// Why an input cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Neither hex nor JSON.
    #[error("neither hex nor JSON: {0}")]
    Form(String),
    /// A JSON-RPC response with an error.
    #[error("the JSON-RPC response is an error: {0}")]
    RpcError(String),
    /// A JSON-RPC response without a result, or with `null`.
    #[error("the JSON-RPC response has no result")]
    NoResult,
    /// JSON, but not of the kind this check takes.
    #[error("{0}")]
    Shape(String),
}

/// An input, taken out of its wrapping.
#[derive(Debug)]
pub enum Input {
    /// Raw bytes, given as hex.
    Raw(Vec<u8>),
    /// A JSON object or array, as text.
    Json(Box<RawValue>),
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

impl Input {
    /// Reads text; a JSON-RPC response (or a line of a recording) is reduced to its result.
    pub fn parse(bytes: &[u8]) -> Result<Self, InputError> {
        let text = std::str::from_utf8(bytes).map_err(|_| InputError::Form("not text".into()))?.trim();
        if !text.starts_with(['{', '[', '"']) {
            return hex::decode(text).map(Self::Raw).map_err(|error| InputError::Form(error.to_string()));
        }
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|error| InputError::Form(error.to_string()))?;
        Self::of(raw)
    }

    /// Takes a JSON value: a string is hex, a response is its result.
    pub fn of(raw: &RawValue) -> Result<Self, InputError> {
        let text = raw.get();
        if text.starts_with('"') {
            let digits: String =
                serde_json::from_str(text).map_err(|error| InputError::Form(error.to_string()))?;
            return hex::decode(digits).map(Self::Raw).map_err(|error| InputError::Form(error.to_string()));
        }
        if text.starts_with('{') {
            if let Ok(outer) = serde_json::from_str::<Response<'_>>(text) {
                if let (Some(_), Some(response)) = (outer.request, outer.response) {
                    return Self::of(response);
                }
                if outer.jsonrpc.is_some() || outer.result.is_some() || outer.error.is_some() {
                    return Self::result(&outer);
                }
            }
        }
        if text.starts_with(['{', '[']) {
            return Ok(Self::Json(raw.to_owned()));
        }
        Err(InputError::Shape("neither an object, an array nor a hex string".into()))
    }

    fn result(response: &Response<'_>) -> Result<Self, InputError> {
        match (response.error, response.result) {
            (Some(error), _) if error.get() != "null" => {
                Err(InputError::RpcError(error.get().chars().take(300).collect()))
            }
            (_, Some(result)) if result.get() != "null" => Self::of(result),
            _ => Err(InputError::NoResult),
        }
    }

    /// A JSON object read as `T`; anything else is refused in the words of `wanted`.
    pub(super) fn object<'a, T: Deserialize<'a>>(&'a self, wanted: &str) -> Result<T, InputError> {
        match self {
            Self::Json(raw) if raw.get().starts_with('{') => serde_json::from_str(raw.get())
                .map_err(|error| InputError::Shape(format!("{wanted}: {error}"))),
            _ => Err(InputError::Shape(format!("{wanted} must be a JSON object"))),
        }
    }

    /// A header: its RLP as hex, or a node's JSON of a block or uncle.
    pub(super) fn header(&self, network: &Network) -> Result<Candidate, VerifyError> {
        const STEP: &str = "header";
        match self {
            Self::Raw(bytes) => {
                Candidate::decode(bytes, network).map_err(|error| VerifyError::rule(STEP, error))
            }
            Self::Json(raw) => header_from_json(raw.get(), None, &|number| network.header_shape(number))
                .map(Candidate::from)
                .map_err(|error| VerifyError::rule(STEP, error)),
        }
    }
}

/// A hash from a JSON string.
pub(super) fn hash(text: &str, field: &str) -> Result<B256, InputError> {
    text.parse().map_err(|_| InputError::Shape(format!("{field} is not a 32-byte hash")))
}

/// Bytes from a JSON string.
pub(super) fn bytes(text: &str, field: &str) -> Result<Bytes, InputError> {
    hex::decode(text).map(Bytes::from).map_err(|error| InputError::Shape(format!("{field}: {error}")))
}

/// Trie nodes from an array of JSON strings.
pub(super) fn nodes(texts: &[String], field: &str) -> Result<Vec<Bytes>, InputError> {
    texts.iter().zip(0_usize..).map(|(text, at)| bytes(text, &format!("{field}[{at}]"))).collect()
}
