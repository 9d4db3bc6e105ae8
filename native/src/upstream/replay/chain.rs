//! Heights, hashes and state roots of the recorded blocks.

use std::collections::{BTreeMap, HashMap};

use alloy_primitives::B256;
use serde::Deserialize;

use super::line::Exchange;

/// A recorded block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) number: u64,
    pub(super) hash: B256,
    pub(super) state_root: B256,
}

/// Blocks by number (the canonical chain) and by hash (also side blocks).
#[derive(Default)]
pub(super) struct Chain {
    canonical: BTreeMap<u64, Block>,
    by_hash: HashMap<B256, Block>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    number: String,
    hash: String,
    state_root: String,
}

impl Chain {
    /// Adds the block of a recorded response to `eth_getBlockByNumber` or `eth_getBlockByHash`.
    pub(super) fn learn(&mut self, exchange: &Exchange) {
        let by_number = match exchange.method.as_str() {
            "eth_getBlockByNumber" => true,
            "eth_getBlockByHash" => false,
            _ => return,
        };
        let Some(block) = exchange.result.as_ref().ok().and_then(|result| read(result.get())) else { return };
        let asked = exchange.params.first().and_then(serde_json::Value::as_str).and_then(quantity);
        if by_number && asked == Some(block.number) {
            self.canonical.insert(block.number, block);
        }
        self.by_hash.insert(block.hash, block);
    }

    /// Number of entries, for the memory budget.
    pub(super) fn len(&self) -> usize {
        self.canonical.len().saturating_add(self.by_hash.len())
    }

    pub(super) fn head(&self) -> Option<u64> {
        self.canonical.last_key_value().map(|(number, _)| *number)
    }

    pub(super) fn by_number(&self, number: u64) -> Option<&Block> {
        self.canonical.get(&number)
    }

    /// Returns a block of any branch.
    pub(super) fn by_hash(&self, hash: &B256) -> Option<&Block> {
        self.by_hash.get(hash)
    }

    /// Returns the height of a block, if it is on the canonical chain.
    pub(super) fn canonical_number(&self, hash: &B256) -> Option<u64> {
        let number = self.by_hash.get(hash)?.number;
        (self.by_number(number)?.hash == *hash).then_some(number)
    }
}

fn read(result: &str) -> Option<Block> {
    let fields: Fields = serde_json::from_str(result).ok()?;
    let (hash, state_root) = (fields.hash.parse().ok()?, fields.state_root.parse().ok()?);
    Some(Block { number: quantity(&fields.number)?, hash, state_root })
}

/// Parses a QUANTITY below 2^64.
pub(super) fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
