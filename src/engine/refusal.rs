//! Why the engine refuses an answer that it cannot prove, or that exceeds a limit, with the message and code that the caller gets.

use alloc::string::String;

use alloy_primitives::{Address, B256};
use thiserror::Error;

#[cfg(feature = "local")]
use super::BlockHeader;
#[cfg(feature = "light")]
use crate::light::{
    FactFailure, LowWork,
    bitcoin::{BitcoinVerdict, WeakReason},
};
use crate::trie::StoreFault;
use crate::{
    evm::precompiles::Unsimulated,
    exec::{BlockError, CallStop},
    state::{Facts, StateError},
    types::{BlockRef, SenderError},
};

/// The JSON-RPC code of EIP-1474 for an answer that cannot be given at present.
pub const RESOURCE_UNAVAILABLE: i32 = -32002;

/// The reason for which there is no proven answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum Refusal {
    /// The head of the chain is not known yet.
    #[error(
        "Resource unavailable: still synchronizing with {upstreams}, {verified} headers verified; ask again later"
    )]
    Syncing { verified: u64, upstreams: String },
    /// The block is younger than the host accepts.
    #[error(
        "Resource unavailable: block {number} has {depth} blocks on top, at least {wanted} are asked for; ask for an older block"
    )]
    TooYoung { number: u64, depth: u64, wanted: u64 },
    /// The chain shows less work than honest miners would produce: it may be an attacker's.
    #[cfg(feature = "light")]
    #[error(
        "Resource unavailable: the {} s up to block {} show {} % of the work expected of honest miners; \
         ask other upstreams, or start from a newer checkpoint",
        .0.seconds, .0.number, .0.percent
    )]
    LowWork(LowWork),
    /// The chain of a start by window shows too little work on Bitcoin's newest blocks: it may be an attacker's.
    #[cfg(feature = "light")]
    #[error("Resource unavailable: {0}; ask other upstreams, or start from a checkpoint")]
    LowDatedWork(WeakReason),
    /// Bitcoin does not support the chain, and the host requires its support.
    #[cfg(feature = "light")]
    #[error(
        "Resource unavailable: Bitcoin does not support the verified chain for sure (--min-bitcoin): {}: {}; ask again later, \
         or ask other upstreams and Bitcoin sources",
        .0.name(), .0
    )]
    Bitcoin(BitcoinVerdict),
    /// Too few Bitcoin blocks commit to the block or to one above it.
    #[cfg(feature = "light")]
    #[error(
        "Resource unavailable: fewer than {least} Bitcoin blocks commit to block {number} or to one above it (--min-bitcoin); {}",
        newest_to_ask(*newest)
    )]
    FewBitcoinBlocks { number: u64, least: u32, newest: Option<u64> },
    /// The head of the chain is older than the host accepts: newer blocks may be hidden.
    #[error(
        "Resource unavailable: the newest verified block {number} is {age} s old, at most {most} s are accepted \
         (--max-age, maxAge), and none newer is shown by {upstreams}; ask again later, or add other upstreams"
    )]
    Stale { number: u64, age: u64, most: u64, upstreams: String },
    /// Synchronization stopped on data that does not verify.
    #[cfg(feature = "light")]
    #[error("Resource unavailable: synchronization stopped: {0}")]
    SyncFailed(String),
    /// An upstream could not supply or prove what the answer needs.
    #[cfg(feature = "light")]
    #[error("Resource unavailable: {0}")]
    Unproven(FactFailure),
    /// No upstream gives the receipts of a block, an upstream has no method for them, and executing the block again failed too.
    #[cfg(all(feature = "light", feature = "local"))]
    #[error("Resource unavailable: {failure}; executing the block again: {}", bare(cause))]
    NoReceipts { failure: FactFailure, cause: alloc::boxed::Box<Refusal> },
    /// No upstream has a method that tells where a transaction is, and the newest blocks do not have it.
    #[cfg(all(feature = "light", feature = "local"))]
    #[error(
        "Resource unavailable: no upstream finds transactions by hash, and the newest {blocks} blocks do not have \
         this one; ask about its block, or add a JSON-RPC upstream"
    )]
    NotInNewestBlocks { blocks: u64 },
    /// The block in which an upstream placed a transaction does not contain it.
    #[error(
        "Resource unavailable: an upstream reported transaction {transaction} in {block}, which does not contain it; ask other upstreams"
    )]
    Misplaced { transaction: B256, block: BlockRef },
    /// The block in which an upstream placed a transaction is older than the verified headers.
    #[error(
        "Resource unavailable: transaction {transaction} was reported in block {number}, older than block {lowest}, \
         the oldest one known here; ask other upstreams, or start from an older checkpoint"
    )]
    TransactionTooOld { transaction: B256, number: u64, lowest: u64 },
    /// The block in which an upstream placed a transaction has left the chain, or never was on it.
    #[error(
        "Resource unavailable: transaction {transaction} was reported in {block}, which is not on the verified \
         chain; ask again"
    )]
    Abandoned { transaction: B256, block: BlockRef },
    /// A message needs more rounds of fetching than allowed.
    #[error("Limit exceeded: the answer needs more than {rounds} rounds of proofs")]
    TooManyRounds { rounds: usize },
    /// A message misses more facts at once than allowed.
    #[error("Limit exceeded: the answer needs more than {max} blocks and values of the state at once")]
    TooManyFacts { max: usize },
    /// A message needs more requests to upstreams than allowed.
    #[error(
        "Limit exceeded: the message needs more than {max} requests to upstreams; send fewer calls at a time, or ask for fewer blocks"
    )]
    TooManyRequests { max: usize },
    /// A message needs more blocks and state than it may keep.
    #[error(
        "Limit exceeded: the answer needs more than {max} bytes of blocks and state; ask for fewer blocks at a time"
    )]
    TooManyBytes { max: usize },
    /// The trie nodes of a call or block are more than one answer may have.
    #[error("Limit exceeded: the witness has more than {max} bytes")]
    WitnessTooLarge { max: usize },
    /// A local chain does not have the data that the answer needs: such as a state below the history that the host keeps.
    #[error("Resource unavailable: not held by this chain: {}", list(.0))]
    Pruned(Facts),
    /// State roots before the Unitrie (RSKIP-126) commit to an older trie, of which no full node serves proofs any more.
    #[error("state proofs unavailable: block {number} is older than the Unitrie (RSKIP-126)")]
    NoStateProofs { number: u64 },
    /// The block is older than the checkpoint or the oldest header kept.
    #[error("Resource unavailable: block {number} is older than block {lowest}, the oldest one known here")]
    TooOld { number: u64, lowest: u64 },
    /// A side block needs an ancestor that no verified header leads to.
    #[error(
        "Resource unavailable: {block} is off the heaviest chain, and block {ancestor} below it, which its execution \
         reads, cannot be proven; ask about a block of the chain, or ask a node that executes blocks"
    )]
    OffChain { block: BlockRef, ancestor: u64 },
    /// A method of a native contract that this version does not execute: no answer is better than a wrong one.
    #[error("{0} is not simulated")]
    NotSimulated(Unsimulated),
    /// A transaction of a block calls a method of a native contract that this version does not execute, so an execution
    /// here does not show what happened in the block.
    #[error(
        "transaction {index} of block {number} calls {method}, which is not simulated, so executing the block here shows \
         neither its traces nor all state that it reads; ask a node that implements the method, or ask about another block"
    )]
    BlockNotSimulated { number: u64, index: usize, method: Unsimulated },
    /// The store of the host's own node does not have the state of a block: it was not written to disk yet, or was deleted.
    #[error(
        "Resource unavailable: the state of block {number} is not in the node's store: a node writes its newest states to \
         disk every blockchain.flushNumberOfBlocks blocks (1000 unless set), when rsk_flush is called on its loopback, and \
         when it stops; ask about an older block, or lower that setting"
    )]
    StateNotStored { number: u64 },
    /// The store of the host's own node has the root of a state, and lacks a node below it.
    #[error(
        "Resource unavailable: the node's store does not give {hash} of the state of block {number}: {fault}"
    )]
    Store { number: u64, hash: B256, fault: StoreFault },
    /// The state is older than the history that an executed chain keeps.
    #[error(
        "State not found for block with hash {hash}: block {number} is older than the history kept: missing trie node"
    )]
    StateNotKept { number: u64, hash: B256 },
    /// The state is older than the block of another network on which the chain begins.
    #[cfg(feature = "local")]
    #[error(
        "State not found for block with hash {hash}: this chain begins on block {fork} of another network, and has no older \
         state; to read the state of block {number}, begin on it (--fork-block, hardhat_reset), to trace a block up to \
         {fork}, ask a node of that network: missing trie node"
    )]
    BelowFork { number: u64, hash: B256, fork: u64 },
    /// A chain that begins on a block of another network has not all nodes of a state.
    #[cfg(feature = "local")]
    #[error(
        "Resource unavailable: this chain begins on block {fork} of another network, of whose state it has only what was \
         read: it proves no state; ask a node of that network for proofs up to block {fork}, and above it read without \
         proof (eth_getBalance, eth_getCode, eth_getStorageAt)"
    )]
    ForkWithoutProofs { fork: u64 },
    /// A block that was executed before fails when it is executed again, because the state below it was changed
    /// directly.
    #[error("Resource unavailable: executing the block again failed: {0}")]
    Replay(BlockError),
    /// A trace was requested from a view that verifies blocks and does not execute them.
    #[error(
        "Resource unavailable: traces need a chain that is executed here; block {number} is only verified"
    )]
    NotExecuted { number: u64 },
    /// A trace that lists the whole storage of a contract, of which not all is proven.
    #[error(
        "Resource unavailable: the trace lists the whole storage of {0}, and no upstream proves all of it; ask for \
         the callTracer or the structLogger, or an upstream with rootlight_getBlockWitness"
    )]
    StorageNotListed(Address),
    /// The nodes of the state have the right hashes and do not decode.
    #[error("Resource unavailable: the state of block {number} cannot be read")]
    UnreadableState { number: u64 },
    /// More blocks than a light client replays for one request.
    #[error("Limit exceeded: the request covers more than {max} blocks; ask for fewer at a time")]
    TooManyBlocks { max: u64 },
    /// The trace is larger than one that is kept in memory.
    #[error("Limit exceeded: the trace is larger than {max} bytes")]
    TraceTooLarge { max: usize },
    /// The call ran longer than allowed.
    #[error("Execution has got timeout out: request timed out")]
    Interrupted,
    /// The signature of a transaction in a verified block gives no sender.
    #[error("Resource unavailable: transaction {index} of {block}: {error}")]
    Sender { block: BlockRef, index: usize, error: SenderError },
    /// The signature of a pending transaction gives no sender.
    #[error("Resource unavailable: pending transaction: {0}")]
    PendingSender(SenderError),
    /// The total difficulty is known only if the checkpoint has one.
    #[error("Resource unavailable: total difficulty of block {0} is not known")]
    NoTotalDifficulty(u64),
    /// A run reads merged-mining fields of an ancestor whose proof of work was not checked; the block's hash does not
    /// cover them.
    #[error("Resource unavailable: the proof of work of block {0} was not shown: ask other upstreams")]
    NoWork(u64),
    /// The run could not be carried out.
    #[error("Resource unavailable: {0}")]
    Execution(CallStop),
    /// The data that the state root commits to is invalid.
    #[error("Resource unavailable: {0}")]
    CorruptState(StateError),
}

/// The text of a refusal without the leading words that stand for its code, for use inside another refusal.
#[cfg(all(feature = "light", feature = "local"))]
fn bare(refusal: &Refusal) -> String {
    let text = alloc::format!("{refusal}");
    text.strip_prefix("Resource unavailable: ").map(Into::into).unwrap_or(text)
}

/// The advice of [`Refusal::FewBitcoinBlocks`].
#[cfg(feature = "light")]
fn newest_to_ask(newest: Option<u64>) -> String {
    match newest {
        Some(newest) => alloc::format!("ask for block {newest} or an older one of the chain"),
        None => "ask again later".into(),
    }
}

/// The names of the first three facts, which keeps an error message short.
fn list(facts: &Facts) -> String {
    let names: alloc::vec::Vec<_> = facts.iter().take(3).map(|fact| alloc::format!("{fact}")).collect();
    names.join(", ")
}

impl Refusal {
    /// Whether no upstream gives a proof, so that only an unproven answer is possible, where the host allows those.
    #[cfg(feature = "light")]
    pub(crate) fn lacks_proof(&self) -> bool {
        #[cfg(feature = "local")]
        if matches!(self, Self::NoReceipts { .. } | Self::NotInNewestBlocks { .. }) {
            return true;
        }
        matches!(self, Self::Unproven(_) | Self::NoStateProofs { .. })
    }

    /// The refusal of receipts for which a block was executed and failed with `self`: `failure` says why no upstream gives them.
    /// Refusals about limits or time stay as they are.
    #[cfg(all(feature = "light", feature = "local"))]
    pub(crate) fn of_execution(self, failure: &FactFailure) -> Self {
        match self.code() {
            RESOURCE_UNAVAILABLE | -32004 => {
                Self::NoReceipts { failure: failure.clone(), cause: self.into() }
            }
            // Limits (-32005) and time (-32011). Only executed chains give -32600.
            _ => self,
        }
    }

    /// The refusal of data for which a block was executed again and failed.
    #[cfg(feature = "local")]
    pub(crate) fn of_replay(header: &BlockHeader, error: BlockError) -> Self {
        match error {
            BlockError::NotSimulated { index, method, .. } => {
                Self::BlockNotSimulated { number: header.number, index, method }
            }
            error => Self::Replay(error),
        }
    }

    /// JSON-RPC code: those of EIP-1474 for limits (`-32005`) and for what is not supported (`-32004`), the reference node's for time
    /// (`-32011`) and for states that it has pruned (`-32600`), and [`RESOURCE_UNAVAILABLE`] for all other refusals.
    pub fn code(&self) -> i32 {
        match self {
            Self::TooManyRounds { .. }
            | Self::TooManyFacts { .. }
            | Self::TooManyRequests { .. }
            | Self::TooManyBytes { .. }
            | Self::WitnessTooLarge { .. }
            | Self::TraceTooLarge { .. }
            | Self::TooManyBlocks { .. } => -32005,
            Self::Interrupted => -32011,
            Self::StateNotKept { .. } => -32600,
            #[cfg(feature = "local")]
            Self::BelowFork { .. } => -32600,
            Self::NotSimulated(_) | Self::BlockNotSimulated { .. } => -32004,
            _ => RESOURCE_UNAVAILABLE,
        }
    }
}
