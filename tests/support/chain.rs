//! The recorded chain: its blocks, its state nodes, and single facts that calls request.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::Path;

use alloy_primitives::{Address, B256, Bytes, U256};
use rootlight::consensus::Network;
use rootlight::exec::{BlockEnvironment, BlockHashes};
use rootlight::state::{StateKey, keys};
use rootlight::trie::{Lookup, lookup, prove};
use rootlight::types::json::header_from_json;
use rootlight::types::{Header, SealedHeader};
use serde_json::Value;

use super::{bytes, u64_of, u256};

pub fn lines(path: &Path) -> Vec<Value> {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parse = |line: std::io::Result<String>| serde_json::from_str(&line.unwrap()).unwrap();
    std::io::BufReader::new(file).lines().map(parse).collect()
}

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is missing"))
}

/// The environment of a block in the node's JSON.
pub fn environment(block: &Value) -> BlockEnvironment {
    BlockEnvironment {
        number: u64_of(text(block, "number")),
        timestamp: u64_of(text(block, "timestamp")),
        coinbase: Address::from_slice(&bytes(text(block, "miner"))),
        difficulty: u256(text(block, "difficulty")),
        gas_limit: u256(text(block, "gasLimit")),
        minimum_gas_price: u256(text(block, "minimumGasPrice")),
    }
}

/// The parts of `vectors/chain` that calls need.
pub struct RecordedChain {
    pub blocks: BTreeMap<u64, Value>,
    pub nodes: BTreeMap<B256, Bytes>,
}

impl RecordedChain {
    pub fn load(vectors: &Path) -> Self {
        let mut blocks = BTreeMap::new();
        for line in lines(&vectors.join("chain/blocks.jsonl")) {
            let block = line["response"]["result"].clone();
            if block.is_object() {
                blocks.insert(u64_of(text(&block, "number")), block);
            }
        }
        let nodes = lines(&vectors.join("chain/state_nodes.jsonl"));
        let nodes = nodes.iter().map(|node| (hash(text(node, "hash")), bytes(text(node, "value")))).collect();
        Self { blocks, nodes }
    }

    pub fn root(&self, number: u64) -> B256 {
        hash(text(&self.blocks[&number], "stateRoot"))
    }

    /// The answer of an honest upstream to a request for one fact: nodes and long values.
    pub fn facts(&self, root: B256, key: StateKey) -> Vec<Bytes> {
        let slot;
        let (path, long) = match &key {
            StateKey::Account(address) => (keys::account_key(address).to_vec(), false),
            StateKey::Code(address) => (keys::code_key(address).to_vec(), true),
            StateKey::Storage(address, word) | StateKey::StorageBytes(address, word) => {
                slot = keys::slot_key(address, word);
                (slot, matches!(key, StateKey::StorageBytes(..)))
            }
            _ => return Vec::new(),
        };
        let mut facts = prove(&self.nodes, root, &path).unwrap();
        if long {
            match lookup(&self.nodes, root, &path).unwrap() {
                Lookup::FoundLong { hash, .. } => facts.push(self.nodes[&hash].clone()),
                other => panic!("{key:?}: a long value was asked for, there is {other:?}"),
            }
        }
        facts
    }
}

/// Block hashes of the recorded chain below a height, or only some of them.
pub struct ChainHashes<'a> {
    pub chain: &'a RecordedChain,
    /// Heights that are available; `None` means all.
    pub known: Option<std::collections::BTreeSet<u64>>,
}

impl ChainHashes<'_> {
    /// An available block, as JSON.
    fn block(&self, number: u64) -> Option<&Value> {
        if self.known.as_ref().is_some_and(|known| !known.contains(&number)) {
            return None;
        }
        self.chain.blocks.get(&number)
    }
}

impl BlockHashes for ChainHashes<'_> {
    fn block_hash(&self, number: u64) -> Option<B256> {
        self.block(number).map(|block| hash(text(block, "hash")))
    }

    fn header(&self, number: u64) -> Option<SealedHeader> {
        let block = self.block(number)?.to_string();
        let network = Network::regtest();
        Some(header_from_json(&block, None, &|number| network.header_shape(number)).unwrap())
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        let none = self.block(number)?["uncles"].as_array().unwrap().is_empty();
        assert!(none, "uncles of {number} are not loaded");
        Some(Vec::new())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.block(number).map(|block| u256(text(block, "totalDifficulty")))
    }
}

pub fn hash(text: &str) -> B256 {
    text.parse().expect("32-byte hash")
}
