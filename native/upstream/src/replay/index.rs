//! The index of a recording: finds the line with the response to a request, and the line with a trie node.

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
    /// The key of a request with these parameters.
    pub(super) fn new(method: &str, params: &[Value]) -> Self {
        let method = match method.strip_prefix("ext_") {
            Some(rest) => format!("rsk_{rest}"),
            None => method.to_owned(),
        };
        let params: Vec<Value> = params.iter().map(canonical).collect();
        Self(keccak256(format!("{method}\n{}", Value::from(params))))
    }
}

/// Normalizes a parameter: hex becomes lower case, and the members of an object are sorted, which serde's map type does.
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

/// Bytes that one request, node or block takes in the index, with the free part of a growing hash table.
const ENTRY_BYTES: usize = 192;

/// Bytes that the index reserves of the budget at a time.
const HOLD_STEP: usize = 256 * 1024;

/// The position of a line: the index of its file, and the offset and length in bytes.
#[derive(Clone, Copy)]
struct LinePosition {
    file: u32,
    offset: u64,
    length: u32,
}

/// The line with the response to a request.
struct IndexedAnswer {
    line: LinePosition,
    /// Whether the response is a result other than null. Such a response replaces an error or null, which a recording has from
    /// requests that were repeated until they had a result.
    settled: bool,
}

/// The index over all files of a recording.
pub(super) struct RecordingIndex {
    files: Vec<RecordingFile>,
    answers: HashMap<RequestKey, IndexedAnswer>,
    /// The trie nodes and long values, by hash.
    nodes: HashMap<B256, LinePosition>,
    chain: ReplayChain,
    /// The bytes of the budget that the index takes.
    reserved: Reservation,
}

impl RecordingIndex {
    /// Reads all files once. The index reserves its bytes of the budget.
    pub(super) fn build(files: Vec<RecordingFile>, budget: &Budget) -> Result<Self, ReplayError> {
        let mut index = Self {
            files: Vec::new(),
            answers: HashMap::new(),
            nodes: HashMap::new(),
            chain: ReplayChain::default(),
            reserved: Reservation::default(),
        };
        for (file, number) in files.iter().zip(0_u32..) {
            file.lines(&mut |offset, text| {
                // A line is shorter than 16 MiB (`source.rs`), so that its length fits.
                let Ok(length) = u32::try_from(text.len()) else { return Ok(()) };
                index.add(LinePosition { file: number, offset, length }, text);
                index.hold(file, budget)
            })?;
        }
        index.files = files;
        Ok(index)
    }

    /// Reserves bytes of the budget of recordings as the index grows. An error names `file`.
    fn hold(&mut self, file: &RecordingFile, budget: &Budget) -> Result<(), ReplayError> {
        let entries = self.answers.len().saturating_add(self.nodes.len()).saturating_add(self.chain.len());
        let bytes = entries.saturating_mul(ENTRY_BYTES);
        if bytes > self.reserved.bytes() {
            file.hold(budget, &mut self.reserved, HOLD_STEP)?;
        }
        Ok(())
    }

    /// Adds the contents of a line.
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

    /// Adds a request with its response, unless a better response to the same request was added before.
    fn add_exchange(&mut self, line: LinePosition, exchange: &RecordedExchange) {
        let settled = exchange.result.as_ref().is_ok_and(|result| result.get() != "null");
        let request = RequestKey::new(&exchange.method, &exchange.params);
        let take = match self.answers.get(&request) {
            None => true,
            Some(known) if known.settled != settled => settled,
            Some(_) => may_change(&exchange.method, &exchange.params),
        };
        if take {
            self.answers.insert(request, IndexedAnswer { line, settled });
        }
        self.chain.learn(exchange, take);
    }

    /// The number of recorded requests.
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

    /// The bytes of a line.
    fn read(&self, line: LinePosition) -> Option<Vec<u8>> {
        let file = self.files.get(usize::try_from(line.file).ok()?)?;
        file.read(line.offset, line.length)
    }
}

/// Whether the response to a request can change while a node runs: then its last recorded response counts. All other
/// requests are about fixed blocks, and their first response counts.
fn may_change(method: &str, params: &[Value]) -> bool {
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
