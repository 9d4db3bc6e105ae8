//! Creates merge-mining proofs: a Bitcoin coinbase that commits to a header, the Merkle branch above it and a
//! nonce. The result passes [`super::pow::verify_merged_mining`] in every era.

use alloc::vec::Vec;

use super::bitcoin::{BitcoinHeader, HEADER_LEN, double_sha256, hash_pair, reversed, sha256_midstate};
use super::coinbase::MIDSTATE_LEN;
use super::network::Network;
use super::pow::meets_target;
use super::rule::{Rule, RuleSet};
use crate::types::header::with_fork_detection;
use crate::types::{B256, FORK_DETECTION_LEN, Header, MERGED_MINING_TAG, SealedHeader};

/// Length of a SHA-256 block in bytes.
const BLOCK_LEN: usize = 64;
/// Version of the Bitcoin blocks created here. No Rootstock rule checks it.
const BITCOIN_VERSION: u32 = 0x2000_0000;
/// Target in compact form (`nBits`) of the Bitcoin blocks created here, that of Bitcoin's regtest. No Rootstock rule checks it.
const BITCOIN_BITS: u32 = 0x207f_ffff;
/// A coinbase up to its outputs: version, one input whose script contains height 1 and a name, and the number of outputs.
const COINBASE_START: &[u8] = b"\x01\0\0\0\x01\
\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\
\x0c\x51\x0arootlight/\xff\xff\xff\xff\x02";
/// The first output: 50 coins and the script OP_TRUE, which every transaction may spend.
const COINBASE_REWARD: &[u8] = &[0x00, 0xf2, 0x05, 0x2a, 0x01, 0, 0, 0, 1, 0x51];
/// The second output: OP_RETURN and the push of tag and hash.
const COINBASE_COMMITMENT: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0x2b, 0x6a, 0x29];

/// The Bitcoin block that a header to be mined is committed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitcoinWork {
    /// The 80-byte header.
    pub header: [u8; HEADER_LEN],
    /// The whole coinbase transaction.
    pub coinbase: Vec<u8>,
    /// Siblings of the coinbase from the leaf up, in internal byte order.
    pub branch: Vec<B256>,
    /// Number of transactions in the Bitcoin block.
    pub transactions: u32,
}

impl BitcoinWork {
    /// Creates a Bitcoin block whose only transaction commits to `hash`. `time` is in seconds since 1970.
    #[must_use]
    pub fn new(hash: &B256, time: u32) -> Self {
        let coinbase = coinbase_committing_to(hash);
        let root = double_sha256(&coinbase);
        let fields = BITCOIN_VERSION.to_le_bytes().into_iter().chain([0; 32]).chain(root.0);
        let fields = fields.chain(time.to_le_bytes()).chain(BITCOIN_BITS.to_le_bytes());
        let mut header = [0; HEADER_LEN];
        header.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        Self { header, coinbase, branch: Vec::new(), transactions: 1 }
    }

    /// Searches for a nonce below `attempts` that meets the target of `difficulty`; `None` if there is none.
    #[must_use]
    pub fn solved(mut self, difficulty: crate::types::U256, attempts: u32) -> Option<Self> {
        (0..attempts)
            .any(|nonce| {
                if let Some(field) = self.header.last_chunk_mut::<4>() {
                    *field = nonce.to_le_bytes();
                }
                meets_target(&BitcoinHeader::from(&self.header).hash(), difficulty)
            })
            .then_some(self)
    }

    /// Adds the proof to a header, without checking it. `None` if the coinbase commits to no hash.
    pub fn seal(&self, mut header: Header, rules: RuleSet) -> Option<SealedHeader> {
        header.bitcoin_header = self.header.to_vec().into();
        header.coinbase_tx = coinbase_field(&self.coinbase)?.into();
        header.merkle_proof = self.merkle_proof(rules).into();
        Some(header.seal())
    }

    /// The Merkle proof in the format of headers under these rules.
    fn merkle_proof(&self, rules: RuleSet) -> Vec<u8> {
        if rules.has(Rule::Rskip92) {
            return self.branch.iter().flat_map(|sibling| reversed(sibling).0).collect();
        }
        // A partial Merkle tree (`partial_merkle`): the path to the leftmost leaf is expanded, each sibling is given as its hash. Depth
        // first, all nodes of the path come before the siblings, so the flags are ones for the path, then zeros.
        let mut out = self.transactions.to_le_bytes().to_vec();
        out.push(u8::try_from(self.branch.len().saturating_add(1)).unwrap_or(u8::MAX));
        out.extend(double_sha256(&self.coinbase));
        out.extend(self.branch.iter().flat_map(|sibling| sibling.0));
        let (ones, bits) = (self.branch.len().saturating_add(1), self.branch.len().saturating_mul(2));
        let flags = (0..=bits / 8).map(|byte| {
            let set = ones.saturating_sub(byte.saturating_mul(8)).min(8) as u32;
            ((1u16 << set).wrapping_sub(1)) as u8
        });
        let flags: Vec<u8> = flags.collect();
        out.push(u8::try_from(flags.len()).unwrap_or(u8::MAX));
        out.extend(flags);
        out
    }
}

/// The hash that the coinbase must commit to: the header's hash for merged mining, before it is mined.
#[must_use]
pub fn hash_to_commit(header: &Header, fork_detection: &[u8; FORK_DETECTION_LEN]) -> B256 {
    let base = header.mining_base_hash();
    if header.shape.fork_detection {
        return with_fork_detection(&base, fork_detection);
    }
    base
}

/// Mines a header with at most `attempts` nonces; `None` if that was not enough. The Bitcoin block gets the
/// header's own time, which satisfies the rule on the difference of both times.
#[must_use]
pub fn mine(
    header: Header,
    fork_detection: &[u8; FORK_DETECTION_LEN],
    network: &Network,
    attempts: u32,
) -> Option<SealedHeader> {
    let hash = hash_to_commit(&header, fork_detection);
    let time = u32::try_from(header.timestamp).unwrap_or(u32::MAX);
    let work = BitcoinWork::new(&hash, time).solved(header.difficulty.value(), attempts)?;
    let rules = network.rules(header.number);
    work.seal(header, rules)
}

/// Creates a coinbase transaction that commits to a hash.
fn coinbase_committing_to(hash: &B256) -> Vec<u8> {
    let parts =
        [COINBASE_START, COINBASE_REWARD, COINBASE_COMMITMENT, MERGED_MINING_TAG, hash.as_slice(), &[0; 4]];
    parts.concat()
}

/// Offset of the last tag of a coinbase transaction.
fn tag_position(coinbase: &[u8]) -> Option<usize> {
    coinbase.windows(MERGED_MINING_TAG.len()).rposition(|window| window == MERGED_MINING_TAG)
}

/// The hash after the last tag of a coinbase transaction.
#[must_use]
pub fn committed_hash(coinbase: &[u8]) -> Option<B256> {
    let start = tag_position(coinbase)?.checked_add(MERGED_MINING_TAG.len())?;
    coinbase.get(start..)?.first_chunk::<32>().map(|hash| B256::from(*hash))
}

/// The coinbase transaction in the format of headers (`consensus::coinbase`): the bytes before the SHA-256 block in which the last tag
/// starts are replaced by their length and the SHA-256 midstate. `None` if there is no tag.
#[must_use]
pub fn coinbase_field(coinbase: &[u8]) -> Option<Vec<u8>> {
    let hashed = (tag_position(coinbase)? / BLOCK_LEN).saturating_mul(BLOCK_LEN);
    let (front, tail) = coinbase.split_at_checked(hashed)?;
    let mut field = Vec::with_capacity(MIDSTATE_LEN.saturating_add(tail.len()));
    field.extend((hashed as u64).to_be_bytes());
    field.extend(sha256_midstate(front));
    field.extend(tail);
    Some(field)
}

/// The siblings of the first of these transaction hashes, from the leaf up; hashes in internal byte order.
#[must_use]
pub fn first_branch(transactions: &[B256]) -> Vec<B256> {
    let mut branch = Vec::new();
    let mut level = transactions.to_vec();
    while level.len() > 1 {
        branch.extend(level.get(1));
        // Bitcoin pairs an odd last node with itself.
        level = level.chunks(2).filter_map(|pair| Some(hash_pair(pair.first()?, pair.last()?))).collect();
    }
    branch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::pow::verify_merged_mining;
    use crate::consensus::testing::{easy_network, header};
    use crate::consensus::{Fork, Seal};
    use crate::types::U256;

    #[test]
    fn mined_headers_pass_the_verifier_in_every_era() {
        let eras = [
            easy_network(&[], &[]),
            easy_network(&[], &[(Rule::Rskip110, 1_000_000)]),
            easy_network(&[(Fork::Orchid, 1_000_000)], &[]),
        ];
        for network in eras {
            for number in [1, 448, 449, 5_000] {
                let mut unmined = header(&network, number);
                unmined.difficulty = U256::from(20).into();
                let mined = mine(unmined, &[7; 12], &network, 1_000).unwrap();
                let seal = verify_merged_mining(&mined, &network);
                assert_eq!(seal, Ok(Seal::MergedMining), "block {number}");
                assert_eq!(mined.fork_detection_data().is_some(), mined.shape.fork_detection);
            }
        }
    }

    #[test]
    fn the_coinbase_is_proven_among_any_number_of_transactions() {
        for rules in [RuleSet::NONE, [Rule::Rskip92, Rule::Rskip180].into_iter().collect()] {
            for count in 1..40u32 {
                let hash = B256::repeat_byte(0x77);
                let mut work = BitcoinWork::new(&hash, 0);
                let leaf = double_sha256(&work.coinbase);
                let others = (1..count).map(|n| double_sha256(&n.to_le_bytes()));
                let leaves: Vec<B256> = core::iter::once(leaf).chain(others).collect();
                work.branch = first_branch(&leaves);
                work.transactions = count;
                let proof = work.merkle_proof(rules);
                let root = if rules.has(Rule::Rskip92) {
                    crate::consensus::merkle::branch_root(&proof, leaf, true).unwrap()
                } else {
                    let (root, proven) =
                        crate::consensus::partial_merkle::partial_tree_root(&proof, leaf).unwrap();
                    assert!(proven, "{count} transactions");
                    root
                };
                assert_eq!(root, whole_root(leaves), "{count} transactions");
            }
        }
    }

    fn whole_root(mut level: Vec<B256>) -> B256 {
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| hash_pair(&pair[0], pair.last().unwrap())).collect();
        }
        level[0]
    }

    #[test]
    fn the_last_tag_is_used() {
        let (first, last) = (B256::repeat_byte(1), B256::repeat_byte(2));
        let mut coinbase = coinbase_committing_to(&first);
        assert_eq!(committed_hash(&coinbase), Some(first));
        coinbase.extend(coinbase_committing_to(&last));
        assert_eq!(committed_hash(&coinbase), Some(last));
        assert_eq!(committed_hash(b"RSKBLOCK:short"), None);
        assert_eq!(coinbase_field(b"no tag"), None);
    }
}
