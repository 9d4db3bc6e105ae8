//! The index of a recording: finds the line that holds the response to a request.

use std::collections::HashMap;

use alloy_primitives::{B256, Bytes, keccak256};
use rootlight_limits::budget::{Budget, Reservation};
use serde_json::Value;

use super::chain::ReplayChain;
use super::line::{self, LineContent, RecordedExchange};
use super::source::{RecordingFile, ReplayError};
use crate::UpstreamResult;

/// The key of a request: a hash of method and parameters, in which hex is lower case, object members are sorted,
/// and `ext_` methods have their `rsk_` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RequestKey(B256);

impl RequestKey {
    pub(super) fn new(method: &str, params: &[Value]) -> Self {
        let method = match method.strip_prefix("ext_") {
            Some(rest) => format!("rsk_{rest}"),
            None => method.to_owned(),
        };
        let params: Vec<Value> = params.iter().map(canonical).collect();
        Self(keccak256(format!("{method}\n{}", Value::from(params))))
    }
}

/// Normalizes parameters: hex becomes lower case; serde's map type sorts object members.
fn canonical(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("0x") || text.starts_with("0X") => {
            text.to_ascii_lowercase().into()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), canonical(value))).collect()
        }
        other => other.clone(),
    }
}

/// Bytes that one request, node or block takes in the index, with room for growth.
const ENTRY_BYTES: usize = 192;

/// Bytes that the index takes from the budget at a time.
const HOLD_STEP: usize = 256 * 1024;

#[derive(Clone, Copy)]
struct LinePosition {
    source: u32,
    offset: u64,
    length: u32,
}

struct IndexedAnswer {
    line: LinePosition,
    /// Whether the result is not null. It replaces errors and nulls, which a recording has from polling.
    settled: bool,
}

/// The index over all files of a recording.
pub(super) struct RecordingIndex {
    sources: Vec<RecordingFile>,
    answers: HashMap<RequestKey, IndexedAnswer>,
    nodes: HashMap<B256, LinePosition>,
    chain: ReplayChain,
    reserved: Reservation,
}

impl RecordingIndex {
    /// Reads all sources once. The index takes its bytes from the budget.
    pub(super) fn build(sources: Vec<RecordingFile>, budget: &Budget) -> Result<Self, ReplayError> {
        let mut index = Self {
            sources: Vec::new(),
            answers: HashMap::new(),
            nodes: HashMap::new(),
            chain: ReplayChain::default(),
            reserved: Reservation::default(),
        };
        for (source, number) in sources.iter().zip(0_u32..) {
            source.lines(&mut |offset, text| {
                let Ok(length) = u32::try_from(text.len()) else { return Ok(()) };
                index.add(LinePosition { source: number, offset, length }, text);
                index.hold(source, budget)
            })?;
        }
        index.sources = sources;
        Ok(index)
    }

    /// Takes bytes from the recordings' budget as the index grows.
    fn hold(&mut self, source: &RecordingFile, budget: &Budget) -> Result<(), ReplayError> {
        let entries = self.answers.len().saturating_add(self.nodes.len()).saturating_add(self.chain.len());
        let bytes = entries.saturating_mul(ENTRY_BYTES);
        if bytes > self.reserved.bytes() {
            source.hold(budget, &mut self.reserved, HOLD_STEP)?;
        }
        Ok(())
    }

    fn add(&mut self, line: LinePosition, text: &[u8]) {
        match line::read(text) {
            LineContent::Nothing => {}
            LineContent::Node(hash) => {
                self.nodes.entry(hash).or_insert(line);
            }
            LineContent::Exchanges(exchanges) => {
                for exchange in &exchanges {
                    self.add_exchange(line, exchange);
                }
            }
        }
    }

    fn add_exchange(&mut self, line: LinePosition, exchange: &RecordedExchange) {
        let settled = exchange.result.as_ref().is_ok_and(|result| result.get() != "null");
        let request = RequestKey::new(&exchange.method, &exchange.params);
        let take = match self.answers.get(&request) {
            None => true,
            Some(known) if known.settled != settled => settled,
            Some(_) => moves(&exchange.method, &exchange.params),
        };
        if take {
            self.answers.insert(request, IndexedAnswer { line, settled });
        }
        self.chain.learn(exchange, take);
    }

    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether there is neither a request nor a node.
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.nodes.is_empty()
    }

    pub(super) fn chain(&self) -> &ReplayChain {
        &self.chain
    }

    /// Returns the recorded response, read from its line.
    pub(super) fn answer(&self, request: &RequestKey) -> Option<UpstreamResult> {
        let entry = self.answers.get(request)?;
        let LineContent::Exchanges(exchanges) = line::read(&self.read(entry.line)?) else { return None };
        let asked =
            |exchange: &RecordedExchange| RequestKey::new(&exchange.method, &exchange.params) == *request;
        exchanges.into_iter().find(asked).map(|exchange| exchange.result)
    }

    /// Returns a recorded node, if its bytes have this hash.
    pub(super) fn node(&self, hash: &B256) -> Option<Bytes> {
        let value = line::node_value(&self.read(*self.nodes.get(hash)?)?)?;
        (keccak256(&value) == *hash).then_some(value)
    }

    fn read(&self, line: LinePosition) -> Option<Vec<u8>> {
        let source = self.sources.get(usize::try_from(line.source).ok()?)?;
        source.read(line.offset, line.length)
    }
}

/// Whether the response to a request changes while a node runs; its last recorded response counts. All other
/// requests are about fixed blocks, and their first response counts.
fn moves(method: &str, params: &[Value]) -> bool {
    let tag = |param: &Value| matches!(param.as_str(), Some("latest" | "pending" | "safe" | "finalized"));
    matches!(method, "eth_getTransactionByHash" | "eth_getTransactionReceipt")
        || params.is_empty()
        || params.iter().any(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_match_regardless_of_hex_case_member_order_and_prefix() {
        let one = RequestKey::new("ext_getRaw", &[json!({"b": "0xAb", "a": [1]})]);
        assert_eq!(one, RequestKey::new("rsk_getRaw", &[json!({"a": [1], "b": "0xab"})]));
        assert_ne!(one, RequestKey::new("rsk_getRaw", &[json!({"a": [1], "b": "0xac"})]));
        assert_ne!(RequestKey::new("m", &[json!("Text")]), RequestKey::new("m", &[json!("text")]));
        assert_ne!(RequestKey::new("m", &[json!("0x1")]), RequestKey::new("m", &[json!(1)]));
    }
}
