//! The rules of the chain, one test each, and what it says of its blocks.

use core::ops::Range;

use super::branches::{Branches, MAX_BRANCH_HEADERS};
use super::entry::Entry;
use super::hash::{HEADER_LEN, hash_number, header_hash};
use super::target::{PERIOD, target_of};
use super::testing::{header_of, mine, mine_on};
use super::{
    BitcoinBlock, BitcoinChain, BitcoinChainError, BitcoinCheckpoint, BitcoinInserted, BitcoinNetwork,
    HashedHeader, KEPT_BITCOIN_HEADERS,
};
use crate::types::{B256, U256};

pub(super) const EASY: u32 = 0x207f_ffff;
/// A clock that is ahead of all headers of these tests.
pub(super) const NOW: u64 = 2_000_000_000;
pub(super) const START: u32 = 1_700_000_000;

/// A network whose target changes; eight hashes make a block at first.
pub(super) fn changing(next_bits: u32) -> BitcoinNetwork {
    let checkpoint =
        BitcoinCheckpoint { height: 4 * PERIOD - 1, hash: B256::repeat_byte(9), next_bits, time: 0 };
    BitcoinNetwork { checkpoint, limit: EASY, retargets: true }
}

pub(super) fn regtest() -> BitcoinChain {
    BitcoinChain::new(BitcoinNetwork::REGTEST)
}

/// Inserts headers, each of which must be accepted, and returns what the last one did.
pub(super) fn insert_all(chain: &mut BitcoinChain, headers: &[[u8; HEADER_LEN]]) -> BitcoinInserted {
    let mut last = BitcoinInserted::Known;
    for header in headers {
        last = chain.insert(header, NOW).unwrap();
    }
    last
}

/// A regtest chain of `count` headers, and the headers.
pub(super) fn chain_of(count: usize) -> (BitcoinChain, Vec<[u8; HEADER_LEN]>) {
    let mut chain = regtest();
    let headers = mine_on(chain.start().hash, 0, START, 600, EASY, count);
    insert_all(&mut chain, &headers);
    (chain, headers)
}

#[test]
fn headers_on_the_checkpoint_are_the_chain() {
    let (chain, headers) = chain_of(30);
    let hash = |height: usize| header_hash(&headers[height - 1]);
    assert_eq!(chain.tip(), BitcoinBlock { height: 30, hash: hash(30), time: START + 18_000, bits: EASY });
    for height in 1..=30 {
        let number = height as u32;
        assert_eq!(chain.at(number).unwrap().hash, hash(height));
        assert_eq!(chain.header_at(number), Some(headers[height - 1]));
        assert_eq!(chain.height_of(&hash(height)), Some(number));
    }
    assert_eq!((chain.at(0), chain.at(31), chain.header_at(0), chain.at(u32::MAX)), (None, None, None, None));
    assert_eq!(chain.height_of(&BitcoinNetwork::REGTEST.checkpoint.hash), Some(0));
    assert_eq!(chain.height_of(&B256::ZERO), None);
    assert_eq!(chain.lowest(), 1);
}

#[test]
fn a_chain_without_headers_has_the_checkpoint_as_tip() {
    let chain = regtest();
    let hash = BitcoinNetwork::REGTEST.checkpoint.hash;
    assert_eq!(chain.tip(), BitcoinBlock { height: 0, hash, time: 0, bits: 0 });
    assert_eq!((chain.lowest(), chain.at(0), chain.work_of(..)), (1, None, U256::ZERO));
    assert_eq!(chain.locator().collect::<Vec<_>>(), [0]);
    assert_eq!(chain.rival_fork(100), None);
}

#[test]
fn a_header_whose_parent_is_not_held_is_refused() {
    let (mut chain, headers) = chain_of(3);
    let orphan = mine(B256::repeat_byte(7), 0, START, EASY);
    let error = chain.insert(&orphan, NOW).unwrap_err();
    let (hash, previous) = (header_hash(&orphan), B256::repeat_byte(7));
    assert_eq!(error, BitcoinChainError::Unlinked { hash, previous });
    assert!(error.to_string().contains("its parent 0x0707"), "{error}");
    assert_eq!(chain.tip().hash, header_hash(&headers[2]));
}

#[test]
fn a_header_that_states_another_target_is_refused() {
    let (mut chain, _) = chain_of(3);
    let header = mine(chain.tip().hash, 0, START + 9_000, 0x207f_fffe);
    let error = BitcoinChainError::Bits { height: 4, found: 0x207f_fffe, expected: EASY };
    assert_eq!(chain.insert(&header, NOW), Err(error));
    assert_eq!(error.to_string(), "Bitcoin header 4: nBits 0x207ffffe, the period has 0x207fffff");
}

#[test]
fn a_header_whose_hash_is_above_its_target_is_refused() {
    let (mut chain, _) = chain_of(3);
    let tip = chain.tip().hash;
    let unmined = (0..).map(|nonce| header_of(tip, B256::ZERO, START + 9_000, EASY, nonce));
    let target = target_of(EASY).unwrap();
    let header = unmined.into_iter().find(|header| hash_number(&header_hash(header)) > target).unwrap();
    let error = BitcoinChainError::HashAboveTarget { height: 4, hash: header_hash(&header), bits: EASY };
    assert_eq!(chain.insert(&header, NOW), Err(error));
}

#[test]
fn a_time_must_be_above_the_median_of_eleven_blocks() {
    let (mut chain, _) = chain_of(20);
    // The median of blocks 10 to 20 is the time of block 15.
    let median = chain.at(15).unwrap().time;
    let tip = chain.tip().hash;
    let late = mine(tip, 0, median, EASY);
    assert_eq!(chain.insert(&late, NOW), Err(BitcoinChainError::EarlyTime { height: 21, time: median }));
    assert_eq!(chain.insert(&mine(tip, 0, median + 1, EASY), NOW), Ok(BitcoinInserted::Extended));
    // Times out of order: those of blocks 11 to 21, sorted, have block 15 in the middle again.
    let tip = chain.tip().hash;
    let refused = BitcoinChainError::EarlyTime { height: 22, time: median + 1 };
    assert_eq!(chain.insert(&mine(tip, 0, median + 1, EASY), NOW), Err(refused));
    assert_eq!(chain.insert(&mine(tip, 0, median + 2, EASY), NOW), Ok(BitcoinInserted::Extended));
}

#[test]
fn a_branch_has_a_median_of_its_own() {
    let (mut chain, headers) = chain_of(20);
    let early = mine_on(header_hash(&headers[13]), 1, START + 14 * 600, 1, EASY, 4);
    insert_all(&mut chain, &early);
    // Blocks 8 to 14 and four that are seconds apart: the sixth is block 13.
    let previous = header_hash(&early[3]);
    let time = START + 13 * 600;
    let refused = BitcoinChainError::EarlyTime { height: 19, time };
    assert_eq!(chain.insert(&mine(previous, 1, time, EASY), NOW), Err(refused));
    assert_eq!(chain.insert(&mine(previous, 1, time + 1, EASY), NOW), Ok(BitcoinInserted::Side));
}

/// The times below the checkpoint are not known, so only six known ones can be a median.
#[test]
fn near_the_checkpoint_only_certain_violations_are_refused() {
    let mut chain = regtest();
    let headers = mine_on(chain.start().hash, 0, START, 600, EASY, 6);
    insert_all(&mut chain, &headers[..5]);
    let early = mine(chain.tip().hash, 1, START, EASY);
    assert_eq!(chain.clone().insert(&early, NOW), Ok(BitcoinInserted::Extended));
    insert_all(&mut chain, &headers[5..]);
    let early = mine(chain.tip().hash, 1, START + 600, EASY);
    assert_eq!(chain.insert(&early, NOW), Err(BitcoinChainError::EarlyTime { height: 7, time: START + 600 }));
    let zero = mine(chain.tip().hash, 1, 0, EASY);
    assert!(chain.insert(&zero, NOW).is_err());
}

#[test]
fn a_time_may_be_two_hours_ahead_of_the_clock() {
    let (chain, _) = chain_of(3);
    let time = START + 50_000;
    let header = mine(chain.tip().hash, 0, time, EASY);
    let now = u64::from(time) - 7_200;
    assert_eq!(chain.clone().insert(&header, now), Ok(BitcoinInserted::Extended));
    let error = BitcoinChainError::FutureTime { height: 4, time, now: now - 1 };
    assert_eq!(chain.clone().insert(&header, now - 1), Err(error));
    assert_eq!(chain.clone().insert(&header, u64::MAX), Ok(BitcoinInserted::Extended));
}

#[test]
fn a_known_header_changes_nothing() {
    let (mut chain, headers) = chain_of(5);
    let side = mine(header_hash(&headers[2]), 1, START + 9_000, EASY);
    assert_eq!(chain.insert(&side, NOW), Ok(BitcoinInserted::Side));
    for header in headers.iter().chain([&side]) {
        assert_eq!(chain.insert(header, NOW), Ok(BitcoinInserted::Known));
    }
    assert_eq!((chain.tip().height, chain.branches().len()), (5, 1));
}

/// Block 0 of regtest; its parent is not kept.
#[test]
fn the_checkpoints_own_header_is_known() {
    let root = "3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a";
    let root = B256::from_slice(&hex::decode(root).unwrap());
    let mut header = header_of(B256::ZERO, root, 1_296_688_602, EASY, 2);
    header[..4].copy_from_slice(&1u32.to_le_bytes());
    let (mut chain, _) = chain_of(2);
    assert_eq!(header_hash(&header), chain.start().hash);
    assert_eq!(chain.insert(&header, NOW), Ok(BitcoinInserted::Known));
    assert_eq!((chain.tip().height, chain.at(0)), (2, None));
}

/// The time of 2,015 intervals is compared with that of 2,016.
#[test]
fn the_target_changes_after_a_period_as_in_bitcoin() {
    let bits = 0x2010_0000;
    for (seconds, next) in [
        // floor(target * seconds * 2,015 / 1,209,600), computed by another program.
        (600, 0x200f_fdf7),
        (300, 0x2007_fefb),
        (150, 0x2004_0000),
        (1, 0x2004_0000),
        (1_200, 0x201f_fbef),
        (2_401, 0x203f_feb2),
        (2_402, 0x2040_0000),
        (100_000, 0x2040_0000),
    ] {
        let mut chain = BitcoinChain::new(changing(bits));
        let headers = mine_on(chain.start().hash, 0, START, seconds, bits, PERIOD as usize);
        insert_all(&mut chain, &headers);
        let tip = chain.tip();
        assert_eq!(chain.checkpoint_at(tip.height).unwrap().next_bits, next, "{seconds} s");
        let stale = mine(tip.hash, 0, tip.time + 1, bits);
        let refused = BitcoinChainError::Bits { height: tip.height + 1, found: bits, expected: next };
        assert_eq!(chain.insert(&stale, NOW), Err(refused));
        let fresh = mine(tip.hash, 0, tip.time + 1, next);
        assert_eq!(chain.insert(&fresh, NOW), Ok(BitcoinInserted::Extended));
        let second = mine(header_hash(&fresh), 0, tip.time + 2, next);
        assert_eq!(chain.insert(&second, NOW), Ok(BitcoinInserted::Extended));
    }
}

#[test]
fn a_target_is_never_above_the_limit() {
    let mut chain = BitcoinChain::new(changing(0x2040_0000));
    let headers = mine_on(chain.start().hash, 0, START, 3_000, 0x2040_0000, PERIOD as usize);
    insert_all(&mut chain, &headers);
    assert_eq!(chain.checkpoint_at(chain.tip().height).unwrap().next_bits, EASY);
}

#[test]
fn on_regtest_the_target_never_changes() {
    let (chain, _) = chain_of(PERIOD as usize + 3);
    assert_eq!(chain.tip().bits, EASY);
    assert_eq!(chain.checkpoint_at(PERIOD).unwrap().next_bits, EASY);
    assert_eq!(chain.checkpoint_at(PERIOD + 1), None);
}

#[test]
fn work_is_that_of_the_blocks_in_a_range() {
    let (chain, _) = chain_of(20);
    let two = |count: u64| U256::from(2 * count);
    assert_eq!(chain.work_of(..), two(20));
    assert_eq!(chain.work_of(0..), two(20));
    assert_eq!(chain.work_of(1..=20), two(20));
    assert_eq!(chain.work_of(5..10), two(5));
    assert_eq!(chain.work_of(5..=10), two(6));
    assert_eq!(chain.work_of(20..=20), two(1));
    assert_eq!(chain.work_of(19..1_000), two(2));
    for none in [0..0, 0..1, 7..7, 21..40, Range { start: 9, end: 3 }] {
        assert_eq!(chain.work_of(none.clone()), U256::ZERO, "{none:?}");
    }
    assert_eq!(chain.work_of(u32::MAX..), U256::ZERO);
}

#[test]
fn only_the_newest_headers_are_held() {
    let held = KEPT_BITCOIN_HEADERS;
    let (chain, headers) = chain_of(held as usize + 100);
    assert_eq!((chain.tip().height, chain.lowest()), (held + 100, 101));
    assert_eq!((chain.at(100), chain.header_at(101)), (None, Some(headers[100])));
    assert_eq!(chain.height_of(&header_hash(&headers[98])), None);
    assert_eq!(chain.height_of(&header_hash(&headers[100])), Some(101));
    assert_eq!(chain.work_of(..), U256::from(2 * held));
    assert_eq!(chain.work_of(90..=110), U256::from(20));
    let mut server = regtest().keeping(held + 50);
    insert_all(&mut server, &headers);
    assert_eq!(server.lowest(), 51);
}

#[test]
fn a_locator_goes_down_to_the_deepest_fork() {
    let (chain, _) = chain_of(100);
    assert_eq!(chain.locator().collect::<Vec<_>>(), [100, 99, 98, 96, 92, 84, 68, 36, 0]);
    let (chain, _) = chain_of(2_500);
    let heights: Vec<u32> = chain.locator().collect();
    assert_eq!((heights.first(), heights.last(), heights.len()), (Some(&2_500), Some(&484), 13));
}

#[test]
fn blocks_given_to_a_test_chain_are_its_blocks() {
    let block = |height: u32| BitcoinBlock {
        height,
        hash: B256::left_padding_from(&height.to_be_bytes()),
        time: START + height,
        bits: 0x1709_a7af,
    };
    let chain = BitcoinChain::of_blocks(700_000, (700_000..700_300).map(block).collect());
    assert_eq!(chain.tip(), block(700_299));
    assert_eq!((chain.lowest(), chain.at(700_000)), (700_000, Some(block(700_000))));
    assert_eq!(chain.height_of(&block(700_111).hash), Some(700_111));
    let one = chain.work_of(700_000..=700_000);
    assert_eq!(chain.work_of(..), one * U256::from(300));
    let headers = mine_on(B256::ZERO, 0, START, 600, EASY, 3);
    let chain = BitcoinChain::of_headers(8, &headers);
    assert_eq!((chain.tip().height, chain.header_at(8)), (10, Some(headers[0])));
}

#[test]
fn a_chain_without_branches_takes_children_of_its_tip_alone() {
    let headers = mine_on(regtest().start().hash, 0, START, 600, EASY, 8);
    let mut chain = regtest();
    for header in &headers {
        assert_eq!(chain.extend(&HashedHeader::new(*header), NOW), Ok(()));
    }
    let (whole, _) = chain_of(8);
    assert_eq!((chain.tip(), chain.work_of(..)), (whole.tip(), whole.work_of(..)));
    let sibling = HashedHeader::new(mine(header_hash(&headers[6]), 1, START + 9_000, EASY));
    for other in [sibling, HashedHeader::new(headers[7])] {
        assert!(matches!(chain.extend(&other, NOW), Err(BitcoinChainError::Unlinked { .. })));
    }
    let early = HashedHeader::new(mine(chain.tip().hash, 1, START, EASY));
    let late = HashedHeader::new(mine(chain.tip().hash, 1, START + 90_000, EASY));
    assert!(matches!(chain.extend(&early, NOW), Err(BitcoinChainError::EarlyTime { .. })));
    assert!(matches!(chain.extend(&late, START.into()), Err(BitcoinChainError::FutureTime { .. })));
    assert_eq!(chain.tip(), whole.tip());
}

/// A branch has at most as many headers as all branches may have together; a longer one is dropped with all lighter ones.
#[test]
fn the_branch_of_the_newest_header_stays_while_it_fits() {
    let (_, headers) = chain_of(1);
    let hash = |n: usize| B256::from(U256::from(n));
    let mut header = headers[0];
    for (length, others, kept) in [
        (MAX_BRANCH_HEADERS, 1, MAX_BRANCH_HEADERS),
        (MAX_BRANCH_HEADERS - 400, 401, MAX_BRANCH_HEADERS - 400),
        (MAX_BRANCH_HEADERS + 1, 10, 0),
    ] {
        let mut branches = Branches::default();
        for n in 1..=length {
            header[4..36].copy_from_slice(hash(n - 1).as_slice());
            branches.insert(Entry::new(header, hash(n), U256::from(n), n as u32), 0);
        }
        for n in 0..others {
            header[4..36].copy_from_slice(hash(0).as_slice());
            branches.insert(Entry::new(header, hash(10_000 + n), U256::from(1), 1), 0);
        }
        branches.limit(0, &hash(length));
        assert_eq!(branches.len(), kept, "{length} and {others}");
    }
}

#[test]
fn branches_have_a_limit() {
    let (mut chain, headers) = chain_of(10);
    let parents: Vec<B256> = headers.iter().map(header_hash).collect();
    for salt in 0..4 * MAX_BRANCH_HEADERS as u64 {
        let parent = parents[salt as usize % 8];
        let header = mine(parent, 100 + salt, START + 90_000, EASY);
        assert_eq!(chain.insert(&header, NOW), Ok(BitcoinInserted::Side));
        assert!(chain.branches().len() <= MAX_BRANCH_HEADERS);
    }
    assert_eq!(chain.tip().hash, parents[9]);
}
