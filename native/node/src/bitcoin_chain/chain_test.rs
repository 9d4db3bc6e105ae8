//! A chain of made-up Bitcoin blocks: what it shows during a change, and what it refuses.

use std::sync::Arc;

use super::*;
use rootlight::consensus::bitcoin::{hash_number, reversed};
use rootlight::consensus::mining::committed_hash;
use rootlight::dev::{DevAccounts, DevChain, DevConfig, DevError, Spacing};
use rootlight::exec::Interrupts;

fn blocks(count: usize, parent: Option<u32>) -> BitcoinBlocks {
    BitcoinBlocks { commitments: vec![None; count], parent, time: u64::from(GENESIS_TIME) + 1_000 }
}

/// Checks links, targets, times and Merkle roots by Bitcoin's rules.
fn check(chain: &RegtestChain) {
    let headers = chain.headers(0, usize::MAX);
    assert_eq!(headers.len(), chain.tip().height as usize + 1);
    let target = (U256::from(1) << 255) - (U256::from(1) << 232);
    let (mut previous, mut times): (B256, Vec<u32>) = (B256::ZERO, Vec::new());
    for (height, header) in headers.iter().enumerate() {
        let read = BitcoinHeader::from(header);
        assert_eq!(read.previous(), previous, "{height}");
        assert_eq!(header[72..76], BITS.to_le_bytes());
        assert!(hash_number(&read.hash()) <= target, "{height}");
        let mut last = times[times.len().saturating_sub(MEDIAN_OF)..].to_vec();
        last.sort_unstable();
        assert!(last.get(last.len() / 2).is_none_or(|median| read.time() > *median), "{height}");
        if let Some(coinbase) = chain.coinbase(height as u32) {
            assert_eq!(coinbase.root(), read.merkle_root(), "{height}");
        }
        previous = read.hash();
        times.push(read.time());
    }
    assert_eq!(previous, chain.tip().hash);
}

#[test]
fn block_0_is_that_of_bitcoins_regtest() {
    let chain = RegtestChain::new(20);
    let hash = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
    assert_eq!((chain.tip().height, format!("{:x}", reversed(&chain.tip().hash))), (0, hash.into()));
    check(&chain);
}

#[test]
fn every_so_many_merge_mined_headers_become_blocks() {
    let chain = RegtestChain::new(5);
    let mut time = u64::from(GENESIS_TIME);
    for number in 1..=50_u64 {
        time += 1;
        let commitment = B256::with_last_byte(number as u8);
        let tip = chain.tip();
        let work = chain.next(&commitment, time).solved(U256::from(20), ATTEMPTS).unwrap();
        assert_eq!(BitcoinHeader::from(&work.header).previous(), tip.hash);
        chain.add_merge_mined(&work);
        assert_eq!(u64::from(chain.tip().height), number / 5);
        if number % 5 == 0 {
            let coinbase = chain.coinbase(chain.tip().height).unwrap();
            assert_eq!(committed_hash(&coinbase.transaction), Some(commitment));
        }
    }
    check(&chain);
}

#[test]
fn a_header_that_is_too_early_for_bitcoin_becomes_no_block() {
    let chain = RegtestChain::new(1);
    chain.mine(&BitcoinBlocks { time: u64::from(GENESIS_TIME) + 100_000, ..blocks(20, None) }).unwrap();
    let before = chain.tip();
    let work = chain.next(&B256::ZERO, u64::from(GENESIS_TIME)).solved(U256::from(3), ATTEMPTS).unwrap();
    assert_eq!(BitcoinHeader::from(&work.header).time(), GENESIS_TIME, "the block's own rule holds");
    chain.add_merge_mined(&work);
    assert_eq!(chain.tip(), before);
    let near = chain.next(&B256::ZERO, u64::from(GENESIS_TIME) + 99_900).solved(U256::from(3), ATTEMPTS);
    chain.add_merge_mined(&near.unwrap());
    assert_eq!(chain.tip().height, before.height + 1);
    check(&chain);
}

/// Merge-mines headers, each a second later than the one before.
fn merge_mine(chain: &RegtestChain, count: u32) {
    let first = chain.lock().newest_median() + 1_000;
    for time in (first..).take(count as usize) {
        let work = chain.next(&B256::ZERO, u64::from(time)).solved(U256::from(3), ATTEMPTS);
        chain.add_merge_mined(&work.unwrap());
    }
}

#[test]
fn blocks_of_a_change_are_shown_when_it_has_ended_and_are_gone_if_it_has_failed() {
    let chain = RegtestChain::new(2);
    let mut changes = chain.changes();
    merge_mine(&chain, 3);
    let before = (chain.tip(), chain.headers(0, 9), chain.coinbase(0));
    changes.mark_unchanged();
    for stays in [false, true] {
        chain.begin(false);
        // More than the coinbases that are kept.
        merge_mine(&chain, 2 * KEPT_COINBASES + 5);
        assert_eq!((chain.tip(), chain.headers(0, 9), chain.coinbase(0)), before);
        assert!(!changes.has_changed().unwrap());
        chain.end(stays);
    }
    assert!(changes.has_changed().unwrap());
    assert_eq!(chain.tip().height, 1 + KEPT_COINBASES + 3, "with the header that was mined before");
    assert_eq!((chain.coinbase(0), chain.coinbase(4)), (None, None));
    assert!(chain.coinbase(5).is_some());
    check(&chain);
}

#[test]
fn a_hidden_change_leaves_the_median_time_of_shown_blocks() {
    let chain = RegtestChain::new(1);
    chain.mine(&blocks(10, None)).unwrap();
    let medians = || [0, 5, 10].map(|height| chain.median_time(height));
    let before = medians();
    assert_eq!(before[0], GENESIS_TIME);
    chain.begin(false);
    let later = BitcoinBlocks { time: u64::from(GENESIS_TIME) + 5_000, ..blocks(20, Some(2)) };
    chain.mine(&later).unwrap();
    assert_eq!(medians(), before);
    chain.end(true);
    assert_ne!(medians(), before);
}

#[test]
fn the_blocks_take_as_much_memory_as_their_limit_says() {
    assert!(size_of::<Block>() * MAX_BLOCKS < 126_000_000, "{}", size_of::<Block>());
}

#[test]
fn a_change_that_fails_brings_blocks_back_that_others_have_replaced() {
    let chain = RegtestChain::new(1);
    let mut changes = chain.changes();
    chain.mine(&blocks(10, None)).unwrap();
    let before = (chain.headers(0, 99), chain.coinbase(8), chain.tip());
    changes.mark_unchanged();
    chain.begin(true);
    chain.mine(&blocks(5, Some(7))).unwrap();
    merge_mine(&chain, 2);
    let inside = (chain.headers(0, 99), chain.tip());
    assert_eq!(inside.1.height, 14, "seen while the change lasts");
    chain.begin(false);
    chain.mine(&blocks(20, Some(3))).unwrap();
    assert_eq!((chain.headers(0, 99), chain.tip()), inside);
    chain.end(false);
    assert_eq!((chain.headers(0, 99), chain.tip()), inside);
    chain.end(false);
    assert_eq!((chain.headers(0, 99), chain.coinbase(8), chain.tip()), before);
    assert!(!changes.has_changed().unwrap());
    chain.begin(true);
    chain.mine(&blocks(5, Some(7))).unwrap();
    assert!(!changes.has_changed().unwrap());
    chain.end(true);
    assert!(changes.has_changed().unwrap());
    check(&chain);
}

#[test]
fn a_reorganisation_that_fails_leaves_no_bitcoin_blocks() {
    let bitcoin = Arc::new(RegtestChain::new(1));
    let mut dev = DevChain::new(DevConfig::new(&DevAccounts::default())).unwrap();
    dev.set_bitcoin(bitcoin.clone());
    dev.mine_many(5, Spacing::Clock, 1_800_000_000).unwrap();
    let before = bitcoin.tip();
    assert_eq!(before.height, 5);
    let mut fill = |_: &mut DevChain, index| if index < 2 { Ok(()) } else { Err(DevError::NotMined) };
    assert_eq!(dev.reorganise(3, 1_800_000_000, &mut fill), Err(DevError::NotMined));
    assert_eq!(bitcoin.tip(), before);
    dev.reorganise(3, 1_800_000_000, &mut |_, _| Ok::<_, DevError>(())).unwrap();
    assert_eq!(bitcoin.tip().height, 8);
    check(&bitcoin);
}

#[test]
fn a_change_that_a_panic_has_cut_short_ends_with_the_next_one() {
    let bitcoin = Arc::new(RegtestChain::new(1));
    let mut dev = DevChain::new(DevConfig::new(&DevAccounts::default())).unwrap();
    dev.set_bitcoin(bitcoin.clone());
    let cut_short = dev.begin();
    dev.mine_many(2, Spacing::Clock, 1_800_000_000).unwrap();
    drop(cut_short);
    assert_eq!(bitcoin.tip().height, 0);
    dev.interrupt_by(Interrupts::default());
    assert_eq!(bitcoin.tip().height, 2);
    let failed = dev.change_atomically(|dev| {
        dev.mine_many(3, Spacing::Clock, 1_800_000_000)?;
        Err::<(), _>(DevError::NotMined)
    });
    assert_eq!((failed, dev.view().head().number), (Err(DevError::NotMined), 2));
    assert_eq!(bitcoin.tip().height, 2);
    check(&bitcoin);
}

#[test]
fn a_longer_branch_replaces_blocks() {
    let chain = RegtestChain::new(1);
    chain.mine(&blocks(10, None)).unwrap();
    let before = chain.headers(0, 20);
    for (count, parent) in [(4, 6), (1, 11), (3, 0)] {
        let error = chain.mine(&blocks(count, Some(parent))).unwrap_err();
        assert!(error.contains("replace") || error.contains("from 0 to 10"), "{error}");
    }
    assert_eq!(chain.headers(0, 20), before);
    assert_eq!(chain.mine(&blocks(5, Some(6))).unwrap().height, 11);
    let after = chain.headers(0, 20);
    assert_eq!(after[..7], before[..7]);
    assert!((7..11).all(|height| after[height] != before[height]));
    check(&chain);
    let late = BitcoinBlocks { time: u64::MAX, ..blocks(5, Some(10)) };
    assert!(chain.mine(&late).is_err());
    assert_eq!(chain.headers(0, 20), after, "a failure changes nothing");
}

#[test]
fn old_coinbases_are_dropped() {
    let chain = RegtestChain::new(1);
    chain.mine(&blocks(KEPT_COINBASES as usize, None)).unwrap();
    assert_eq!((chain.coinbase(0), chain.coinbase(1).is_some()), (None, true));
    let hash = chain.coinbase(5).unwrap().hash;
    assert!(chain.transaction(&hash).is_some());
    chain.mine(&blocks(10, None)).unwrap();
    assert_eq!((chain.coinbase(10), chain.transaction(&hash)), (None, None));
    let error = chain.mine(&blocks(2_016, Some(9))).unwrap_err();
    assert!(error.contains("from 10 to 2026"), "{error}");
    check(&chain);
}
