//! Packed Bitcoin headers, a stored Bitcoin chain, and the tree of headers behind both.

use alloy_primitives::B256;
use rootlight::consensus::bitcoin::{
    BitcoinChain, BitcoinNetwork, HashedHeader, PackedHeaders, double_sha256, hash_number, pack_headers,
    target_of,
};

use crate::input::{Input, change};
use crate::limit::with_limit;

/// A clock that is ahead of every header that is mined here.
const NOW: u64 = 2_000_000_000;
const START: u32 = 1_700_000_000;
/// Most headers of a tree.
const HEADERS: usize = 40;
/// Most headers that are read.
const MOST: usize = 64;
/// Bytes of the checksum of a stored chain.
const SUM: usize = 8;

/// First byte: packed headers, stored bytes, or choices for a tree.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 3 {
        0 => with_limit(data.len(), || check_packed(input.rest())),
        1 => with_limit(data.len(), || drop(check_stored(&summed(input.rest().to_vec())))),
        _ => check_tree(input),
    }
}

fn check_packed(bytes: &[u8]) {
    let Ok(packed) = PackedHeaders::new(bytes, MOST) else { return };
    let Ok(headers) = packed.collect::<Result<Vec<HashedHeader>, _>>() else { return };
    assert!(headers.len() <= MOST);
    assert_eq!(pack_headers(headers.iter().map(|header| *header.header())), bytes);
    let mut chain = BitcoinChain::new(BitcoinNetwork::REGTEST);
    for header in &headers {
        let plain = chain.clone().insert(header.header(), NOW);
        assert_eq!(chain.insert_hashed(header, NOW), plain);
    }
}

/// Bytes with a checksum of their own, so that more than the checksum is tried.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = double_sha256(&bytes);
    bytes.extend_from_slice(&sum[..SUM]);
    bytes
}

/// Bytes that are read as a chain are written in the same form again, and each header of the chain is mined.
fn check_stored(bytes: &[u8]) -> Option<BitcoinChain> {
    let chain = BitcoinChain::restore(BitcoinNetwork::REGTEST, bytes, NOW).ok()?;
    assert_eq!(chain.stored(), bytes);
    for height in chain.lowest()..=chain.tip().height {
        let block = chain.at(height).expect("a header that is held");
        assert!(hash_number(&block.hash) <= target_of(block.bits).expect("a target"));
    }
    Some(chain)
}

/// A tree of headers: its tip is the heaviest, in whatever order they arrive, and what it stores reads back.
fn check_tree(mut input: Input<'_>) {
    let mut chain = BitcoinChain::new(BitcoinNetwork::REGTEST);
    let mut tree = vec![(chain.start().hash, 0u32)];
    let mut headers = Vec::new();
    for salt in 0..input.below(HEADERS) {
        let (parent, height) = tree[tree.len() - 1 - input.below(tree.len().min(4))];
        let header = mine(parent, salt, START + 600 * height + u32::from(input.byte()));
        if chain.insert(header.header(), NOW).is_ok() {
            tree.push((*header.hash(), height + 1));
            headers.push(header);
        }
    }
    let highest = tree.iter().map(|(_, height)| *height).max();
    assert_eq!(Some(chain.tip().height), highest, "all blocks have the same work");

    let mut other = BitcoinChain::new(BitcoinNetwork::REGTEST);
    while !headers.is_empty() {
        let at = input.below(headers.len());
        headers.rotate_left(at);
        headers.retain(|header| other.insert_hashed(header, NOW).is_err());
    }
    assert_eq!(other.tip(), chain.tip());

    let stored = chain.stored();
    assert_eq!(check_stored(&stored).expect("its own bytes").tip(), chain.tip());
    let mut changed = stored[..stored.len() - SUM].to_vec();
    change(&mut changed, &mut input);
    check_stored(&summed(changed));
}

fn mine(previous: B256, salt: usize, time: u32) -> HashedHeader {
    let bits = BitcoinNetwork::REGTEST.limit;
    let target = target_of(bits).expect("a target");
    let mut header = [0; 80];
    header[4..36].copy_from_slice(previous.as_slice());
    header[36..44].copy_from_slice(&(salt as u64).to_le_bytes());
    header[68..72].copy_from_slice(&time.to_le_bytes());
    header[72..76].copy_from_slice(&bits.to_le_bytes());
    let mined = (0..u32::MAX).find_map(|nonce| {
        header[76..].copy_from_slice(&nonce.to_le_bytes());
        let hashed = HashedHeader::new(header);
        (hash_number(hashed.hash()) <= target).then_some(hashed)
    });
    mined.expect("a nonce")
}
