//! The recorded states.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, keccak256};
use rootlight::types::rlp::RlpReader;
use serde_json::Value;

use crate::gzipped::bytes;

/// Nodes and long values of all recorded states.
pub(crate) type NodeMap = BTreeMap<B256, Bytes>;

/// A state whose nodes are all recorded.
pub(crate) struct KnownState {
    pub(crate) block: u64,
    pub(crate) root: B256,
    pub(crate) size: u64,
}

/// The nodes; `None` where the recordings are absent.
pub(crate) fn nodes() -> Option<NodeMap> {
    let content = bytes("chain/nodes.bin.gz")?;
    let (mut reader, mut nodes) = (RlpReader::new(&content), NodeMap::new());
    while !reader.is_empty() {
        let node = reader.next_str("node").expect("a string");
        nodes.insert(keccak256(node), Bytes::copy_from_slice(node));
    }
    Some(nodes)
}

/// The states in ascending order of blocks.
pub(crate) fn states() -> Vec<KnownState> {
    let Some(folder) = crate::vectors::folder() else { return Vec::new() };
    let text = std::fs::read_to_string(folder.join("chain/states.json")).expect("a recording");
    let listed: BTreeMap<u64, Value> = serde_json::from_str::<BTreeMap<String, Value>>(&text)
        .expect("JSON")
        .into_iter()
        .map(|(block, state)| (block.parse().expect("a number"), state))
        .collect();
    let state = |(block, state): (u64, Value)| KnownState {
        block,
        root: state["root"].as_str().expect("a hash").parse().expect("a hash"),
        size: state["trieSize"].as_u64().expect("a size"),
    };
    listed.into_iter().map(state).collect()
}
