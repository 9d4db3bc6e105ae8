//! Proof of work (merged mining): a Rootstock header is mined by a Bitcoin block whose coinbase commits to the header.
//!
//! Bitcoin's own difficulty and previous-block fields are not checked. Only the hash of the 80-byte Bitcoin header is
//! compared with Rootstock's target.

use thiserror::Error;

use super::bitcoin::{BitcoinHeader, HEADER_LEN, hash_number, reversed};
use super::coinbase::{Coinbase, CoinbaseError};
use super::fallback::{self, FallbackError};
use super::merkle::{BranchError, branch_root};
use super::network::Network;
use super::partial_merkle::{PartialTreeError, partial_tree_root};
use super::rule::{Rule, RuleSet};
use crate::types::number::Decimal;
use crate::types::{B256, Header, HeaderError, U256};

/// Why a header has no valid proof of work.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum PowError {
    /// The field is shorter than 80 bytes, or from RSKIP-98 on not exactly 80.
    #[error("bitcoinMergedMiningHeader: {found} bytes, expected 80")]
    BitcoinHeaderLength { found: usize },
    #[error(
        "bitcoinMergedMiningHeader: hash {hash} above the target of difficulty {difficulty}",
        difficulty = Decimal(.difficulty)
    )]
    HashAboveTarget { hash: B256, difficulty: U256 },
    /// There is no coinbase, and the header is not a fallback block, which would be signed instead.
    #[error("bitcoinMergedMiningCoinbaseTransaction: empty, no fork detection data or tag")]
    NoCoinbase,
    /// The hash for merged mining cannot be completed from the coinbase.
    #[error("bitcoinMergedMiningCoinbaseTransaction: {0}")]
    MiningHash(HeaderError),
    /// The coinbase does not commit to the header.
    #[error("bitcoinMergedMiningCoinbaseTransaction: {0}")]
    Coinbase(#[from] CoinbaseError),
    #[error("bitcoinMergedMiningMerkleProof: {0}")]
    Branch(#[from] BranchError),
    #[error("bitcoinMergedMiningMerkleProof: {0}")]
    PartialTree(#[from] PartialTreeError),
    #[error("bitcoinMergedMiningMerkleProof: Merkle root {computed}, the Bitcoin header has {expected}")]
    MerkleRoot { computed: B256, expected: B256 },
    /// The root of the partial tree is right, but the coinbase is not among the proven leaves.
    #[error("bitcoinMergedMiningMerkleProof: coinbase {coinbase} is not among the proven leaves")]
    CoinbaseNotProven { coinbase: B256 },
    #[error("bitcoinMergedMiningHeader: fallback signature: {0}")]
    Fallback(#[from] FallbackError),
}

/// How a header was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// A Bitcoin block with enough work commits to it.
    MergedMining,
    /// One of the two fallback keys signed it (before RSKIP-98).
    FallbackSignature,
}

/// Checks proof of work by the rules at the header's height.
pub fn verify_merged_mining(header: &Header, network: &Network) -> Result<Seal, PowError> {
    verify_with_hash(header, &header.hash_for_merged_mining(), network, network.rules(header.number))
}

/// [`verify_merged_mining`] with the hash for merged mining, or its error, already computed. If the Bitcoin header lacks work, that is
/// the error; otherwise the error of the hash.
pub(super) fn verify_with_hash(
    header: &Header,
    mining_hash: &Result<B256, HeaderError>,
    network: &Network,
    rules: RuleSet,
) -> Result<Seal, PowError> {
    if is_fallback_block(header, network, rules) {
        let hash = mining_hash.clone().map_err(PowError::MiningHash)?;
        let [even, odd] = &network.params.fallback_keys;
        let key = if header.number.is_multiple_of(2) { even } else { odd };
        fallback::verify(&header.bitcoin_header, &hash, key)?;
        return Ok(Seal::FallbackSignature);
    }
    let proof = MergedMiningProof {
        bitcoin_header: &header.bitcoin_header,
        merkle_proof: &header.merkle_proof,
        coinbase: &header.coinbase_tx,
    };
    let bitcoin = proof.check_work(header.difficulty.value(), rules)?;
    let hash = mining_hash.clone().map_err(PowError::MiningHash)?;
    proof.check_commitment(&bitcoin, &hash, rules)?;
    Ok(Seal::MergedMining)
}

/// Whether a header is proven by a signature instead of work: no coinbase, no proof, low difficulty, RSKIP-98
/// not active.
fn is_fallback_block(header: &Header, network: &Network, rules: RuleSet) -> bool {
    header.coinbase_tx.is_empty()
        && header.merkle_proof.is_empty()
        && !rules.has(Rule::Rskip98)
        && header.difficulty.value() <= network.params.fallback_max_difficulty
}

/// The three fields of a merge-mining proof, as stored in headers.
#[derive(Debug, Clone, Copy)]
pub struct MergedMiningProof<'a> {
    /// The Bitcoin block header.
    pub bitcoin_header: &'a [u8],
    /// Merkle branch (RSKIP-92) or partial Merkle tree.
    pub merkle_proof: &'a [u8],
    /// Midstate and tail of the coinbase transaction.
    pub coinbase: &'a [u8],
}

impl<'a> MergedMiningProof<'a> {
    /// Checks the length of the Bitcoin header, and its hash against the target of `difficulty`.
    pub fn check_work(&self, difficulty: U256, rules: RuleSet) -> Result<BitcoinHeader<'a>, PowError> {
        let length = PowError::BitcoinHeaderLength { found: self.bitcoin_header.len() };
        if rules.has(Rule::Rskip98) && self.bitcoin_header.len() != HEADER_LEN {
            return Err(length);
        }
        let bitcoin = BitcoinHeader::first_of(self.bitcoin_header).ok_or(length)?;
        if self.coinbase.is_empty() {
            return Err(PowError::NoCoinbase);
        }
        let hash = bitcoin.hash();
        if !meets_target(&hash, difficulty) {
            return Err(PowError::HashAboveTarget { hash: reversed(&hash), difficulty });
        }
        Ok(bitcoin)
    }

    /// Checks that the coinbase of this Bitcoin block commits to `hash_for_merged_mining`.
    pub fn check_commitment(
        &self,
        bitcoin: &BitcoinHeader<'_>,
        hash_for_merged_mining: &B256,
        rules: RuleSet,
    ) -> Result<(), PowError> {
        let coinbase = Coinbase::parse(self.coinbase)?;
        coinbase.check_commitment(hash_for_merged_mining)?;
        let leaf = coinbase.transaction_hash();
        let (root, proven) = if rules.has(Rule::Rskip92) {
            (branch_root(self.merkle_proof, leaf, rules.has(Rule::Rskip180))?, true)
        } else {
            partial_tree_root(self.merkle_proof, leaf)?
        };
        let expected = bitcoin.merkle_root();
        if root != expected {
            return Err(PowError::MerkleRoot { computed: reversed(&root), expected: reversed(&expected) });
        }
        if !proven {
            return Err(PowError::CoinbaseNotProven { coinbase: reversed(&leaf) });
        }
        Ok(())
    }
}

/// Whether a Bitcoin hash (internal byte order) is at most `floor(2^256 / difficulty)`. Difficulties below 3 count as 3, as in the
/// reference node. The test `hash * difficulty <= 2^256` is equivalent and needs no division.
#[must_use]
pub fn meets_target(hash: &B256, difficulty: U256) -> bool {
    let hash = hash_number(hash);
    let difficulty = difficulty.max(U256::from(3));
    match hash.overflowing_mul(difficulty) {
        (_, false) => true,
        // A product of exactly 2^256 passes too.
        (product, true) if product.is_zero() => is_two_to_the_256(hash, difficulty),
        _ => false,
    }
}

/// Whether the product of two numbers equals 2^256, given that it is a multiple of 2^256. Only powers of two have this product.
fn is_two_to_the_256(a: U256, b: U256) -> bool {
    a.is_power_of_two() && b.is_power_of_two() && a.trailing_zeros().saturating_add(b.trailing_zeros()) == 256
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn internal(number: U256) -> B256 {
        B256::from(number.to_le_bytes::<32>())
    }

    /// Computes the target by division, as the reference node does.
    fn target(difficulty: U256) -> U256 {
        let d = difficulty.max(U256::from(3));
        // floor((2^256 - 1) / d), plus one if d divides 2^256.
        let t = U256::MAX / d;
        if U256::MAX % d == d - U256::from(1) { t + U256::from(1) } else { t }
    }

    #[test]
    fn low_difficulties_count_as_three() {
        let third = target(U256::from(3));
        for d in 0..=3u64 {
            assert!(meets_target(&internal(third), U256::from(d)));
            assert!(!meets_target(&internal(third + U256::from(1)), U256::from(d)));
        }
    }

    #[test]
    fn the_target_itself_passes() {
        for shift in 2..256usize {
            let d = U256::from(1) << shift;
            let t = U256::from(1) << (256 - shift);
            assert_eq!(target(d), t);
            assert!(meets_target(&internal(t), d));
            assert!(!meets_target(&internal(t + U256::from(1)), d));
        }
        assert!(!meets_target(&internal(U256::from(2)), U256::MAX));
        assert!(meets_target(&internal(U256::from(1)), U256::MAX));
    }

    proptest! {
        #[test]
        fn the_check_without_division_equals_the_one_with_division(d in any::<[u8; 32]>(), shift in 0usize..256, off in 0u64..3) {
            let d = U256::from_be_bytes(d) >> shift;
            let hash = target(d).saturating_add(U256::from(off)).saturating_sub(U256::from(1));
            prop_assert_eq!(meets_target(&internal(hash), d), hash <= target(d));
        }
    }
}
