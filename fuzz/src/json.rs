//! Headers, transactions and receipts from a node's JSON: the claimed hash decides, whatever the text.

use alloy_primitives::{Address, B256};
use rootlight::types::json::{
    BlockParts, RpcBlock, RpcReceipt, RpcTransaction, RpcTransactions, header_from_json, log_from_json,
    receipt_from_json, transaction_from_json,
};
use rootlight::types::{Header, HeaderShape, Receipt, Transaction};

use crate::header::shape;
use crate::input::{Input, change};
use crate::limit::with_limit;

/// Testnet's: rebuilding may add it to `v`.
const CHAIN_ID: u64 = 31;

/// First byte: what it is. The text itself, or the RLP of an object whose JSON is then changed.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, layout) = (input.byte(), shape(input.byte()));
    let changes = usize::from(input.byte() % 16);
    let rest = input.rest();
    let (body, choices) = rest.split_at(rest.len().saturating_sub(changes * 3));
    let mut choices = Input::new(choices);
    with_limit(data.len(), || match kind % 6 {
        0 => text(body).into_iter().for_each(|json| read_header(json, None, layout)),
        1 => text(body).into_iter().for_each(|json| read_transaction(json, None)),
        2 => text(body).into_iter().for_each(read_receipt),
        3 => show_header(body, layout, &mut choices),
        4 => show_transaction(body, &mut choices),
        _ => show_receipt(body, &mut choices),
    });
}

fn text(body: &[u8]) -> Option<&str> {
    core::str::from_utf8(body).ok()
}

fn read_header(json: &str, claimed: Option<B256>, layout: HeaderShape) {
    let Ok(sealed) = header_from_json(json, claimed, &|_| layout) else { return };
    assert_eq!(sealed.hash(), sealed.header().hash());
    assert!(claimed.is_none_or(|hash| hash == sealed.hash()));
    assert!(claimed.is_some() || json.contains(&hex::encode(sealed.hash())) || has_upper_case(json));
}

fn read_transaction(json: &str, claimed: Option<B256>) {
    let Ok(tx) = transaction_from_json(json, claimed, CHAIN_ID) else { return };
    assert!(claimed.is_none_or(|hash| hash == tx.hash()));
    assert!(claimed.is_some() || json.contains(&hex::encode(tx.hash())) || has_upper_case(json));
    let shown = RpcTransaction::new(&tx, tx.hash(), Address::ZERO, None);
    assert_eq!(transaction_from_json(&written(&shown), None, CHAIN_ID).as_ref(), Ok(&tx));
}

fn read_receipt(json: &str) {
    let _ = log_from_json(json);
    let Ok(receipt) = receipt_from_json(json) else { return };
    assert_eq!(Receipt::decode(&receipt.encode()).as_ref(), Ok(&receipt));
}

/// The claimed hash may be written with upper-case digits.
fn has_upper_case(json: &str) -> bool {
    json.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn written(shown: &impl serde::Serialize) -> String {
    serde_json::to_string(shown).expect("no maps, no floats")
}

/// Changes one to some places of a text; it stays UTF-8.
fn changed(json: &str, choices: &mut Input<'_>) -> Option<String> {
    let mut bytes = json.as_bytes().to_vec();
    while !choices.is_empty() {
        change(&mut bytes, choices);
    }
    String::from_utf8(bytes).ok()
}

/// What we show of a header rebuilds to it, unless more is hidden than can be found out; changed JSON rebuilds to a
/// header of the same hash or to none.
fn show_header(rlp: &[u8], layout: HeaderShape, choices: &mut Input<'_>) {
    let Ok(header) = Header::decode(rlp, &|_| layout) else { return };
    let (number, uncles, umm) = (header.number, header.uncle_count, header.umm_root.is_empty());
    let sealed = header.seal();
    let parts = BlockParts {
        transactions: RpcTransactions::Hashes(Vec::new()),
        uncles: Some(&[]),
        total_difficulty: None,
        size: None,
    };
    let json = written(&RpcBlock::new(&sealed, parts));
    let rebuilt = header_from_json(&json, Some(sealed.hash()), &|_| layout);
    let limit = sealed.gas_limit;
    let findable =
        [limit.value().into(), rootlight::types::RawUint::signed_minimal(limit.value())].contains(&limit);
    if number > 0 && uncles <= 10 && umm && findable && !(sealed.difficulty.is_absent()) {
        assert_eq!(rebuilt.as_ref(), Ok(&sealed));
    }
    if let Ok(rebuilt) = rebuilt {
        assert_eq!(rebuilt.hash(), sealed.hash());
    }
    if let Some(json) = changed(&json, choices) {
        read_header(&json, Some(sealed.hash()), layout);
    }
}

fn show_transaction(rlp: &[u8], choices: &mut Input<'_>) {
    let Ok(tx) = Transaction::decode(rlp) else { return };
    let json = written(&RpcTransaction::new(&tx, tx.hash(), Address::ZERO, None));
    if let Some(json) = changed(&json, choices) {
        read_transaction(&json, Some(tx.hash()));
    }
}

fn show_receipt(rlp: &[u8], choices: &mut Input<'_>) {
    let Ok(receipt) = Receipt::decode(rlp) else { return };
    let at = rootlight::types::json::Location { block_hash: B256::ZERO, block_number: 1, index: 0 };
    let tx = Transaction::remasc(1);
    let json = written(&RpcReceipt::new(&receipt, &tx, tx.hash(), Address::ZERO, &at, 0));
    assert_eq!(receipt_from_json(&json).as_ref(), Ok(&receipt));
    if let Some(json) = changed(&json, choices) {
        read_receipt(&json);
    }
}
