//! geth's tracers on a recorded chain. The state that `prestateTracer` shows is sufficient: a transaction that is
//! executed on it alone has the same result. Changes continue from each transaction to the next.

use crate::support;

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, U256};
use rootlight::consensus::Network;
use rootlight::exec::{BlockContext, IndexedTransaction, OnUnsimulated, TransactionList};
use rootlight::state::{Account, World};
use rootlight::trie::Trie;
use rootlight::types::Transaction;
use serde_json::{Value, json};
use support::executed::Executed;
use support::recording::RecordedBranch;
use support::{bytes, shared};

/// Blocks of the recorded chain that are traced.
const BLOCKS: usize = 676;

fn traces(chain: &Executed, block: usize, tracer: &str, config: Value) -> Vec<Value> {
    ask(chain, block, tracer, &config).unwrap()
}

/// The traces of a block, or the error.
fn ask(chain: &Executed, block: usize, tracer: &str, config: &Value) -> Result<Vec<Value>, Value> {
    let options = json!({ "tracer": tracer, "tracerConfig": config });
    let traces = chain.call("debug_traceBlockByNumber", &json!([format!("{block:#x}"), options]))?;
    Ok(traces.as_array().unwrap().iter().map(|trace| trace["result"].clone()).collect())
}

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

fn quantity(value: &Value) -> U256 {
    value.as_str().map_or(U256::ZERO, |text| text.parse().unwrap())
}

fn objects(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The state that a trace shows, and nothing else.
fn world(prestate: &Value) -> World {
    let mut world = World::new(Trie::new());
    for (text, account) in objects(prestate) {
        let address = address(text);
        let nonce = account["nonce"].as_u64().unwrap_or_default();
        let balance = quantity(&account["balance"]);
        world.set_account(&address, Account { nonce, balance, ..Account::default() });
        if let Some(code) = account["code"].as_str() {
            world.set_marker(&address);
            world.set_code(&address, bytes(code));
        }
        for (slot, word) in objects(&account["storage"]) {
            world.set_word(&address, &slot.parse().unwrap(), quantity(word));
        }
    }
    world
}

/// Whether a transaction uses native contracts that keep more than words (Bridge, REMASC).
fn is_shared(prestate: &Value) -> bool {
    objects(prestate).any(|(text, _)| text.starts_with("0x0000000000000000000000000000000001"))
}

/// Applies changes to what is known of the state.
fn apply(known: &mut BTreeMap<String, Value>, diff: &Value) {
    for (address, _) in objects(&diff["pre"]).filter(|(address, _)| diff["post"].get(*address).is_none()) {
        known.insert(address.clone(), Value::Null);
    }
    for (address, post) in objects(&diff["post"]) {
        let account = known.entry(address.clone()).or_default();
        if !account.is_object() {
            *account = json!({ "storage": {} });
        }
        for field in ["balance", "nonce", "code"] {
            if let Some(value) = post.get(field) {
                account[field] = value.clone();
            }
        }
        // A slot that only the state before has is zero afterwards.
        for (slot, _) in objects(&diff["pre"][address]["storage"]) {
            account["storage"][slot] = json!(B256::ZERO);
        }
        for (slot, word) in objects(&post["storage"]) {
            account["storage"][slot] = word.clone();
        }
    }
}

/// Compares the state before a transaction with the changes of those before it. Returns how many values were known.
fn compare(known: &BTreeMap<String, Value>, pre: &Value, at: &str) -> usize {
    let mut compared = 0;
    for (address, account) in objects(pre) {
        let Some(earlier) = known.get(address) else { continue };
        assert!(earlier.is_object(), "{at}: {address} was removed");
        for field in ["balance", "nonce", "code"] {
            if let Some(value) = earlier.get(field) {
                assert_eq!(account.get(field), Some(value), "{at}: {field} of {address}");
                compared += 1;
            }
        }
        for (slot, word) in objects(&account["storage"]) {
            if let Some(value) = earlier["storage"].get(slot) {
                assert_eq!(value, word, "{at}: slot {slot} of {address}");
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn a_transaction_on_its_prestate_alone_has_the_same_result() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), BLOCKS);
    let branch = RecordedBranch::canonical(&chain.recording);
    let network = &chain.recording.network;
    let (mut equal, mut with_storage) = (0, 0);
    for (number, block) in chain.recording.blocks.iter().enumerate().skip(1) {
        let prestates = traces(&chain, number, "prestateTracer", json!({}));
        let diffs = traces(&chain, number, "prestateTracer", json!({ "diffMode": true }));
        assert_eq!(prestates.len(), block.transactions.len());
        let mut context = BlockContext::new(network, block.header.header().into(), &branch);
        context.unsimulated = OnUnsimulated::Fail;
        for (index, transaction) in block.transactions.iter().enumerate() {
            let (pre, diff) = (&prestates[index], &diffs[index]);
            if transaction.is_remasc() || is_shared(pre) {
                continue;
            }
            let at = format!("block {number}, transaction {index}");
            let sender = transaction.recover_sender(network.chain_id).unwrap();
            let item = IndexedTransaction { index, transaction, sender };
            let mut list = TransactionList::new(world(pre), u64::MAX >> 2);
            let end =
                list.execute(&context, item, None).unwrap_or_else(|error| panic!("{at}: {error}: {pre}"));
            let expected = chain.receipt(number, index);
            assert_eq!(
                (end.receipt.success, end.receipt.gas_used, &end.receipt.logs),
                (expected.success, expected.gas_used, &expected.logs),
                "{at}: {pre}"
            );
            compare_after(&mut list.world, diff, transaction, &at);
            equal += 1;
            with_storage += usize::from(objects(pre).any(|(_, account)| account.get("storage").is_some()));
        }
    }
    assert!(equal > 500 && with_storage > 100, "{equal} equal, {with_storage} with storage");
}

/// Compares the state after a run on the state before it with the changes that the tracer shows.
fn compare_after(world: &mut World, diff: &Value, transaction: &Transaction, at: &str) {
    for (text, post) in objects(&diff["post"]) {
        let address = address(text);
        let account = world.account(&address).unwrap_or_else(|| panic!("{at}: {address} of {transaction:?}"));
        if let Some(balance) = post.get("balance") {
            assert_eq!(quantity(balance), account.balance, "{at}: {address}");
        }
        if let Some(nonce) = post.get("nonce") {
            assert_eq!(nonce.as_u64(), Some(account.nonce), "{at}: {address}");
        }
        if let Some(code) = post["code"].as_str() {
            assert_eq!(world.code_of(&address), bytes(code), "{at}: {address}");
        }
        for (slot, word) in objects(&post["storage"]) {
            assert_eq!(
                world.word(&address, &slot.parse().unwrap()),
                quantity(word),
                "{at}: {address} {slot}"
            );
        }
    }
}

#[test]
fn changes_continue_from_each_transaction_to_the_next() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), BLOCKS);
    let (mut known, mut compared) = (BTreeMap::new(), 0);
    for number in 1..=BLOCKS {
        let prestates = traces(&chain, number, "prestateTracer", json!({}));
        let diffs = traces(&chain, number, "prestateTracer", json!({ "diffMode": true }));
        for (index, (pre, diff)) in prestates.iter().zip(&diffs).enumerate() {
            compared += compare(&known, pre, &format!("block {number}, transaction {index}"));
            apply(&mut known, diff);
        }
    }
    assert!(compared > 2_000, "only {compared} values were known");
}

/// Each tracer alone and all of them in one run give the same, unless all together exceed the space that they share.
#[test]
fn several_tracers_in_one_run_give_what_each_gives_alone() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), 200);
    let all = json!({
        "callTracer": { "withLog": true },
        "flatCallTracer": {},
        "prestateTracer": { "diffMode": true },
        "4byteTracer": null,
        "erc7562Tracer": {},
        "noopTracer": {},
        "structLogger": { "enableMemory": true },
    });
    let (mut compared, mut too_large) = (0, 0);
    for number in 1..=200 {
        let together = match ask(&chain, number, "muxTracer", &all) {
            Ok(together) => together,
            Err(error) => {
                assert_eq!(error["code"], -32005, "{error}");
                too_large += 1;
                continue;
            }
        };
        for (tracer, config) in objects(&all) {
            let alone = traces(&chain, number, tracer, config.clone());
            let found: Vec<_> = together.iter().map(|traces| traces[tracer].clone()).collect();
            assert_eq!(alone, found, "block {number}: {tracer}");
            compared += alone.len();
        }
    }
    assert!(compared > 1_000 && too_large < 10, "{compared} {too_large}");
}
