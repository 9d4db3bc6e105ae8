//! Documents that prove an account or a receipt without any upstream: what a report says is what the state says.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use rootlight::consensus::Network;
use rootlight::state::{Account, World, keys};
use rootlight::trie::{Trie, index_key, ordered_trie};
use rootlight::types::{Log, Receipt};
use rootlight::verify::{Report, DocumentSubject, verify};
use serde_json::{Value, json};

use crate::input::{Input, change};
use crate::limit::with_limit;
use crate::model::proof;

/// Most accounts, slots of one account and receipts.
const MAX_ACCOUNTS: usize = 10;
const MAX_SLOTS: usize = 8;
const MAX_RECEIPTS: usize = 40;

/// First byte: any text as either document, or a document made of choices and then changed.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.byte() % 6;
    let text = || core::str::from_utf8(data.get(1..).unwrap_or_default());
    match kind {
        0 => text().into_iter().for_each(|text| drop(checked(DocumentSubject::Account, text))),
        1 => text().into_iter().for_each(|text| drop(checked(DocumentSubject::Receipt, text))),
        2 => text().into_iter().for_each(|text| drop(checked(DocumentSubject::Header, text))),
        3 => text().into_iter().for_each(|text| drop(checked(DocumentSubject::Block, text))),
        4 => check_made_account(&mut input),
        _ => check_made_receipt(&mut input),
    }
}

/// A failure has a reason; nothing of a report is empty. Returns the report if every check passed.
fn checked(subject: DocumentSubject, text: &str) -> Option<Report> {
    let network = Network::regtest();
    let report = with_limit(text.len(), || verify(subject, text.as_bytes(), &network));
    assert!(serde_json::to_string(&report).is_ok() && !report.to_string().is_empty());
    match &report.failed {
        None => {
            assert!(!report.checks.is_empty() && report.checks.iter().all(|check| !check.shown.is_empty()));
            Some(report)
        }
        Some(failure) => {
            assert!(!failure.reason.is_empty());
            None
        }
    }
}

/// Changes the text of a document in up to as many places as there are choices left.
fn changed(document: &Value, input: &mut Input<'_>) -> Option<String> {
    let mut bytes = document.to_string().into_bytes();
    while !input.is_empty() {
        change(&mut bytes, input);
    }
    String::from_utf8(bytes).ok()
}

/// What a state holds.
#[derive(Default)]
struct AccountContent {
    nonce: u64,
    balance: U256,
    slots: BTreeMap<U256, U256>,
}

fn state(input: &mut Input<'_>) -> (Trie, BTreeMap<Address, AccountContent>) {
    let (mut world, mut truth) = (World::new(Trie::new()), BTreeMap::new());
    for _ in 0..=input.below(MAX_ACCOUNTS) {
        let address = Address::repeat_byte(input.byte());
        let mut held = AccountContent { nonce: u64::from(input.byte()), ..AccountContent::default() };
        held.balance = U256::from_be_bytes::<32>(input.array()) >> 1;
        let account = Account { nonce: held.nonce, balance: held.balance, ..Account::default() };
        world.set_account(&address, account);
        for _ in 0..input.below(MAX_SLOTS) {
            let slot = U256::from(input.byte());
            let word = U256::from_be_bytes::<32>(input.array());
            world.set_word(&address, &slot, word);
            held.slots.insert(slot, word);
        }
        // The same address again: its slots stay.
        let known: &mut AccountContent = truth.entry(address).or_default();
        known.slots.extend(held.slots);
        (known.nonce, known.balance) = (held.nonce, held.balance);
    }
    (world.commit(), truth)
}

fn check_made_account(input: &mut Input<'_>) {
    let (trie, truth) = state(input);
    let address = match input.byte() {
        choice @ 128.. => Address::repeat_byte(choice),
        choice => *truth.keys().nth(usize::from(choice) % truth.len()).expect("one at least"),
    };
    let absent = AccountContent::default();
    let held = truth.get(&address).unwrap_or(&absent);
    let nodes =
        |key: &[u8]| -> Vec<Bytes> { proof(&trie, key, false).into_iter().map(Bytes::from).collect() };
    let slots: Vec<U256> = (0..input.below(MAX_SLOTS)).map(|_| U256::from(input.byte())).collect();
    let slot = |slot: &U256| {
        let value = held.slots.get(slot).copied().unwrap_or_default();
        json!({"key": slot, "value": value, "proof": nodes(&keys::slot_key(&address, slot))})
    };
    let code_hash = if truth.contains_key(&address) { KECCAK256_EMPTY } else { B256::ZERO };
    let answer = json!({
        "address": address,
        "accountProof": nodes(&keys::account_key(&address)),
        "storageProof": slots.iter().map(slot).collect::<Vec<_>>(),
        "nonce": U256::from(held.nonce),
        "balance": held.balance,
        "codeHash": code_hash,
    });
    let document = json!({"stateRoot": trie.root(), "proof": {"jsonrpc": "2.0", "id": 1, "result": answer}});
    let report = checked(DocumentSubject::Account, &document.to_string()).expect("an honest document");
    assert_eq!(report.value("exists"), Some(truth.contains_key(&address).to_string()));

    let Some(text) = changed(&document, input) else { return };
    let Some(report) = checked(DocumentSubject::Account, &text) else { return };
    let fact = |name: &str| report.value(name);
    // Another root is another state.
    if !report.checks.iter().any(|check| check.shown.ends_with(&trie.root().to_string())) {
        return;
    }
    let address: Address = fact("address").and_then(|text| text.parse().ok()).expect("an address");
    let held = truth.get(&address);
    assert_eq!(fact("exists"), Some(held.is_some().to_string()));
    let held = held.unwrap_or(&absent);
    assert!(fact("balance").is_none_or(|text| text == held.balance.to_string()));
    assert!(fact("nonce").is_none_or(|text| text == held.nonce.to_string()));
    for (name, value) in report.values() {
        let Some(slot) = name.strip_prefix("storage[").and_then(|rest| rest.strip_suffix(']')) else {
            continue;
        };
        let slot: U256 = slot.parse().expect("a slot");
        let word = held.slots.get(&slot).copied().unwrap_or_default();
        assert_eq!(value, format!("{word:#x}"));
    }
}

fn check_made_receipt(input: &mut Input<'_>) {
    let count = input.below(MAX_RECEIPTS) + 1;
    let tag = input.byte();
    let receipt = |index: usize| {
        let log = Log {
            address: Address::repeat_byte(tag),
            topics: vec![B256::repeat_byte(index as u8); index % 5],
            data: vec![tag; index % 70].into(),
        };
        let logs = vec![log; index % 3];
        Receipt::new(index % 2 == 0, 21_000 * index as u64, 21_000, logs)
    };
    let receipts: Vec<Vec<u8>> = (0..count).map(|index| receipt(index).encode()).collect();
    let trie = ordered_trie(&receipts);
    let index = input.below(count);
    // Without a stated index, it is read from the path to the leaf, so the leaf is listed even if it is embedded.
    let stated = input.byte() % 2 == 0;
    let listed = proof(&trie, &index_key(index as u64), !stated);
    let mut nodes: Vec<Bytes> = listed.into_iter().map(Bytes::from).collect();
    nodes.reverse();
    let mut document = json!({
        "receiptsRoot": trie.root(),
        "receipt": Bytes::from(receipts[index].clone()),
        "nodes": {"jsonrpc": "2.0", "id": 1, "result": nodes},
    });
    if stated {
        document["index"] = json!(index);
    }
    let report = checked(DocumentSubject::Receipt, &document.to_string()).expect("an honest document");
    assert_eq!(report.value("index"), Some(index.to_string()));

    let Some(text) = changed(&document, input) else { return };
    let Some(report) = checked(DocumentSubject::Receipt, &text) else { return };
    if report.checks.iter().any(|check| check.shown.ends_with(&trie.root().to_string())) {
        let index: usize = report.value("index").and_then(|text| text.parse().ok()).expect("an index");
        let truth = Receipt::decode(&receipts[index]).expect("our own");
        assert_eq!(report.value("gasUsed"), Some(truth.gas_used.to_string()));
        assert_eq!(report.value("cumulativeGasUsed"), Some(truth.cumulative_gas_used.to_string()));
        assert_eq!(report.value("logs[0].data").is_some(), !truth.logs.is_empty());
    }
}
