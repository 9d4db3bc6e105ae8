//! The interface between handlers and whatever holds the chain.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

use alloy_primitives::{Address, B256, Bytes, U256};

use super::Refusal;
use crate::{
    consensus::{Network, Rule, VerifiedBody, VerifiedHeader, VerifiedReceipts, VerifiedUncles},
    dev::pool::Pool,
    exec::{BlockEnvironment, BlockObserver, CallPolicy},
    light::{BlockRef, Facts, Pin},
    state::StateReader,
    trie::WalkError,
    types::{SenderError, Transaction},
};

/// Why a handler stopped without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It needs these facts; run it again when they are there.
    Lacking(Facts),
    /// There is no proven answer.
    Refused(Refusal),
}

/// A value of the view, or why it is not there.
pub type Need<T> = Result<T, Stop>;

/// How sure an answer is, from strong to weak; an answer has the level of its weakest part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A constant of the network or a pure computation.
    Local,
    /// Committed to by a header on the heaviest proven chain.
    Verified,
    /// "There is none" as the upstreams say; absence by hash cannot be proven.
    UnprovenAbsence,
    /// As upstreams say, where nobody gives a proof and the host allows it.
    Unproven,
    /// A transaction that was checked and handed to upstreams.
    Forwarded,
}

impl Level {
    /// The name in docs/trust.md, with `-` between words: the mark of answers below [`Self::Verified`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Verified => "verified",
            Self::UnprovenAbsence => "unproven-absence",
            Self::Unproven => "unproven",
            Self::Forwarded => "forwarded",
        }
    }
}

/// Where a transaction is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionPlace {
    /// In this block of the canonical chain, at this index.
    Mined(VerifiedHeader, usize),
    /// Waiting: its sender's nonce shows that it is not mined yet, or an upstream says so. The transaction itself
    /// matches the hash asked for.
    Pending(Arc<Transaction>),
    /// No upstream knows it.
    Unknown,
}

/// How many blocks below the head the tags `safe` and `finalized` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depths {
    /// `safe`.
    pub safe: u64,
    /// `finalized`.
    pub finalized: u64,
}

impl Default for Depths {
    /// 12 and 120 blocks: about five minutes and one hour on mainnet.
    fn default() -> Self {
        Self { safe: 12, finalized: 120 }
    }
}

/// Progress of synchronization, for `eth_syncing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncProgress {
    /// Block at which this client started.
    pub starting: u64,
    /// Newest verified block.
    pub current: u64,
    /// Newest block an upstream has announced.
    pub highest: u64,
}

/// Who mines a chain of one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miner {
    /// Who gets the fees.
    pub coinbase: Address,
    /// Whether blocks are mined without being asked for.
    pub active: bool,
}

/// A chain as of one head. Everything it returns is proven.
pub trait View {
    /// The network's parameters.
    fn network(&self) -> &Network;

    /// The client's name and version, five parts separated by `/`.
    fn client_version(&self) -> String;

    /// Depths of the `safe` and `finalized` tags.
    fn depths(&self) -> Depths;

    /// Where synchronization stands, or `None` when the head is current.
    fn syncing(&self) -> Option<SyncProgress>;

    /// Names of the upstreams in use, credentials removed; empty for a chain that needs none.
    fn upstreams(&self) -> Vec<String>;

    /// What a light client knows about its proofs and upstreams; nothing on a chain that is executed here.
    fn light(&self) -> Option<&Pin> {
        None
    }

    /// Whether a header's merged-mining fields may be shown; see [`VerifiedHeader::shows_work`].
    fn shows_work(&self, header: &VerifiedHeader) -> bool {
        self.light().is_none() || header.shows_work(self.network())
    }

    /// Blocks with fewer blocks on top are refused.
    fn min_depth(&self) -> u64 {
        0
    }

    /// Whether anybody can afford this network's work: its difficulty drops to the minimum after ten minutes.
    fn cheap_work(&self) -> bool {
        self.network().params.future_bound > 0 && self.network().activation(Rule::Rskip97).is_none()
    }

    /// The pinned head.
    ///
    /// # Errors
    /// Refused while synchronizing, and where blocks as young as it are.
    fn head(&self) -> Need<VerifiedHeader>;

    /// Height of the pinned head.
    ///
    /// # Errors
    /// Refused while synchronizing.
    fn height(&self) -> Need<u64> {
        Ok(self.head()?.number)
    }

    /// The canonical header of this height; `None` above the head.
    ///
    /// # Errors
    /// Refused while synchronizing, below the checkpoint, and where it has too few blocks on top.
    fn header_by_number(&self, number: u64) -> Need<Option<VerifiedHeader>>;

    /// A header by hash, canonical or not.
    ///
    /// # Errors
    /// Lacking when it has to be asked for; refused as by number.
    fn header_by_hash(&self, hash: B256) -> Need<Option<VerifiedHeader>>;

    /// The ancestor of a block at a height, or the block itself; on the block's own branch, canonical or not.
    ///
    /// # Errors
    /// Refused where it is not held.
    fn ancestor(&self, block: B256, number: u64) -> Need<Option<VerifiedHeader>> {
        let mut at = self.header_by_hash(block)?;
        while let Some(header) = at.as_ref().filter(|header| header.number > number) {
            at = self.header_by_hash(header.parent_hash)?;
        }
        Ok(at.filter(|header| header.number == number))
    }

    /// Whether this block is on the canonical chain of the pinned head.
    fn is_canonical(&self, block: BlockRef) -> bool;

    /// Total difficulty up to and including the block; `None` where not all uncles can be proven.
    ///
    /// # Errors
    /// Refused while it is still being worked out.
    fn total_difficulty(&self, hash: B256) -> Need<Option<U256>>;

    /// All transactions of a block.
    ///
    /// # Errors
    /// Lacking.
    fn body(&self, header: &VerifiedHeader) -> Need<Arc<VerifiedBody>>;

    /// All uncles of a block.
    ///
    /// # Errors
    /// Lacking.
    fn uncles(&self, header: &VerifiedHeader) -> Need<Arc<VerifiedUncles>>;

    /// All receipts of a block.
    ///
    /// # Errors
    /// Lacking.
    fn receipts(&self, header: &VerifiedHeader) -> Need<Arc<VerifiedReceipts>>;

    /// Where a transaction is. `given` is the transaction itself, where the caller has it: its sender's nonce tells
    /// whether it is mined.
    ///
    /// # Errors
    /// Lacking.
    fn locate(&self, transaction: B256, given: Option<&Arc<Transaction>>) -> Need<TransactionPlace>;

    /// The state after a block. Reading what is not proven fails with the missing key.
    ///
    /// # Errors
    /// Refused for blocks without provable state.
    fn state<'a>(&'a self, header: &VerifiedHeader) -> Need<Box<dyn StateReader + 'a>>;

    /// Executes a block again on its parent's state, watched: what traces are made of.
    ///
    /// # Errors
    /// Refused where blocks are not executed, or the parent's state is not kept.
    fn replay(&self, header: &VerifiedHeader, _observer: &mut dyn BlockObserver) -> Need<()> {
        Err(Stop::Refused(Refusal::NotExecuted { number: header.number }))
    }

    /// What the host decides about calls.
    fn policy(&self) -> CallPolicy {
        CallPolicy::default()
    }

    /// The block that would come after this one, as its transactions would see it.
    ///
    /// # Errors
    /// As the other look-ups.
    fn next_environment(&self, header: &VerifiedHeader) -> Need<BlockEnvironment> {
        let mut next = BlockEnvironment::from(header.header());
        next.number = next.number.saturating_add(1);
        next.timestamp = next.timestamp.saturating_add(1);
        Ok(next)
    }

    /// Blocks that one question about logs may look at.
    fn max_log_blocks(&self) -> u64 {
        u64::MAX
    }

    /// Blocks that one question about traces may run again.
    fn max_traced_blocks(&self) -> u64 {
        u64::MAX
    }

    /// Whether the present run has used up its time.
    fn interrupted(&self) -> bool;

    /// Root of what [`Self::state`] reads; the header's, unless the state was changed by hand on a development chain.
    fn state_root(&self, header: &VerifiedHeader) -> B256 {
        header.state_root
    }

    /// The way of a key in the state after a block: its trie nodes, root first, to the key or to where it would be.
    ///
    /// # Errors
    /// When a node is not at hand; [`Self::state`] says so in terms that can be asked for.
    fn prove(&self, header: &VerifiedHeader, key: &[u8]) -> Result<Vec<Bytes>, WalkError>;

    /// Hash of the node that a key of the state after a block ends at, if there is one.
    ///
    /// # Errors
    /// As [`Self::prove`].
    fn node_hash(&self, header: &VerifiedHeader, key: &[u8]) -> Result<Option<B256>, WalkError>;

    /// Header of the block that would come next, with everything that waits; `None` where none is built. The other
    /// look-ups take it as they take any header.
    ///
    /// # Errors
    /// As the other look-ups.
    fn pending(&self) -> Need<Option<VerifiedHeader>> {
        Ok(None)
    }

    /// Who sent a transaction of a block: its signature says so, unless the sender was impersonated.
    ///
    /// # Errors
    /// The signature is nobody's.
    fn sender(
        &self,
        _block: &B256,
        _index: usize,
        transaction: &Transaction,
    ) -> Result<Address, SenderError> {
        transaction.recover_sender(self.network().chain_id)
    }

    /// Transactions that wait here; `None` where there is no pool.
    fn pool(&self) -> Option<&Pool> {
        None
    }

    /// The nonce that an account's next transaction needs, given its nonce in the state and what waits here or was
    /// sent from here.
    fn next_nonce(&self, sender: &Address, nonce: u64) -> u64 {
        self.pool().map_or(nonce, |pool| pool.next_nonce(sender, nonce))
    }

    /// Accounts whose keys are held here.
    fn accounts(&self) -> Vec<Address> {
        Vec::new()
    }

    /// Who mines here; `None` where nobody does.
    fn miner(&self) -> Option<Miner> {
        None
    }

    /// The host's clock in seconds since 1970, where there is one.
    fn now(&self) -> Option<u64> {
        None
    }

    /// Every known block of a height, canonical or not.
    fn blocks_at(&self, _number: u64) -> Vec<B256> {
        Vec::new()
    }
}

/// Joins the needs of several parts, so that one round fetches all of them.
///
/// # Errors
/// The first refusal, else all that is lacking.
pub(crate) fn both<A, B>(a: Need<A>, b: Need<B>) -> Need<(A, B)> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(Stop::Lacking(mut facts)), Err(Stop::Lacking(more))) => {
            facts.extend(more);
            Err(Stop::Lacking(facts))
        }
        (Err(refused @ Stop::Refused(_)), _) | (_, Err(refused @ Stop::Refused(_))) => Err(refused),
        (Err(lacking), _) | (_, Err(lacking)) => Err(lacking),
    }
}
