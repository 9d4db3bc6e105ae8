//! How a client follows two upstreams that have different data at different times.

use serde_json::value::RawValue;

use super::{
    Client,
    mined_chain::{Mined, START, family},
};
use crate::{
    consensus::{
        difficulty,
        testing::{child, mine},
    },
    light::{Now, RequestFailure, SyncStep, UpstreamRequest},
};

/// Another upstream, with the blocks below a height.
fn other(mined: &Mined, below: u64, omits_uncles: bool) -> Mined {
    let blocks = mined.blocks.iter().filter(|(header, _)| header.number < below).cloned().collect();
    Mined { blocks, omits_uncles, ..Mined::from(START, mined.network.clone()) }
}

/// Responds as both upstreams in turn until synchronization requests nothing more.
fn follow_both(client: &mut Client, upstreams: &mut [&mut Mined; 2], millis: u64) {
    let now = Now { millis, ..upstreams.iter().map(|mined| mined.now()).max_by_key(|now| now.unix).unwrap() };
    for _ in 0..100 {
        let mut asked = false;
        for (upstream, mined) in upstreams.iter_mut().enumerate() {
            if let SyncStep::Fetch(calls) = client.sync_next(upstream, now) {
                let answers = calls.iter().map(|call| mined.answer(call)).collect();
                client.sync_feed(upstream, answers, now);
                asked = true;
            }
        }
        if !asked {
            return;
        }
    }
    panic!("synchronization does not end");
}

/// One upstream has a block first and withholds its uncles. The other one is a block behind at that time, or on
/// another branch. Once it has the block, it serves the uncles, with the header or one by one.
#[test]
fn uncles_come_from_an_upstream_that_has_the_block_later() {
    for (aside, alone) in [(false, true), (false, false), (true, true), (true, false)] {
        let (mut mined, uncle) = family();
        let fork = mined.next(|header| header.gas_used = 5);
        let height = fork.number;
        mined.adopt(1, uncle);
        let head = mined.head().hash();
        let mut first = other(&mined, height + 1, true);
        let mut late = other(&mined, height, alone);
        if aside {
            late.blocks.push((fork, Vec::new()));
        }
        late.family = alone.then(|| (other(&mined, height, false).client(), false));
        let total = |client: &Client| client.sync().chain().unwrap().total_difficulty(&head);
        let mut client = mined.start_with(2);
        follow_both(&mut client, &mut [&mut first, &mut late], 0);
        assert!(client.sync().chain().unwrap().by_hash(&head).is_some() && total(&client).is_none());

        mined.grow(1, 14);
        let whole = mined.client();
        late.blocks = mined.blocks.clone();
        let expected = total(&whole);
        late.family = alone.then_some((whole, false));
        follow_both(&mut client, &mut [&mut first, &mut late], 60_000);
        assert!(expected.is_some() && total(&client) == expected, "aside {aside}, alone {alone}");
    }
}

/// An upstream switches to a heavier branch of fewer blocks between two responses. It is asked for its height again
/// before it is blamed for the missing block. An upstream that announces the block again and does not serve it is
/// paused.
#[test]
fn an_upstream_may_switch_to_a_branch_of_fewer_blocks() {
    for honest in [true, false] {
        let mut mined = Mined::new();
        mined.grow(10, 14);
        let client = mined.client();
        mined.grow(1, 14);
        mined.announced_ahead = 1;
        let now = Now { millis: 1_000_000, ..mined.now() };
        while let SyncStep::Fetch(calls) = client.sync_next(0, now) {
            let asks_for_head = calls[0].method == "eth_blockNumber";
            let answer = |call: &UpstreamRequest| match call.method {
                "eth_getBlockByNumber" | "rsk_getRawBlockHeaderByNumber" => {
                    Ok(RawValue::from_string("null".into()).unwrap())
                }
                _ => mined.answer(call),
            };
            let answers = calls.iter().map(answer).collect();
            client.sync_feed(0, answers, now);
            mined.announced_ahead = if asks_for_head && honest { 0 } else { mined.announced_ahead };
        }
        assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash());
        let state = client.sync().upstreams().remove(0);
        assert_eq!((state.record.demerits, state.resting.is_none()), (u32::from(!honest), honest));
    }
}

/// Several nodes may share one address, and one that has the header may lack the uncles that another one has. The
/// uncles are requested again when the upstream has more blocks on top, and not before.
#[test]
fn missing_uncles_are_requested_again_as_the_chain_grows() {
    let (mut mined, uncle) = family();
    let behind = mined.client();
    mined.adopt(1, uncle);
    let (head, whole) = (mined.head().hash(), mined.client());
    (mined.omits_uncles, mined.family) = (true, Some((behind, false)));
    let mut client = mined.client();
    let total = |client: &Client| client.sync().chain().unwrap().total_difficulty(&head);
    let requests = |mined: &Mined| mined.asked.iter().filter(|call| call.method.contains("Uncle")).count();
    let (asked, mut again) = (requests(&mined), Vec::new());
    for blocks in 1..9_u64 {
        let before = requests(&mined);
        mined.follow_at(&mut client, blocks * 100_000);
        assert_eq!(requests(&mined), before, "no request without new blocks");
        mined.grow(1, 14);
        mined.follow_at(&mut client, blocks * 100_000 + 50_000);
        again.extend((requests(&mined) > before).then_some(blocks));
        assert!(client.sync().uncles_complete());
    }
    assert!(asked > 0 && total(&client).is_none());
    assert_eq!(again, [1, 2, 4, 8], "requested again with this many blocks on top");
    mined.family = Some((whole, false));
    mined.grow(8, 14);
    mined.follow_at(&mut client, 1_000_000);
    assert!(total(&client).is_some());
}

/// An uncle whose timestamp is ahead of the client's clock counts once the clock reaches it, and so does a later list
/// that depends on it.
#[test]
fn uncles_with_future_timestamps_count_later() {
    let (mut mined, uncle) = family();
    let early = {
        let parent = mined.blocks[9].0.clone();
        let mut early = child(&mined.network, &parent);
        early.timestamp += 3_000;
        early.difficulty = difficulty::expected(&early, &parent, &mined.network).into();
        mine(early)
    };
    mined.adopt(1, early);
    mined.adopt(1, uncle);
    let (client, now) = (mined.client(), mined.now());
    let total = |client: &Client| client.sync().chain().unwrap().total_difficulty(&mined.head().hash());
    let record = client.sync().upstreams().remove(0).record;
    assert!(total(&client).is_none() && record.demerits == 0, "{record:?}");
    for (seconds, counts) in [(1_000, false), (3_000, true)] {
        client.sync_poll();
        let now = Now { unix: now.unix + seconds, millis: seconds * 1_000 };
        let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("due") };
        let answers = calls.iter().map(|_| Err(RequestFailure::Transport("gone".into()))).collect();
        client.sync_feed(0, answers, now);
        assert_eq!(total(&client).is_some(), counts, "{seconds}");
    }
}
