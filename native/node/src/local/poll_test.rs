//! Tests of polls of subscriptions on the calling thread, and of messages that are tried there.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rootlight::rpc::envelope::MAX_BATCH;
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::runs::RunQueue;
use serde_json::{Value, json};

use super::disk_test::{get, node, request};
use super::*;

fn service() -> LocalService {
    LocalService::new(Box::new(node(None)), LocalOptions::default(), Entropy::from_system().unwrap(), None)
}

fn caller() -> Arc<Caller> {
    Arc::new(CallerId::new(IpAddr::V4(Ipv4Addr::LOCALHOST)).caller(None).for_socket(9))
}

fn read(text: &[u8]) -> Message {
    Message::read(text, dispatcher(), MAX_BATCH)
}

async fn ask(service: &LocalService, caller: &Arc<Caller>, method: &str, params: Value) -> Value {
    let message = read(request(method, params).to_string().as_bytes());
    let answer = service.answer_message(caller, message).await;
    serde_json::from_str::<Value>(&answer.into_text().unwrap()).unwrap()["result"].take()
}

fn number(id: &Value) -> u128 {
    u128::from_str_radix(id.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

fn results(news: &Notifications) -> Vec<Value> {
    let result = |text: &String| serde_json::from_str::<Value>(text).unwrap()["params"]["result"].take();
    news.texts.iter().map(result).collect()
}

#[tokio::test]
async fn a_poll_on_the_calling_thread_gives_what_a_message_gives() {
    let service = service();
    let callers = [caller(), caller(), caller()];
    let (mut ids, mut count) = (Vec::new(), 0);
    for params in [json!(["newHeads"]), json!(["newPendingTransactions"]), json!(["syncing"])] {
        for caller in &callers {
            ids.push(number(&ask(&service, caller, "eth_subscribe", params.clone()).await));
        }
    }
    let from = get(&service, "eth_accounts", json!([])).await[0].clone();
    let create = json!([{ "from": from, "data": "0x60016000a000" , "gas": "0x30000"}]);
    let before = get(&service, "evm_snapshot", json!([])).await;
    for round in 0..4 {
        match round {
            2 => drop(get(&service, "evm_revert", json!([before])).await),
            _ => drop(get(&service, "eth_sendTransaction", create.clone()).await),
        }
        for ids in ids.chunks(callers.len()) {
            let [here, too, by_message] = ids else { panic!("three subscriptions") };
            let found = service.poll_inline(&callers[0], *here).unwrap();
            let shared = service.poll_inline(&callers[1], *too).unwrap();
            let expected = notifications_by_message(&service, &callers[2], *by_message).await.0;
            assert_eq!((results(&found), found.is_gone), (results(&expected), false), "round {round}");
            assert_eq!(results(&shared), results(&expected), "round {round}");
            count += expected.texts.len();
        }
    }
    assert!(count >= 6, "{count}");
    assert!(service.poll_inline(&callers[0], 1).unwrap().is_gone);
    let unsubscribed = ask(&service, &callers[0], "eth_unsubscribe", json!([format!("{:#x}", ids[0])])).await;
    assert_eq!(unsubscribed, true);
    assert!(service.poll_inline(&callers[0], ids[0]).unwrap().is_gone);
}

#[tokio::test]
async fn a_poll_does_not_wait_for_a_writer() {
    let service = service();
    let caller = caller();
    let id = ask(&service, &caller, "eth_subscribe", json!(["newHeads"])).await;
    let id = number(&id);
    let parts = service.parts.clone();
    let writer = lock(&parts.writer);
    assert!(service.poll_inline(&caller, id).is_none());
    drop(writer);
    assert!(service.poll_inline(&caller, id).is_some());
}

/// A call that ends soon runs where its connection is served, also while one that takes longer waits for its turn.
#[tokio::test]
async fn a_call_that_takes_long_is_tried_and_moves_to_another_thread() {
    let mut service = service();
    // Without a free place, nothing but attempts and brief messages is answered.
    let full = RunQueue::one_at_a_time();
    let taken = full.enter(CallerId::new(IpAddr::V4(Ipv4Addr::LOCALHOST)), Size::Single).await;
    service.runs = full;
    // JUMPDEST, PUSH1 0, JUMP: runs until the gas is used up.
    let (stops, loops) = (json!([{ "data": "0x00" }]), json!([{ "data": "0x5b600056", "gas": "0x989680" }]));
    let caller = caller();
    service.inline_runs.start_again(Duration::MAX);
    ask(&service, &caller, "eth_call", stops.clone()).await;
    service.inline_runs.start_again(Duration::ZERO);
    let long = read(request("eth_call", loops).to_string().as_bytes());
    let mut waiting = service.answer_message(&caller, long);
    let soon = Duration::from_millis(200);
    assert!(tokio::time::timeout(soon, &mut waiting).await.is_err(), "it waits for a place");
    service.inline_runs.start_again(Duration::MAX);
    let other = Arc::new(CallerId::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9))).caller(None));
    ask(&service, &other, "eth_call", stops).await;
    drop(taken);
    assert!(waiting.await.into_text().unwrap().contains("error"), "out of gas");
}

/// A poll of logs, or of a subscription that was not polled for a while, runs on another thread.
#[tokio::test]
async fn a_poll_that_may_be_long_is_left_to_a_message() {
    let service = service();
    let caller = caller();
    let logs = ask(&service, &caller, "eth_subscribe", json!(["logs", {}])).await;
    assert!(service.poll_inline(&caller, number(&logs)).is_none());
    let id = ask(&service, &caller, "eth_subscribe", json!(["newHeads"])).await;
    let id = number(&id);
    get(&service, "evm_mine", json!([])).await;
    get(&service, "anvil_mine", json!(["0x3f"])).await;
    assert_eq!(service.poll_inline(&caller, id).unwrap().texts.len(), 64);
    get(&service, "anvil_mine", json!(["0x41"])).await;
    assert!(service.poll_inline(&caller, id).is_none());
    assert_eq!(notifications_by_message(&service, &caller, id).await.0.texts.len(), 65);
    assert!(service.poll_inline(&caller, id).unwrap().texts.is_empty());
}
