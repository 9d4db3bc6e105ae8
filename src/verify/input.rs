//! Reads documents, which may be hex, JSON, or a whole JSON-RPC response, and the values of their members.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use alloy_primitives::hex;
use serde_json::value::RawValue;

use super::input_error::{InputError, MAX_INPUT_BYTES};
use super::report::{CheckFailure, Rule};
use crate::consensus::{HeaderCandidate, Network};
use crate::types::json::header_from_json;
use crate::types::json::{for_each_member, slots};
use crate::types::number::from_digits;
use crate::types::{B256, Bytes, U256};

/// Most wrappings that are removed around a value: a line of a recording (`rootlight record`) contains a JSON-RPC response, which
/// contains the result.
const MAX_WRAPPINGS: usize = 2;

/// Longest quotation of a JSON-RPC error in a report, in characters; the rest is cut off.
const MAX_QUOTED: usize = 300;

/// Most trie nodes of one list, and most storage slots of one account. Longer lists are refused while they are read.
const MAX_LIST: usize = crate::trie::limits::MAX_MULTIPROOF_NODES;

slots! {
    /// The members of all documents as raw text. One type serves all, because each type adds code to the browser module.
    pub(super) struct DocumentMembers {
        // JSON-RPC responses and lines of recordings.
        jsonrpc: "jsonrpc",
        result: "result",
        error: "error",
        request: "request",
        response: "response",
        pub(super) header: "header",
        // Receipts.
        pub(super) receipt: "receipt",
        pub(super) raw_receipt: "rawReceipt",
        pub(super) nodes: "nodes",
        pub(super) receipts_root: "receiptsRoot",
        pub(super) transaction_index: "transactionIndex" or "index",
        pub(super) block_hash: "blockHash",
        // Accounts and their slots.
        pub(super) state_root: "stateRoot",
        // In the reference node's first draft of eth_getProof, slots had the plural.
        pub(super) proof: "proof" or "proofs",
        pub(super) address: "address",
        pub(super) account_proof: "accountProof",
        pub(super) balance: "balance",
        pub(super) nonce: "nonce",
        pub(super) code_hash: "codeHash",
        pub(super) storage_hash: "storageHash",
        pub(super) storage_proof: "storageProof",
        pub(super) key: "key",
        pub(super) value: "value",
        // Blocks.
        pub(super) block: "block",
        pub(super) uncles: "uncles",
        pub(super) receipts: "receipts",
    }
}

impl<'a> DocumentMembers<'a> {
    /// Reads an object; `wanted` names it in errors.
    pub(super) fn read(text: &'a str, wanted: &str) -> Result<Self, InputError> {
        if !text.starts_with('{') {
            return Err(InputError::Shape(format!("{wanted} must be a JSON object")));
        }
        Self::from_json(text).map_err(|error| InputError::Shape(format!("{wanted}: {error}")))
    }

    /// The value inside a JSON-RPC response or a line of a recording; `None` if this is neither.
    fn wrapped(&self) -> Result<Option<&'a str>, InputError> {
        if let (Some(_), Some(response)) = (self.request, self.response) {
            return Ok(Some(response.get()));
        }
        match (self.error, self.result) {
            (Some(error), _) => Err(InputError::RpcError(error.get().chars().take(MAX_QUOTED).collect())),
            (None, Some(result)) => Ok(Some(result.get())),
            (None, None) if self.jsonrpc.is_some() => Err(InputError::NoResult),
            (None, None) => Ok(None),
        }
    }
}

/// A document, or a member of one, without its wrapping.
#[derive(Debug)]
pub(super) enum Input<'a> {
    /// Bytes that were given as hex.
    Raw(Vec<u8>),
    /// A JSON object or array, as text.
    Json(&'a str),
}

impl<'a> Input<'a> {
    /// Reads a document: hex with or without `0x` and quotes, or JSON.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, InputError> {
        if bytes.len() > MAX_INPUT_BYTES {
            return Err(InputError::TooLong(bytes.len()));
        }
        let text = core::str::from_utf8(bytes).map_err(|_| InputError::Form("not text".into()))?.trim();
        if text.is_empty() {
            return Err(InputError::Empty);
        }
        if !text.starts_with(['{', '[', '"']) {
            return hex::decode(text).map(Self::Raw).map_err(|error| InputError::Form(error.to_string()));
        }
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|error| InputError::Form(error.to_string()))?;
        Self::of(raw.get())
    }

    /// Takes a JSON value: a string is hex, a JSON-RPC response is its result.
    pub(super) fn of(mut text: &'a str) -> Result<Self, InputError> {
        for _ in 0..MAX_WRAPPINGS {
            // An object that cannot be read is refused by the code that needs its members.
            let Ok(members) = DocumentMembers::read(text, "") else { break };
            let Some(inner) = members.wrapped()? else { break };
            text = inner;
        }
        match text.as_bytes().first() {
            Some(b'"') => hex::decode(unquoted(text))
                .map(Self::Raw)
                .map_err(|error| InputError::Form(error.to_string())),
            Some(b'{' | b'[') => Ok(Self::Json(text)),
            _ => Err(InputError::Shape("neither an object, an array nor a hex string".to_owned())),
        }
    }

    /// The members of a JSON object; `wanted` names it in errors.
    pub(super) fn members(&self, wanted: &str) -> Result<DocumentMembers<'a>, InputError> {
        match self {
            Self::Json(text) => DocumentMembers::read(text, wanted),
            Self::Raw(_) => Err(InputError::Shape(format!("{wanted} must be a JSON object"))),
        }
    }

    /// A header: its RLP, or a node's JSON of a block or uncle.
    pub(super) fn header(&self, network: &Network) -> Result<HeaderCandidate, CheckFailure> {
        let candidate = match self {
            Self::Raw(bytes) => HeaderCandidate::decode(bytes, network).map_err(|error| error.to_string()),
            Self::Json(text) => header_from_json(text, None, &|number| network.header_shape(number))
                .map(HeaderCandidate::from)
                .map_err(|error| error.to_string()),
        };
        candidate.map_err(|reason| CheckFailure::new(Rule::HeaderHash, "header", reason))
    }
}

/// The text between quotes; JSON without quotes is returned as it is. Hex and numbers need no escapes.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// The error that a member has another form than wanted.
fn wrong(field: &str, wanted: &str) -> InputError {
    InputError::Shape(format!("{field} is not {wanted}"))
}

/// Bytes from a JSON string of hex, with or without `0x`.
pub(super) fn bytes(raw: &RawValue, field: &str) -> Result<Bytes, InputError> {
    let digits = raw.get().starts_with('"').then(|| unquoted(raw.get()));
    let decoded = digits.and_then(|digits| hex::decode(digits).ok());
    decoded.map(Bytes::from).ok_or_else(|| wrong(field, "a string of hex digits"))
}

/// Exactly `N` bytes from a JSON string of hex.
pub(super) fn fixed<const N: usize>(raw: &RawValue, field: &str) -> Result<[u8; N], InputError> {
    <[u8; N]>::try_from(bytes(raw, field)?.as_ref()).map_err(|_| wrong(field, &format!("{N} bytes of hex")))
}

/// A 32-byte hash from a JSON string of hex.
pub(super) fn hash(raw: &RawValue, field: &str) -> Result<B256, InputError> {
    fixed(raw, field).map(B256::from)
}

/// A number of up to 32 bytes, bare or in quotes: hex with `0x`, else decimal. `0x` is zero.
pub(super) fn number(raw: &RawValue, field: &str) -> Result<U256, InputError> {
    let text = unquoted(raw.get());
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // `from_digits` would read an empty text as zero.
    let number = if text.is_empty() { None } else { from_digits(digits, radix) };
    number.ok_or_else(|| wrong(field, "a number of up to 32 bytes"))
}

/// The members of a JSON array, at most [`MAX_LIST`].
pub(super) fn list<'a>(text: &'a str, field: &str) -> Result<Vec<&'a RawValue>, InputError> {
    let mut members = Vec::new();
    let mut fits = true;
    for_each_member(text, &mut |member| {
        fits = members.len() < MAX_LIST;
        if fits {
            members.push(member);
        }
        fits
    })
    .map_err(|error| InputError::Shape(format!("{field}: {error}")))?;
    match fits {
        true => Ok(members),
        false => Err(InputError::Shape(format!("{field}: more than {MAX_LIST} members"))),
    }
}

/// Trie nodes from a JSON array of hex strings.
pub(super) fn nodes(text: &str, field: &str) -> Result<Vec<Bytes>, InputError> {
    list(text, field)?.into_iter().map(|node| bytes(node, field)).collect()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::super::{CheckFailure, DocumentSubject, Rule, verify_account};
    use super::{Input, InputError};

    #[test]
    fn an_empty_document_is_reported_as_empty() {
        for document in [&b""[..], b" ", b"\r\n\t"] {
            assert_eq!(Input::parse(document).err(), Some(InputError::Empty), "{document:?}");
        }
        let report = verify_account(b"\n", None);
        assert_eq!(report.subject, DocumentSubject::Account);
        let failed = report.failed.unwrap();
        assert_eq!(failed, CheckFailure::new(Rule::Document, "input", "the input is empty"));
        assert_eq!(failed.to_string(), "input: the input is empty");
    }
}
