//! Raw blocks, headers, receipts and transactions against what the chain commits to, and headers and accounts alone
//! against the methods that show more.

use crate::fixture::{Fixture, NOBODY};
use crate::support::light::{ExecutedUpstream, Light, follower};
use crate::support::recording::text_of;
use crate::support::{bytes, shared, u64_of};
use rootlight::consensus::Network;
use rootlight::engine::LocalNode as _;
use rootlight::trie::ordered_trie;
use rootlight::types::{B256, Block, Receipt, Transaction, keccak256, uncles_hash};
use serde_json::{Value, json};

fn hash_of(value: &Value) -> B256 {
    value.as_str().unwrap().parse().unwrap()
}

fn all_bytes(list: &Value) -> Vec<Vec<u8>> {
    list.as_array().unwrap().iter().map(|item| bytes(item.as_str().unwrap()).to_vec()).collect()
}

/// Checks the raw forms of a block against the hashes in its header. Returns the block as a caller sees it.
fn check(call: &mut dyn FnMut(&str, Value) -> Value, network: &Network, number: u64) -> Value {
    let at = || json!([format!("{number:#x}")]);
    let block = call("eth_getBlockByNumber", json!([format!("{number:#x}"), true]));
    let header = bytes(call("debug_getRawHeader", at()).as_str().unwrap());
    assert_eq!(keccak256(&header), hash_of(&block["hash"]), "block {number}");

    let raw = bytes(call("debug_getRawBlock", at()).as_str().unwrap());
    assert_eq!(raw.len() as u64, u64_of(block["size"].as_str().unwrap()), "block {number}");
    let decoded = Block::decode(&raw, &|at| network.header_shape(at)).unwrap();
    assert_eq!(decoded.header.hash(), hash_of(&block["hash"]));
    assert_eq!(uncles_hash(&decoded.uncles), hash_of(&block["sha3Uncles"]));
    let transactions: Vec<Vec<u8>> = decoded.body.transactions.iter().map(Transaction::encode).collect();
    assert_eq!(ordered_trie(&transactions).root(), hash_of(&block["transactionsRoot"]));
    assert_eq!(all_bytes(&call("debug_getRawTransactions", at())), transactions, "block {number}");

    let receipts = all_bytes(&call("debug_getRawReceipts", at()));
    assert_eq!(ordered_trie(&receipts).root(), hash_of(&block["receiptsRoot"]), "block {number}");
    for receipt in &receipts {
        Receipt::decode(receipt).unwrap();
    }
    for (transaction, raw) in block["transactions"].as_array().unwrap().iter().zip(&transactions) {
        let hash = json!([transaction["hash"]]);
        for (kind, of) in [("Hash", "hash"), ("Number", "number")] {
            let method = format!("eth_getRawTransactionByBlock{kind}AndIndex");
            let found = call(&method, json!([block[of], transaction["transactionIndex"]]));
            assert_eq!(bytes(found.as_str().unwrap()), *raw, "{method} {hash}");
        }
        for method in ["eth_getRawTransactionByHash", "debug_getRawTransaction"] {
            assert_eq!(bytes(call(method, hash.clone()).as_str().unwrap()), *raw, "{method} {hash}");
        }
    }

    // A block object has all members of the header object.
    let shown = call("eth_getHeaderByNumber", at());
    assert_eq!(shown, call("eth_getHeaderByHash", json!([block["hash"]])));
    let members = shown.as_object().unwrap();
    assert!(members.iter().all(|(name, value)| block[name] == *value), "{shown}");
    assert!(members.len() + 5 == block.as_object().unwrap().len() && shown.get("transactions").is_none());
    block
}

#[test]
fn raw_forms_of_a_recorded_chain_have_the_hashes_of_its_headers() {
    let Some((node, _)) = follower() else { return };
    let network = Network::regtest();
    let upstream = || ExecutedUpstream::new(node.snapshot());
    let executed = upstream();
    let mut light = Light::new(network.clone(), upstream());
    let (mut uncles, mut transactions) = (0, 0);
    for number in 1..=676 {
        let mut ask = |method: &str, params: Value| executed.call(method, &params).unwrap();
        let block = check(&mut ask, &network, number);
        uncles += block["uncles"].as_array().unwrap().len();
        transactions += block["transactions"].as_array().unwrap().len();
        if number % 48 == 0 {
            let mut ask = |method: &str, params: Value| light.call(method, &params).unwrap();
            assert_eq!(check(&mut ask, &network, number), block);
        }
    }
    assert!(uncles >= 20 && transactions > 1_000, "{uncles} uncles, {transactions} transactions");

    // The bytes that were sent to the reference node, and the receipts that it gave.
    let (mut sent, mut given) = (0, 0);
    let folder = shared().unwrap().join("vectors/chain");
    for file in ["txs_sendRaw.jsonl", "receipts_raw.jsonl"] {
        for line in text_of(&folder.join(file)).lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let (request, result) = (&line["request"]["params"][0], &line["response"]["result"]);
            let (hash, raw) = match file {
                "txs_sendRaw.jsonl" => (result, request),
                _ => (request, result),
            };
            let place = executed.call("eth_getTransactionReceipt", &json!([hash])).unwrap_or_default();
            let Some(block) = place["blockHash"].as_str() else { continue };
            if file == "txs_sendRaw.jsonl" {
                assert_eq!(executed.call("eth_getRawTransactionByHash", &json!([hash])).unwrap(), *raw);
                sent += 1;
            } else {
                let index = u64_of(place["transactionIndex"].as_str().unwrap()) as usize;
                assert_eq!(executed.call("debug_getRawReceipts", &json!([block])).unwrap()[index], *raw);
                given += 1;
            }
        }
    }
    assert!(sent > 500 && given > 1_000, "{sent} transactions, {given} receipts");
}

#[test]
fn what_no_upstream_knows_has_no_raw_form() {
    let mut fixture = Fixture::new();
    let network = fixture.dev.chain().view().network().clone();
    let mut light = Light::new(network, ExecutedUpstream::new(fixture.dev.client.snapshot()));
    let unknown = json!([format!("0x{}", "77".repeat(32))]);
    for method in [
        "debug_getRawHeader",
        "debug_getRawBlock",
        "debug_getRawTransaction",
        "debug_getRawTransactions",
        "debug_getRawReceipts",
    ] {
        assert_eq!(light.call(method, &unknown), Ok(Value::Null), "{method}");
    }
}

#[test]
fn a_waiting_transaction_has_a_raw_form() {
    let mut fixture = Fixture::new();
    let waiting = fixture.dev.get("eth_pendingTransactions", json!([]))[0]["hash"].clone();
    let raw = bytes(fixture.dev.get("eth_getRawTransactionByHash", json!([waiting])).as_str().unwrap());
    assert_eq!(keccak256(raw), hash_of(&waiting));
}

#[test]
fn an_account_has_the_fields_that_other_methods_prove() {
    let mut fixture = Fixture::new();
    let network = fixture.dev.chain().view().network().clone();
    let mut light = Light::new(network, ExecutedUpstream::new(fixture.dev.client.snapshot()));
    let contract = fixture.contract.clone();
    for address in [contract.clone(), json!(crate::fixture::ALICE)] {
        let proof = fixture.dev.get("eth_getProof", json!([address, [], "latest"]));
        let account = fixture.dev.get("eth_getAccount", json!([address, "latest"]));
        let expected = json!({"balance": proof["balance"], "nonce": proof["nonce"],
            "codeHash": proof["codeHash"], "storageRoot": proof["storageHash"]});
        assert_eq!(account, expected);
        let info = fixture.dev.get("eth_getAccountInfo", json!([address]));
        let code = fixture.dev.get("eth_getCode", json!([address]));
        assert_eq!(info, json!({"balance": proof["balance"], "nonce": proof["nonce"], "code": code}));
        for (method, answer) in [("eth_getAccount", account), ("eth_getAccountInfo", info)] {
            assert_eq!(light.call(method, &json!([address, "latest"])), Ok(answer), "{method} {address}");
        }
    }
    // The contract did not exist before its block.
    assert_eq!(fixture.dev.get("eth_getAccount", json!([contract, "0x0"])), Value::Null);
    let nothing = json!({"balance": "0x0", "nonce": "0x0", "code": "0x"});
    assert_eq!(fixture.dev.get("eth_getAccountInfo", json!([NOBODY])), nothing);
    assert_eq!(light.call("eth_getAccount", &json!([NOBODY])), Ok(Value::Null));
}

#[test]
fn the_pool_of_one_sender_has_the_transactions_of_that_part_of_the_whole_pool() {
    let mut fixture = Fixture::new();
    let sender = crate::fixture::ALICE;
    let whole = fixture.dev.get("txpool_content", json!([]));
    let own = fixture.dev.get("txpool_contentFrom", json!([sender]));
    let (nonce, listed) = whole["pending"][&sender[2..]].as_object().unwrap().iter().next().unwrap();
    let whole_transaction = fixture.dev.get("eth_getTransactionByHash", json!([listed[0]["hash"]]));
    assert_eq!(own, json!({"pending": {nonce: whole_transaction}, "queued": {}}));
    let none = json!({"pending": {}, "queued": {}});
    assert_eq!(fixture.dev.get("txpool_contentFrom", json!([NOBODY])), none);
}

#[test]
fn methods_that_rootstock_cannot_have_say_what_to_do() {
    let mut dev = Fixture::new().dev;
    for (method, words) in [
        ("eth_feeHistory", "--legacy"),
        ("eth_maxPriorityFeePerGas", "gasPrice"),
        ("eth_blobBaseFee", "no blobs"),
        ("eth_resend", "eth_sendRawTransaction"),
        ("eth_sendRawTransactionConditional", "no conditions"),
        ("tenderly_simulateTransaction", "eth_simulateV1"),
        ("engine_newPayloadV4", "no beacon chain"),
    ] {
        let (code, text) = dev.refused(method, json!([]));
        assert!(code == -32601 && text.contains(method) && text.contains(words), "{text}");
    }
    assert_eq!(dev.refused("engines", json!([])), (-32601, "method not found".into()));
}

#[test]
fn the_configuration_is_that_of_the_head() {
    let mut dev = Fixture::new().dev;
    let config = dev.get("eth_config", json!([]));
    assert_eq!(config["current"]["chainId"], dev.get("eth_chainId", json!([])));
    assert_eq!(config["current"]["activationBlock"], 1, "no rule of this network activates later");
    assert_eq!((&config["next"], &config["last"]), (&Value::Null, &Value::Null));
}
