//! Coinbases of made Bitcoin blocks, and of the recorded Rootstock headers.

use proptest::prelude::*;

use super::coinbase_proof::*;
use super::{HEADER_LEN, double_sha256, hash_pair, reversed, sha256_midstate};
use crate::consensus::merkle::BranchError;
use crate::consensus::mining::{coinbase_field, first_branch};
use crate::types::B256;

const HASH: [u8; 32] = [0x77; 32];

pub(crate) fn coinbase(script: &[u8], outputs: &[&[u8]], witness: bool) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0];
    if witness {
        bytes.extend([0, 1]);
    }
    bytes.push(1);
    bytes.extend([0; 32]);
    bytes.extend([0xff; 4]);
    bytes.push(u8::try_from(script.len()).unwrap());
    bytes.extend(script);
    bytes.extend([0xff; 4]);
    bytes.push(u8::try_from(outputs.len()).unwrap());
    for output in outputs {
        bytes.extend(5_000_000u64.to_le_bytes());
        bytes.push(u8::try_from(output.len()).unwrap());
        bytes.extend(*output);
    }
    if witness {
        bytes.extend([1, 32]);
        bytes.extend([0; 32]);
    }
    bytes.extend([0; 4]);
    bytes
}

pub(crate) fn tag(hash: &[u8]) -> Vec<u8> {
    [b"RSKBLOCK:".as_slice(), hash].concat()
}

fn plain(outputs: &[&[u8]]) -> Vec<u8> {
    coinbase(&[3; 40], outputs, false)
}

/// The header and the branch of a block whose first transaction is `coinbase`, of `count` transactions.
pub(crate) fn block(coinbase: &[u8], count: u32) -> ([u8; HEADER_LEN], Vec<u8>) {
    let others = (1..count).map(|n| double_sha256(&n.to_le_bytes()));
    let leaves: Vec<B256> = core::iter::once(double_sha256(coinbase)).chain(others).collect();
    let siblings = first_branch(&leaves);
    let root = siblings.iter().fold(leaves[0], |node, sibling| hash_pair(&node, sibling));
    let mut header = [0; HEADER_LEN];
    header[36..68].copy_from_slice(root.as_slice());
    (header, siblings.iter().flat_map(|sibling| reversed(sibling).0).collect())
}

fn whole(bytes: &[u8]) -> Result<Option<Tag>, CoinbaseProofError> {
    let (header, branch) = block(bytes, 9);
    let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(bytes), branch: &branch };
    proof.prove(7, &header).map(|proven| proven.tag().copied())
}

fn cut(bytes: &[u8], field: &[u8]) -> Result<Option<Tag>, CoinbaseProofError> {
    let (header, branch) = block(bytes, 9);
    let proof = CoinbaseProof { coinbase: CoinbaseBytes::Midstate(field), branch: &branch };
    proof.prove(7, &header).map(|proven| proven.tag().copied())
}

/// A field that is cut after `blocks` SHA-256 blocks.
fn field_of(bytes: &[u8], blocks: usize) -> Vec<u8> {
    let (front, tail) = bytes.split_at(64 * blocks);
    [&(front.len() as u64).to_be_bytes()[..], sha256_midstate(front).as_slice(), tail].concat()
}

#[test]
fn the_tag_is_laid_out_as_in_rskip_110() {
    let bytes: [u8; 32] = core::array::from_fn(|at| at as u8);
    let tag = Tag::from(bytes);
    assert_eq!(tag.hash20, core::array::from_fn(|at| at as u8));
    assert_eq!((tag.cpv, tag.uncles, tag.number), ([20, 21, 22, 23, 24, 25, 26], 27, 0x1c1d1e1f));
}

#[test]
fn a_coinbase_is_proven_whole_and_cut() {
    let bytes = plain(&[&[9; 25], &tag(&HASH), &[4; 38]]);
    for count in [1, 2, 3, 8, 500] {
        let (header, branch) = block(&bytes, count);
        for form in [CoinbaseBytes::Whole(&bytes), CoinbaseBytes::Midstate(&coinbase_field(&bytes).unwrap())]
        {
            let proven = CoinbaseProof { coinbase: form, branch: &branch }.prove(7, &header).unwrap();
            assert_eq!(proven, ProvenCoinbase::stated(7, double_sha256(&header), Some(Tag::from(HASH))));
        }
    }
}

#[test]
fn witness_data_are_left_out_and_have_no_tag() {
    let outputs: [&[u8]; 2] = [&tag(&HASH), &[4; 38]];
    let (with, without) = (coinbase(&[3; 40], &outputs, true), plain(&outputs));
    let (header, branch) = block(&without, 9);
    let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(&with), branch: &branch };
    assert_eq!(proof.prove(7, &header).unwrap().tag(), Some(&Tag::from(HASH)));

    let (mut with, without) = (coinbase(&[3; 40], &[&[4; 38]], true), plain(&[&[4; 38]]));
    let end = with.len() - 4;
    let written = tag(&HASH);
    with.splice(end - 33..end, core::iter::once(written.len() as u8).chain(written));
    let (header, branch) = block(&without, 9);
    let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(&with), branch: &branch };
    assert_eq!(
        proof.prove(7, &header).unwrap().tag(),
        None,
        "a tag in witness data is not part of the block"
    );
}

#[test]
fn the_last_of_several_tags_counts() {
    let bytes = plain(&[&tag(&[1; 32]), &tag(&HASH)]);
    assert_eq!(whole(&bytes), Ok(Some(Tag::from(HASH))));
    assert_eq!(cut(&bytes, &coinbase_field(&bytes).unwrap()), Ok(Some(Tag::from(HASH))));
}

/// No Rootstock header with such a coinbase is valid.
#[test]
fn a_cut_tag_at_the_end_commits_to_nothing() {
    let mut script = tag(&HASH);
    script.extend(b"RSKBLOCK:");
    let bytes = plain(&[&script]);
    assert_eq!(whole(&bytes), Ok(None));
    assert_eq!(cut(&bytes, &field_of(&bytes, 1)), Ok(None));
    // The four bytes of the lock time follow the script, so that 27 bytes become 31.
    assert_eq!(whole(&plain(&[&tag(&HASH[..27])])), Ok(None));
    assert!(whole(&plain(&[&tag(&HASH[..28])])).unwrap().is_some());
}

#[test]
fn no_tag_needs_the_whole_coinbase() {
    let bytes = plain(&[&[4; 38]]);
    assert_eq!(whole(&bytes), Ok(None));
    assert_eq!(cut(&bytes, &field_of(&bytes, 1)), Err(CoinbaseProofError::WholeNeeded));
    assert_eq!(cut(&bytes, &field_of(&bytes, 0)), Err(CoinbaseProofError::WholeNeeded));
    // A tag that the cut divides is not seen in the tail.
    let bytes = coinbase(&[3; 20], &[&tag(&HASH)], false);
    assert_eq!(bytes.windows(9).position(|window| window == b"RSKBLOCK:"), Some(76));
    let bytes = coinbase(&[3; 68], &[&tag(&HASH)], false);
    assert_eq!(bytes.windows(9).position(|window| window == b"RSKBLOCK:"), Some(124));
    assert_eq!(cut(&bytes, &field_of(&bytes, 2)), Err(CoinbaseProofError::WholeNeeded));
    assert!(cut(&bytes, &field_of(&bytes, 1)).unwrap().is_some());
}

#[test]
fn inner_nodes_are_not_coinbases() {
    // The two children of an inner node, 64 bytes, one level up.
    let bytes = plain(&[&tag(&HASH)]);
    let (header, branch) = block(&bytes, 9);
    let node = [double_sha256(&bytes).0, reversed(&B256::from_slice(&branch[..32])).0].concat();
    let length = CoinbaseProofError::Length { found: 64 };
    let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(&node), branch: &branch[32..] };
    assert_eq!(proof.prove(7, &header), Err(length.clone()));
    for blocks in [0, 1] {
        let field = field_of(&node, blocks);
        let proof = CoinbaseProof { coinbase: CoinbaseBytes::Midstate(&field), branch: &branch[32..] };
        assert_eq!(proof.prove(7, &header), Err(length.clone()));
    }
}

#[test]
fn the_length_of_a_coinbase_is_limited() {
    for found in [0, 64, MAX_COINBASE_LEN + 1] {
        let error = CoinbaseProofError::Length { found: found as u64 };
        assert_eq!(whole(&vec![0; found]), Err(error));
    }
    let mut field = u64::MAX.to_be_bytes().to_vec();
    field.extend([1; 60]);
    assert_eq!(cut(&[0; 70], &field), Err(CoinbaseProofError::Length { found: u64::MAX }));
    assert_eq!(cut(&[0; 70], &field[..39]), Err(CoinbaseProofError::NoMidstate { found: 39 }));
}

#[test]
fn a_cut_within_a_sha256_block_is_refused() {
    let bytes = plain(&[&tag(&HASH)]);
    let mut field = coinbase_field(&bytes).unwrap();
    field[7] += 1;
    let count = u64::from(field[7]);
    assert_eq!(cut(&bytes, &field), Err(CoinbaseProofError::Midstate { count }));
    let mut field = field_of(&bytes, 0);
    field[8] ^= 1;
    assert_eq!(cut(&bytes, &field), Err(CoinbaseProofError::Midstate { count: 0 }));
}

#[test]
fn a_transaction_that_is_no_coinbase_is_refused() {
    let good = plain(&[&tag(&HASH)]);
    // Input count, spent output, its index, script length, output count.
    for at in [4, 5, 36, 37, 41, 41 + 1 + 40 + 4] {
        let mut bytes = good.clone();
        bytes[at] ^= 2;
        assert_eq!(whole(&bytes), Err(CoinbaseProofError::NotACoinbase), "byte {at}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert_eq!(whole(&longer), Err(CoinbaseProofError::NotACoinbase));
    assert_eq!(whole(&good[..good.len() - 1]), Err(CoinbaseProofError::NotACoinbase));
    let mut many = good;
    many.splice(86..87, [0xff; 9]);
    assert_eq!(whole(&many), Err(CoinbaseProofError::NotACoinbase), "a false count of outputs");
}

#[test]
fn another_block_or_another_branch_is_refused() {
    let bytes = plain(&[&tag(&HASH)]);
    let (mut header, branch) = block(&bytes, 9);
    let prove = |header: &[u8; HEADER_LEN], branch: &[u8]| {
        CoinbaseProof { coinbase: CoinbaseBytes::Whole(&bytes), branch }.prove(7, header)
    };
    assert!(prove(&header, &branch).is_ok());
    let other = |error| matches!(error, Err(CoinbaseProofError::MerkleRoot { .. }));
    assert!(other(prove(&header, &branch[32..])));
    assert!(other(prove(&header, &[branch.clone(), vec![1; 32]].concat())));
    let uneven = CoinbaseProofError::Branch(BranchError::Length { found: branch.len() - 1 });
    assert_eq!(prove(&header, &branch[1..]), Err(uneven));
    let long = CoinbaseProofError::Branch(BranchError::TooLong { found: 992 });
    assert_eq!(prove(&header, &[0; 992]), Err(long));
    header[40] ^= 1;
    assert!(other(prove(&header, &branch)));
}

proptest! {
    #[test]
    fn any_bytes_are_answered(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        branch in proptest::collection::vec(any::<u8>(), 0..1100),
    ) {
        let header = [7; HEADER_LEN];
        for coinbase in [CoinbaseBytes::Whole(&bytes), CoinbaseBytes::Midstate(&bytes)] {
            let proof = CoinbaseProof { coinbase, branch: &branch };
            prop_assert!(proof.prove(1, &header).is_err());
        }
    }

    #[test]
    fn a_changed_coinbase_is_refused(at in 0usize..130, bit in 0u32..8) {
        let good = plain(&[&tag(&HASH)]);
        let (header, branch) = block(&good, 9);
        let mut bytes = good.clone();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(&bytes), branch: &branch };
        prop_assert!(proof.prove(7, &header).is_err());
        let mut field = coinbase_field(&good).unwrap();
        let at = at % field.len();
        field[at] ^= 1 << bit;
        let proof = CoinbaseProof { coinbase: CoinbaseBytes::Midstate(&field), branch: &branch };
        prop_assert!(proof.prove(7, &header).is_err());
    }
}
