//! Logs that the Bridge writes before it fails. If a contract calls it, they are kept although the state is
//! reverted.
//!
//! Recorded from a reference node under the rules of five network upgrades. Contracts call the Bridge without
//! data by CALL, CALLCODE, DELEGATECALL and STATICCALL, with too little gas, and in a frame that reverts
//! afterwards.

use crate::support;

use std::io::Read as _;

use rootlight::consensus::Network;
use rootlight::dev::{DevConfig, DevOptions};
use rootlight::exec::{BlockInput, ExecutedBlock, NoObserver, check_block, execute_block};
use rootlight::types::Receipt;
use rootlight::types::json::{block_from_json, receipt_from_json};
use serde_json::{Value, json};
use support::bytes;
use support::dev::DevClient;
use support::recording::{RecordedBlock, RecordedBranch};

/// Event of a refused peg-out request.
const REJECTED: &str = "release_request_rejected(address,uint256,int256)";

fn config(hardfork: &str) -> DevConfig {
    let options = DevOptions { hardfork: Some(hardfork), genesis: Some("regtest"), ..DevOptions::default() };
    options.config().unwrap()
}

fn recorded(hardfork: &str) -> Value {
    let packed: &[u8] = include_bytes!("../vectors/native_logs.json.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let mut eras: Value = serde_json::from_str(&text).unwrap();
    eras[hardfork].take()
}

fn block(recorded: &Value, network: &Network) -> RecordedBlock {
    let text = recorded["block"].to_string();
    let block = block_from_json(&text, None, &|n| network.header_shape(n), network.chain_id).unwrap();
    let receipts = recorded["receipts"].as_array().unwrap().iter();
    RecordedBlock {
        header: block.header,
        transactions: block.transactions.into_full().unwrap(),
        uncles: Vec::new(),
        receipts: (0..)
            .zip(receipts.map(|receipt| receipt_from_json(&receipt.to_string()).unwrap()))
            .collect(),
        contracts: Default::default(),
        total_difficulty: None,
    }
}

/// Executes the recorded blocks on the genesis of these rules, and compares every root, bloom, receipt and
/// log.
fn replay(hardfork: &str) -> Vec<ExecutedBlock> {
    let DevConfig { network, genesis, .. } = config(hardfork);
    let recorded = recorded(hardfork);
    let blocks: Vec<_> = recorded.as_array().unwrap().iter().map(|one| block(one, &network)).collect();
    let none = RecordedBranch { trunk: &[], blocks: Vec::new() };
    assert_eq!(blocks[0].header.parent_hash, genesis.header.hash(), "{hardfork}: genesis");
    let mut state = genesis.state;
    let mut executed = Vec::new();
    for block in &blocks {
        let number = block.header.number;
        let input = BlockInput { header: &block.header, transactions: &block.transactions, senders: None };
        let done = execute_block(&network, &state, &input, &none, &mut NoObserver).unwrap();
        let expected: Vec<&Receipt> = block.receipts.values().collect();
        assert_eq!(done.receipts.iter().collect::<Vec<_>>(), expected, "{hardfork}: block {number}");
        assert!(check_block(&done, &block.header, &network).is_ok(), "{hardfork}: block {number}");
        state = done.state.clone();
        executed.push(done);
    }
    executed
}

/// Number of Bridge logs and of all logs in a receipt.
fn counts(receipt: &Receipt) -> (usize, usize) {
    let rejected = rootlight::types::keccak256(REJECTED);
    let of_bridge = receipt.logs.iter().filter(|log| log.topics.first() == Some(&rejected)).count();
    (of_bridge, receipt.logs.len())
}

#[test]
fn logs_of_failed_bridge_calls_are_kept_from_iris300_to_fingerroot500() {
    for hardfork in ["iris300", "hop401", "fingerroot500"] {
        let blocks = replay(hardfork);
        // One log for each kind of call, none for the call without enough gas. Each is followed by a log of
        // the caller.
        assert_eq!(counts(&blocks[2].receipts[0]), (4, 8), "{hardfork}");
        // The reverted frame loses its log; the frame above it keeps its own.
        assert_eq!(counts(&blocks[3].receipts[0]), (1, 2), "{hardfork}");
        assert_eq!(counts(&blocks[3].receipts[1]), (0, 0), "{hardfork}");
    }
}

#[test]
fn a_failed_bridge_call_fails_its_caller_before_iris300() {
    let blocks = replay("papyrus200");
    assert!(!blocks[2].receipts[0].success);
    assert_eq!(counts(&blocks[2].receipts[0]), (0, 0));
}

#[test]
fn only_calls_reach_the_bridge_from_arrowhead600_on() {
    let blocks = replay("arrowhead600");
    assert_eq!(counts(&blocks[2].receipts[0]), (1, 5));
}

#[test]
fn the_call_tracer_shows_the_logs_of_failed_native_calls() {
    let mut dev = DevClient::new(config("iris300"));
    let from = dev.get("eth_accounts", json!([]))[0].clone();
    // Calls the Bridge without data, then writes a log of its own.
    let code = "600060006000600060006301000006620186a0f15060006000a000";
    let init = format!("0x60{:02x}80600b6000396000f3{code}", bytes(code).len());
    let hash = dev.get("eth_sendTransaction", json!([{ "from": from, "data": init, "gas": "0x186a00" }]));
    let contract = dev.get("eth_getTransactionReceipt", json!([hash]))["contractAddress"].clone();
    let hash = dev.get("eth_sendTransaction", json!([{ "from": from, "to": contract, "gas": "0x186a00" }]));
    let receipt = dev.get("eth_getTransactionReceipt", json!([hash]));
    assert_eq!(receipt["logs"].as_array().unwrap().len(), 2, "{receipt}");
    let options = json!({ "tracer": "callTracer", "tracerConfig": { "withLog": true } });
    let trace = dev.get("debug_traceTransaction", json!([hash, options]));
    let addresses = |logs: &Value| -> Vec<Value> {
        logs.as_array().unwrap().iter().map(|log| log["address"].clone()).collect()
    };
    assert_eq!(addresses(&trace["logs"]), addresses(&receipt["logs"]), "{trace}");
}
