//! The errors of a fork. Their messages go to the caller of the JSON-RPC method, or to the console at the start.

use alloc::string::String;

use alloy_primitives::{Address, B256};

use crate::types::BlockRef;

/// The reason why a fork cannot begin on a block, or cannot read its state or its ancestors.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ForkError {
    /// The upstream has no method that proves state.
    #[error(
        "{name} proves no state ({reason}): give an upstream that does, by eth_getProof, or accept answers without proof with \
         --unproven trust (in the package: unproven: 'trust')"
    )]
    NoProofs { name: String, reason: String },
    /// The upstream does not give the state of an account.
    #[error(
        "{name} does not give account {address} at {block}: {reason}; it may have pruned this state: fork a newer block, or \
         give an upstream that keeps old states"
    )]
    State { name: String, address: Address, block: BlockRef, reason: String },
    /// Upstreams give different state, and none proves it.
    #[error("fewer than {wanted} upstreams agree about account {address} at {block}")]
    Disagreement { wanted: usize, address: Address, block: BlockRef },
    #[error("{name} has no block {number}: fork an older block, or give an upstream of the same network")]
    NoBlock { name: String, number: u64 },
    #[error(
        "{name} has no block with the hash {hash}: check the hash, or give an upstream of the same network"
    )]
    NoBlockHash { name: String, hash: B256 },
    #[error("block {hash} has the number {found}, not {number}")]
    OtherNumber { number: u64, found: u64, hash: B256 },
    #[error(
        "block {number} {hash} is not on the chain that {name} shows, which has {found} there: it was reorganised away, or \
         the upstream follows another branch; fork another block"
    )]
    OffChain { name: String, number: u64, hash: B256, found: B256 },
    /// The upstream's data do not have the hash that a header or a trie node commits to, or do not decode.
    #[error("{name}, {what}: {reason}")]
    False { name: String, what: String, reason: String },
    /// The upstream did not answer.
    #[error("{name}, {what}: {reason}")]
    Unanswered { name: String, what: String, reason: String },
    #[error("the chain of the upstreams is not verified: {0}")]
    Unverified(String),
    #[error("block {number} is more than {most} blocks below the block that was forked")]
    TooDeep { number: u64, most: u64 },
    #[error("block {number} is older than the Unitrie (RSKIP-126): its state cannot be read")]
    TooOld { number: u64 },
    #[error("the answer reads more than {0} keys or blocks of the network")]
    TooMuch(usize),
    #[error("the answer needs more than {0} exchanges with the upstream")]
    TooManyRounds(usize),
    #[error("the upstreams did not give what the answer reads within {0} s: ask again later, or for less")]
    TooLate(u64),
    #[error(
        "jsonRpcUrl: this server forks the upstreams of its start alone, because others are served; leave it out"
    )]
    OtherUrl,
    #[error("{0}")]
    Upstream(String),
}
