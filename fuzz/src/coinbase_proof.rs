//! The coinbase of a Bitcoin block with its Merkle branch, and the Rootstock tag in it.

use alloy_primitives::B256;
use rootlight::consensus::bitcoin::{CoinbaseBytes, CoinbaseProof, Tag};
use sha2::{Digest, Sha256};

use crate::input::{Input, change};
use crate::limit::with_limit;
use crate::midstate::{TAG, midstate};

/// First byte 0: a header, and a coinbase and a branch of any bytes, of which nothing is proven. Else: choices for a
/// coinbase in a block, which is proven whole, with witness data and cut; then changes, which prove nothing else.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    with_limit(data.len(), || match input.byte() {
        0 => check_any(input),
        _ => check_made(&mut input),
    });
}

fn hash(bytes: &[u8]) -> B256 {
    B256::from_slice(&Sha256::digest(Sha256::digest(bytes)))
}

fn check_any(mut input: Input<'_>) {
    let header = input.array::<80>();
    let branch = input.below(1100);
    let branch = input.take(branch);
    let bytes = input.rest();
    for coinbase in [CoinbaseBytes::Whole(bytes), CoinbaseBytes::Midstate(bytes)] {
        let proven = CoinbaseProof { coinbase, branch }.prove(1, &header);
        // The root would have to be found.
        assert!(proven.is_err(), "{proven:?}");
    }
}

/// The last tag, read plainly: cut tags at the end commit to nothing.
fn plain_tag(coinbase: &[u8]) -> Option<Tag> {
    let last = (0..coinbase.len()).rev().find(|at| coinbase[*at..].starts_with(TAG))?;
    coinbase[last + TAG.len()..].first_chunk::<32>().map(|bytes| Tag::from(*bytes))
}

/// A coinbase before its witness data, and its lock time.
fn made(input: &mut Input<'_>) -> (Vec<u8>, [u8; 4]) {
    let mut body = vec![1];
    body.extend([0; 32]);
    body.extend([0xff; 4]);
    let script = 2 + input.below(90);
    body.push(script as u8);
    body.extend(filled(input, script));
    body.extend([0xff; 4]);
    let outputs = 1 + input.below(5);
    body.push(outputs as u8);
    for _ in 0..outputs {
        body.extend(input.array::<8>());
        let length = input.below(120);
        body.push(length as u8);
        body.extend(filled(input, length));
    }
    (body, input.array())
}

/// Bytes of the input, some with a tag among them.
fn filled(input: &mut Input<'_>, length: usize) -> Vec<u8> {
    let mut bytes = input.take(length).to_vec();
    bytes.resize(length, 0x51);
    let at = input.below(128);
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..TAG.len())) {
        place.copy_from_slice(TAG);
    }
    bytes
}

fn check_made(input: &mut Input<'_>) {
    let (body, lock_time) = made(input);
    let version = [2, 0, 0, 0];
    let plain = [&version[..], &body, &lock_time].concat();
    let mut witness = vec![1, 32];
    witness.extend(filled(input, 32));
    let full = [&version[..], &[0, 1], &body, &witness, &lock_time].concat();

    // The root of a tree whose left-most leaf is the coinbase.
    let levels = input.below(12);
    let siblings: Vec<B256> = (0..levels).map(|level| hash(&[level as u8, input.byte()])).collect();
    let root = siblings.iter().fold(hash(&plain), |node, next| hash(&[node.0, next.0].concat()));
    let mut header = input.array::<80>();
    header[36..68].copy_from_slice(root.as_slice());
    let shown = siblings.iter().flat_map(|sibling| sibling.0.into_iter().rev());
    let branch: Vec<u8> = shown.collect();

    let tag = plain_tag(&plain);
    let proof = |coinbase| CoinbaseProof { coinbase, branch: &branch }.prove(7, &header);
    for whole in [&plain, &full] {
        // Hashes of chosen words do not have the shape of a transaction but by chance of one in millions.
        let Ok(proven) = proof(CoinbaseBytes::Whole(whole)) else { return };
        assert_eq!((proven.height(), proven.block(), proven.tag()), (7, hash(&header), tag.as_ref()));
    }
    let blocks = input.below(1 + plain.len() / 64);
    let mut field = midstate(&plain[..64 * blocks]);
    field.extend_from_slice(&plain[64 * blocks..]);
    if let Ok(proven) = proof(CoinbaseBytes::Midstate(&field)) {
        assert_eq!(proven.tag(), tag.as_ref(), "a tail proves the last tag or nothing");
    } else {
        assert_eq!(plain_tag(&plain[64 * blocks..]), None);
    }

    // A changed coinbase is refused, or only its witness data changed.
    let (mut other, mut other_field) = (full.clone(), field.clone());
    change(&mut other, input);
    change(&mut other_field, input);
    for changed in [CoinbaseBytes::Whole(&other), CoinbaseBytes::Midstate(&other_field)] {
        if let Ok(proven) = proof(changed) {
            assert_eq!(proven.tag(), tag.as_ref());
        }
    }
}
