//! The recorded chains of a reference node, executed from genesis: every root, receipt, log, fee and
//! contract address.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use rootlight::consensus::Network;
use rootlight::exec::{check_block, execute_block, BlockInput, NoObserver};
use rootlight::trie::{Loader, Trie};
use rootlight::types::{Bytes, Receipt, B256};
use serde_json::Value;
use support::recording::{era_network, genesis_state, regtest_v0, text_of, Branch, RecordedBlock, Recording};
use support::{bytes, shared};

/// How a block differs, and the methods in it that are not simulated.
struct Fault {
    text: String,
    methods: Vec<String>,
}

/// Executes one block and compares everything; what is wrong with it otherwise.
fn replay_block(
    network: &Network,
    parent: &Trie,
    block: &RecordedBlock,
    branch: &Branch<'_>,
    folder: &Path,
) -> Result<Trie, Fault> {
    let number = block.header.number;
    let input = BlockInput { header: &block.header, transactions: &block.transactions, senders: None };
    let executed = execute_block(network, parent, &input, branch, &mut NoObserver)
        .map_err(|error| Fault { text: format!("block {number}: {error}"), methods: Vec::new() })?;
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
    if let Err(mismatches) = check_block(&executed, &block.header, network) {
        faults.extend(mismatches.iter().map(|mismatch| mismatch.to_string()));
    }
    if faults.is_empty() {
        return Ok(executed.state);
    }
    if executed.state.root() != block.header.state_root {
        faults.extend(state_diff(folder, &executed.state, block.header.state_root));
    }
    let methods: Vec<String> = executed.unsimulated.iter().map(|(_, method)| method.to_string()).collect();
    Err(Fault { text: format!("block {number}: {}", faults.join("; ")), methods })
}

/// A receipt in one line.
fn short(receipt: &Receipt) -> String {
    let Receipt { success, cumulative_gas_used, gas_used, logs, .. } = receipt;
    format!("success {success}, gas {gas_used} of {cumulative_gas_used}, logs {logs:?}")
}

/// What differs between a computed state and the recorded one with this root.
fn state_diff(folder: &Path, found: &Trie, root: B256) -> Vec<String> {
    let mut nodes: BTreeMap<B256, Bytes> = BTreeMap::new();
    for line in text_of(&folder.join("state_nodes.jsonl")).lines() {
        let node: Value = serde_json::from_str(line).unwrap();
        nodes.insert(node["hash"].as_str().unwrap().parse().unwrap(), bytes(node["value"].as_str().unwrap()));
    }
    let Ok(recorded) = Loader::new(&nodes).load(root) else { return vec!["no recorded state".into()] };
    let mut pairs: BTreeMap<Vec<u8>, [Option<Bytes>; 2]> = BTreeMap::new();
    recorded.for_each(&mut |key, value| pairs.entry(key.to_vec()).or_default()[0] = Some(value.clone()));
    found.for_each(&mut |key, value| pairs.entry(key.to_vec()).or_default()[1] = Some(value.clone()));
    pairs.retain(|_, [recorded, found]| recorded != found);
    pairs.iter().map(|(key, [r, f])| format!("{}: {r:?}, found {f:?}", hex::encode(key))).collect()
}

/// Replays the canonical chain; the number of blocks that are equal, and why the next one is not.
fn replay(shared: &Path, folder: &Path, recording: &Recording) -> (Vec<Trie>, Option<Fault>) {
    let mut states = vec![genesis_state(shared, &recording.network)];
    let branch = Branch::canonical(recording);
    for block in &recording.blocks[1..] {
        match replay_block(&recording.network, states.last().unwrap(), block, &branch, folder) {
            Ok(state) => states.push(state),
            Err(fault) => return (states, Some(fault)),
        }
    }
    (states, None)
}

fn whole(folder: &str, network: Network) {
    let Some(shared) = shared() else { return };
    let path = shared.join("vectors").join(folder);
    let recording = Recording::load(&path, network);
    let (states, fault) = replay(&shared, &path, &recording);
    println!("{folder}: {} of {} blocks", states.len(), recording.blocks.len());
    match fault {
        None => {}
        Some(fault) if fault.methods.is_empty() => panic!("{folder}: {}", fault.text),
        Some(fault) => println!("{folder}: block {} calls {:?}", states.len(), fault.methods),
    }
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
