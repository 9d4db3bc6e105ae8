//! Headers for tests, built from a parent and mined with low difficulty, so that tests can satisfy or break any rule.
#![cfg_attr(
    not(test),
    allow(
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        reason = "only tests use it, which may panic"
    )
)]

use alloc::{sync::Arc, vec, vec::Vec};

use super::bitcoin::{double_sha256, hash_pair, reversed};
use super::chain::HeaderChain;
use super::difficulty;
use super::network::{Network, NetworkSpec, Params};
use super::pow::meets_target;
use super::rule::{Fork, Rule};
use crate::types::header::with_fork_detection;
use crate::types::{B256, Header, MERGED_MINING_TAG, SealedHeader, U256};
use sha2::compress256;

/// A header with plausible fields, not mined yet.
pub fn header(network: &Network, number: u64) -> Header {
    Header {
        parent_hash: B256::repeat_byte(1),
        coinbase: Some(Default::default()),
        state_root: B256::repeat_byte(2),
        transactions_root: B256::repeat_byte(3),
        receipts_root: B256::repeat_byte(4),
        difficulty: network.minimum_difficulty(network.rules(number)).into(),
        gas_limit: 6_800_000u64.into(),
        gas_used: 21_000,
        timestamp: 1_600_000_000 + 30 * number,
        minimum_gas_price: 1_000u64.into(),
        ..Header::empty(network.header_shape(number), number)
    }
}

/// The rules and timestamps of mainnet with difficulties that a test can mine. Forks are active from block 0
/// unless `forks` gives a height.
pub fn easy_network(forks: &[(Fork, u64)], overrides: &[(Rule, u64)]) -> Network {
    let mut all: Vec<(Fork, u64)> = forks.to_vec();
    all.extend(Fork::ALL.iter().map(|fork| (*fork, 0)));
    let easy = U256::from(4);
    Network::new(&NetworkSpec {
        name: "easy",
        chain_id: 99,
        genesis_hash: B256::ZERO,
        params: Params {
            minimum_difficulty: easy,
            minimum_difficulty_rskip290: easy,
            fallback_max_difficulty: U256::from(1_000),
            ..Network::mainnet().params
        },
        known_until: None,
        forks: &all,
        overrides,
    })
}

/// The unmined child of a header, 14 seconds later, which obeys all rules.
pub fn child(network: &Network, parent: &SealedHeader) -> Header {
    let mut header = Header {
        parent_hash: parent.hash(),
        timestamp: parent.timestamp + 14,
        gas_limit: parent.gas_limit,
        minimum_gas_price: parent.minimum_gas_price,
        ..header(network, parent.number + 1)
    };
    header.difficulty = difficulty::expected(&header, parent, network).into();
    header
}

/// Parameters of the Bitcoin block that is built around a header.
#[derive(Clone)]
pub struct Bitcoin {
    /// Hash of the previous Bitcoin block, in internal byte order.
    pub previous: B256,
    /// Seconds added to the header's time.
    pub time_offset: i64,
    /// Merkle siblings in internal byte order.
    pub branch: Vec<B256>,
    /// Number of bytes in the coinbase's tail before the tag.
    pub before: usize,
    /// The bytes after the committed hash.
    pub after: Vec<u8>,
    /// Whether the Bitcoin header's hash meets the target; `false` makes one that misses it.
    pub enough_work: bool,
    /// The fork detection data (RSKIP-110) to commit to.
    pub fork_detection: [u8; 12],
}

impl Bitcoin {
    /// Parameters that satisfy all rules, if the fork detection data do.
    pub fn for_header(fork_detection: [u8; 12]) -> Self {
        let branch = vec![B256::repeat_byte(8), B256::repeat_byte(9)];
        let previous = B256::repeat_byte(0x33);
        let after = vec![3; 20];
        Self { previous, time_offset: 0, branch, before: 5, after, enough_work: true, fork_detection }
    }

    /// Mines a header: builds the Bitcoin block and searches for a nonce.
    pub fn mine(&self, mut header: Header) -> SealedHeader {
        let base = header.mining_base_hash();
        let committed =
            if header.shape.fork_detection { with_fork_detection(&base, &self.fork_detection) } else { base };
        let mut tail = vec![0x20; self.before];
        tail.extend(MERGED_MINING_TAG);
        tail.extend(committed.as_slice());
        tail.extend(&self.after);
        // A compressed coinbase is the SHA-256 state after its first bytes, and the rest. The state begins with the constants
        // of FIPS 180-4, section 5.3.3.
        let front = [0x11u8; 128];
        let mut state = [
            0x6a09e667u32,
            0xbb67ae85,
            0x3c6ef372,
            0xa54ff53a,
            0x510e527f,
            0x9b05688c,
            0x1f83d9ab,
            0x5be0cd19,
        ];
        for block in front.as_chunks::<64>().0 {
            compress256(&mut state, &[(*block).into()]);
        }
        let leaf = double_sha256(&[&front[..], &tail[..]].concat());
        let root = self.branch.iter().fold(leaf, |node, sibling| hash_pair(&node, sibling));
        let mut coinbase = (front.len() as u64).to_be_bytes().to_vec();
        coinbase.extend(state.iter().flat_map(|word| word.to_be_bytes()));
        coinbase.extend(tail);
        header.coinbase_tx = coinbase.into();
        header.merkle_proof = self.proof(&header, leaf).into();
        let time = (header.timestamp as i64 + self.time_offset) as u32;
        let mut bitcoin =
            [&[0x20; 4][..], self.previous.as_slice(), root.as_slice(), &time.to_le_bytes(), &[7; 4]]
                .concat();
        for nonce in 0u32.. {
            bitcoin.truncate(76);
            bitcoin.extend(nonce.to_le_bytes());
            if meets_target(&double_sha256(&bitcoin), header.difficulty.value()) == self.enough_work {
                break;
            }
        }
        header.bitcoin_header = bitcoin.into();
        header.seal()
    }

    /// The Merkle proof of the coinbase, in the form of the header's height.
    fn proof(&self, header: &Header, leaf: B256) -> Vec<u8> {
        if !header.shape.hash_covers_proof {
            return self.branch.iter().flat_map(|sibling| reversed(sibling).0).collect();
        }
        // A partial Merkle tree with 2^n leaves for a branch of n siblings: the number of leaves, the hashes, and a byte of flags with
        // ones for the n + 1 nodes of the path to the leftmost leaf.
        let mut out = (1u32 << self.branch.len()).to_le_bytes().to_vec();
        out.push(self.branch.len() as u8 + 1);
        out.extend(leaf.as_slice());
        self.branch.iter().for_each(|sibling| out.extend(sibling.as_slice()));
        out.push(1);
        out.push((1u16 << (self.branch.len() + 1)).wrapping_sub(1) as u8);
        out
    }
}

/// Mines a header of a chain whose fork detection data are not checked.
pub fn mine(header: Header) -> SealedHeader {
    Bitcoin::for_header([0; 12]).mine(header)
}

/// A chain whose checkpoint is a header with the given number.
pub fn chain(network: Network, number: u64) -> HeaderChain {
    let first = mine(header(&network, number));
    let checkpoint =
        super::Checkpoint { number, hash: first.hash(), total_difficulty: Some(U256::from(1_000)) };
    HeaderChain::from_checkpoint(Arc::new(network), &checkpoint, first).unwrap()
}
