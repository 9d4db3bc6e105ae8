//! Stored chains are read back; forged and damaged bytes are refused.

use proptest::prelude::*;

use super::chain_test::{EASY, NOW, START, chain_of, changing, insert_all};
use super::hash::double_sha256;
use super::network::BitcoinNetwork;
use super::packed::{PackedHeadersError, pack_headers};
use super::target::PERIOD;
use super::testing::{mine, mine_on};
use super::{BitcoinChain, BitcoinChainError, BitcoinInserted, KEPT_BITCOIN_HEADERS, StoredBitcoinError};
use crate::types::B256;

/// Sixteen hashes make a block.
const SIXTEEN: u32 = 0x200f_ffff;
const BUILT_IN: u32 = 4 * PERIOD - 1;

/// A chain with changing targets, of `count` headers.
fn changing_chain(count: u32) -> BitcoinChain {
    let mut chain = BitcoinChain::new(changing(SIXTEEN));
    let mut left = count;
    while left > 0 {
        let tip = chain.tip();
        let next = chain.checkpoint_at(tip.height).map_or(tip.bits, |end| end.next_bits);
        let count = left.min(PERIOD - (tip.height + 1) % PERIOD);
        let time = tip.time.max(START);
        insert_all(&mut chain, &mine_on(tip.hash, 0, time, 600, next, count as usize));
        left -= count;
    }
    chain
}

/// Writes the checksum of changed bytes anew.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.len() - 8;
    let sum = double_sha256(&bytes[..at]);
    bytes[at..].copy_from_slice(&sum[..8]);
    bytes
}

/// Stored bytes with these parts.
fn stored(height: u32, hash: B256, next_bits: u32, packed: &[u8]) -> Vec<u8> {
    let parts = [&[1][..], &height.to_le_bytes(), hash.as_slice(), &next_bits.to_le_bytes(), packed, &[0; 8]];
    summed(parts.concat())
}

fn same(chain: &BitcoinChain, restored: &BitcoinChain) {
    assert_eq!(restored.tip(), chain.tip());
    for height in restored.lowest()..=chain.tip().height {
        assert_eq!(restored.header_at(height), chain.header_at(height));
    }
}

#[test]
fn a_stored_chain_is_read_back() {
    for (count, from) in [
        (0, 0),
        (1, 0),
        (PERIOD - 1, 0),
        (PERIOD, 0),
        (2 * PERIOD - 1, 0),
        (2 * PERIOD, PERIOD),
        (3 * PERIOD - 1, PERIOD),
        (3 * PERIOD + 5, 2 * PERIOD),
        (4 * PERIOD + 9, 3 * PERIOD),
    ] {
        let chain = changing_chain(count);
        let checkpoint = chain.personal_checkpoint();
        assert_eq!(checkpoint.height, BUILT_IN + from, "{count} headers");
        let bytes = chain.stored();
        let mut restored = BitcoinChain::restore(changing(SIXTEEN), &bytes, NOW).unwrap();
        assert_eq!(*restored.start(), checkpoint);
        same(&chain, &restored);
        assert_eq!(restored.stored(), bytes);
        // Both go on alike, over the end of the next period.
        let mut chain = chain;
        for _ in 0..PERIOD + 10 {
            let tip = chain.tip();
            let next = chain.checkpoint_at(tip.height).map_or(tip.bits, |end| end.next_bits);
            let header = mine(tip.hash, 0, tip.time.max(START) + 500, next);
            assert_eq!(chain.insert(&header, NOW), Ok(BitcoinInserted::Extended));
            assert_eq!(restored.insert(&header, NOW), Ok(BitcoinInserted::Extended));
        }
        same(&chain, &restored);
    }
}

#[test]
fn a_stored_chain_has_two_periods_at_most() {
    let chain = changing_chain(3 * PERIOD - 1);
    assert_eq!(chain.tip().height - chain.personal_checkpoint().height, 2 * PERIOD - 1);
    let length = chain.stored().len();
    assert!(length < 160_000, "{length}");
}

/// A server's clients start at the built-in block, so its headers are stored from there on.
#[test]
fn a_chain_that_holds_more_is_stored_from_its_start() {
    let held = KEPT_BITCOIN_HEADERS;
    let headers = mine_on(BitcoinNetwork::REGTEST.checkpoint.hash, 0, START, 600, EASY, held as usize + 20);
    let mut server = BitcoinChain::new(BitcoinNetwork::REGTEST).keeping(held + 10);
    insert_all(&mut server, &headers[..5]);
    assert_eq!(BitcoinChain::restore(BitcoinNetwork::REGTEST, &server.stored(), NOW).unwrap().lowest(), 1);
    insert_all(&mut server, &headers[5..held as usize + 10]);
    let bytes = server.stored();
    let mut restored = BitcoinChain::restore(BitcoinNetwork::REGTEST, &bytes, NOW).unwrap();
    assert_eq!((restored.lowest(), restored.stored()), (1, bytes));
    same(&server, &restored);
    let mut longer = restored.clone().keeping(held + 20);
    for chain in [&mut server, &mut restored, &mut longer] {
        insert_all(chain, &headers[held as usize + 10..]);
    }
    assert_eq!(
        (restored.lowest(), longer.lowest()),
        (11, 1),
        "as many as were stored, unless more are wanted"
    );
    same(&server, &restored);
    let read = |chain: &BitcoinChain| BitcoinChain::restore(BitcoinNetwork::REGTEST, &chain.stored(), NOW);
    assert_eq!(read(&server).unwrap().start().height, server.personal_checkpoint().height);
    assert_eq!(read(&longer).unwrap().lowest(), 1);
}

#[test]
fn branches_are_not_stored() {
    let (mut chain, _) = chain_of(30);
    let parent = chain.at(20).unwrap();
    insert_all(&mut chain, &mine_on(parent.hash, 1, parent.time, 600, EASY, 5));
    let restored = BitcoinChain::restore(BitcoinNetwork::REGTEST, &chain.stored(), NOW).unwrap();
    same(&chain, &restored);
    assert_eq!(restored.branches().len(), 0);
}

#[test]
fn every_damaged_byte_is_found() {
    let (chain, _) = chain_of(5);
    let bytes = chain.stored();
    let read =
        |bytes: &[u8]| BitcoinChain::restore(BitcoinNetwork::REGTEST, bytes, NOW).map(|chain| chain.tip());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let expected = if at == 0 { StoredBitcoinError::Form(Some(0)) } else { StoredBitcoinError::Checksum };
        assert_eq!(read(&damaged), Err(expected), "byte {at}");
        assert!(read(&bytes[..at]).is_err(), "{at} bytes");
    }
    assert!(read(&[&bytes[..], &[0]].concat()).is_err());
}

/// A program that can write the file can write the checksum: the headers must still be mined.
#[test]
fn forged_headers_are_refused() {
    let network = changing(0x1f00_ffff);
    let mut chain = BitcoinChain::new(network);
    insert_all(&mut chain, &mine_on(network.checkpoint.hash, 0, START, 600, 0x1f00_ffff, 4));
    let bytes = chain.stored();
    assert!(BitcoinChain::restore(network, &summed(bytes.clone()), NOW).is_ok());
    for at in 1..bytes.len() - 8 {
        let mut forged = bytes.clone();
        forged[at] ^= 0x40;
        assert!(BitcoinChain::restore(network, &summed(forged), NOW).is_err(), "byte {at}");
    }
}

#[test]
fn forged_checkpoints_are_refused() {
    let network = changing(SIXTEEN);
    let built_in = network.checkpoint;
    let read = |bytes: &[u8]| BitcoinChain::restore(network, bytes, NOW).map(|chain| chain.tip().height);
    let own = B256::repeat_byte(1);
    let headers = |bits: u32, count: u32| pack_headers(mine_on(own, 0, START, 600, bits, count as usize));
    for height in [0, BUILT_IN - PERIOD, BUILT_IN - 1, BUILT_IN + 1, BUILT_IN + PERIOD - 1, u32::MAX] {
        let refused = StoredBitcoinError::Height { height, built_in: BUILT_IN };
        assert_eq!(read(&stored(height, own, SIXTEEN, &[1])), Err(refused));
    }
    for (hash, next_bits) in [(own, SIXTEEN), (built_in.hash, SIXTEEN - 1)] {
        let refused = StoredBitcoinError::Checkpoint { height: BUILT_IN, next_bits };
        assert_eq!(read(&stored(BUILT_IN, hash, next_bits, &[1])), Err(refused));
    }
    let height = BUILT_IN + PERIOD;
    // Four times the built-in target is 0x203ffffc.
    for next_bits in [0, 0x203f_fffd, EASY, 0x2100_8000, 0x20ff_ffff] {
        let refused = StoredBitcoinError::Checkpoint { height, next_bits };
        assert_eq!(read(&stored(height, own, next_bits, &[1])), Err(refused));
    }
    for next_bits in [0x203f_fffc, SIXTEEN] {
        let short = stored(height, own, next_bits, &headers(next_bits, PERIOD - 1));
        assert_eq!(read(&short), Err(StoredBitcoinError::Shallow { height, count: PERIOD - 1 }));
        let deep = stored(height, own, next_bits, &headers(next_bits, PERIOD));
        assert_eq!(read(&deep), Ok(height + PERIOD));
    }
    // Otherwise a file could begin where work is nearly free, or at the end of all heights.
    for (periods, next_bits) in [(40, EASY), (1_025, SIXTEEN), (500_000, SIXTEEN)] {
        let height = BUILT_IN + periods * PERIOD;
        let refused = StoredBitcoinError::Checkpoint { height, next_bits };
        assert_eq!(read(&stored(height, own, next_bits, &[1])), Err(refused), "{periods} periods");
    }
    let height = BUILT_IN + 1_024 * PERIOD;
    let shallow = StoredBitcoinError::Shallow { height, count: 0 };
    assert_eq!(read(&stored(height, own, SIXTEEN, &[1])), Err(shallow));
}

#[test]
fn a_stored_chain_ahead_of_the_clock_is_refused() {
    let (chain, _) = chain_of(5);
    let (time, now) = (chain.tip().time, u64::from(chain.tip().time) - 7_201);
    let refused = BitcoinChainError::FutureTime { height: 5, time, now };
    let read = BitcoinChain::restore(BitcoinNetwork::REGTEST, &chain.stored(), now);
    assert_eq!(read.map(|chain| chain.tip()), Err(StoredBitcoinError::Header(refused)));
}

#[test]
fn headers_that_do_not_link_to_the_stored_checkpoint_are_refused() {
    let checkpoint = BitcoinNetwork::REGTEST.checkpoint;
    let packed = pack_headers(mine_on(B256::ZERO, 0, START, 600, EASY, 2));
    let bytes = stored(0, checkpoint.hash, checkpoint.next_bits, &packed);
    let read = BitcoinChain::restore(BitcoinNetwork::REGTEST, &bytes, NOW);
    assert!(matches!(read, Err(StoredBitcoinError::Header(BitcoinChainError::Unlinked { .. }))));
    let bytes = stored(0, checkpoint.hash, checkpoint.next_bits, &[7]);
    let read = BitcoinChain::restore(BitcoinNetwork::REGTEST, &bytes, NOW).map(|chain| chain.tip());
    assert_eq!(read, Err(StoredBitcoinError::Packed(PackedHeadersError::Form(Some(7)))));
}

proptest! {
    #[test]
    fn any_stored_bytes_are_refused_or_read_back(mut bytes in proptest::collection::vec(any::<u8>(), 9..200), built_in: bool) {
        bytes[0] = 1;
        if built_in && bytes.len() > 60 {
            bytes[1..5].fill(0);
            bytes[5..37].copy_from_slice(BitcoinNetwork::REGTEST.checkpoint.hash.as_slice());
            bytes[37..41].copy_from_slice(&EASY.to_le_bytes());
            bytes[41] = 1;
        }
        let bytes = summed(bytes);
        if let Ok(chain) = BitcoinChain::restore(BitcoinNetwork::REGTEST, &bytes, NOW) {
            prop_assert_eq!(chain.stored(), bytes);
        }
    }
}
