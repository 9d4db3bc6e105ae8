//! The index of a recording: which line answers which question.

use std::collections::HashMap;

use alloy_primitives::{B256, Bytes, keccak256};
use serde_json::Value;

use super::chain::Chain;
use super::line::{self, Content, Exchange};
use super::source::{ReplayError, Source};
use crate::budget::Held;
use crate::upstream::CallResult;

/// A method with parameters, reduced to a key: hex in lower case, object members sorted, and
/// `ext_` names as their `rsk_` twins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question(B256);

impl Question {
    pub(super) fn new(method: &str, params: &[Value]) -> Self {
        let method = match method.strip_prefix("ext_") {
            Some(rest) => format!("rsk_{rest}"),
            None => method.to_owned(),
        };
        let params: Vec<Value> = params.iter().map(canonical).collect();
        Self(keccak256(format!("{method}\n{}", Value::from(params))))
    }
}

/// Objects are sorted by serde's map type; hex differs only by case.
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

/// Bytes that a question, node or block takes in the index, with room for growth.
const ENTRY_BYTES: usize = 192;

/// Bytes of the budget that the index takes at a time.
const HOLD_STEP: usize = 256 * 1024;

/// A line.
#[derive(Clone, Copy)]
struct Place {
    source: u32,
    offset: u64,
    length: u32,
}

struct Entry {
    place: Place,
    /// A result other than null; it beats errors and nulls, which polling leaves behind.
    settled: bool,
}

/// Everything known about a recording.
pub(super) struct Index {
    sources: Vec<Source>,
    answers: HashMap<Question, Entry>,
    nodes: HashMap<B256, Place>,
    chain: Chain,
    held: Held,
}

impl Index {
    /// Reads all sources once.
    pub(super) fn build(sources: Vec<Source>) -> Result<Self, ReplayError> {
        let mut index = Self {
            sources: Vec::new(),
            answers: HashMap::new(),
            nodes: HashMap::new(),
            chain: Chain::default(),
            held: Held::default(),
        };
        for (source, number) in sources.iter().zip(0_u32..) {
            source.lines(&mut |offset, text| {
                let Ok(length) = u32::try_from(text.len()) else { return Ok(()) };
                index.add(Place { source: number, offset, length }, text);
                index.hold(source)
            })?;
        }
        index.sources = sources;
        Ok(index)
    }

    /// Makes sure that the index fits with what else is held of recordings.
    fn hold(&mut self, source: &Source) -> Result<(), ReplayError> {
        let entries = self.answers.len().saturating_add(self.nodes.len()).saturating_add(self.chain.len());
        let bytes = entries.saturating_mul(ENTRY_BYTES);
        if bytes > self.held.bytes() {
            source.hold(&mut self.held, HOLD_STEP)?;
        }
        Ok(())
    }

    fn add(&mut self, place: Place, text: &[u8]) {
        match line::read(text) {
            Content::Nothing => {}
            Content::Node(hash) => {
                self.nodes.entry(hash).or_insert(place);
            }
            Content::Exchanges(exchanges) => {
                for exchange in &exchanges {
                    self.add_exchange(place, exchange);
                }
            }
        }
    }

    fn add_exchange(&mut self, place: Place, exchange: &Exchange) {
        let settled = exchange.result.as_ref().is_ok_and(|result| result.get() != "null");
        let question = Question::new(&exchange.method, &exchange.params);
        let take = match self.answers.get(&question) {
            None => true,
            Some(known) if known.settled != settled => settled,
            Some(_) => moves(&exchange.method, &exchange.params),
        };
        if take {
            self.answers.insert(question, Entry { place, settled });
            self.chain.learn(exchange);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The recorded answer, read from its line.
    pub(super) fn answer(&self, question: &Question) -> Option<CallResult> {
        let entry = self.answers.get(question)?;
        let Content::Exchanges(exchanges) = line::read(&self.read(entry.place)?) else { return None };
        let asked = |exchange: &Exchange| Question::new(&exchange.method, &exchange.params) == *question;
        exchanges.into_iter().find(asked).map(|exchange| exchange.result)
    }

    /// A recorded node whose bytes have this hash.
    pub(super) fn node(&self, hash: &B256) -> Option<Bytes> {
        let value = line::node_value(&self.read(*self.nodes.get(hash)?)?)?;
        (keccak256(&value) == *hash).then_some(value)
    }

    fn read(&self, place: Place) -> Option<Vec<u8>> {
        let source = self.sources.get(usize::try_from(place.source).ok()?)?;
        source.read(place.offset, place.length)
    }
}

/// Questions whose answer changes while a node runs: the last one recorded is the settled one.
/// All others are about fixed blocks, and the first answer is the one the recording is about.
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
    fn questions_ignore_spelling() {
        let one = Question::new("ext_getRaw", &[json!({"b": "0xAb", "a": [1]})]);
        assert_eq!(one, Question::new("rsk_getRaw", &[json!({"a": [1], "b": "0xab"})]));
        assert_ne!(one, Question::new("rsk_getRaw", &[json!({"a": [1], "b": "0xac"})]));
        assert_ne!(Question::new("m", &[json!("Text")]), Question::new("m", &[json!("text")]));
        assert_ne!(Question::new("m", &[json!("0x1")]), Question::new("m", &[json!(1)]));
    }
}
