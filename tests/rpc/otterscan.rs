//! `ots_*` against the methods that show the same in another way.

use crate::fixture::{ALICE, BOB, Fixture, NOBODY};
use crate::support::dev::DevClient;
use crate::support::light::{ExecutedUpstream, Light};
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use serde_json::{Value, json};

const SENDER: &str = "0x00000000000000000000000000000000000000d1";
const DESTROYED: &str = "0x00000000000000000000000000000000000000d2";
const FAILS: &str = "0x00000000000000000000000000000000000000d3";

/// A chain on which one transaction transfers, creates and destroys, and another fails in an inner call.
struct Explored {
    dev: DevClient,
    busy: Value,
    reverted: Value,
}

impl Explored {
    fn new() -> Self {
        let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
        let mut dev = DevClient::new(config);
        let call = |to: &str, value: u8| format!("600060006000600060{value:02x}73{}5af150", &to[2..]);
        // Transfers 3 wei to Bob, creates a contract from an empty init code with 2 wei, calls the contract that destroys itself, and logs.
        let creation = "600060006002f050";
        let log = "60006000a0";
        let code = format!("0x{}{creation}{}{log}00", call(BOB, 3), call(DESTROYED, 0));
        dev.get("anvil_setCode", json!([SENDER, code]));
        dev.get("anvil_setBalance", json!([SENDER, "0x64"]));
        dev.get("anvil_setCode", json!([DESTROYED, format!("0x73{}ff", &BOB[2..])]));
        dev.get("anvil_setBalance", json!([DESTROYED, "0x7"]));
        // Transfers 1 wei to Bob and reverts with one byte.
        dev.get("anvil_setCode", json!([FAILS, format!("0x{}60aa60005360016000fd", call(BOB, 1))]));
        dev.get("anvil_setBalance", json!([FAILS, "0x7"]));
        dev.get("evm_mine", json!([]));
        let mut send =
            |to: &str| dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": to, "gas": "0x7a120"}]));
        let (busy, reverted) = (send(SENDER), send(FAILS));
        dev.get("evm_mine", json!([]));
        Self { dev, busy, reverted }
    }
}

#[test]
fn inner_operations_are_those_that_were_not_undone() {
    let Explored { mut dev, busy, reverted } = Explored::new();
    let operations = dev.get("ots_getInternalOperations", json!([busy]));
    let created = operations[1]["to"].clone();
    assert_eq!(
        operations,
        json!([
            {"type": 0, "from": SENDER, "to": BOB, "value": "0x3"},
            {"type": 2, "from": SENDER, "to": created, "value": "0x2"},
            {"type": 1, "from": DESTROYED, "to": BOB, "value": "0x7"},
        ])
    );
    assert_eq!(dev.get("eth_getBalance", json!([created, "latest"])), "0x2");
    assert_eq!(dev.get("ots_getInternalOperations", json!([reverted])), json!([]), "the transfer was undone");
    assert_eq!(dev.get("ots_getTransactionError", json!([busy])), "0x");
    assert_eq!(dev.get("ots_getTransactionError", json!([reverted])), "0xaa");
    let unknown = json!([format!("0x{}", "77".repeat(32))]);
    assert_eq!(dev.get("ots_getInternalOperations", unknown), Value::Null);
}

#[test]
fn calls_have_their_depth_and_are_those_of_trace_transaction() {
    let Explored { mut dev, busy, reverted } = Explored::new();
    for hash in [busy, reverted] {
        let calls = dev.get("ots_traceTransaction", json!([hash]));
        let traces = dev.get("trace_transaction", json!([hash]));
        let (calls, traces) = (calls.as_array().unwrap(), traces.as_array().unwrap());
        assert_eq!(calls.len(), traces.len());
        for (call, trace) in calls.iter().zip(traces) {
            assert_eq!(call["depth"], trace["traceAddress"].as_array().unwrap().len());
            let action = &trace["action"];
            match trace["type"].as_str().unwrap() {
                "suicide" => {
                    assert_eq!((&call["type"], &call["from"]), (&json!("SELFDESTRUCT"), &action["address"]));
                    assert_eq!((&call["to"], &call["value"]), (&action["refundAddress"], &action["balance"]));
                }
                kind => {
                    assert_eq!(
                        (&call["from"], &call["value"]),
                        (&action["from"], &action["value"]),
                        "{call}"
                    );
                    let (to, input) = match kind {
                        "create" => (&trace["result"]["address"], &action["init"]),
                        _ => (&action["to"], &action["input"]),
                    };
                    assert_eq!((&call["to"], &call["input"]), (to, input), "{call}");
                }
            }
        }
    }
}

#[test]
fn pages_of_a_block_are_its_transactions_without_logs_and_data() {
    let mut fixture = Fixture::new();
    let whole = fixture.dev.get("eth_getBlockByNumber", json!(["0x2", true]));
    let all = whole["transactions"].as_array().unwrap();
    let receipts = fixture.dev.get("eth_getBlockReceipts", json!(["0x2"]));
    let page = |fixture: &mut Fixture, page: u64, size: u64| {
        fixture.dev.get("ots_getBlockTransactions", json!(["0x2", page, size]))
    };
    for (number, size, range) in [(0, 1, 1..2), (1, 1, 0..1), (0, 9, 0..2), (1, 9, 0..0), (u64::MAX, 2, 0..0)]
    {
        let shown = page(&mut fixture, number, size);
        let hashes = |list: &Value, name: &str| -> Vec<Value> {
            list.as_array().unwrap().iter().map(|item| item[name].clone()).collect()
        };
        let expected: Vec<Value> = all[range].iter().map(|sent| sent["hash"].clone()).collect();
        assert_eq!(hashes(&shown["fullblock"]["transactions"], "hash"), expected);
        assert_eq!(hashes(&shown["receipts"], "transactionHash"), expected);
        assert_eq!(shown["fullblock"]["transactionCount"], all.len());
        for receipt in shown["receipts"].as_array().unwrap() {
            let same = receipts
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["transactionHash"] == receipt["transactionHash"]);
            assert_eq!(receipt["gasUsed"], same.unwrap()["gasUsed"]);
            assert!(receipt["logs"].is_null() && receipt["logsBloom"].is_null(), "{receipt}");
        }
    }
    let created = fixture.dev.get("ots_getBlockTransactions", json!(["0x1", 0, 9]));
    assert_eq!(created["fullblock"]["transactions"][0]["input"], &crate::fixture::LOGGER[..10]);
    let details = fixture.dev.get("ots_getBlockDetails", json!(["0x2"]));
    assert_eq!(details, fixture.dev.get("ots_getBlockDetailsByHash", json!([whole["hash"]])));
    assert_eq!(
        (&details["totalFees"], &details["issuance"]["issuance"]),
        (&whole["paidFees"], &json!("0x0"))
    );
    assert_eq!((&details["block"]["hash"], &details["block"]["logsBloom"]), (&whole["hash"], &Value::Null));
    assert_eq!(details["block"]["transactionCount"], all.len());
    assert!(details["block"].get("transactions").is_none());
}

#[test]
fn transactions_are_found_by_sender_and_nonce_and_contracts_by_their_creation() {
    let mut fixture = Fixture::new();
    for _ in 0..9 {
        fixture.dev.get("evm_mine", json!([]));
    }
    let network = fixture.dev.chain().view().network().clone();
    let mut light = Light::new(network, ExecutedUpstream::new(fixture.dev.client.snapshot()));
    let (created, called, contract) =
        (fixture.created.clone(), fixture.called.clone(), fixture.contract.clone());
    let mut same = |method: &str, params: Value, expected: Value| {
        assert_eq!(fixture.dev.get(method, params.clone()), expected, "{method} {params}");
        assert_eq!(light.call(method, &params), Ok(expected), "{method} {params}");
    };
    same("ots_getTransactionBySenderAndNonce", json!([ALICE, "0x0"]), created.clone());
    same("ots_getTransactionBySenderAndNonce", json!([ALICE, 1]), called);
    for params in [json!([ALICE, "0x9"]), json!([NOBODY, "0x0"]), json!([contract, "0x0"])] {
        same("ots_getTransactionBySenderAndNonce", params, Value::Null);
    }
    same("ots_getContractCreator", json!([contract]), json!({"hash": created, "creator": ALICE}));
    same("ots_getContractCreator", json!([ALICE]), Value::Null);
    same("ots_hasCode", json!([contract, "latest"]), json!(true));
    same("ots_hasCode", json!([contract, "0x0"]), json!(false));
    same("ots_hasCode", json!([NOBODY]), json!(false));
    same("ots_getApiLevel", json!([]), json!(8));
    // Otterscan's page writes numbers of blocks as JSON numbers.
    same("ots_hasCode", json!([contract, 9]), json!(true));
    same("ots_hasCode", json!([contract, 0]), json!(false));
    for (method, more) in [
        ("erigon_getHeaderByNumber", vec![]),
        ("ots_getBlockDetails", vec![]),
        ("ots_getBlockTransactions", vec![json!(0), json!(25)]),
    ] {
        let at = |block: Value| Value::from([vec![block], more.clone()].concat());
        let found = fixture.dev.get(method, at(json!("0x2")));
        assert!(found.is_object(), "{method}");
        assert_eq!(fixture.dev.get(method, at(json!(2))), found, "{method}");
        let proven = light.call(method, &at(json!("0x2"))).unwrap();
        assert!(proven.is_object(), "{method}");
        assert_eq!(light.call(method, &at(json!(2))), Ok(proven), "{method}");
        assert_eq!(fixture.dev.get(method, at(json!(99))), Value::Null, "{method}");
        assert_eq!(fixture.dev.refused(method, at(json!(-2))).0, -32602, "{method}");
    }
    let header = fixture.dev.get("eth_getHeaderByNumber", json!(["latest"]));
    assert_eq!(fixture.dev.get("erigon_getHeaderByNumber", json!(["latest"])), header);
}

/// The hashes of the transactions in whose traces an address is named, the newest first.
fn taking_part(dev: &mut DevClient, address: &str) -> Vec<Value> {
    let head = dev.number("eth_blockNumber", json!([]));
    let mut found = Vec::new();
    for number in (1..=head).rev() {
        let traces = dev.get("trace_block", json!([format!("{number:#x}")]));
        let named =
            traces.as_array().unwrap().iter().filter(|trace| trace.to_string().contains(&address[2..]));
        let mut hashes: Vec<Value> = named.map(|trace| trace["transactionHash"].clone()).collect();
        hashes.dedup();
        found.extend(hashes.into_iter().rev());
    }
    found
}

/// Asks for page after page until the one that is said to be the last. Returns all hashes, the newest first.
fn pages(call: &mut dyn FnMut(&str, Value) -> Value, method: &str, address: &str, size: u64) -> Vec<Value> {
    let newest_first = method.ends_with("Before");
    let (mut at, mut all) = (json!(0), Vec::new());
    loop {
        let page = call(method, json!([address, at, size]));
        let transactions = page["txs"].as_array().unwrap();
        let hashes: Vec<Value> = transactions.iter().map(|one| one["hash"].clone()).collect();
        for (transaction, receipt) in transactions.iter().zip(page["receipts"].as_array().unwrap()) {
            assert_eq!(receipt["transactionHash"], transaction["hash"]);
            let block = call("eth_getBlockByHash", json!([transaction["blockHash"], false]));
            assert_eq!(receipt["timestamp"], block["timestamp"]);
            assert!(receipt["logs"].as_array().unwrap().iter().all(|log| log["removed"] == json!(false)));
        }
        let (start, end) = if newest_first { ("firstPage", "lastPage") } else { ("lastPage", "firstPage") };
        assert_eq!(page[start], json!(at == json!(0)), "{page}");
        if newest_first {
            at = transactions.last().map_or(json!(1), |one| one["blockNumber"].clone());
            all.extend(hashes);
        } else {
            at = transactions.first().map_or(json!(u64::MAX), |one| one["blockNumber"].clone());
            all.splice(0..0, hashes);
        }
        if page[end] == json!(true) {
            return all;
        }
        assert!(transactions.len() as u64 >= size, "{page}");
    }
}

#[test]
fn searches_find_each_transaction_in_which_an_address_takes_part() {
    let Explored { mut dev, .. } = Explored::new();
    for round in 0..6 {
        for to in [SENDER, NOBODY, FAILS].iter().take(1 + round % 3) {
            dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": to, "gas": "0x7a120"}]));
        }
        dev.get("evm_mine", json!([]));
    }
    let page = dev.get("ots_searchTransactionsBefore", json!([SENDER, 0, 100]));
    let outcomes = page["receipts"].as_array().unwrap();
    assert!(outcomes.iter().all(|receipt| receipt["logs"].as_array().unwrap().len() == 1), "{page}");
    let network = dev.chain().view().network().clone();
    let mut light = Light::new(network, ExecutedUpstream::new(dev.client.snapshot()));
    for (address, least) in [(ALICE, 12), (SENDER, 7), (BOB, 8), (NOBODY, 4), (DESTROYED, 7)] {
        let expected = taking_part(&mut dev, address);
        assert!(expected.len() >= least, "{address}: {expected:?}");
        for method in ["ots_searchTransactionsBefore", "ots_searchTransactionsAfter"] {
            for size in [1, 3, 100] {
                let found = pages(&mut |method, params| dev.get(method, params), method, address, size);
                assert_eq!(found, expected, "{method} of {address} by {size}");
            }
            let found =
                pages(&mut |method, params| light.call(method, &params).unwrap(), method, address, 100);
            assert_eq!(found, expected, "{method} of {address} in a light client");
        }
    }
}

#[test]
fn a_search_ends_after_ten_thousand_blocks() {
    let config = DevConfig { history: None, ..DevConfig::new(&DevAccounts::default()) };
    let mut dev = DevClient::new(config);
    let hash = dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB}]));
    dev.get("hardhat_mine", json!(["0x2710"]));
    let (code, text) = dev.refused("ots_searchTransactionsBefore", json!([BOB, 0, 25]));
    assert!(code == -32005 && text.contains("10000 blocks"), "{code} {text}");
    // The transactions that were found before the limit are a page.
    let found = dev.get("ots_searchTransactionsAfter", json!([BOB, 0, 25]));
    assert_eq!((&found["txs"][0]["hash"], &found["firstPage"]), (&hash, &json!(false)));
    assert_eq!(dev.get("ots_searchTransactionsBefore", json!([BOB, 2, 25]))["txs"][0]["hash"], hash);
}

#[test]
fn a_search_ends_where_states_are_not_kept() {
    let config = DevConfig { history: Some(5), ..DevConfig::new(&DevAccounts::default()) };
    let mut dev = DevClient::new(config);
    let send = json!([{"from": ALICE, "to": BOB}]);
    let hashes: Vec<Value> = (0..20).map(|_| dev.get("eth_sendTransaction", send.clone())).collect();
    let page = dev.get("ots_searchTransactionsBefore", json!([BOB, 0, 25]));
    let found = page["txs"].as_array().unwrap();
    assert!((4..=6).contains(&found.len()) && page["lastPage"] == json!(false), "{page}");
    assert_eq!(found[0]["hash"], *hashes.last().unwrap());
    let (code, text) = dev.refused("ots_searchTransactionsBefore", json!([BOB, 5, 25]));
    assert!(code == -32600 && text.contains("older than the history kept"), "{code} {text}");
}

#[test]
fn a_page_has_a_limit_of_its_own() {
    let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
    let mut dev = DevClient::new(config);
    let accounts = dev.get("eth_accounts", json!([]));
    for _ in 0..3 {
        // The pool takes 16 transactions of an account at once.
        for sent in 0..60 {
            let from = &accounts[2 + sent / 15];
            dev.get("eth_sendTransaction", json!([{"from": from, "to": BOB, "gas": "0x5208"}]));
        }
        dev.get("evm_mine", json!([]));
    }
    for (method, ended) in
        [("ots_searchTransactionsBefore", "lastPage"), ("ots_searchTransactionsAfter", "firstPage")]
    {
        let page = dev.get(method, json!([BOB, 0, u64::MAX]));
        assert_eq!((page["txs"].as_array().unwrap().len(), &page[ended]), (120, &json!(false)), "{method}");
        let all = pages(&mut |method, params| dev.get(method, params), method, BOB, 100);
        assert_eq!(all.len(), 180, "{method}");
    }
}
