//! Why the engine gives no answer rather than an unproven one.

use alloy_primitives::{Address, B256};
use thiserror::Error;

use crate::{
    evm::precompiles::Unsimulated,
    exec::{BlockError, CallStop},
    light::{BlockRef, FactFailure, Facts, LowWork, SyncFault},
    state::StateError,
    types::SenderError,
};

/// The reason for having no proven answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The head of the chain is not known yet.
    #[error("Resource unavailable: still synchronizing, {verified} headers verified; ask again later")]
    Syncing {
        /// Number of headers verified so far.
        verified: u64,
    },
    /// The block is younger than the host accepts.
    #[error(
        "Resource unavailable: block {number} has {depth} blocks on top, at least {wanted} are asked for; ask for an older block"
    )]
    TooYoung {
        /// Height of the block.
        number: u64,
        /// Blocks on top of it.
        depth: u64,
        /// Blocks asked for (`--min-depth`).
        wanted: u64,
    },
    /// The chain shows less work than honest miners would: it may be an attacker's.
    #[error(
        "Resource unavailable: the {} s up to block {} show {} % of the work expected of honest miners; \
         ask other upstreams, or start from a newer checkpoint",
        .0.seconds, .0.number, .0.percent
    )]
    LowWork(LowWork),
    /// The head of the chain is older than the host accepts: newer blocks may be hidden.
    #[error(
        "Resource unavailable: the newest verified block {number} is {age} s old, at most {most} s are accepted \
         (--max-age); ask again when upstreams show newer blocks, or ask other upstreams"
    )]
    Stale {
        /// Height of the head.
        number: u64,
        /// Its age in seconds by the host's clock.
        age: u64,
        /// Oldest age accepted, in seconds.
        most: u64,
    },
    /// Synchronization stopped on data that does not verify.
    #[error("Resource unavailable: synchronization stopped: {0}")]
    SyncFailed(SyncFault),
    /// An upstream could not supply or prove what the answer needs.
    #[error("Resource unavailable: {0}")]
    Unproven(FactFailure),
    /// An upstream names a block that does not hold the transaction.
    #[error("Resource unavailable: the upstream says transaction {transaction} is in {block}, but it is not")]
    Misplaced {
        /// The transaction asked for.
        transaction: B256,
        /// The block named.
        block: BlockRef,
    },
    /// An upstream names a block that is too old for its transactions to be proven here.
    #[error(
        "Resource unavailable: transaction {transaction} is said to be in block {number}, older than block {lowest}, \
         the first one held; ask other upstreams, or start from an older checkpoint"
    )]
    PlacedTooOld {
        /// The transaction asked for.
        transaction: B256,
        /// The height named.
        number: u64,
        /// Height of the oldest header held.
        lowest: u64,
    },
    /// An upstream names a block that is not on the verified chain.
    #[error(
        "Resource unavailable: transaction {transaction} is said to be in {block}, which is not on the verified \
         chain; ask again"
    )]
    Abandoned {
        /// The transaction asked for.
        transaction: B256,
        /// The block named.
        block: BlockRef,
    },
    /// A run asked for more rounds of facts than one question may have.
    #[error("Limit exceeded: the answer needs more than {rounds} rounds of proofs")]
    TooManyRounds {
        /// The limit.
        rounds: usize,
    },
    /// A run asked for more facts at once than one question may have.
    #[error("Limit exceeded: the answer needs more than {max} proofs at once")]
    TooManyFacts {
        /// The limit.
        max: usize,
    },
    /// A question needs more blocks and state than one question may keep.
    #[error(
        "Limit exceeded: the answer needs more than {max} bytes of blocks and state; ask for fewer blocks at a time"
    )]
    TooManyBytes {
        /// The limit.
        max: usize,
    },
    /// A witness that would not fit.
    #[error("Limit exceeded: the witness has more than {max} bytes")]
    WitnessTooLarge {
        /// The limit.
        max: usize,
    },
    /// A local chain does not hold what the answer needs: its state is older than the history kept.
    #[error("Resource unavailable: not held by this chain: {}", list(.0))]
    NotHeld(Facts),
    /// State roots before the Unitrie (RSKIP-126) commit to a trie nobody can serve proofs of any more.
    #[error("state proofs unavailable: block {number} is older than the Unitrie (RSKIP-126)")]
    NoStateProofs {
        /// The block asked for.
        number: u64,
    },
    /// The block is older than the checkpoint, or than the headers kept.
    #[error("Resource unavailable: block {number} is older than block {lowest}, the first one held")]
    TooOld {
        /// The block asked for.
        number: u64,
        /// Height of the oldest header held.
        lowest: u64,
    },
    /// A block off the heaviest chain rests on ancestors that no verified header leads to.
    #[error(
        "Resource unavailable: {block} is off the heaviest chain, and block {ancestor} below it, which its execution \
         reads, cannot be proven; ask about a block of the chain, or ask a node that executes blocks"
    )]
    OffChain {
        /// The block asked for.
        block: BlockRef,
        /// Height of the ancestor.
        ancestor: u64,
    },
    /// A method of a native contract that is not simulated: no answer is better than a wrong one.
    #[error("{0} is not simulated")]
    NotSimulated(Unsimulated),
    /// State that an executed chain does not keep any more.
    #[error("State not found for block with hash {hash}: block {number} is older than the history kept")]
    StateNotKept {
        /// The block's number.
        number: u64,
        /// Its hash.
        hash: B256,
    },
    /// A block that ran before does not run again: the state below it was changed by hand.
    #[error("Resource unavailable: the block does not run again: {0}")]
    Replay(BlockError),
    /// A trace, where blocks are verified but not executed.
    #[error(
        "Resource unavailable: traces need a chain that is executed here; block {number} is only verified"
    )]
    NotExecuted {
        /// The block.
        number: u64,
    },
    /// A trace that shows all storage of a contract, where not all of it is proven.
    #[error(
        "Resource unavailable: the trace lists the whole storage of {0}, and no upstream proves all of it; ask for \
         the callTracer, or an upstream with rootlight_getBlockWitness"
    )]
    StorageNotListed(Address),
    /// A state whose nodes have the right hashes and are no nodes.
    #[error("Resource unavailable: the state of block {number} cannot be read")]
    UnreadableState {
        /// The block.
        number: u64,
    },
    /// More blocks than a light client runs again for one question.
    #[error("Limit exceeded: the traces of more than {max} blocks; ask for fewer at a time")]
    TooManyBlocks {
        /// The limit.
        max: u64,
    },
    /// A trace that is too large to be kept, let alone sent.
    #[error("Limit exceeded: the trace is larger than {max} bytes")]
    TraceTooLarge {
        /// The limit.
        max: usize,
    },
    /// The call ran longer than allowed.
    #[error("Execution has got timeout out.")]
    Interrupted,
    /// A transaction of a verified block has a signature that no sender fits.
    #[error("Resource unavailable: transaction {index} of {block}: {error}")]
    Sender {
        /// Its block.
        block: BlockRef,
        /// Its place.
        index: usize,
        /// What is wrong with the signature.
        error: SenderError,
    },
    /// A waiting transaction has a signature that no sender fits.
    #[error("Resource unavailable: pending transaction: {0}")]
    PendingSender(SenderError),
    /// Total difficulty is only known where the trusted start has one.
    #[error("Resource unavailable: total difficulty of block {0} is not known")]
    NoTotalDifficulty(u64),
    /// A run reads merged mining of an ancestor whose proof of work was not shown; the block's hash does not cover it.
    #[error("Resource unavailable: the proof of work of block {0} was not shown: ask other upstreams")]
    NoWork(u64),
    /// The run could not be carried out.
    #[error("Resource unavailable: {0}")]
    Execution(CallStop),
    /// What the state root commits to is not what it must be.
    #[error("Resource unavailable: {0}")]
    CorruptState(StateError),
}

/// The first facts by name.
fn list(facts: &Facts) -> alloc::string::String {
    let names: alloc::vec::Vec<_> = facts.iter().take(3).map(|fact| alloc::format!("{fact}")).collect();
    names.join(", ")
}

impl Refusal {
    /// JSON-RPC code: EIP-1474 `-32002` (resource unavailable), `-32005` (limit), the reference's `-32011` (time).
    pub fn code(&self) -> i32 {
        match self {
            Self::TooManyRounds { .. }
            | Self::TooManyFacts { .. }
            | Self::TooManyBytes { .. }
            | Self::WitnessTooLarge { .. }
            | Self::TraceTooLarge { .. }
            | Self::TooManyBlocks { .. } => -32005,
            Self::Interrupted => -32011,
            // The reference's code for states it has pruned.
            Self::StateNotKept { .. } => -32600,
            Self::NotSimulated(_) => -32004,
            _ => -32002,
        }
    }
}
