//! Executes the recorded chains of a reference node from genesis and compares every root, receipt, log, fee
//! and contract address.

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;

use rootlight::consensus::Network;
use rootlight::exec::{BlockInput, ExecutedBlock, NoObserver, check_block, execute_block};
use rootlight::trie::{Loader, Trie};
use rootlight::types::{B256, Bytes, Receipt};
use serde_json::Value;
use support::recording::{
    RecordedBlock, RecordedBranch, Recording, era_network, genesis_state, regtest_v0, text_of,
};
use support::{bytes, shared};

/// The differences of a block, and the methods in it that are not simulated.
struct BlockDifference {
    text: String,
    methods: Vec<String>,
}

/// A receipt as one line of text.
fn short(receipt: &Receipt) -> String {
    let Receipt { success, cumulative_gas_used, gas_used, logs, .. } = receipt;
    format!("success {success}, gas {gas_used} of {cumulative_gas_used}, logs {logs:?}")
}

/// The recorded nodes of the state trie.
struct RecordedNodes(BTreeMap<B256, Bytes>);

impl RecordedNodes {
    fn load(folder: &Path) -> Self {
        let mut nodes = BTreeMap::new();
        for line in text_of(&folder.join("state_nodes.jsonl")).lines() {
            let node: Value = serde_json::from_str(line).unwrap();
            let hash = node["hash"].as_str().unwrap().parse().unwrap();
            nodes.insert(hash, bytes(node["value"].as_str().unwrap()));
        }
        Self(nodes)
    }

    fn state(&self, root: B256) -> Option<Trie> {
        Loader::new(&self.0).load(root).ok()
    }

    /// The differences between a computed state and the recorded one with this root.
    fn diff(&self, found: &Trie, root: B256) -> Vec<String> {
        let Some(recorded) = self.state(root) else { return vec!["no recorded state".into()] };
        let mut pairs: BTreeMap<Vec<u8>, [Option<Bytes>; 2]> = BTreeMap::new();
        recorded.for_each(&mut |key, value| pairs.entry(key.to_vec()).or_default()[0] = Some(value.clone()));
        found.for_each(&mut |key, value| pairs.entry(key.to_vec()).or_default()[1] = Some(value.clone()));
        pairs.retain(|_, [recorded, found]| recorded != found);
        pairs.iter().map(|(key, [r, f])| format!("{}: {r:?}, found {f:?}", hex::encode(key))).collect()
    }
}

/// The differences between a block's execution and the recording.
fn faults(
    executed: &ExecutedBlock,
    block: &RecordedBlock,
    network: &Network,
    nodes: &RecordedNodes,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, recorded) in &block.receipts {
        let found = &executed.receipts[*index as usize];
        if found != recorded {
            faults.push(format!("receipt {index}: {}, found {}", short(recorded), short(found)));
        }
    }
    for (index, recorded) in &block.contracts {
        let found = executed.contract_addresses[*index as usize].map(|found| format!("{found:#x}"));
        if found.as_deref() != Some(recorded.to_lowercase().as_str()) {
            faults.push(format!("contract {index}: {recorded}, found {found:?}"));
        }
    }
    if let Err(mismatches) = check_block(executed, &block.header, network) {
        faults.extend(mismatches.iter().map(|mismatch| mismatch.to_string()));
    }
    if executed.state.root() != block.header.state_root {
        faults.extend(nodes.diff(&executed.state, block.header.state_root));
    }
    faults
}

/// Executes one block and compares everything.
fn replay_block(
    network: &Network,
    parent: &Trie,
    block: &RecordedBlock,
    branch: &RecordedBranch<'_>,
    nodes: &RecordedNodes,
) -> Result<Trie, BlockDifference> {
    let number = block.header.number;
    let input = BlockInput { header: &block.header, transactions: &block.transactions, senders: None };
    let executed = execute_block(network, parent, &input, branch, &mut NoObserver)
        .map_err(|error| BlockDifference { text: format!("block {number}: {error}"), methods: Vec::new() })?;
    let faults = faults(&executed, block, network, nodes);
    if faults.is_empty() {
        return Ok(executed.state);
    }
    let methods: Vec<String> = executed.unsimulated.iter().map(|(_, method)| method.to_string()).collect();
    Err(BlockDifference { text: format!("block {number}: {}", faults.join("; ")), methods })
}

/// A replayed chain: states by block hash, and the blocks with methods that are not simulated.
struct ReplayedChain {
    states: BTreeMap<B256, Trie>,
    skipped: Vec<(u64, Vec<String>)>,
}

/// Replays the canonical chain. A block that calls a method that is not simulated is skipped if its state was
/// recorded; otherwise it ends the replay.
fn replay(shared: &Path, recording: &Recording, nodes: &RecordedNodes) -> ReplayedChain {
    let genesis = &recording.blocks[0];
    let mut state = genesis_state(shared, &recording.network);
    assert_eq!(state.root(), genesis.header.state_root);
    let mut replay = ReplayedChain {
        states: BTreeMap::from([(genesis.header.hash(), state.clone())]),
        skipped: Vec::new(),
    };
    let branch = RecordedBranch::canonical(recording);
    for block in &recording.blocks[1..] {
        let number = block.header.number;
        state = match replay_block(&recording.network, &state, block, &branch, nodes) {
            Ok(state) => state,
            Err(fault) if fault.methods.is_empty() => panic!("{}", fault.text),
            Err(fault) => {
                replay.skipped.push((number, fault.methods));
                let Some(recorded) = nodes.state(block.header.state_root) else {
                    println!("{}", fault.text);
                    return replay;
                };
                recorded
            }
        };
        replay.states.insert(block.header.hash(), state.clone());
    }
    replay
}

/// Replays a chain. Only these blocks may differ, each because of a method that is not simulated.
fn whole_but(folder: &str, network: Network, expected: &[(u64, &str)]) {
    let Some(shared) = shared() else { return };
    let path = shared.join("vectors").join(folder);
    let recording = Recording::load(&path, network);
    let nodes = RecordedNodes::load(&path);
    let replay = replay(&shared, &recording, &nodes);
    let side = side_blocks(&recording, &replay.states, &nodes);
    assert_eq!(side, recording.side.len(), "{folder}: side blocks");
    let named = |(number, methods): &(u64, Vec<String>)| (*number, methods.join(", "));
    let skipped: Vec<(u64, String)> = replay.skipped.iter().map(named).collect();
    let bridge = "of precompile 0x0000000000000000000000000000000001000006";
    let expected: Vec<(u64, String)> =
        expected.iter().map(|(number, method)| (*number, format!("{method} {bridge}"))).collect();
    assert_eq!(skipped, expected, "{folder}");
    println!("{folder}: {} of {} blocks equal", replay.states.len() - skipped.len(), recording.blocks.len());
}

fn whole(folder: &str, network: Network) {
    whole_but(folder, network, &[]);
}

/// Executes the side blocks whose parent's state is known, each on its own branch.
fn side_blocks(recording: &Recording, states: &BTreeMap<B256, Trie>, nodes: &RecordedNodes) -> usize {
    let mut states = states.clone();
    let mut equal = 0;
    for block in &recording.side {
        let Some(parent) = states.get(&block.header.parent_hash).cloned() else { continue };
        let mut branch = RecordedBranch::canonical(recording);
        let mut above = block.header.parent_hash;
        while let Some(parent) = recording.side.iter().find(|side| side.header.hash() == above) {
            branch.blocks.push(parent);
            above = parent.header.parent_hash;
        }
        match replay_block(&recording.network, &parent, block, &branch, nodes) {
            Ok(state) => {
                equal += 1;
                states.insert(block.header.hash(), state);
            }
            Err(fault) => assert!(!fault.methods.is_empty(), "side {}", fault.text),
        }
    }
    equal
}

fn era(name: &str) {
    let Some(shared) = shared() else { return };
    whole(&format!("eras/chain_{name}"), era_network(&shared, name));
}

#[test]
fn chain() {
    whole("chain", Network::regtest());
}

#[test]
fn chain_v0() {
    whole("chain_v0", regtest_v0());
}

#[test]
fn edge_chain() {
    whole("execution/edge_chain", Network::regtest());
}

#[test]
fn lists_chain() {
    whole("execution/lists_chain", Network::regtest());
}

#[test]
fn bridge_chain() {
    whole("execution/bridge_chain", Network::regtest());
}

#[test]
fn peg_chain() {
    let (register, confirm) = ("registerBtcTransaction", "updateCollections with peg-outs to confirm");
    let skipped = [
        (4, register),
        (6, register),
        (7, register),
        (8, register),
        (11, confirm),
        (15, confirm),
        (17, "addSignature"),
        (20, "addSignature"),
    ];
    whole_but("execution/peg_chain", Network::regtest(), &skipped);
}

#[test]
fn txdiff_all() {
    whole("eras/txdiff_all", Network::regtest());
}

macro_rules! eras {
    ($($name:ident)*) => {
        $(#[test] fn $name() { era(stringify!($name)); })*
    };
}

eras!(orchid060 wasabi100 papyrus200 iris300 hop401 fingerroot500 arrowhead600 arrowhead631 lovell700
    reed800 vetiver900main testnet crossing);
