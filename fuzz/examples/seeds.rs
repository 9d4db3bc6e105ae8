//! Writes starting inputs to `corpus/TARGET`: whatever hex in the test vectors, and in the recordings where those
//! are present (`ROOTLIGHT_SHARED`, by default `../../shared`), decodes as what a target takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use alloy_primitives::keccak256;
use rootlight::trie::parse_node;
use rootlight::types::{BlockRef, Header, HeaderShape, HeaderVersion, Receipt, Transaction};
use rootlight_fuzz::header::shape_byte;
use rootlight_fuzz::native::contract_byte;
use rootlight_p2p::message::{
    Body, Chunk, ChunkRequest, Extension, Items, Message, Parent, Push, Request, Response, SnapBlocks,
    SnapStatus, Status, list_payload, string_payload,
};
use serde_json::Value;

/// Most inputs per target and source file: more of one kind teach the fuzzer nothing.
const PER_FILE: usize = 40;
/// Longest hex string looked at, in digits.
const MAX_HEX: usize = 60_000;

/// Recordings worth reading, below the shared folder.
const RECORDINGS: [&str; 15] = [
    "realdata/headers/mainnet_4479841_iris_run1200.json",
    "realdata/headers/mainnet_powhsm_single_blocks.json",
    "realdata/proofs/mainnet_merge_mining_proofs.json",
    "realdata/proofs/powhsm_receipt_proofs.json",
    "realdata/state/testnet_block1.json",
    "vectors/chain/headers_raw.jsonl",
    "vectors/chain/receipt_nodes.jsonl",
    "vectors/chain/receipts_raw.jsonl",
    "vectors/chain/txs_sendRaw.jsonl",
    "vectors/chain/rpc_misc.jsonl",
    "vectors/chain/rpc_call.jsonl",
    "vectors/chain/rpc_precompiles.jsonl",
    "vectors/chain/mnr.jsonl",
    "vectors/chain/blocks.jsonl",
    "vectors/chain/receipts.jsonl",
];

/// Targets whose inputs are choices, and how many bytes of them.
const CHOICES: [(&str, usize); 13] = [
    ("bitcoin_headers", 200),
    ("block", 700),
    ("coinbase_proof", 900),
    ("execute_transaction", 500),
    ("import_block", 60),
    ("kept_pages", 24),
    ("multiproof", 400),
    ("network_json", 300),
    ("offline_report", 300),
    ("p2p_connection", 400),
    ("p2p_discovery", 1500),
    ("state_chunk", 500),
    ("submission", 120),
];

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared =
        std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| here.join("../../shared"), PathBuf::from);
    let mut files: Vec<PathBuf> = RECORDINGS.iter().map(|name| shared.join(name)).collect();
    let vectors = here.join("../tests/vectors");
    for entry in fs::read_dir(&vectors).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|kind| kind == "json" || kind == "jsonl") {
            files.push(entry.path());
        }
    }
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            println!("skipped: {} is not there", file.display());
            continue;
        };
        let mut seeds = Seeds::default();
        let whole = serde_json::from_str::<Value>(&text).ok();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        match whole {
            Some(value) => seeds.read(&value),
            None => lines.for_each(|value| seeds.read(&value)),
        }
        for (target, inputs) in seeds.by_target {
            *totals.entry(target).or_default() += inputs.len();
            write(&here.join("corpus").join(target), &inputs);
        }
    }
    for (target, length) in CHOICES {
        let inputs: Vec<Vec<u8>> = (0..PER_FILE).map(|index| choices(target, index, length)).collect();
        *totals.entry(target).or_default() += inputs.len();
        write(&here.join("corpus").join(target), &inputs);
    }
    for (target, inputs) in texts().into_iter().chain([("peer_message", messages())]) {
        *totals.entry(target).or_default() += inputs.len();
        write(&here.join("corpus").join(target), &inputs);
    }
    for (target, count) in totals {
        println!("{target}: {count} inputs");
    }
}

/// The roaring bitmap of place 5 as an array container, and as a run container.
const ARRAY: [u8; 18] = [0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 5, 0];
const RUN: [u8; 15] = [0x3b, 0x30, 0, 0, 1, 0, 0, 0, 0, 1, 0, 5, 0, 0, 0];

/// Files and answers in the words of their formats.
fn texts() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let network = r#"{"name":"n","base":"regtest","chainId":33,"params":{"durationLimit":10,"minimumDifficulty":"0x1"},
        "hardforks":{"vetiver900":-1},"rules":{"rskip351":100},"knownUntil":1000}"#;
    let genesis = r#"{"alloc":{"00":{},"1111111111111111111111111111111111111111":{"balance":"7","nonce":"2",
        "contract":{"code":"6001","data":{"05":"2a"}}}},"timestamp":"0x00","extraData":"0x","gasLimit":"0x989680",
        "difficulty":"0x01","coinbase":"0x3333333333333333333333333333333333333333","minimumGasPrice":"0x00"}"#;
    let answers = [
        r#"[{"id":1,"result":null},{"id":0,"result":{"a":[1]}},{"id":2,"error":{"code":-32601,"message":"no"}}]"#,
        r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m","data":"0x08c379a0"}}"#,
        r#"[[1,"a"],{"id":1,"result":1,"result":2},{},5]"#,
    ];
    let lines = [
        r#"{"request":{"id":1,"method":"eth_chainId","params":[]},"response":{"id":1,"result":"0x21"}}"#,
        r#"{"request":[{"id":1,"method":"a","params":["0xAB"]}],"response":[{"id":1,"result":{"number":"0x1"}}]}"#,
        r#"{"node":"0x40aa"}"#,
    ];
    let given = |first: &[u8], text: &str| [first, text.as_bytes()].concat();
    BTreeMap::from([
        ("network_json", vec![given(&[0], network), given(&[1], genesis)]),
        (
            "upstream_batch",
            answers.iter().flat_map(|text| [given(&[0, 3], text), given(&[1, 1], text)]).collect(),
        ),
        // Heights with no headers, a list of no coinbases and one of two, of which one is there.
        (
            "bitcoin_served",
            vec![
                vec![9, 0, 0, 0, 1, 0, 0, 0, 0, 1],
                vec![9, 1, 0xc0],
                vec![9, 1, 0xc5, 0xc0, 0xc3, 1, 1, 2],
            ],
        ),
        ("upstream_reply", answers.iter().map(|text| given(&[], text)).collect()),
        // A key, and bitmaps of one place, as an array and as a run.
        ("index_row", vec![[&[7; 24][..], &ARRAY].concat(), [&[7; 24][..], &RUN].concat()]),
        ("replay_line", vec![given(&[], &lines.join("\n")), given(&[], lines[0])]),
    ])
}

/// A message of each kind that the recordings of JSON-RPC do not have.
fn messages() -> Vec<Vec<u8>> {
    let (hash, number) = (keccak256([]), 5060);
    let best = BlockRef { number, hash };
    let parent = Some(Parent { hash, total_difficulty: Default::default() });
    let list = list_payload([[0xc2, 1, 2]; 3]);
    let items = Items::lists(&list, 3, "items").expect("lists");
    let strings = string_payload([[2u8], [3]]);
    let strings = Items::strings(&strings, 2, "strings").expect("strings");
    let blocks = SnapBlocks { blocks: strings, difficulties: strings };
    let pushes = [
        Push::Status(Status { best, parent }),
        Push::Block(&list),
        Push::GetBlock(hash),
        Push::NewBlockHashes(vec![best; 2]),
        Push::Transactions(items),
        Push::NewBlockHash(hash),
    ];
    let requests = [
        Request::BlockHash { height: number },
        Request::Headers { hash, count: 3 },
        Request::Body(hash),
        Request::Chunk(ChunkRequest::new(number, 51_200)),
        Request::SnapStatus,
    ];
    let extension = Some(Extension { version: HeaderVersion::V2, fields: &[0xc2, 0x80, 0x80] });
    let responses = [
        Response::BlockHash(hash),
        Response::Headers(items),
        Response::Body(Body { transactions: items, uncles: items, extension }),
        Response::Skeleton(vec![best; 3]),
        Response::Chunk(Chunk { bytes: &list, block: number, from: 0, to: 51_200, complete: true }),
        Response::SnapStatus(SnapStatus { blocks, trie_size: 1 }),
        Response::SnapBlocks(blocks),
    ];
    let pushes = pushes.into_iter().map(Message::Push);
    let requests = requests.into_iter().map(|request| Message::Request { id: 1, request });
    let responses = responses.into_iter().map(|response| Message::Response { id: 1 << 40, response });
    pushes.chain(requests).chain(responses).map(|message| message.encode()).collect()
}

/// A list of one header without uncles.
fn batch(header: &[u8]) -> Vec<u8> {
    let list = |items: &[u8]| {
        let mut out = Vec::new();
        alloy_rlp::Header { list: true, payload_length: items.len() }.encode(&mut out);
        out.extend_from_slice(items);
        out
    };
    list(&list(&[header, &[0xc0]].concat()))
}

/// An LZ4 block that repeats nothing, of 15 bytes and more.
fn literal_block(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![0xf0];
    let left = bytes.len() - 15;
    block.resize(1 + left / 255, 0xff);
    block.push((left % 255) as u8);
    block.extend_from_slice(bytes);
    block
}

/// Arbitrary bytes, the same ones every time, for the targets that read them as choices.
fn choices(target: &str, index: usize, length: usize) -> Vec<u8> {
    let block = |number: usize| keccak256(format!("{target} {index} {number}")).0;
    (0..length.div_ceil(32)).flat_map(block).take(length).collect()
}

fn write(folder: &Path, inputs: &[Vec<u8>]) {
    fs::create_dir_all(folder).expect("corpus folder");
    for input in inputs {
        let name = format!("seed-{}", hex::encode(&keccak256(input)[..8]));
        fs::write(folder.join(name), input).expect("corpus file");
    }
}

/// Inputs of one file.
#[derive(Default)]
struct Seeds {
    by_target: BTreeMap<&'static str, Vec<Vec<u8>>>,
}

impl Seeds {
    fn add(&mut self, target: &'static str, input: Vec<u8>) {
        let inputs = self.by_target.entry(target).or_default();
        if inputs.len() < PER_FILE && !inputs.contains(&input) {
            inputs.push(input);
        }
    }

    /// Looks at every string, every list of node-like strings and every request in a JSON value.
    fn read(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.read_text(text),
            Value::Array(items) => {
                self.read_proof(items);
                items.iter().for_each(|item| self.read(item));
            }
            Value::Object(fields) => {
                if fields.contains_key("request") && fields.contains_key("response") {
                    self.add("replay_line", value.to_string().into_bytes());
                }
                if fields.contains_key("id") && fields.contains_key("result") {
                    self.add("upstream_reply", value.to_string().into_bytes());
                    self.add("upstream_batch", [&[0, 3], value.to_string().as_bytes()].concat());
                }
                if fields.get("method").is_some_and(Value::is_string) {
                    self.add("rpc_envelope", value.to_string().into_bytes());
                }
                self.read_json(value, fields);
                self.read_mining(fields);
                self.read_native(fields);
                fields.values().for_each(|field| self.read(field));
            }
            _ => {}
        }
    }

    fn read_text(&mut self, text: &str) {
        let Some(bytes) = bytes(text) else { return };
        let (transaction, receipt) = (Transaction::decode(&bytes).is_ok(), Receipt::decode(&bytes).is_ok());
        if transaction || receipt {
            let kind = if transaction { 4 } else { 5 };
            self.add("json", [&[kind, 0, 1], &bytes[..], &[1, 200, 50]].concat());
            self.add("transaction", bytes);
        } else if parse_node(&bytes).is_ok() && bytes.len() > 8 {
            self.add("trie_node", bytes);
        } else if let Some((shape, header)) = header(&bytes) {
            self.add("json", [&[3, shape_byte(shape), 1], &bytes[..], &[1, 200, 50]].concat());
            let mut input = vec![shape_byte(shape), 3];
            input.extend_from_slice(&bytes);
            input.extend_from_slice(&[0, 60, 1]);
            self.add("header_rlp", input);
            self.add("header_batch", [&[9], &literal_block(&batch(&bytes))[..]].concat());
            self.add_mining(
                &header.merkle_proof,
                &header.coinbase_tx,
                header.hash_for_merged_mining().ok().as_ref(),
            );
        }
    }

    /// Headers, transactions and receipts as JSON, headers with the layouts of today's networks.
    fn read_json(&mut self, value: &Value, fields: &serde_json::Map<String, Value>) {
        let kind = match () {
            () if fields.contains_key("sha3Uncles") => 0,
            () if fields.contains_key("cumulativeGasUsed") => 2,
            () if fields.contains_key("gasPrice") => 1,
            () => return,
        };
        let [oldest, newest] =
            [(HeaderVersion::V0, false), (HeaderVersion::V2, true)].map(|(version, edges)| {
                let (umm_root, fork_detection) = (true, true);
                let (hash_covers_proof, base_event_optional) = (false, false);
                shape_byte(HeaderShape {
                    version,
                    umm_root,
                    edges,
                    hash_covers_proof,
                    fork_detection,
                    base_event_optional,
                })
            });
        for layout in [oldest, newest] {
            self.add("json", [&[kind, layout, 0], value.to_string().as_bytes()].concat());
        }
    }

    /// The three fields of a merge-mining proof as a header's JSON or the collection of proofs names them.
    fn read_mining(&mut self, fields: &serde_json::Map<String, Value>) {
        let field = |name: &str| fields.get(name).and_then(Value::as_str).and_then(bytes);
        let (proof, coinbase) = (field("merkleProof"), field("coinbase"));
        if let (Some(proof), Some(coinbase)) = (proof, coinbase) {
            let hash = field("hashForMergedMining").and_then(|hash| hash.as_slice().try_into().ok());
            self.add_mining(&proof, &coinbase, hash.as_ref());
        }
    }

    /// A call of a native contract, by a caller with rights, under all rules and over no cells.
    fn read_native(&mut self, fields: &serde_json::Map<String, Value>) {
        let field = |name: &str| fields.get(name).and_then(Value::as_str).and_then(bytes);
        let (Some(to), Some(data)) = (field("to"), field("data")) else { return };
        if let Some(contract) = contract_byte(&to) {
            let height = 399u16.to_le_bytes();
            self.add("native", [&[contract], &height[..], &[0, 0], &data].concat());
        }
    }

    fn add_mining(&mut self, proof: &[u8], coinbase: &[u8], hash: Option<&alloy_primitives::B256>) {
        let mut merkle = vec![0; 33];
        merkle.extend_from_slice(proof);
        self.add("bitcoin_merkle", merkle);
        if let Some(hash) = hash {
            self.add("coinbase", [&[0], hash.as_slice(), coinbase].concat());
        }
    }

    /// A proof in the form that the proof target makes nodes by hand from: last node first, with the place of the
    /// hash of the node below it.
    fn read_proof(&mut self, items: &[Value]) {
        let nodes: Vec<Vec<u8>> = items.iter().filter_map(Value::as_str).filter_map(bytes).collect();
        let short = |n: usize| (n as u16).to_le_bytes();
        if !(2..=24).contains(&nodes.len()) || nodes.iter().any(|n| n.len() >= 300 || parse_node(n).is_err())
        {
            return;
        }
        for leaf_first in [nodes.clone(), nodes.iter().rev().cloned().collect()] {
            let mut input = vec![3, (nodes.len() - 1) as u8];
            let mut below: Vec<u8> = Vec::new();
            for node in leaf_first {
                let hash = keccak256(&below);
                let at = node.windows(32).position(|place| place == hash.as_slice()).unwrap_or(0);
                input.extend_from_slice(&short(node.len()));
                input.extend_from_slice(&node);
                match node.len() {
                    0..=256 => input.push(at as u8),
                    _ => input.extend_from_slice(&short(at)),
                }
                below = node;
            }
            self.add("proof", input);
        }
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    (digits.len() >= 4 && digits.len() <= MAX_HEX).then(|| hex::decode(digits).ok()).flatten()
}

/// The first layout in which the bytes are a header.
fn header(bytes: &[u8]) -> Option<(HeaderShape, Header)> {
    let flags = [false, true];
    for version in [HeaderVersion::V0, HeaderVersion::V1, HeaderVersion::V2] {
        for (umm_root, edges) in flags.into_iter().flat_map(|umm| flags.map(|edges| (umm, edges))) {
            for (hash_covers_proof, fork_detection) in [(false, true), (false, false), (true, false)] {
                let base_event_optional = version == HeaderVersion::V2;
                let shape = HeaderShape {
                    version,
                    umm_root,
                    edges,
                    hash_covers_proof,
                    fork_detection,
                    base_event_optional,
                };
                if let Ok(header) = Header::decode(bytes, &|_| shape) {
                    return Some((shape, header));
                }
            }
        }
    }
    None
}
