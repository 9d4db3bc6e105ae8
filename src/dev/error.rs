//! The errors of the development chain.

use alloy_primitives::{B256, Bytes, U256};
use thiserror::Error;

use super::pool::PoolError;
use crate::exec::BlockError;
use crate::local::ImportError;

/// An error of the development chain.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum DevError {
    /// The pool refuses the transaction.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The transaction was mined and reverted. With instant mining the reference node reports this instead of the hash.
    #[error("transaction {hash} reverted")]
    Reverted {
        hash: B256,
        /// The data that it returned; `None` if it failed without REVERT.
        output: Option<Bytes>,
    },
    /// The transaction was not mined in spite of instant mining, for instance because its nonce is ahead of its sender's; or a block of
    /// [`DevChain::reorganise`](super::DevChain::reorganise) did not take all its transactions.
    #[error("Unknown error when sending transaction: transaction wasn't mined")]
    NotMined,
    #[error("the next block cannot be built: {0}")]
    Build(#[from] BlockError),
    /// The chain refuses the block.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The network's difficulty is too high for the built-in miner.
    #[error("difficulty {0} is too high to be mined here")]
    Difficulty(U256),
    #[error("Timestamp error: {time} is lower than or equal to previous block's timestamp {parent}")]
    Timestamp { time: u64, parent: u64 },
    /// A time beyond [`LAST_TIME`](super::LAST_TIME), after which later blocks could have no later time.
    #[error("Timestamp error: {0} is later than this chain can have: choose a time up to {last}, or remove a fixed interval of blocks", last = super::LAST_TIME)]
    Time(u64),
    /// More blocks than one request may mine, such as [`MAX_BLOCKS_AT_ONCE`](super::MAX_BLOCKS_AT_ONCE).
    #[error("{count} blocks at once, at most {most}: ask for fewer")]
    TooManyBlocks { count: u64, most: u64 },
    /// The chain has no block so far below its head, or no longer the state after it.
    #[error(
        "{depth} blocks cannot be removed above block {head}: the chain does not hold the state before them"
    )]
    TooDeep { depth: u64, head: u64 },
    /// The dump of the state has more bytes than a dump may have.
    #[error("the dump of the state has more than {max} bytes, which is the limit: keep the chain with --data-dir", max = super::MAX_DUMP)]
    TooLarge,
    /// There are [`MAX_SNAPSHOTS`](super::MAX_SNAPSHOTS) snapshots.
    #[error("there are {max} snapshots, which is the limit: revert to an earlier one, or reset the chain", max = super::MAX_SNAPSHOTS)]
    TooManySnapshots,
    /// The time limit of the request expired before all its blocks were mined. None of them stays on the chain.
    #[error(
        "the time limit was reached after {mined} blocks, none of which stays: ask for fewer blocks at once"
    )]
    TimeLimit { mined: u64 },
    #[error("transaction {0} takes longer than the time limit of a block: it was dropped")]
    TooSlow(B256),
    #[error(
        "this chain does not begin on a block of another network: start it with --fork to reset it to one"
    )]
    NoFork,
    #[error("the server is shutting down: nothing was mined")]
    Stopping,
    /// The account is a native contract, whose code cannot be changed.
    #[error("{0} is a native contract")]
    Native(alloy_primitives::Address),
    /// No cell of a token's storage alone is a balance or an allowance.
    #[error("{0} has no cell that holds the value alone: set its cells with anvil_setStorageAt")]
    NoTokenCell(alloy_primitives::Address),
    #[error("Cannot publish block, could not find hash {0} in the cache")]
    UnknownWork(B256),
    /// The Bitcoin block of an external miner does not prove the work.
    #[error("Invalid block supplied by miner: {block:x} {mining_hash:x} at height {number}")]
    InvalidWork { block: B256, mining_hash: B256, number: u64 },
    /// The partial Merkle branch has no hashes.
    #[error("The list of merkle hashes can't be empty")]
    NoMerkleHashes,
    /// The Bitcoin blocks cannot be mined, for this reason.
    #[error("{0}")]
    Bitcoin(alloc::string::String),
    /// The bytes do not decode as a Bitcoin block, header or transaction.
    #[error("not a Bitcoin {0}")]
    NotBitcoin(&'static str),
}
