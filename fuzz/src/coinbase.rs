//! The commitment in a Bitcoin coinbase: midstate and tag rules, against a plain reading of the same rules.

use alloy_primitives::B256;
use rootlight::consensus::coinbase::{Coinbase, CoinbaseError};
use sha2::{Digest, Sha256};

use crate::input::{Input, change};
use crate::limit::with_limit;
use crate::midstate::{TAG, midstate};

/// First byte 0: a hash and a coinbase field as they are. Else: choices for a coinbase transaction that is cut, checked
/// and changed.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    with_limit(data.len(), || match input.byte() {
        0 => {
            let hash = B256::from(input.array::<32>());
            check_field(input.rest(), &hash);
        }
        _ => check_made(&mut input),
    });
}

fn check_field(field: &[u8], hash: &B256) -> bool {
    let coinbase = match Coinbase::parse(field) {
        Ok(coinbase) => coinbase,
        Err(error) => {
            assert_eq!(error, CoinbaseError::TooShort { found: field.len() });
            assert!(field.len() < 40);
            return false;
        }
    };
    let verdict = coinbase.check_commitment(hash);
    assert_eq!(verdict.is_ok(), plain_rules(field, hash), "{verdict:?}");
    let _ = coinbase.transaction_hash();
    verdict.is_ok()
}

/// The rules in other words, quadratic and with no care for speed.
fn plain_rules(field: &[u8], hash: &B256) -> bool {
    let (head, tail) = field.split_at(40);
    let count = i64::from_be_bytes(head[..8].try_into().expect("eight bytes"));
    let commitment = [TAG, hash.as_slice()].concat();
    let places = |wanted: &[u8]| -> Vec<usize> {
        (0..tail.len()).filter(|at| tail[*at..].starts_with(wanted)).collect()
    };
    let (Some(last_tag), Some(last)) = (places(TAG).pop(), places(&commitment).pop()) else { return false };
    let whole = i128::from(count) + tail.len() as i128;
    // Java's long.
    let whole = (whole + (1 << 63)).rem_euclid(1 << 64) - (1 << 63);
    last == last_tag && last <= 63 && tail.len() - last - commitment.len() <= 128 && whole > 64
}

/// A transaction with a commitment somewhere, cut at a multiple of 64 bytes: its hash is the plain double SHA-256, and
/// the verdict that of the plain rules; also after changes of the field or the hash.
fn check_made(input: &mut Input<'_>) {
    let blocks = input.below(6);
    let mut prefix = input.take(64 * blocks).to_vec();
    prefix.resize(64 * blocks, 7);
    let hash = B256::from(input.array::<32>());
    let before = input.below(80);
    let mut tail = input.take(before).to_vec();
    tail.extend_from_slice(TAG);
    tail.extend_from_slice(hash.as_slice());
    let after = input.below(160);
    tail.extend_from_slice(input.take(after));
    if input.byte() % 4 == 0 {
        tail.extend_from_slice(TAG);
    }

    let mut field = midstate(&prefix);
    field.extend_from_slice(&tail);
    check_field(&field, &hash);
    let whole = [prefix, tail].concat();
    let coinbase = Coinbase::parse(&field).expect("a midstate and more");
    assert_eq!(coinbase.transaction_hash().as_slice(), Sha256::digest(Sha256::digest(&whole)).as_slice());

    for _ in 0..input.byte() % 4 {
        change(&mut field, input);
    }
    check_field(&field, &hash);
    let other = hash ^ B256::with_last_byte(1 | input.byte());
    // The changes above hardly write another commitment, and if they do the plain rules say so.
    check_field(&field, &other);
}
