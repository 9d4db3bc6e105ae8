//! The contents of blocks that hosts of one service tell each other, and those that they do not take.

use alloy_primitives::{Address, Bytes};
use rootlight::consensus::body::{receipts_root, root_format, transactions_root};
use rootlight::rpc::mined_chain::{Mined, ask, family};
use rootlight::types::bloom::logs_bloom;
use rootlight::types::rlp::list_of;
use rootlight::types::{Log, SealedHeader};
use serde_json::json;

use super::*;

/// A chain whose head has one transaction with one log, and the contents of that block.
fn with_contents() -> (Mined, SealedHeader, Transaction, Receipt) {
    let (mut mined, _) = family();
    let number = mined.head().number + 1;
    let log =
        Log { address: Address::ZERO, topics: vec![B256::repeat_byte(3)], data: Bytes::from_static(b"data") };
    let (transaction, receipt) = (Transaction::remasc(number), Receipt::new(true, 21_000, 21_000, vec![log]));
    let format = root_format(&mined.network, number);
    let block = mined.next(|header| {
        header.transactions_root = transactions_root(std::slice::from_ref(&transaction), format);
        header.receipts_root = receipts_root(std::slice::from_ref(&receipt), format);
        header.logs_bloom = logs_bloom(&receipt.logs);
    });
    mined.blocks.push((block.clone(), Vec::new()));
    (mined, block, transaction, receipt)
}

fn encoded(transactions: &[&Transaction], receipts: &[&Receipt]) -> Vec<u8> {
    let transactions: Vec<_> = transactions.iter().map(|one| one.encode()).collect();
    let receipts: Vec<_> = receipts.iter().map(|one| one.encode()).collect();
    let list = |items: &[Vec<u8>]| list_of(items.iter().map(Vec::as_slice));
    list_of([&*list(&transactions), &*list(&receipts)])
}

#[test]
fn relayed_contents_need_no_upstream() {
    let (mut mined, block, transaction, receipt) = with_contents();
    let mut client = mined.client();
    let message = encoded(&[&transaction], &[&receipt]);
    assert_eq!(contents(&client, &block.hash()), None);
    assert_eq!(take_contents(&client, &block.hash(), &message), Ok(()));
    assert_eq!(contents(&client, &block.hash()), Some(message));
    let answer = ask(&mut client, "eth_getLogs", json!([{"blockHash": block.hash().to_string()}]));
    assert_eq!(answer["result"][0]["data"], "0x64617461", "{answer}");
}

#[test]
fn contents_of_another_block_are_not_taken() {
    let (mut mined, block, transaction, receipt) = with_contents();
    let client = mined.client();
    let (hash, message) = (block.hash(), encoded(&[&transaction], &[&receipt]));
    let other = Receipt::new(false, 21_000, 21_000, receipt.logs.clone());
    for wrong in [
        encoded(&[&transaction], &[&other]),
        encoded(&[&transaction], &[]),
        encoded(&[&Transaction::remasc(1)], &[&receipt]),
        encoded(&[&transaction, &transaction], &[&receipt, &receipt]),
        [&*message, &[0x80]].concat(),
    ] {
        assert!(take_contents(&client, &hash, &wrong).is_err());
    }
    for end in 0..message.len() {
        assert!(take_contents(&client, &hash, &message[..end]).is_err());
    }
    assert_eq!(contents(&client, &hash), None);
    assert_eq!(take_contents(&client, &B256::ZERO, &message), Err(ContentsError::Unknown(B256::ZERO)));
    let parent = mined.blocks[mined.blocks.len() - 2].0.hash();
    assert!(matches!(take_contents(&client, &parent, &message), Err(ContentsError::Body(_))));
}

#[test]
fn contents_with_any_other_byte_are_not_taken() {
    let (mut mined, block, transaction, receipt) = with_contents();
    let client = mined.client();
    let (hash, message) = (block.hash(), encoded(&[&transaction], &[&receipt]));
    for at in 0..message.len() {
        for bit in 0..8 {
            let mut changed = message.clone();
            changed[at] ^= 1 << bit;
            assert!(take_contents(&client, &hash, &changed).is_err(), "bit {bit} of byte {at}");
        }
        let longer = [&message[..at], &message[at..=at], &message[at..]].concat();
        assert!(take_contents(&client, &hash, &longer).is_err(), "byte {at} twice");
    }
    assert_eq!(contents(&client, &hash), None);
}

proptest::proptest! {
    #[test]
    fn contents_of_any_bytes_are_not_taken(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let (mut mined, block, ..) = with_contents();
        let client = mined.client();
        let list = alloy_rlp::Header { list: true, payload_length: bytes.len() };
        let mut framed = Vec::new();
        list.encode(&mut framed);
        framed.extend_from_slice(&bytes);
        proptest::prop_assert!(take_contents(&client, &block.hash(), &bytes).is_err());
        proptest::prop_assert!(take_contents(&client, &block.hash(), &framed).is_err());
    }
}
