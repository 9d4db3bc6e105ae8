//! The recorded blocks: heights, hashes and state roots, by which requests by hash are answered from responses by number, and state
//! from recorded trie nodes.

use std::collections::{BTreeMap, HashMap, HashSet};

use alloy_primitives::B256;
use serde::Deserialize;

use super::line::RecordedExchange;
use crate::UpstreamResult;

/// A recorded block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayBlock {
    pub(super) number: u64,
    pub(super) hash: B256,
    pub(super) state_root: B256,
}

/// Blocks by number (the canonical chain) and by hash (also side blocks).
#[derive(Default)]
pub(super) struct ReplayChain {
    canonical: BTreeMap<u64, ReplayBlock>,
    by_hash: HashMap<B256, ReplayBlock>,
    /// Numbers for which different blocks were recorded.
    reorganized: HashSet<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockFields {
    number: String,
    hash: String,
    state_root: String,
}

impl ReplayChain {
    /// Adds the block of a recorded response to `eth_getBlockByNumber` or `eth_getBlockByHash`. `counts` says whether this response
    /// is the one that the replay gives for its request.
    pub(super) fn learn(&mut self, exchange: &RecordedExchange, counts: bool) {
        let by_number = match exchange.method.as_str() {
            "eth_getBlockByNumber" => true,
            "eth_getBlockByHash" => false,
            _ => return,
        };
        let Some(block) = block_of(&exchange.result) else { return };
        let asked = exchange.params.first().and_then(serde_json::Value::as_str).and_then(quantity);
        if by_number && asked == Some(block.number) {
            if self.by_number(block.number).is_some_and(|known| known.hash != block.hash) {
                self.reorganized.insert(block.number);
            }
            if counts {
                self.canonical.insert(block.number, block);
            }
        }
        self.by_hash.insert(block.hash, block);
    }

    /// Number of entries, for the memory budget.
    pub(super) fn len(&self) -> usize {
        self.canonical.len().saturating_add(self.by_hash.len()).saturating_add(self.reorganized.len())
    }

    /// The height of the highest canonical block.
    pub(super) fn head(&self) -> Option<u64> {
        self.canonical.last_key_value().map(|(number, _)| *number)
    }

    pub(super) fn by_number(&self, number: u64) -> Option<&ReplayBlock> {
        self.canonical.get(&number)
    }

    /// Whether different blocks of this number were recorded.
    pub(super) fn is_reorganized(&self, number: u64) -> bool {
        self.reorganized.contains(&number)
    }

    pub(super) fn by_hash(&self, hash: &B256) -> Option<&ReplayBlock> {
        self.by_hash.get(hash)
    }

    /// Returns the height of a block, if it is on the canonical chain.
    pub(super) fn canonical_number(&self, hash: &B256) -> Option<u64> {
        let number = self.by_hash.get(hash)?.number;
        (self.by_number(number)?.hash == *hash).then_some(number)
    }
}

/// Whether a response is a block with this hash, or a transaction in it.
pub(super) fn states_block(answer: &UpstreamResult, hash: &B256) -> bool {
    /// The hashes of blocks that a block or a transaction states.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Stated {
        hash: Option<B256>,
        block_hash: Option<B256>,
    }
    let stated = answer.as_ref().ok().and_then(|result| serde_json::from_str::<Stated>(result.get()).ok());
    stated.and_then(|stated| stated.block_hash.or(stated.hash)) == Some(*hash)
}

/// Reads the block that a response shows.
pub(super) fn block_of(answer: &UpstreamResult) -> Option<ReplayBlock> {
    let fields: BlockFields = serde_json::from_str(answer.as_ref().ok()?.get()).ok()?;
    let (hash, state_root) = (fields.hash.parse().ok()?, fields.state_root.parse().ok()?);
    Some(ReplayBlock { number: quantity(&fields.number)?, hash, state_root })
}

/// Parses a QUANTITY below 2^64.
pub(super) fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
