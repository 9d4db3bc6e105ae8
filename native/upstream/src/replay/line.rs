//! Decodes one line of a recording: requests with their responses, or a trie node. The forms are listed in `mod.rs`.

use alloy_primitives::{B256, Bytes, keccak256};
use rootlight::light::RawResponse;
use rootlight::types::json::for_each_member;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{UpstreamResult, result_of};

/// Longest JSON-RPC id that is compared, in bytes; bounds the memory of a batch's ids.
const ID_BYTES: usize = 256;
/// Most members of a recorded batch that are read; further ones are ignored.
const BATCH: usize = 1000;

/// The members of a line.
#[derive(Deserialize)]
struct RawLine<'a> {
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    hash: Option<&'a RawValue>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    node: Option<&'a RawValue>,
}

/// Longest request or batch of requests in a line, in bytes; parsed parameters take many times as much
/// memory.
const REQUEST_BYTES: usize = 1024 * 1024;

/// A recorded request with its response.
pub(super) struct RecordedExchange {
    pub(super) method: String,
    pub(super) params: Vec<Value>,
    pub(super) result: UpstreamResult,
}

/// The contents of a line.
pub(super) enum LineContent {
    /// One request with its response, or those of a batch.
    Exchanges(Vec<RecordedExchange>),
    /// A trie node or long value with this hash.
    Node(B256),
    /// Neither of these.
    Nothing,
}

/// A recorded request.
#[derive(Deserialize)]
struct LineRequest {
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(default)]
    params: Option<Vec<Value>>,
}

/// Decodes a line; any other text is [`LineContent::Nothing`].
pub(super) fn read(line: &[u8]) -> LineContent {
    let Ok(line) = serde_json::from_slice::<RawLine<'_>>(line) else { return LineContent::Nothing };
    match line {
        RawLine { request: Some(request), response: Some(response), .. } => {
            LineContent::Exchanges(exchanges(request.get(), response.get()))
        }
        RawLine { hash: Some(hash), value: Some(_), request: None, .. } => {
            text(hash).map_or(LineContent::Nothing, LineContent::Node)
        }
        RawLine { node: Some(node), request: None, .. } => {
            text::<Bytes>(node).map_or(LineContent::Nothing, |node| LineContent::Node(keccak256(node)))
        }
        _ => LineContent::Nothing,
    }
}

/// The bytes of the trie node or long value in a line.
pub(super) fn node_value(line: &[u8]) -> Option<Bytes> {
    let line = serde_json::from_slice::<RawLine<'_>>(line).ok()?;
    text(line.node.or(line.value)?)
}

/// Parses a JSON string of hexadecimal digits.
fn text<T: std::str::FromStr>(raw: &RawValue) -> Option<T> {
    serde_json::from_str::<String>(raw.get()).ok()?.parse().ok()
}

/// The requests of a line, each with its response. In a batch, the id says which response belongs to a request.
fn exchanges(request: &str, response: &str) -> Vec<RecordedExchange> {
    if request.len() > REQUEST_BYTES {
        return Vec::new();
    }
    if !request.trim_start().starts_with('[') {
        return serde_json::from_str(request)
            .ok()
            .and_then(|request| exchange(request, response))
            .into_iter()
            .collect();
    }
    let requests: Vec<&RawValue> = serde_json::from_str(request).unwrap_or_default();
    let mut responses: Vec<(Value, &str)> = Vec::new();
    let read = for_each_member(response, &mut |raw| {
        responses.push((id_of(raw.get()), raw.get()));
        responses.len() < BATCH
    });
    if read.is_err() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for request in requests.into_iter().take(BATCH) {
        let Ok(request) = serde_json::from_str::<LineRequest>(request.get()) else { continue };
        let response = responses.iter().find(|(id, _)| !id.is_null() && *id == request.id);
        found.extend(response.and_then(|(_, response)| exchange(request, response)));
    }
    found
}

/// A request with its response; `None` if the response is not JSON-RPC.
fn exchange(request: LineRequest, response: &str) -> Option<RecordedExchange> {
    let result = result_of(RawResponse::read(response).ok()?);
    Some(RecordedExchange { method: request.method, params: request.params.unwrap_or_default(), result })
}

/// The id of a response; null if it is missing or too long.
fn id_of(response: &str) -> Value {
    #[derive(Deserialize)]
    struct Id<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
    }
    let id = serde_json::from_str::<Id<'_>>(response).ok().and_then(|with| with.id);
    let short = id.filter(|id| id.get().len() <= ID_BYTES);
    short.and_then(|id| serde_json::from_str(id.get()).ok()).unwrap_or_default()
}
