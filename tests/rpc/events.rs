//! Subscriptions and filters of a chain that is executed here report its events, so that what comes and goes between two
//! polls is not missed.

use std::sync::Arc;

use alloy_primitives::B256;
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::local::MAX_EVENTS;
use rootlight::rpc::{Caller, MORE_NOTIFICATIONS};
use serde_json::{Value, json};

use crate::fixture::{ALICE, LOGGER, block_of};
use crate::support::dev::DevClient;

/// A development chain, used by a caller that receives notifications.
struct WatchedChain {
    dev: DevClient,
    caller: Arc<Caller>,
}

impl WatchedChain {
    fn new() -> Self {
        let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
        Self { dev: DevClient::new(config), caller: Arc::new(Caller::new(1, 1).with_subscriptions(8)) }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.dev.ask_over(&self.caller, method, &params)
    }

    fn get(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    fn poll(&mut self, id: &Value) -> Vec<Value> {
        let mut news = self.get("eth_getFilterChanges", json!([id]));
        news.as_array_mut().unwrap().drain(..).collect()
    }

    /// A call of a contract that writes a log.
    fn call(&mut self, contract: &Value) -> Value {
        self.get("eth_sendTransaction", json!([{"from": ALICE, "to": contract, "gas": "0x186a0"}]))
    }

    /// A chain whose block 1 has a contract that writes a log when it is called.
    fn with_contract() -> (Self, Value) {
        let mut watched = Self::new();
        let sent = json!([{"from": ALICE, "data": LOGGER, "gas": "0x30d40"}]);
        let created = watched.get("eth_sendTransaction", sent);
        watched.get("evm_mine", json!([]));
        let contract = watched.get("eth_getTransactionReceipt", json!([created]))["contractAddress"].take();
        (watched, contract)
    }
}

fn marks(logs: &[Value]) -> Vec<(String, bool)> {
    let mark = |log: &Value| (log["blockHash"].as_str().unwrap().to_owned(), log["removed"] == json!(true));
    logs.iter().map(mark).collect()
}

fn hash(dev: &mut DevClient, number: u64) -> String {
    dev.chain().view().headers().by_number(number).unwrap().hash().to_string()
}

#[test]
fn a_switch_of_branches_and_back_between_two_polls_is_reported_in_full() {
    let (mut ours, contract) = WatchedChain::with_contract();
    let (mut theirs, mut third) = (WatchedChain::new().dev, WatchedChain::new().dev);
    let first = block_of(&mut ours.dev, 1);
    for dev in [&mut theirs, &mut third] {
        dev.chain().import(first.clone(), None).unwrap();
    }
    let heads = ours.get("eth_subscribe", json!(["newHeads"]));
    let logs = ours.get("eth_subscribe", json!(["logs", {"address": contract}]));
    let pending = ours.get("eth_subscribe", json!(["newPendingTransactions"]));
    let blocks = ours.get("eth_newBlockFilter", json!([]));
    let range = ours.get("eth_newFilter", json!([{"fromBlock": "0x2", "address": contract}]));
    assert!(ours.poll(&range).is_empty());

    let sent = ours.call(&contract);
    ours.get("evm_mine", json!([]));
    let second = block_of(&mut ours.dev, 2);
    third.chain().import(second, None).unwrap();
    theirs.now += 5;
    for dev in [&mut theirs, &mut third] {
        dev.get("evm_mine", json!([]));
        dev.get("evm_mine", json!([]));
    }
    for block in [block_of(&mut theirs, 2), block_of(&mut theirs, 3)] {
        ours.dev.chain().import(block, None).unwrap();
    }
    assert_eq!(hash(&mut ours.dev, 3), hash(&mut theirs, 3), "the chain has switched");
    for block in [block_of(&mut third, 3), block_of(&mut third, 4)] {
        ours.dev.chain().import(block, None).unwrap();
    }
    assert_eq!(hash(&mut ours.dev, 4), hash(&mut third, 4), "and switched back");

    let branch = [hash(&mut theirs, 2), hash(&mut theirs, 3)];
    let own = [2, 3, 4].map(|number| hash(&mut third, number));
    let all: Vec<String> = [&own[..1], &branch, &own].concat();
    let reported: Vec<Value> = ours.poll(&heads).iter().map(|head| head["hash"].clone()).collect();
    assert_eq!(json!(reported), json!(all));
    assert_eq!(json!(ours.poll(&blocks)), json!(all));
    let log = |removed| (own[0].clone(), removed);
    for id in [&logs, &range] {
        let reported = ours.poll(id);
        assert_eq!(marks(&reported), [log(false), log(true), log(false)]);
    }
    assert_eq!(ours.poll(&pending), [sent.clone(), sent], "it returned to the pool in between");
    for id in [heads, logs, pending, blocks, range] {
        assert!(ours.poll(&id).is_empty());
    }
}

/// A revert of a development chain removes blocks that the chain does not keep.
#[test]
fn a_revert_reports_the_logs_of_the_blocks_that_it_removes() {
    let (mut ours, contract) = WatchedChain::with_contract();
    let logs = ours.get("eth_subscribe", json!(["logs", {"address": contract}]));
    let heads = ours.get("eth_subscribe", json!(["newHeads"]));
    let saved = ours.get("evm_snapshot", json!([]));
    ours.call(&contract);
    ours.get("evm_mine", json!([]));
    let gone = hash(&mut ours.dev, 2);
    assert_eq!(ours.get("evm_revert", json!([saved])), json!(true));
    ours.dev.now += 5;
    ours.get("evm_mine", json!([]));
    let present = hash(&mut ours.dev, 2);
    let reported = ours.poll(&logs);
    assert_eq!(marks(&reported), [(gone.clone(), false), (gone.clone(), true)]);
    let reported: Vec<Value> = ours.poll(&heads).iter().map(|head| head["hash"].clone()).collect();
    assert_eq!(json!(reported), json!([gone, present]));
}

#[test]
fn a_filter_that_missed_events_is_dropped() {
    let mut ours = WatchedChain::new();
    let late = ours.get("eth_newPendingTransactionFilter", json!([]));
    let subscription = ours.get("eth_subscribe", json!(["newHeads"]));
    let hash = |number: u64| B256::left_padding_from(&number.to_be_bytes());
    ours.dev.chain().local_mut().note_pending(hash(0), None);
    assert_eq!(ours.poll(&late), [json!(hash(0))]);
    (1..=MAX_EVENTS).for_each(|number| ours.dev.chain().local_mut().note_pending(hash(number), None));
    let timely = ours.get("eth_newBlockFilter", json!([]));
    ours.dev.chain().local_mut().note_pending(hash(0), None);
    let gone = json!({"code": -32000, "message": "filter not found"});
    for id in [late, subscription] {
        assert_eq!(ours.ask("eth_getFilterChanges", json!([id]))["error"], gone);
        assert_eq!(ours.ask("eth_getFilterChanges", json!([id]))["error"], gone);
    }
    ours.get("evm_mine", json!([]));
    assert_eq!(ours.poll(&timely).len(), 1);
}

#[test]
fn events_keep_a_limited_number_of_removed_blocks() {
    let mut watched = WatchedChain::new();
    let start = watched.get("evm_snapshot", json!([]));
    let filter = watched.get("eth_newBlockFilter", json!([]));
    for _ in 0..3 {
        watched.get("hardhat_mine", json!(["0x3e8"]));
        assert_eq!(watched.get("evm_revert", json!([start])), json!(true));
    }
    // 3,000 empty blocks take more than 16 MiB with their headers, and are far fewer events than are kept otherwise.
    assert_eq!(
        watched.ask("eth_getFilterChanges", json!([filter]))["error"]["message"],
        json!("filter not found")
    );
}

#[test]
fn one_poll_has_a_limited_number_of_heads_and_the_next_has_the_others() {
    let mut ours = WatchedChain::new();
    let heads = ours.get("eth_subscribe", json!(["newHeads"]));
    ours.get("anvil_mine", json!([format!("{:#x}", MORE_NOTIFICATIONS + 3)]));
    let numbers = |heads: Vec<Value>| -> Vec<u64> {
        let number = |head: &Value| u64::from_str_radix(&head["number"].as_str().unwrap()[2..], 16).unwrap();
        heads.iter().map(number).collect()
    };
    let most = MORE_NOTIFICATIONS as u64;
    assert!(numbers(ours.poll(&heads)).into_iter().eq(1..=most));
    assert!(numbers(ours.poll(&heads)).into_iter().eq(most + 1..=most + 3));
}
