//! Attacks on the chain, and what stops each.

use super::branches::MAX_BRANCH_HEADERS;
use super::chain_test::{EASY, NOW, START, chain_of, changing, insert_all};
use super::error::MAX_EXTRA_HEADERS;
use super::hash::{HEADER_LEN, header_hash};
use super::target::PERIOD;
use super::testing::{mine, mine_on};
use super::{BitcoinChain, BitcoinChainError, BitcoinInserted, KEPT_BITCOIN_HEADERS};
use crate::types::B256;

/// Eight hashes make a block.
const EIGHT: u32 = 0x201f_ffff;

/// A branch of `count` headers on the block at a height.
fn branch(chain: &BitcoinChain, height: u32, salt: u64, count: usize) -> Vec<[u8; HEADER_LEN]> {
    let parent = chain.at(height).unwrap();
    mine_on(parent.hash, salt, parent.time, 600, parent.bits, count)
}

#[test]
fn a_saved_up_chain_that_links_to_nothing_is_refused() {
    let (mut chain, _) = chain_of(20);
    let before = chain.tip();
    for header in mine_on(B256::repeat_byte(5), 1, START, 600, EASY, 288) {
        let error = chain.insert(&header, NOW).unwrap_err();
        assert!(matches!(error, BitcoinChainError::Unlinked { .. }), "{error}");
    }
    assert_eq!((chain.tip(), chain.branches().len()), (before, 0));
}

#[test]
fn a_private_chain_of_low_difficulty_is_refused_at_its_first_header() {
    let mut chain = BitcoinChain::new(changing(EIGHT));
    let start = chain.start().hash;
    for low in [EASY, 0x2020_0000, EIGHT + 1, EIGHT - 1] {
        let header = mine(start, 0, START, low);
        let refused = BitcoinChainError::Bits { height: 4 * PERIOD, found: low, expected: EIGHT };
        assert_eq!(chain.insert(&header, NOW), Err(refused));
    }
    // The same on top of an honest header, and at the end of a period.
    let headers = mine_on(start, 0, START, 600, EIGHT, PERIOD as usize);
    for (index, header) in headers.iter().enumerate() {
        chain.insert(header, NOW).unwrap();
        if index % 500 == 0 || index + 1 == headers.len() {
            let tip = chain.tip();
            let low = mine(tip.hash, 1, tip.time + 1, EASY);
            let error = chain.insert(&low, NOW).unwrap_err();
            assert!(matches!(error, BitcoinChainError::Bits { .. }), "{error}");
        }
    }
}

/// The last time of a period is far ahead, so that the next target is four times as high. The first time of that period goes
/// back to just above the median, which Bitcoin allows.
#[test]
fn false_times_at_the_end_of_a_period_give_blocks_but_not_work() {
    let mut chain = BitcoinChain::new(changing(EIGHT));
    let honest = mine_on(chain.start().hash, 0, START, 600, EIGHT, PERIOD as usize);
    insert_all(&mut chain, &honest);
    let (shared, end) = (PERIOD as usize - 1, chain.tip());
    let parent = header_hash(&honest[shared - 1]);
    let weeks_ahead = START + 5_000_000;
    let warped = mine(parent, 1, weeks_ahead, EIGHT);

    // With an honest clock the time is refused.
    let now = u64::from(end.time) + 600;
    let refused = BitcoinChainError::FutureTime { height: end.height, time: weeks_ahead, now };
    assert_eq!(chain.insert(&warped, now), Err(refused));

    // A client that catches up later accepts it, as Bitcoin does, and counts work.
    let next = chain.checkpoint_at(end.height).unwrap().next_bits;
    insert_all(&mut chain, &mine_on(end.hash, 0, end.time, 600, next, 100));
    let tip = chain.tip();
    chain.insert(&warped, NOW).unwrap();
    let easy = mine_on(header_hash(&warped), 1, end.time - 3_000, 600, 0x207f_fffc, 380);
    assert_eq!(insert_all(&mut chain, &easy), BitcoinInserted::Side);
    assert_eq!(chain.tip(), tip, "380 blocks of a quarter of the work are less than 100");
}

#[test]
fn a_header_ahead_of_the_clock_is_not_kept() {
    let (mut chain, _) = chain_of(3);
    let now = u64::from(chain.tip().time);
    let ahead = mine(chain.tip().hash, 0, chain.tip().time + 7_201, EASY);
    assert!(matches!(chain.insert(&ahead, now), Err(BitcoinChainError::FutureTime { .. })));
    assert_eq!((chain.tip().height, chain.branches().len()), (3, 0));
    assert_eq!(chain.insert(&ahead, now + 1), Ok(BitcoinInserted::Extended));
}

#[test]
fn stale_blocks_are_not_in_the_chain() {
    let (mut chain, _) = chain_of(30);
    let tip = chain.tip();
    for depth in [1, 2, 3, 7] {
        let stale = branch(&chain, 30 - depth, u64::from(depth), depth as usize - 1);
        for header in &stale {
            assert_eq!(chain.insert(header, NOW), Ok(BitcoinInserted::Side));
            assert_eq!(chain.height_of(&header_hash(header)), None);
        }
    }
    assert_eq!((chain.tip(), chain.branches().len()), (tip, 9));
    // Branches of one, two and six blocks are each one block behind.
    assert_eq!(chain.rival_fork(0), None);
    assert_eq!(chain.rival_fork(1), Some(23));
    insert_all(&mut chain, &mine_on(tip.hash, 0, tip.time, 600, EASY, 2));
    assert_eq!((chain.rival_fork(2), chain.rival_fork(3)), (None, Some(23)));
}

#[test]
fn a_reorganisation_needs_more_work() {
    for depth in [1, 2, 3, 4, 5, 6, 50, 500, PERIOD - 2] {
        let (chain, headers) = chain_of(2_100);
        let mut moved = chain.clone();
        let fork = 2_100 - depth;
        let side = branch(&chain, fork, 1, depth as usize + 1);
        let (last, before) = side.split_last().unwrap();
        // Of two chains with the same work the one with the lower hash is preferred.
        let ties = insert_all(&mut moved, before) != BitcoinInserted::Side;
        let removed = if ties { 0 } else { depth };
        let expected = BitcoinInserted::Reorganised { fork, removed };
        let expected = if ties { BitcoinInserted::Extended } else { expected };
        assert_eq!(moved.insert(last, NOW), Ok(expected), "{depth} blocks");
        assert_eq!(moved.tip().hash, header_hash(last));
        assert_eq!(moved.work_of(..), chain.work_of(..) + chain.work_of(1..=1));
        for (index, header) in side.iter().enumerate() {
            assert_eq!(moved.height_of(&header_hash(header)), Some(fork + 1 + index as u32));
        }
        for header in &headers[fork as usize..] {
            assert_eq!(moved.height_of(&header_hash(header)), None);
        }
        assert_eq!(moved.branches().len(), depth as usize);
        // And back, with two blocks on the old chain.
        let back = branch(&chain, 2_100, 2, 2);
        insert_all(&mut moved, &back);
        assert_eq!(moved.tip().hash, header_hash(&back[1]));
        assert!(
            (1..=2_102)
                .all(|height| moved.at(height).is_some_and(|b| moved.height_of(&b.hash) == Some(height)))
        );
    }
}

/// Blocks that a reorganisation of a whole period removes are too deep to come back.
#[test]
fn the_deepest_reorganisation_is_that_of_a_period() {
    let (mut chain, headers) = chain_of(2_100);
    let side = branch(&chain, 2_100 - PERIOD, 1, PERIOD as usize + 1);
    insert_all(&mut chain, &side);
    assert_eq!((chain.tip().height, chain.tip().hash), (2_101, header_hash(&side[PERIOD as usize])));
    assert_eq!(chain.branches().len(), 0);
    let next = mine(header_hash(&headers[2_099]), 2, NOW as u32 - 1, EASY);
    assert!(matches!(chain.insert(&next, NOW), Err(BitcoinChainError::Unlinked { .. })));
}

#[test]
fn a_branch_that_leaves_too_deep_is_refused() {
    let (mut chain, _) = chain_of(2_100);
    let fork = 2_100 - PERIOD - 1;
    let deep = branch(&chain, fork, 1, 1);
    let error = BitcoinChainError::Deep { height: fork + 1, fork };
    assert_eq!(chain.insert(&deep[0], NOW), Err(error));
    assert!(error.to_string().contains("more than the work of 2016 blocks below the tip"), "{error}");
    // A branch that was not too deep when it left the chain is dropped once it is too deep.
    let side = branch(&chain, fork + 1, 1, 3);
    insert_all(&mut chain, &side);
    assert_eq!(chain.branches().len(), 3);
    let more = branch(&chain, 2_100, 0, 1);
    insert_all(&mut chain, &more);
    assert_eq!(chain.branches().len(), 0);
    let next = mine(header_hash(&side[2]), 1, NOW as u32 - 1, EASY);
    assert!(matches!(chain.insert(&next, NOW), Err(BitcoinChainError::Unlinked { .. })));
}

/// Mines `count` headers on the tip, each with the target that the chain demands, and inserts them.
fn grow(chain: &mut BitcoinChain, salt: u64, seconds: u32, count: u32) -> Vec<[u8; HEADER_LEN]> {
    let mut mined = Vec::new();
    while mined.len() < count as usize {
        let tip = chain.tip();
        let next = chain.checkpoint_at(tip.height).map_or(tip.bits, |end| end.next_bits);
        let left = (count as usize - mined.len()).min((PERIOD - (tip.height + 1) % PERIOD) as usize);
        let headers = mine_on(tip.hash, salt, tip.time.max(START), seconds, next, left);
        insert_all(chain, &headers);
        mined.extend(headers);
    }
    mined
}

/// A chain that a false time at the end of a period made cheap, of three more periods, and the branch with more work that
/// it left. Sixteen hashes make an honest block, four a false one.
#[test]
fn blocks_of_little_work_do_not_make_a_branch_deep() {
    let mut honest = BitcoinChain::new(changing(0x200f_ffff));
    grow(&mut honest, 0, 600, PERIOD - 1);
    let (mut deceived, fork) = (honest.clone(), honest.tip());
    let honest_headers = grow(&mut honest, 0, 600, 1_600);
    insert_all(&mut deceived, &[mine(fork.hash, 1, fork.time + 5_000_000, fork.bits)]);
    grow(&mut deceived, 1, 600, 3 * PERIOD);
    let false_tip = deceived.tip();
    let share = (deceived.work_of(fork.height + 2..) / (deceived.work_of(fork.height + 1..=fork.height + 1)))
        .to::<u32>();
    assert!((1_500..1_520).contains(&share), "{share}");
    // The false blocks are no checkpoint of the client's own, and sources are asked for those below.
    assert_eq!(deceived.personal_checkpoint(), *deceived.start());
    assert!(deceived.locator().any(|height| height <= fork.height));
    insert_all(&mut deceived, &honest_headers[..1_400]);
    assert_eq!(deceived.tip(), false_tip);
    insert_all(&mut deceived, &honest_headers[1_400..]);
    assert_eq!(deceived.tip(), honest.tip());
    assert_eq!(deceived.personal_checkpoint(), honest.personal_checkpoint());
}

/// A false chain may leave Bitcoin's at any block. A few blocks on an old one have recent times at no cost.
#[test]
fn a_few_new_blocks_on_an_old_one_are_slow() {
    const MONTH: u32 = 30 * 24 * 60 * 60;
    let (mut chain, _) = chain_of(100);
    assert!(!chain.is_slow());
    // A block after a month, and others every ten minutes: 1,440 are a quarter of those that miners find meanwhile.
    let tip = chain.tip();
    let after_gap = mine_on(tip.hash, 0, tip.time + MONTH - 600, 600, EASY, 1_450);
    for (from, to) in [(0, 1), (1, 37), (37, 1_430)] {
        insert_all(&mut chain, &after_gap[from..to]);
        assert!(chain.is_slow(), "{to} blocks");
    }
    insert_all(&mut chain, &after_gap[1_430..]);
    assert!(!chain.is_slow());
}

/// Miners find no block for hours at times. Fewer than 36 blocks say nothing of their rate.
#[test]
fn a_few_late_blocks_are_not_slow() {
    let (mut chain, _) = chain_of(100);
    for _ in 0..25 {
        grow(&mut chain, 1, 3_000, 1);
        assert!(!chain.is_slow(), "{}", chain.tip().height);
    }
    grow(&mut chain, 1, 3_000, 11);
    assert!(chain.is_slow(), "these are 36");
}

/// The same on the built-in block, whose header is not kept.
#[test]
fn a_few_new_blocks_on_the_checkpoint_are_slow() {
    for (time, is_slow) in [(START - 9_000_000, true), (START - 70_000, false), (0, false)] {
        let mut network = changing(EASY);
        network.checkpoint.time = time;
        let mut chain = BitcoinChain::new(network);
        grow(&mut chain, 0, 600, 40);
        assert_eq!(chain.is_slow(), is_slow, "{time}");
        // The time is not stored, but known where the chain begins at the built-in block.
        let restored = BitcoinChain::restore(network, &chain.stored(), NOW).unwrap();
        assert_eq!((restored.is_slow(), restored.start().time), (is_slow, time));
    }
}

/// Blocks of a low difficulty count as what they cost.
#[test]
fn cheap_blocks_are_as_slow_as_they_are_cheap() {
    let mut chain = BitcoinChain::new(changing(0x200f_ffff));
    grow(&mut chain, 0, 600, PERIOD - 2);
    let honest = chain.tip();
    // A block after 22 days, and one whose time makes those after it cheap.
    for after in [1_900_800, 6_000_000] {
        let block = mine(chain.tip().hash, 1, honest.time + after, honest.bits);
        insert_all(&mut chain, &[block]);
    }
    let end = chain.tip();
    let bits = chain.checkpoint_at(end.height).unwrap().next_bits;
    // So many would be enough if each had the work of those before.
    insert_all(&mut chain, &mine_on(end.hash, 1, honest.time + 1_900_800, 600, bits, 1_300));
    assert!(chain.is_slow());
}

/// Headers are kept while a branch may leave below them, and their number has a limit.
#[test]
fn a_difficulty_that_falls_for_ever_takes_bounded_memory() {
    // Sixty-four hashes make a block at first, then sixteen, four and two.
    let mut chain = BitcoinChain::new(changing(0x2003_ffff));
    grow(&mut chain, 0, 2_400, 3 * PERIOD);
    let most = KEPT_BITCOIN_HEADERS + MAX_EXTRA_HEADERS;
    let lowest = chain.lowest() - 1;
    grow(&mut chain, 0, 600, most - 3 * PERIOD);
    assert_eq!((chain.tip().height, chain.lowest() - 1), (lowest + most, lowest));
    let tip = chain.tip();
    let light = Err(BitcoinChainError::Light { height: tip.height + 1 });
    let on_top = |hash, time: u32| mine(hash, 3, time + 600, tip.bits);
    assert_eq!(chain.insert(&on_top(tip.hash, tip.time), NOW), light);
    // Neither does a branch grow further.
    let below = chain.at(tip.height - 1).unwrap();
    let beside = on_top(below.hash, below.time);
    assert!(chain.insert(&beside, NOW).is_ok());
    assert_eq!(chain.insert(&on_top(header_hash(&beside), tip.time), NOW), light);
}

/// A branch of a branch has its fork where the whole leaves the chain, before and after a reorganisation.
#[test]
fn branches_of_branches_follow_a_reorganisation() {
    let (mut chain, _) = chain_of(20);
    let side = branch(&chain, 15, 1, 4);
    insert_all(&mut chain, &side);
    let twig = mine_on(header_hash(&side[1]), 2, NOW as u32 - 90_000, 600, EASY, 2);
    insert_all(&mut chain, &twig);
    assert_eq!(chain.rival_fork(1), Some(15));
    let old = chain.tip().hash;
    let more = mine_on(header_hash(&side[3]), 1, NOW as u32 - 90_000, 600, EASY, 2);
    insert_all(&mut chain, &more);
    assert_eq!((chain.tip().height, chain.height_of(&header_hash(&more[1]))), (21, Some(21)));
    let fork = |hash: &B256| chain.branches().get(hash).unwrap().fork;
    assert_eq!(fork(&old), 15);
    assert_eq!((fork(&header_hash(&twig[0])), fork(&header_hash(&twig[1]))), (17, 17));
}

/// On regtest headers cost two hashes. The flood fills the branches, and an honest reorganisation still happens.
#[test]
fn a_flood_of_side_headers_takes_bounded_memory_and_hides_no_reorganisation() {
    let (mut chain, headers) = chain_of(40);
    let salted = |salt: u64| mine(header_hash(&headers[salt as usize % 38]), salt, NOW as u32 - 9, EASY);
    for salt in 0..3 * MAX_BRANCH_HEADERS as u64 + 700 {
        assert_eq!(chain.insert(&salted(1_000 + salt), NOW), Ok(BitcoinInserted::Side));
        assert!(chain.branches().len() <= MAX_BRANCH_HEADERS);
    }
    // Single headers near the tip have more work than the first headers of a deep branch, which arrive when there is no room.
    let deep = branch(&chain, 10, 1, 31);
    insert_all(&mut chain, &deep);
    assert_eq!(chain.tip().hash, header_hash(&deep[30]));
}

#[test]
fn a_long_branch_survives_a_flood_of_short_ones() {
    let (mut chain, headers) = chain_of(900);
    let side = branch(&chain, 100, 1, 799);
    insert_all(&mut chain, &side);
    for salt in 0..2 * MAX_BRANCH_HEADERS as u64 {
        let flood = mine(header_hash(&headers[salt as usize % 700]), 1_000 + salt, NOW as u32 - 9, EASY);
        chain.insert(&flood, NOW).unwrap();
    }
    let end = mine_on(header_hash(&side[798]), 1, NOW as u32 - 90_000, 600, EASY, 2);
    insert_all(&mut chain, &end);
    assert_eq!(chain.tip().hash, header_hash(&end[1]));
}

#[test]
fn headers_in_any_order_are_refused_until_they_link() {
    let (whole, headers) = chain_of(40);
    let mut chain = BitcoinChain::new(*whole.network());
    let mut left: Vec<_> = headers;
    let mut rounds = 0;
    left.reverse();
    while !left.is_empty() {
        left.retain(|header| match chain.insert(header, NOW) {
            Ok(BitcoinInserted::Extended) => false,
            Err(BitcoinChainError::Unlinked { .. }) => true,
            other => panic!("{other:?}"),
        });
        rounds += 1;
    }
    assert_eq!((chain.tip(), rounds), (whole.tip(), 40));
}
