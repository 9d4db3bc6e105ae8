//! Why the development chain does not do something.

use alloy_primitives::{Bytes, B256, U256};
use thiserror::Error;

use super::pool::PoolError;
use crate::exec::BlockError;
use crate::local::ImportError;

/// Why the development chain did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DevError {
    /// The pool does not take the transaction.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// Mined at once, and reverted; the reference reports that instead of the hash.
    #[error("transaction {hash} reverted")]
    Reverted {
        /// The transaction, which is in a block nevertheless.
        hash: B256,
        /// What it returned; nothing for one that failed without REVERT.
        output: Option<Bytes>,
    },
    /// Instant mining, and the transaction is still waiting: a nonce ahead of its sender's.
    #[error("Unknown error when sending transaction: transaction wasn't mined")]
    NotMined,
    /// The block cannot be built.
    #[error("the next block cannot be built: {0}")]
    Build(#[from] BlockError),
    /// The chain does not take the block.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The network's difficulty is beyond what is mined here.
    #[error("difficulty {0} is too high to be mined here")]
    Difficulty(U256),
    /// A block's time would not be after its parent's.
    #[error("Timestamp error: {time} is lower than or equal to previous block's timestamp {parent}")]
    Timestamp {
        /// The time asked for.
        time: u64,
        /// The head's.
        parent: u64,
    },
    /// More blocks at once than anybody needs.
    #[error("{0} blocks at once, at most {max}", max = super::MAX_BLOCKS_AT_ONCE)]
    TooManyBlocks(u64),
    /// The time for one message was used up before all its blocks were mined; those before are on the chain.
    #[error("the time limit was reached after {mined} blocks: ask for fewer blocks at once")]
    TimeLimit {
        /// Blocks that this message mined.
        mined: u64,
    },
    /// A transaction took longer than one block may; it is dropped.
    #[error("transaction {0} takes longer than the time limit of a block: it was dropped")]
    TooSlow(B256),
    /// The program is about to exit.
    #[error("the server is shutting down: nothing was mined")]
    Stopping,
    /// The account's code or storage cannot be changed: it is a native contract.
    #[error("{0} is a native contract")]
    Native(alloy_primitives::Address),
    /// No such work is known.
    #[error("Cannot publish block, could not find hash {0} in the cache")]
    UnknownWork(B256),
    /// The Bitcoin block of an outside miner does not prove the work.
    #[error("Invalid block supplied by miner: {block:x} {mining_hash:x} at height {number}")]
    InvalidWork {
        /// Hash of the block as submitted.
        block: B256,
        /// Its hash for merged mining.
        mining_hash: B256,
        /// Its height.
        number: u64,
    },
    /// A partial Merkle branch without hashes.
    #[error("The list of merkle hashes can't be empty")]
    NoMerkleHashes,
    /// Bytes that are no Bitcoin block, header or transaction.
    #[error("not a Bitcoin {0}")]
    NotBitcoin(&'static str),
}
