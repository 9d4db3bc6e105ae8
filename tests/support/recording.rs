//! A recorded chain with its blocks, uncles and receipts.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::Path;

use rootlight::consensus::{Genesis, Network};
use rootlight::exec::Ancestry;
use rootlight::trie::Trie;
use rootlight::types::json::{JsonBlock, block_from_json, header_from_json, receipt_from_json};
use rootlight::types::{B256, Block, BlockBody, Header, Receipt, SealedHeader, Transaction, U256};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::u64_of;

/// Files of recorded requests of `chain` that a light client can answer. Those about keys, pools and mining concern local chains
/// only and are left out.
pub const RECORDED_FILES: [&str; 26] = [
    "blocks",
    "blocks_byhash",
    "debug_callTracer",
    "debug_traceTransaction",
    "headers_raw",
    "hosted_like",
    "receipt_nodes",
    "receipts",
    "receipts_raw",
    "rpc_blocks",
    "rpc_call",
    "rpc_debug",
    "rpc_info",
    "rpc_logs",
    "rpc_misc",
    "rpc_override",
    "rpc_pool",
    "rpc_precompiles",
    "rpc_state",
    "rpc_trace",
    "rpc_txs",
    "side_blocks",
    "trace_block",
    "trace_transaction",
    "txs_get",
    "uncles",
];

/// The network of `chain_v0`.
pub fn regtest_v0() -> Network {
    let text = r#"{"name":"regtest-v0","rules":{"rskip144":-1,"rskip351":-1,"rskip535":-1}}"#;
    Network::from_json(text).unwrap()
}

#[derive(Deserialize)]
struct RecordedLine<'a> {
    #[serde(borrow)]
    request: &'a RawValue,
    #[serde(borrow)]
    response: RecordedResponse<'a>,
}

#[derive(Deserialize)]
struct RecordedResponse<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// The text of a recording, plain or compressed; empty if the file does not exist.
pub fn text_of(path: &Path) -> String {
    let mut text = String::new();
    let packed = path.with_extension("jsonl.gz");
    if path.is_file() {
        text = std::fs::read_to_string(path).unwrap();
    } else if packed.is_file() {
        flate2::read::GzDecoder::new(std::fs::File::open(packed).unwrap()).read_to_string(&mut text).unwrap();
    }
    text
}

pub fn results(path: &Path, method: &str) -> Vec<String> {
    let of_method = |line: &str| {
        let line: RecordedLine<'_> = serde_json::from_str(line).unwrap();
        line.request.get().contains(method).then(|| line.response.result.map(|r| r.get().to_owned()))?
    };
    text_of(path).lines().filter_map(of_method).filter(|result| result.starts_with('{')).collect()
}

/// A block and the recorded data about it.
pub struct RecordedBlock {
    pub header: SealedHeader,
    pub transactions: Vec<Transaction>,
    pub uncles: Vec<Header>,
    /// Recorded receipts, by index.
    pub receipts: BTreeMap<u64, Receipt>,
    /// Addresses of created contracts, by index.
    pub contracts: BTreeMap<u64, String>,
    pub total_difficulty: Option<U256>,
}

impl RecordedBlock {
    /// The block in its network encoding.
    pub fn block(&self) -> Block {
        Block {
            header: self.header.header().clone(),
            body: BlockBody { transactions: self.transactions.clone() },
            uncles: self.uncles.clone(),
        }
    }
}

pub struct Recording {
    pub network: Network,
    /// Canonical blocks, genesis first.
    pub blocks: Vec<RecordedBlock>,
    /// Blocks of other branches, by height.
    pub side: Vec<RecordedBlock>,
}

impl Recording {
    pub fn load(folder: &Path, network: Network) -> Self {
        let shape_of = |n| network.header_shape(n);
        let block = |text: &String| block_from_json(text, None, &shape_of, network.chain_id).unwrap();
        let mut blocks: BTreeMap<u64, JsonBlock> = BTreeMap::new();
        for text in results(&folder.join("blocks.jsonl"), "eth_getBlockByNumber") {
            let block = block(&text);
            blocks.insert(block.header.number, block);
        }
        let side = results(&folder.join("side_blocks.jsonl"), "eth_getBlockByHash");
        let mut side: Vec<JsonBlock> = side.iter().map(block).collect();
        side.sort_by_key(|block| block.header.number);
        let mut headers: HashMap<B256, Header> = HashMap::new();
        for file in ["uncles.jsonl", "side_blocks.jsonl"] {
            for text in results(&folder.join(file), "eth_getUncle") {
                let uncle = header_from_json(&text, None, &shape_of).unwrap();
                headers.insert(uncle.hash(), uncle.into_header());
            }
        }
        for block in side.iter().chain(blocks.values()) {
            headers.insert(block.header.hash(), block.header.header().clone());
        }
        let mut receipts = receipts(folder);
        let mut whole = |block: JsonBlock| {
            let (receipts, contracts) = receipts.remove(&block.header.hash()).unwrap_or_default();
            RecordedBlock {
                uncles: block.uncles.iter().map(|hash| headers[hash].clone()).collect(),
                transactions: block.transactions.into_full().unwrap(),
                receipts,
                contracts,
                total_difficulty: block.total_difficulty,
                header: block.header,
            }
        };
        let blocks = blocks.into_values().map(&mut whole).collect();
        let side = side.into_iter().map(whole).collect();
        Self { blocks, side, network }
    }
}

type OfBlock = (BTreeMap<u64, Receipt>, BTreeMap<u64, String>);

fn receipts(folder: &Path) -> HashMap<B256, OfBlock> {
    let mut out: HashMap<B256, OfBlock> = HashMap::new();
    for file in ["receipts.jsonl", "side_blocks.jsonl"] {
        for text in results(&folder.join(file), "eth_getTransactionReceipt") {
            let at: Value = serde_json::from_str(&text).unwrap();
            let block = at["blockHash"].as_str().unwrap().parse().unwrap();
            let index = u64_of(at["transactionIndex"].as_str().unwrap());
            let (receipts, contracts) = out.entry(block).or_default();
            receipts.insert(index, receipt_from_json(&text).unwrap());
            if let Some(contract) = at["contractAddress"].as_str() {
                contracts.insert(index, contract.to_owned());
            }
        }
    }
    out
}

impl Recording {
    /// All blocks up to a height without genesis. Side blocks follow the canonical block of their height.
    pub fn up_to(&self, height: u64) -> Vec<&RecordedBlock> {
        let all = self.blocks.iter().skip(1).chain(&self.side);
        let mut all: Vec<&RecordedBlock> = all.filter(|block| block.header.number <= height).collect();
        all.sort_by_key(|block| block.header.number);
        all
    }
}

/// Canonical blocks below a height, and a branch above it.
pub struct RecordedBranch<'a> {
    pub trunk: &'a [RecordedBlock],
    pub blocks: Vec<&'a RecordedBlock>,
}

impl<'a> RecordedBranch<'a> {
    /// The canonical chain alone.
    pub fn canonical(recording: &'a Recording) -> Self {
        Self { trunk: &recording.blocks, blocks: Vec::new() }
    }

    fn block(&self, number: u64) -> Option<&RecordedBlock> {
        let off = self.blocks.iter().find(|block| block.header.number == number).copied();
        off.or_else(|| self.trunk.get(number as usize))
    }
}

impl Ancestry for RecordedBranch<'_> {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        self.block(number).map(|block| block.header.clone())
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        self.block(number).map(|block| block.uncles.clone())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.block(number).and_then(|block| block.total_difficulty)
    }
}

/// The reference node's regtest state at block 0, under a network's rules.
pub fn genesis_state(shared: &Path, network: &Network) -> Trie {
    let text = std::fs::read_to_string(shared.join("realdata/genesis_files/rsk-dev.json")).unwrap();
    Genesis::from_json(&text).unwrap().computed_state(network)
}

/// Networks of the era recordings, by name.
pub fn era_network(shared: &Path, era: &str) -> Network {
    let text = std::fs::read_to_string(shared.join("vectors/eras/eras.json")).unwrap();
    let eras: Value = serde_json::from_str(&text).unwrap();
    let (forks, rules) = (&eras[era]["forkHeights"], &eras[era]["ruleHeights"]);
    let file = format!(r#"{{"name":"{era}","hardforks":{forks},"rules":{rules}}}"#);
    Network::from_json(&file).unwrap()
}
