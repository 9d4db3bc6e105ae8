//! Transactions that wait on a development chain: programs see all, an API key and a page of another origin their own.

use crate::support;

use std::collections::BTreeSet;
use std::sync::Arc;

use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::engine::HostInput;
use rootlight::rpc::methods;
use rootlight::rpc::{Caller, MessageProgress};
use rootlight::types::{B256, KEY_ASKERS};
use serde_json::{Value, json};
use support::calls::{CallSubjects, params};
use support::dev::DevClient;

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// The address of all callers of these tests.
const CALLER: u64 = 7;

fn program() -> Arc<Caller> {
    Arc::new(Caller::new(CALLER, 1).with_subscriptions(99))
}

fn page(origin: &str) -> Arc<Caller> {
    let caller = Caller::new(CALLER, 2).with_subscriptions(99);
    Arc::new(caller.from_foreign_page(Some(origin.into()), 1))
}

fn key(number: u64) -> Arc<Caller> {
    Arc::new(Caller::new(KEY_ASKERS.start + number, 3).with_subscriptions(99))
}

/// A chain that mines when it is told to.
fn chain() -> DevClient {
    DevClient::new(DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) })
}

fn signed(dev: &mut DevClient, from: &str, nonce: u64) -> Value {
    let transaction = json!([{"from": from, "to": BOB, "value": "0x1", "gas": "0x5208",
        "gasPrice": "0x3938700", "nonce": format!("{nonce:#x}")}]);
    dev.get("eth_signTransaction", transaction)
}

/// Answers as hosts do: what only reads on a snapshot, the rest on the node.
fn ask(dev: &mut DevClient, caller: &Arc<Caller>, method: &str, params: &Value) -> Value {
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let message = MessageProgress::read_from(&dev.client.dispatcher(), caller.clone(), text.as_bytes());
    if !message.reads_only() {
        return dev.ask_over(caller, method, params);
    }
    let (snapshot, now) = (dev.client.snapshot(), dev.now);
    let mut begun = MessageProgress::read_from(&dev.client.dispatcher(), caller.clone(), text.as_bytes());
    let begun = match begun.begin(&*snapshot, now, &|| false) {
        Some(reply) => reply,
        None => begun.read(&*snapshot, now, &|| false),
    };
    let read = message.read(&*snapshot, now, &|| false);
    let [read, begun] = [read, begun].map(|reply| reply.into_text().unwrap());
    assert_eq!(read, begun, "{method}");
    let host_input = HostInput { now, entropy: B256::repeat_byte(9) };
    let message = MessageProgress::read_from(&dev.client.dispatcher(), caller.clone(), text.as_bytes());
    assert_eq!(
        dev.client.answer(message, host_input, &|| false).into_text().unwrap(),
        read,
        "{method} on the node"
    );
    serde_json::from_str(&read).unwrap()
}

/// Asks every method of the table about waiting transactions of Alice.
fn walk(dev: &mut DevClient, asker: &Arc<Caller>, hashes: &[Value], filter: &Value) -> Vec<(String, Value)> {
    let mut answers = Vec::new();
    // Methods that change the chain are for programs and own pages. A transaction is sent by whoever has it.
    for method in methods().filter(|method| !method.writes()) {
        for hash in hashes {
            let about = CallSubjects { hash: hash.clone(), account: ALICE.into(), filter: filter.clone() };
            for params in params(method, &about) {
                let answer = ask(dev, asker, method.name, &params);
                answers.push((format!("{} {params}", method.name), answer));
            }
        }
    }
    answers
}

/// Everything that an asker can read of a chain on which a program, a page and a key have sent transactions of Alice, or
/// have not.
fn seen(asker: &Arc<Caller>, others_send: bool) -> Vec<(String, Value)> {
    let mut dev = chain();
    let filter = ask(&mut dev, asker, "eth_newPendingTransactionFilter", &json!([]))["result"].take();
    let others = [program(), page("https://other.example"), key(1)];
    let mut hashes = Vec::new();
    // The last one is queued.
    for (other, nonce) in others.iter().zip([0, 1, 3]) {
        let raw = signed(&mut dev, ALICE, nonce);
        hashes.push(Value::from(
            rootlight::types::keccak256(support::bytes(raw.as_str().unwrap())).to_string(),
        ));
        if others_send {
            let sent = ask(&mut dev, other, "eth_sendRawTransaction", &json!([raw]));
            assert_eq!(sent["result"], *hashes.last().unwrap(), "{sent}");
        }
    }
    let raw = signed(&mut dev, BOB, 0);
    let own = ask(&mut dev, asker, "eth_sendRawTransaction", &json!([raw]))["result"].take();
    assert!(own.is_string());
    hashes.push(own);
    walk(&mut dev, asker, &hashes, &filter)
}

/// The methods whose answers depend on transactions of others that wait.
fn differing(asker: &Arc<Caller>) -> BTreeSet<String> {
    let (with, without) = (seen(asker, true), seen(asker, false));
    assert_eq!(with.len(), without.len());
    let differ = with.into_iter().zip(without).filter(|((_, one), (_, other))| one != other);
    differ.map(|((call, _), _)| call.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn no_answer_to_a_page_or_a_key_depends_on_waiting_transactions_of_others() {
    for asker in [page("https://page.example"), key(2)] {
        let differing = differing(&asker);
        assert!(differing.is_empty(), "{asker:?}: {differing:?}");
    }
}

#[test]
fn a_program_sees_all_waiting_transactions() {
    let seen = differing(&program());
    for method in [
        "eth_getBlockByNumber",
        "eth_getBlockTransactionCountByNumber",
        "eth_getTransactionByHash",
        "eth_getTransactionCount",
        "eth_getBalance",
        "eth_getFilterChanges",
        "eth_pendingTransactions",
        "txpool_content",
        "txpool_contentFrom",
        "txpool_inspect",
        "txpool_status",
    ] {
        assert!(seen.contains(method), "{method}: {seen:?}");
    }
}

#[test]
fn pages_and_keys_see_their_own_waiting_transactions() {
    for (asker, other) in [
        (page("https://page.example"), page("https://other.example")),
        (page("https://page.example"), program()),
        (key(1), key(2)),
    ] {
        let mut dev = chain();
        let watch = |dev: &mut DevClient, asker| {
            let filter = ask(dev, asker, "eth_newPendingTransactionFilter", &json!([]))["result"].take();
            [filter, ask(dev, asker, "eth_subscribe", &json!(["newPendingTransactions"]))["result"].take()]
        };
        let (own, theirs) = (watch(&mut dev, &asker), watch(&mut dev, &page("https://third.example")));
        // Bob's transactions: one of the other asker, between two of this one, and a queued one.
        let mut hashes = Vec::new();
        for (from, asker, nonce) in
            [(BOB, &asker, 0), (ALICE, &other, 0), (BOB, &asker, 1), (BOB, &other, 2), (BOB, &asker, 5)]
        {
            let raw = signed(&mut dev, from, nonce);
            hashes.push(ask(&mut dev, asker, "eth_sendRawTransaction", &json!([raw]))["result"].take());
        }
        let nonce = ask(&mut dev, &asker, "eth_getTransactionCount", &json!([BOB, "pending"]));
        assert_eq!(nonce["result"], "0x2", "two of its own follow each other");
        for (index, hash) in hashes.iter().enumerate() {
            let found = ask(&mut dev, &asker, "eth_getTransactionByHash", &json!([hash]));
            let shown = if [0, 2, 4].contains(&index) { hash } else { &Value::Null };
            assert_eq!(found["result"]["hash"], *shown);
        }
        let status = ask(&mut dev, &asker, "txpool_status", &json!([]));
        assert_eq!(status["result"], json!({"pending": 2, "queued": 1}));
        for id in &own {
            let changes = ask(&mut dev, &asker, "eth_getFilterChanges", &json!([id]))["result"].take();
            assert_eq!(changes, json!([hashes[0], hashes[2]]));
        }
        // Filters of pages and keys are theirs alone.
        for id in own.iter().chain(&theirs) {
            let stranger = page("https://fourth.example");
            let answer = ask(&mut dev, &stranger, "eth_getFilterChanges", &json!([id]));
            assert_eq!(answer["error"]["code"], -32000, "{answer}");
        }
        // A mined transaction is everybody's.
        dev.get("evm_mine", json!([]));
        assert_eq!(
            ask(&mut dev, &asker, "eth_getTransactionByHash", &json!([hashes[1]]))["result"]["hash"],
            hashes[1]
        );
    }
}

#[test]
fn pages_leave_half_of_the_pool_to_programs() {
    let (mut dev, page) = (chain(), page("https://page.example"));
    let data = format!("0x{}", "00".repeat(120_000));
    let mut send = |caller: &Arc<Caller>, nonce: u64| {
        let transaction = json!([{"from": ALICE, "to": BOB, "gas": "0x80000", "gasPrice": "0x3938700",
            "nonce": format!("{nonce:#x}"), "data": data}]);
        let raw = dev.get("eth_signTransaction", transaction);
        dev.ask_over(caller, "eth_sendRawTransaction", &json!([raw]))["result"].is_string()
    };
    let refused = (0..200).find(|nonce| !send(&page, *nonce));
    assert_eq!(refused, Some((16 << 20) / 121_024));
    assert!(send(&program(), 138));
}
