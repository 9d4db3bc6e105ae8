//! Headers that hosts of one service tell each other, and those that they do not take.

use rootlight::consensus::ChainError;
use rootlight::light::SyncStep;
use rootlight::rpc::Client;
use rootlight::rpc::mined_chain::{Mined, family};
use rootlight::types::Header;

use super::*;

/// A chain, a client that knows all of it, and one that lacks the last block, which has an uncle.
fn pair() -> (Mined, Client, Client) {
    let (mut mined, uncle) = family();
    let behind = mined.client();
    mined.adopt(1, uncle);
    let whole = mined.client();
    (mined, whole, behind)
}

#[test]
fn a_relayed_header_needs_no_upstream() {
    let (mined, whole, behind) = pair();
    let (head, now) = (mined.head().hash(), mined.now());
    let total = |client: &Client| client.sync().chain().unwrap().total_difficulty(&head);
    let text = headers(&whole.sync(), &[mined.blocks[3].0.hash(), head, B256::ZERO]);
    assert_eq!(take_headers(&behind, &text, now), Ok(true));
    assert_eq!(behind.sync().chain().unwrap().head().hash(), head);
    assert!(total(&whole).is_some() && total(&behind) == total(&whole), "the uncle came with the header");
    assert_eq!(take_headers(&behind, &text, now), Ok(true), "once more");
    let record = behind.sync().upstreams().remove(0).record;
    assert_eq!(record.demerits, 0);
}

#[test]
fn missing_uncles_of_a_relayed_header_are_requested() {
    let (mut mined, _, mut behind) = pair();
    let (head, now) = (mined.head().clone(), mined.now());
    let other = [mined.blocks[2].0.clone()];
    for uncles in [None, Some(&[][..]), Some(&other[..])] {
        let (_, _, fresh) = pair();
        let text = encode_headers([(head.header(), uncles)].into_iter());
        assert_eq!(take_headers(&fresh, &text, now), Ok(false));
        assert!(fresh.sync().chain().unwrap().total_difficulty(&head.hash()).is_none());
        behind = fresh;
    }
    mined.follow_at(&mut behind, 1_000_000);
    assert!(behind.sync().uncles_complete());
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
        take_headers(&behind, &one(&easier), now),
        Err(ExchangeError::Chain(ChainError::Rule { .. }))
    ));
    let (orphan, _) = family();
    let stranger = Header { parent_hash: B256::repeat_byte(1), ..orphan.head().header().clone() };
    let unknown = take_headers(&behind, &one(&stranger), now);
    assert!(matches!(unknown, Err(ExchangeError::Chain(ChainError::UnknownParent { .. }))), "{unknown:?}");
    let many = encode_headers((0..17).map(|_| (head.header(), None)));
    assert!(matches!(take_headers(&behind, &many, now), Err(ExchangeError::Batch(_))));
    assert!(matches!(take_headers(&behind, "-", now), Err(ExchangeError::Batch(_))));
    assert_eq!(behind.sync().chain().unwrap().head().hash(), before);
    let new = mined.start();
    assert_eq!(
        take_headers(&new, &headers(&whole.sync(), &[head.hash()]), now),
        Err(ExchangeError::NotSynced)
    );
    assert!(matches!(new.sync_mut().next(0, now), SyncStep::Fetch(_)));
}
