//! Rebuilds the headers, transactions and receipts of a recorded node from its JSON and from its raw bytes,
//! and compares the JSON written from them with the recorded text. A few blocks are part of the repository;
//! the complete recordings are used if they exist.

use crate::support;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rootlight::types::block::{block_len, encode_uncles};
use rootlight::types::json::{
    BlockParts, Location, RpcBlock, RpcReceipt, RpcTransaction, RpcTransactions, block_from_json,
    header_from_json, location_from_json, receipt_from_json, transaction_from_json,
};
use rootlight::types::{
    B256, Header, HeaderForm, HeaderShape, HeaderVersion, Receipt, SealedHeader, Transaction, U256,
    keccak256, uncles_hash,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use support::{bytes, shapes, shared};

const CHAIN_ID: u64 = 33;

/// Header layout by height.
type ShapeOf = dyn Fn(u64) -> HeaderShape;

#[derive(Deserialize)]
struct RecordedLine {
    label: Option<String>,
    request: RecordedRequest,
    response: RecordedResponse,
}

#[derive(Deserialize)]
struct RecordedRequest {
    method: String,
    params: Vec<Value>,
}

#[derive(Deserialize)]
struct RecordedResponse {
    result: Option<Box<RawValue>>,
}

impl RecordedLine {
    /// The text of the result, or `None` if the recording has none.
    fn result(&self) -> Option<&str> {
        self.response.result.as_deref().map(RawValue::get).filter(|text| *text != "null")
    }

    fn result_bytes(&self) -> Vec<u8> {
        bytes(self.result().unwrap().trim_matches('"')).to_vec()
    }

    fn param(&self) -> &str {
        self.request.params[0].as_str().unwrap()
    }
}

/// The lines of a file, or of its compressed form.
fn lines(path: &Path) -> Vec<RecordedLine> {
    let text = fs::read_to_string(path).unwrap_or_else(|_| {
        let unpacked = Command::new("gzip").arg("-dc").arg(compressed(path)).output().unwrap();
        assert!(unpacked.status.success(), "{}", path.display());
        String::from_utf8(unpacked.stdout).unwrap()
    });
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn compressed(path: &Path) -> PathBuf {
    path.with_extension("jsonl.gz")
}

fn exists(path: &Path) -> bool {
    path.exists() || compressed(path).exists()
}

/// A recording and the layout of its headers. A trimmed recording has only a few blocks.
struct HeaderRecording {
    path: PathBuf,
    shape: Box<ShapeOf>,
    /// Whether the blocks are consecutive.
    whole: bool,
    /// Whether this is one of the two large recordings, whose counts are known.
    main: bool,
}

/// The layout of a chain's headers by height.
type Shape = fn(u64) -> HeaderShape;

/// The two main recordings: trimmed copies, and the complete ones if they exist.
fn main_chains() -> Vec<HeaderRecording> {
    let trimmed = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors"));
    let layouts: [(&str, Shape); 2] = [("chain", shapes::regtest), ("chain_v0", shapes::regtest_v0)];
    let mut out = Vec::new();
    for (name, shape) in layouts {
        let path = trimmed.join(format!("{name}_trimmed"));
        out.push(HeaderRecording { path, shape: Box::new(shape), whole: false, main: false });
        if let Some(shared) = shared() {
            let path = shared.join("vectors").join(name);
            out.push(HeaderRecording { path, shape: Box::new(shape), whole: true, main: true });
        }
    }
    out
}

/// The main recordings, and recordings under older rules and of special blocks.
fn chains() -> Vec<HeaderRecording> {
    let mut out = main_chains();
    let Some(vectors) = shared().map(|shared| shared.join("vectors")) else { return out };
    for name in ["bridge_chain", "peg_chain", "edge_chain"] {
        let path = vectors.join("execution").join(name);
        out.push(HeaderRecording { path, shape: Box::new(shapes::regtest), whole: true, main: false });
    }
    let eras: BTreeMap<String, Value> =
        serde_json::from_str(&fs::read_to_string(vectors.join("eras/eras.json")).unwrap()).unwrap();
    for (name, era) in eras {
        let path = vectors.join("eras").join(format!("chain_{name}"));
        let height = |rule: &str| u64::try_from(era["ruleHeights"][rule].as_i64().unwrap()).ok();
        let rules = ["rskip110", "rskipUMM", "rskip351", "rskip535"].map(height);
        assert_eq!(height("rskip144"), height("rskip351"));
        let shape = move |number| {
            let [fork_detection, umm, v1, v2] = rules.map(|from| from.is_some_and(|from| number >= from));
            let version = match (v1 && number > 0, v2) {
                (false, _) => HeaderVersion::V0,
                (true, false) => HeaderVersion::V1,
                (true, true) => HeaderVersion::V2,
            };
            shapes::shape(version, umm && number > 0, fork_detection && number >= 449)
        };
        if path.exists() {
            out.push(HeaderRecording { path, shape: Box::new(shape), whole: true, main: false });
        }
    }
    out
}

fn hash_of(value: &Value) -> B256 {
    B256::from_slice(&bytes(value.as_str().unwrap()))
}

/// All headers that a recording shows as blocks or uncles, by hash.
fn headers_by_hash(chain: &Path, shape: &ShapeOf) -> HashMap<B256, SealedHeader> {
    ["uncles.jsonl", "side_blocks.jsonl", "blocks.jsonl"]
        .iter()
        .filter(|name| exists(&chain.join(name)))
        .flat_map(|name| lines(&chain.join(name)))
        .filter(|line| ["eth_getUncle", "eth_getBlock"].iter().any(|m| line.request.method.starts_with(m)))
        .map(|line| header_from_json(line.result().unwrap(), None, shape).unwrap())
        .map(|header| (header.hash(), header))
        .collect()
}

fn rpc_transactions(transactions: &[Transaction], header: &SealedHeader) -> RpcTransactions {
    let shown = transactions.iter().zip(0..).map(|(tx, index)| {
        let at = Location { block_hash: header.hash(), block_number: header.number, index };
        RpcTransaction::new(tx, tx.hash(), tx.recover_sender(CHAIN_ID).unwrap(), Some(&at))
    });
    RpcTransactions::Full(shown.collect())
}

/// Rebuilds a block from its JSON, compares its JSON with the recorded text, and returns the header.
fn check_block(text: &str, shape: &ShapeOf, uncles: &HashMap<B256, SealedHeader>) -> SealedHeader {
    let recorded: Value = serde_json::from_str(text).unwrap();
    let block = block_from_json(text, None, shape, CHAIN_ID).unwrap();
    assert_eq!(block.header.hash(), hash_of(&recorded["hash"]));
    let transactions = block.transactions.into_full().expect("full blocks were recorded");
    let uncles: Vec<SealedHeader> = block.uncles.iter().map(|hash| uncles[hash].clone()).collect();
    let headers: Vec<Header> = uncles.iter().map(|uncle| uncle.header().clone()).collect();
    assert_eq!(uncles_hash(&headers), block.header.uncles_hash);
    assert_eq!(keccak256(encode_uncles(&headers)), block.header.uncles_hash);
    let size = block_len(&block.header, &transactions, &headers);
    assert_eq!(Some(size), block.size);
    let shown = RpcBlock::new(
        &block.header,
        BlockParts {
            transactions: rpc_transactions(&transactions, &block.header),
            uncles: Some(&uncles),
            total_difficulty: block.total_difficulty,
            size: Some(size),
        },
    );
    assert_eq!(serde_json::to_string(&shown).unwrap(), text);
    block.header
}

#[test]
fn every_block_is_rebuilt_from_json_and_written_as_recorded() {
    for HeaderRecording { path: chain, shape, whole, main } in chains() {
        let shape = shape.as_ref();
        let uncles = headers_by_hash(&chain, shape);
        let blocks = lines(&chain.join("blocks.jsonl"));
        assert!(!main || blocks.len() > 500);
        let headers: BTreeMap<u64, SealedHeader> = blocks
            .iter()
            .map(|line| check_block(line.result().unwrap(), shape, &uncles))
            .map(|header| (header.number, header))
            .collect();
        for pair in headers.values().collect::<Vec<_>>().windows(2) {
            assert!(!whole || pair[1].parent_hash == pair[0].hash());
        }
        check_raw_headers(&chain, shape, &headers);
    }
}

/// The raw headers of the canonical blocks decode to the same headers, apart from the merged-mining proof.
fn check_raw_headers(chain: &Path, shape: &ShapeOf, headers: &BTreeMap<u64, SealedHeader>) {
    let by_hash: HashMap<B256, &SealedHeader> = headers.values().map(|h| (h.hash(), h)).collect();
    let mut seen = 0;
    for line in lines(&chain.join("headers_raw.jsonl")) {
        if line.result().is_none() {
            continue;
        }
        let raw = line.result_bytes();
        let header = Header::decode(&raw, shape).unwrap();
        assert_eq!(header.encode(HeaderForm::Raw), raw);
        let (sealed, mining_base) = Header::decode_sealed(&raw, shape).unwrap();
        assert_eq!(sealed.hash(), header.hash());
        assert_eq!(mining_base, header.mining_base_hash());
        let Some(whole) = by_hash.get(&header.hash()) else { continue };
        let with_proof = Header {
            merkle_proof: whole.merkle_proof.clone(),
            coinbase_tx: whole.coinbase_tx.clone(),
            ..header
        };
        assert_eq!(&with_proof, whole.header());
        let full = with_proof.encode(HeaderForm::Full);
        assert_eq!(Header::decode(&full, shape).unwrap(), with_proof);
        seen += 1;
    }
    assert!(seen >= headers.len());
}

/// The uncle lists of those uncles that are also recorded as blocks.
fn uncle_lists(chain: &Path) -> HashMap<B256, Vec<B256>> {
    lines(&chain.join("uncles.jsonl"))
        .iter()
        .filter(|line| line.request.method == "eth_getBlockByHash")
        .map(|line| serde_json::from_str(line.result().unwrap()).unwrap())
        .map(|block: Value| {
            (hash_of(&block["hash"]), block["uncles"].as_array().unwrap().iter().map(hash_of).collect())
        })
        .collect()
}

#[test]
fn every_uncle_is_rebuilt_and_written_without_a_body() {
    for HeaderRecording { path: chain, shape, main, .. } in chains() {
        let shape = shape.as_ref();
        let own_uncles = uncle_lists(&chain);
        let known = headers_by_hash(&chain, shape);
        let mut seen = 0;
        for line in lines(&chain.join("uncles.jsonl")) {
            let method = line.request.method.as_str();
            if method.starts_with("rsk_getRaw") {
                let raw = line.result_bytes();
                let header = Header::decode(&raw, shape).unwrap();
                assert_eq!(header.hash(), B256::from_slice(&bytes(line.param())));
            } else if method.starts_with("eth_getUncle") {
                let text = line.result().unwrap();
                let mut recorded: Value = serde_json::from_str(text).unwrap();
                let header = header_from_json(text, None, shape).unwrap();
                // The recorded size includes the body if the node stores it. Without it, the size is that of
                // the header.
                let none: [&Transaction; 0] = [];
                let size = block_len(&header, none, []);
                recorded["transactions"] = Value::Array(Vec::new());
                recorded["size"] = format!("{size:#x}").into();
                let own: Option<Vec<SealedHeader>> = own_uncles
                    .get(&header.hash())
                    .map(|hashes| hashes.iter().map(|hash| known[hash].clone()).collect());
                let total = support::u256(recorded["totalDifficulty"].as_str().unwrap());
                let shown = RpcBlock::uncle(&header, own.as_deref(), Some(total), Some(size));
                assert_eq!(serde_json::to_value(&shown).unwrap(), recorded);
                let unknown =
                    serde_json::to_value(RpcBlock::uncle(&header, None, Some(total), Some(size))).unwrap();
                let childless = recorded["uncles"] == Value::Array(Vec::new());
                assert_eq!(unknown["uncles"].is_null(), !childless);
                assert_eq!(unknown["cumulativeDifficulty"].is_null(), !childless);
                seen += 1;
            }
        }
        assert!(seen >= if main { 40 } else { 0 });
    }
}

#[test]
fn side_blocks_are_rebuilt_from_json_and_from_raw_headers() {
    let Some(HeaderRecording { path: chain, shape, .. }) = chains().into_iter().find(|chain| chain.whole)
    else {
        return;
    };
    let shape = shape.as_ref();
    let uncles = headers_by_hash(&chain, shape);
    let mut seen = 0;
    for line in lines(&chain.join("side_blocks.jsonl")) {
        let Some(text) = line.result() else { continue };
        match line.request.method.as_str() {
            "eth_getBlockByHash" => {
                let header = check_block(text, shape, &uncles);
                assert_eq!(header.hash(), B256::from_slice(&bytes(line.param())));
                seen += 1;
            }
            "rsk_getRawBlockHeaderByHash" => {
                let header = Header::decode(&line.result_bytes(), shape).unwrap();
                assert_eq!(header.hash(), B256::from_slice(&bytes(line.param())));
                seen += 1;
            }
            _ => {}
        }
    }
    assert_eq!(seen, 72);
}

/// All transactions of the canonical blocks by hash, with their recorded JSON.
fn transactions_by_hash(chain: &Path) -> HashMap<B256, (Transaction, Value)> {
    let mut out = HashMap::new();
    for line in lines(&chain.join("blocks.jsonl")) {
        let block: Value = serde_json::from_str(line.result().unwrap()).unwrap();
        for tx in block["transactions"].as_array().unwrap() {
            let rebuilt = transaction_from_json(&tx.to_string(), None, CHAIN_ID).unwrap();
            out.insert(rebuilt.hash(), (rebuilt, tx.clone()));
        }
    }
    out
}

#[test]
fn every_sent_transaction_has_its_hash_and_sender() {
    for HeaderRecording { path: chain, main, .. } in chains() {
        if !exists(&chain.join("txs_sendRaw.jsonl")) {
            continue;
        }
        let known = transactions_by_hash(&chain);
        let mut senders = 0;
        for line in lines(&chain.join("txs_sendRaw.jsonl")) {
            let Some(result) = line.result() else { continue };
            let raw = bytes(line.param());
            let tx = Transaction::decode(&raw).unwrap_or_else(|e| panic!("{:?}: {e}", line.label));
            assert_eq!(tx.encode(), raw.to_vec());
            assert_eq!(format!("\"{}\"", tx.hash()), result);
            let sender = tx.recover_sender(CHAIN_ID).unwrap();
            let Some((rebuilt, json)) = known.get(&tx.hash()) else { continue };
            assert_eq!(rebuilt, &tx);
            assert_eq!(format!("{sender:#x}"), json["from"].as_str().unwrap());
            senders += 1;
        }
        assert!(senders >= if main { 200 } else { 2 }, "{senders}");
    }
}

#[test]
fn remasc_transactions_are_determined_by_the_block_number() {
    for HeaderRecording { path: chain, .. } in chains() {
        for (tx, json) in transactions_by_hash(&chain).values() {
            let number = support::u64_of(json["blockNumber"].as_str().unwrap());
            assert_eq!(tx.is_remasc(), *tx == Transaction::remasc(number));
        }
    }
}

#[test]
fn every_receipt_is_rebuilt_and_written_as_recorded() {
    for HeaderRecording { path: chain, main, .. } in chains() {
        let transactions = transactions_by_hash(&chain);
        let raw: HashMap<String, Vec<u8>> = lines(&chain.join("receipts_raw.jsonl"))
            .iter()
            .filter(|line| line.result().is_some())
            .map(|line| (line.param().to_owned(), line.result_bytes()))
            .collect();
        let receipts: Vec<RecordedLine> = lines(&chain.join("receipts.jsonl"));
        let mut per_block: BTreeMap<(B256, u64), u64> = BTreeMap::new();
        for line in receipts.iter().filter(|line| line.result().is_some()) {
            let at = location_from_json(line.result().unwrap()).unwrap().unwrap();
            let logs = receipt_from_json(line.result().unwrap()).unwrap().logs.len() as u64;
            per_block.insert((at.block_hash, at.index), logs);
        }
        let (mut compared, mut shown) = (0, 0);
        for line in &receipts {
            let Some(text) = line.result() else { continue };
            let receipt = receipt_from_json(text).unwrap();
            assert!(receipt.bloom_matches());
            let Some(expected) = raw.get(line.param()) else { continue };
            assert_eq!(&receipt.encode(), expected);
            assert_eq!(&Receipt::decode(expected).unwrap(), &receipt);
            compared += 1;
            let hash = B256::from_slice(&bytes(line.param()));
            let Some((tx, _)) = transactions.get(&hash) else { continue };
            let at = location_from_json(text).unwrap().unwrap();
            let first_log =
                per_block.range((at.block_hash, 0)..(at.block_hash, at.index)).map(|(_, n)| n).sum();
            let from = tx.recover_sender(CHAIN_ID).unwrap();
            let again = RpcReceipt::new(&receipt, tx, hash, from, &at, first_log);
            assert_eq!(serde_json::to_string(&again).unwrap(), text);
            shown += 1;
        }
        let enough = if main { 1200 } else { 8 };
        assert!(compared >= enough && shown >= enough, "{compared} {shown}");
    }
}

#[test]
fn transactions_are_written_as_recorded() {
    let Some(HeaderRecording { path: chain, .. }) = chains().into_iter().find(|chain| chain.whole) else {
        return;
    };
    let mut seen = 0;
    for line in lines(&chain.join("txs_get.jsonl")) {
        let Some(text) = line.result() else { continue };
        let tx = transaction_from_json(text, None, CHAIN_ID).unwrap();
        let at = location_from_json(text).unwrap();
        let from = tx.recover_sender(CHAIN_ID).unwrap();
        let shown = RpcTransaction::new(&tx, tx.hash(), from, at.as_ref());
        assert_eq!(serde_json::to_string(&shown).unwrap(), text);
        seen += 1;
    }
    assert!(seen > 100);
}

#[test]
fn a_v_without_chain_id_of_an_older_node_is_completed() {
    let mut seen = 0;
    for (tx, json) in transactions_by_hash(&main_chains()[0].path).values() {
        let Some(odd) = tx.y_is_odd().filter(|_| tx.chain_id().is_some()) else { continue };
        for low in [27u8, 0] {
            let mut old = json.clone();
            old["v"] = format!("{:#x}", low + u8::from(odd)).into();
            assert_eq!(transaction_from_json(&old.to_string(), None, CHAIN_ID).as_ref(), Ok(tx));
        }
        seen += 1;
    }
    assert!(seen > 2);
}

#[test]
fn cumulative_difficulty_is_null_without_the_uncles() {
    let HeaderRecording { path, shape, .. } = &main_chains()[0];
    let line = &lines(&path.join("blocks.jsonl"))[0];
    let header = header_from_json(line.result().unwrap(), None, shape).unwrap();
    let parts = BlockParts {
        transactions: RpcTransactions::Hashes(Vec::new()),
        uncles: None,
        total_difficulty: None,
        size: None,
    };
    let shown = serde_json::to_value(RpcBlock::new(&header, parts)).unwrap();
    for field in ["uncles", "cumulativeDifficulty", "totalDifficulty", "size"] {
        assert!(shown[field].is_null(), "{field}");
    }
    assert_eq!(header.difficulty.value(), U256::from(1));
}
