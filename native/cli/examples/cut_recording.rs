//! Cuts the recording in this repository out of a larger one with trie nodes:
//!
//! ```text
//! cargo run --release -p rootlight-cli --example cut_recording -- FOLDER LAST OUT.jsonl.gz
//! ```
//! The result holds blocks 0 to LAST with headers, uncles, receipts and receipt nodes, and every trie node
//! and long value of the states after these blocks. It therefore proves any account at these blocks.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

use alloy_primitives::{B256, Bytes, hex};
use flate2::Compression;
use flate2::write::GzEncoder;
use rootlight::trie::{Child, Value, parse_node};
use rootlight_upstream::record::{RecordPlan, record};
use rootlight_upstream::replay::Replay;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, last, out] = arguments.as_slice() else {
        return Err("usage: FOLDER LAST OUT.jsonl.gz".into());
    };
    let last: u64 = last.parse()?;
    let replay = Replay::open(folder)?;
    let parts = Path::new(out).with_extension("parts");
    let plan = RecordPlan { from: 0, to: Some(last), accounts: vec![], slots: vec![], gzip: false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(record(&replay, &plan, &parts, &|line| eprintln!("{line}")))?;
    let mut lines = Vec::new();
    for name in ["info", "blocks", "headers", "uncles", "receipts"] {
        if let Ok(text) = fs::read(parts.join(format!("{name}.jsonl"))) {
            lines.extend(text);
        }
    }
    fs::remove_dir_all(&parts)?;
    let mut nodes = BTreeMap::new();
    for number in 0..=last {
        let (_, root) = replay.block(number).ok_or("block without state root")?;
        collect(&replay, root, &mut nodes)?;
    }
    for value in nodes.values() {
        writeln!(lines, r#"{{"node":"{}"}}"#, hex::encode_prefixed(value))?;
    }
    let mut file = GzEncoder::new(fs::File::create(out)?, Compression::best());
    file.write_all(&lines)?;
    let size = file.finish()?.metadata()?.len();
    eprintln!("{} nodes, {} bytes, {size} compressed", nodes.len(), lines.len());
    Ok(())
}

/// Collects all nodes and long values below a node, unless the node was visited before.
fn collect(replay: &Replay, hash: B256, nodes: &mut BTreeMap<B256, Bytes>) -> Result<(), Box<dyn Error>> {
    if nodes.contains_key(&hash) {
        return Ok(());
    }
    let bytes = replay.node(&hash).ok_or_else(|| format!("no node {hash}"))?;
    nodes.insert(hash, bytes.clone());
    visit(replay, &bytes, nodes)
}

fn visit(replay: &Replay, bytes: &[u8], nodes: &mut BTreeMap<B256, Bytes>) -> Result<(), Box<dyn Error>> {
    let node = parse_node(bytes).map_err(|error| error.to_string())?;
    if let Value::Long { hash, .. } = node.value {
        let value = replay.node(hash).ok_or_else(|| format!("no value {hash}"))?;
        nodes.insert(*hash, value);
    }
    for child in [node.left, node.right].into_iter().flatten() {
        match child {
            Child::Hash(hash) => collect(replay, *hash, nodes)?,
            Child::Embedded(inside) => visit(replay, inside, nodes)?,
        }
    }
    Ok(())
}
