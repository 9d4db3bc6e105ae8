//! `debug_storageRangeAt` before, between and after the transactions of a block.

use crate::fixture::{ALICE, BOB};
use crate::support::dev::DevClient;
use crate::support::light::{ExecutedUpstream, follower};
use alloy_primitives::{Address, B256, U256, keccak256};
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::engine::LocalNode as _;
use serde_json::{Value, json};

/// Runtime code that adds one to slot 0.
const COUNTER: &str = "0x60005460010160005500";
const ONE: &str = "0x00000000000000000000000000000000000000c1";
const OTHER: &str = "0x00000000000000000000000000000000000000c2";

fn page(dev: &mut DevClient, block: &str, index: usize, contract: &str, start: &str, most: u64) -> Value {
    dev.get("debug_storageRangeAt", json!([block, index, contract, start, most]))
}

/// Two senders call one contract and another each, so that the block has parallel lists.
#[test]
fn each_transaction_of_a_block_sees_what_the_earlier_ones_wrote() {
    let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
    let mut dev = DevClient::new(config);
    for contract in [ONE, OTHER] {
        dev.get("anvil_setCode", json!([contract, COUNTER]));
    }
    dev.get("evm_mine", json!([]));
    for (from, to) in [(ALICE, ONE), (BOB, OTHER), (ALICE, ONE), (BOB, OTHER), (BOB, ONE)] {
        dev.get("eth_sendTransaction", json!([{"from": from, "to": to, "gas": "0x186a0"}]));
    }
    dev.get("evm_mine", json!([]));
    let block = dev.get("eth_getBlockByNumber", json!(["0x2", true]));
    assert!(!block["rskPteEdges"].as_array().unwrap().is_empty(), "{block}");
    let calls: Vec<&Value> =
        block["transactions"].as_array().unwrap().iter().map(|sent| &sent["to"]).collect();
    assert_eq!(calls.len(), 6);
    let slot = keccak256([0; 32]).to_string();
    for index in 0..8 {
        for contract in [ONE, OTHER] {
            let before = calls.iter().take(index).filter(|to| **to == contract).count();
            let shown = page(&mut dev, "0x2", index, contract, "0x", 10);
            let value = B256::from(U256::from(before));
            let cells = match before {
                0 => json!({}),
                _ => json!({slot.clone(): {"key": B256::ZERO, "value": value}}),
            };
            assert_eq!(shown, json!({"storage": cells, "nextKey": null}), "{contract} before {index}");
        }
    }
    let after = page(&mut dev, "latest", 6, ONE, &slot, 1);
    assert_eq!(after["storage"][&slot]["value"], dev.get("eth_getStorageAt", json!([ONE, "0x0", "latest"])));
}

#[test]
fn storage_is_shown_in_pages() {
    let mut dev = DevClient::instant();
    for slot in 0..30_u64 {
        let word = B256::from(U256::from(slot + 1));
        dev.get("anvil_setStorageAt", json!([ONE, format!("{slot:#x}"), word]));
    }
    dev.get("evm_mine", json!([]));
    let (mut start, mut found) = (json!("0x"), Vec::new());
    while let Some(from) = start.as_str() {
        let shown = page(&mut dev, "latest", 9, ONE, from, 7);
        let cells = shown["storage"].as_object().unwrap();
        assert!((1..=7).contains(&cells.len()));
        for (hash, cell) in cells {
            let slot: B256 = cell["key"].as_str().unwrap().parse().unwrap();
            assert_eq!(*hash, keccak256(slot).to_string());
            assert_eq!(
                U256::from_be_bytes(slot.0) + U256::from(1),
                crate::support::u256(cell["value"].as_str().unwrap())
            );
            found.push(hash.clone());
        }
        start = shown["nextKey"].clone();
    }
    assert!(found.len() == 30 && found.is_sorted(), "{found:?}");
    // No page is longer than 1,024 cells, and none is empty.
    for (most, shown) in [(0, 1), (u64::MAX, 30)] {
        let cells = page(&mut dev, "latest", 9, ONE, "0x", most)["storage"].as_object().unwrap().len();
        assert_eq!(cells, shown);
    }
    let unknown = json!([format!("0x{}", "77".repeat(32)), 0, ONE, "0x", 1]);
    assert_eq!(dev.get("debug_storageRangeAt", unknown), Value::Null);
}

/// The recorded chain: the state before the first transaction is that after the parent, and every place in a block has one.
#[test]
fn every_place_of_a_recorded_chain_has_a_state() {
    let Some((node, recording)) = follower() else { return };
    let chain = ExecutedUpstream::new(node.snapshot());
    let at = |number: u64, index: usize, contract: &Value| {
        let params = json!([format!("{number:#x}"), index, contract, "0x", 1_024]);
        chain.call("debug_storageRangeAt", &params).unwrap_or_else(|error| panic!("{params}: {error}"))
    };
    let (mut contracts, mut cells, mut changed) = (Vec::<Address>::new(), 0, 0);
    for block in recording.blocks.iter().skip(1) {
        let (number, count) = (block.header.number, block.transactions.len());
        let is_called =
            |contract: &&Address| block.transactions.iter().any(|sent| sent.to == Some(**contract));
        for contract in contracts.iter().filter(is_called).map(|contract| json!(contract)) {
            let before = at(number, 0, &contract);
            assert_eq!(before, at(number - 1, usize::MAX, &contract));
            at(number, count / 2, &contract);
            let after = at(number, count, &contract);
            assert_eq!(after, at(number, count - 1, &contract), "the last transaction is REMASC's");
            cells += after["storage"].as_object().unwrap().len();
            changed += usize::from(after != before);
        }
        contracts.extend(block.contracts.values().map(|address| address.parse::<Address>().unwrap()));
    }
    assert!(contracts.len() > 10 && cells > 10 && changed > 5, "{} {cells} {changed}", contracts.len());
}
