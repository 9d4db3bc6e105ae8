//! What hosts of one service tell each other, and what they do not take.

use alloc::{vec, vec::Vec};
use std::string::ToString as _;

use alloy_primitives::{Address, Bytes};
use serde_json::json;

use super::*;
use crate::{
    consensus::{
        ChainError,
        body::{receipts_root, root_format, transactions_root},
    },
    light::{SyncStep, encode_headers},
    rpc::mined_chain::{Mined, ask, family},
    types::{Header, Log, SealedHeader, bloom::logs_bloom, rlp::list_of},
};

/// A chain, a client that knows all of it, and one that lacks the last block, which has an uncle.
fn pair() -> (Mined, super::super::Client, super::super::Client) {
    let (mut mined, uncle) = family();
    let behind = mined.client();
    mined.adopt(1, uncle);
    let whole = mined.client();
    (mined, whole, behind)
}

#[test]
fn a_header_that_is_told_needs_no_upstream() {
    let (mined, whole, behind) = pair();
    let (head, now) = (mined.head().hash(), mined.now());
    let total = |client: &super::super::Client| client.sync().chain().unwrap().total_difficulty(&head);
    let text = whole.tell_headers(&[mined.blocks[3].0.hash(), head, B256::ZERO]);
    assert_eq!(behind.take_headers(&text, now), Ok(true));
    assert_eq!(behind.sync().chain().unwrap().head().hash(), head);
    assert!(total(&whole).is_some() && total(&behind) == total(&whole), "the uncle came with the header");
    assert_eq!(behind.take_headers(&text, now), Ok(true), "once more");
    let record = behind.sync().upstreams().remove(0).record;
    assert_eq!(record.demerits, 0);
}

#[test]
fn uncles_that_are_not_told_are_asked_for() {
    let (mut mined, _, mut behind) = pair();
    let (head, now) = (mined.head().clone(), mined.now());
    let other = [mined.blocks[2].0.clone()];
    for uncles in [None, Some(&[][..]), Some(&other[..])] {
        let (_, _, fresh) = pair();
        let text = encode_headers([(head.header(), uncles)].into_iter());
        assert_eq!(fresh.take_headers(&text, now), Ok(false));
        assert!(fresh.sync().chain().unwrap().total_difficulty(&head.hash()).is_none());
        behind = fresh;
    }
    mined.follow_at(&mut behind, 1_000_000);
    assert!(behind.sync().is_settled());
    assert!(behind.sync().chain().unwrap().total_difficulty(&head.hash()).is_some());
}

#[test]
fn a_header_that_breaks_a_rule_is_not_taken() {
    let (mined, whole, behind) = pair();
    let (before, now) = (behind.sync().chain().unwrap().head().hash(), mined.now());
    let one = |header: &Header| encode_headers([(header, None)].into_iter());
    let head = mined.head();
    let easier = Header { timestamp: head.timestamp + 1, ..head.header().clone() };
    assert!(matches!(
        behind.take_headers(&one(&easier), now),
        Err(ToldError::Chain(ChainError::Rule { .. }))
    ));
    let (orphan, _) = family();
    let stranger = Header { parent_hash: B256::repeat_byte(1), ..orphan.head().header().clone() };
    let unknown = behind.take_headers(&one(&stranger), now);
    assert!(matches!(unknown, Err(ToldError::Chain(ChainError::UnknownParent { .. }))), "{unknown:?}");
    let many = encode_headers((0..17).map(|_| (head.header(), None)));
    assert!(matches!(behind.take_headers(&many, now), Err(ToldError::Batch(_))));
    assert!(matches!(behind.take_headers("-", now), Err(ToldError::Batch(_))));
    assert_eq!(behind.sync().chain().unwrap().head().hash(), before);
    let new = mined.start();
    assert_eq!(new.take_headers(&whole.tell_headers(&[head.hash()]), now), Err(ToldError::NotSynced));
    assert!(matches!(new.sync_mut().next(0, now), SyncStep::Fetch(_)));
}

/// A chain whose head has one transaction with one log, and the contents of that block.
fn with_contents() -> (Mined, SealedHeader, Transaction, Receipt) {
    let (mut mined, _) = family();
    let number = mined.head().number + 1;
    let log =
        Log { address: Address::ZERO, topics: vec![B256::repeat_byte(3)], data: Bytes::from_static(b"data") };
    let (transaction, receipt) = (Transaction::remasc(number), Receipt::new(true, 21_000, 21_000, vec![log]));
    let format = root_format(&mined.network, number);
    let block = mined.next(|header| {
        header.transactions_root = transactions_root(core::slice::from_ref(&transaction), format);
        header.receipts_root = receipts_root(core::slice::from_ref(&receipt), format);
        header.logs_bloom = logs_bloom(&receipt.logs);
    });
    mined.blocks.push((block.clone(), Vec::new()));
    (mined, block, transaction, receipt)
}

fn contents(transactions: &[&Transaction], receipts: &[&Receipt]) -> Vec<u8> {
    let transactions: Vec<_> = transactions.iter().map(|one| one.encode()).collect();
    let receipts: Vec<_> = receipts.iter().map(|one| one.encode()).collect();
    let list = |items: &[Vec<u8>]| list_of(items.iter().map(Vec::as_slice));
    list_of([&*list(&transactions), &*list(&receipts)])
}

#[test]
fn contents_that_are_told_need_no_upstream() {
    let (mut mined, block, transaction, receipt) = with_contents();
    let mut client = mined.client();
    let told = contents(&[&transaction], &[&receipt]);
    assert_eq!(client.contents(&block.hash()), None);
    assert_eq!(client.take_contents(&block.hash(), &told), Ok(()));
    assert_eq!(client.contents(&block.hash()), Some(told));
    let answer = ask(&mut client, "eth_getLogs", json!([{"blockHash": block.hash().to_string()}]));
    assert_eq!(answer["result"][0]["data"], "0x64617461", "{answer}");
}

#[test]
fn contents_of_another_block_are_not_taken() {
    let (mut mined, block, transaction, receipt) = with_contents();
    let client = mined.client();
    let (hash, told) = (block.hash(), contents(&[&transaction], &[&receipt]));
    let other = Receipt::new(false, 21_000, 21_000, receipt.logs.clone());
    for wrong in [
        contents(&[&transaction], &[&other]),
        contents(&[&transaction], &[]),
        contents(&[&Transaction::remasc(1)], &[&receipt]),
        contents(&[&transaction, &transaction], &[&receipt, &receipt]),
        [&*told, &[0x80]].concat(),
    ] {
        assert!(client.take_contents(&hash, &wrong).is_err());
    }
    for end in 0..told.len() {
        assert!(client.take_contents(&hash, &told[..end]).is_err());
    }
    assert_eq!(client.contents(&hash), None);
    assert_eq!(client.take_contents(&B256::ZERO, &told), Err(ContentsError::Unknown(B256::ZERO)));
    let parent = mined.blocks[mined.blocks.len() - 2].0.hash();
    assert!(matches!(client.take_contents(&parent, &told), Err(ContentsError::Body(_))));
}

#[test]
fn contents_with_any_other_byte_are_not_taken() {
    let (mut mined, block, transaction, receipt) = with_contents();
    let client = mined.client();
    let (hash, told) = (block.hash(), contents(&[&transaction], &[&receipt]));
    for at in 0..told.len() {
        for bit in 0..8 {
            let mut changed = told.clone();
            changed[at] ^= 1 << bit;
            assert!(client.take_contents(&hash, &changed).is_err(), "bit {bit} of byte {at}");
        }
        let longer = [&told[..at], &told[at..=at], &told[at..]].concat();
        assert!(client.take_contents(&hash, &longer).is_err(), "byte {at} twice");
    }
    assert_eq!(client.contents(&hash), None);
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
        proptest::prop_assert!(client.take_contents(&block.hash(), &bytes).is_err());
        proptest::prop_assert!(client.take_contents(&block.hash(), &framed).is_err());
    }
}
