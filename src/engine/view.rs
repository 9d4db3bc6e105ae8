//! The interface between handlers and the code that holds the chain.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

use alloy_primitives::{Address, B256, Bytes, U256};

use super::{BlockHeader, LogFilter, Policy, Refusal, TransactionPool};
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts, VerifiedUncles},
    exec::{BlockEnvironment, BlockObserver},
    state::{Facts, StateReader},
    trie::WalkError,
    types::{BlockRef, SenderError, Transaction},
};

/// Why a handler stopped without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It misses these facts; run it again once they are known.
    Lacking(Facts),
    /// There is no proven answer.
    Refused(Refusal),
}

/// Numbers of blocks, in ascending order.
pub type BlockNumbers<'a> = Box<dyn Iterator<Item = u64> + 'a>;

/// A value of the view, or why it is unavailable.
pub type Need<T> = Result<T, Stop>;

/// How well an answer is proven, from strong to weak. An answer has the level of its weakest part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A constant of the network or a pure computation.
    Local,
    /// Committed to by a header on the heaviest proven chain.
    Verified,
    /// An absence that upstreams report; the absence of a hash cannot be proven.
    UnprovenAbsence,
    /// A response of upstreams without a proof, where the host allows it.
    Unproven,
    /// A transaction that was checked and forwarded to upstreams.
    Forwarded,
}

impl Level {
    /// The name in docs/trust.md, with `-` between words. Answers below [`Self::Verified`] are marked with it.
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

/// The place of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionPlace {
    /// In this block of the canonical chain, at this index.
    Mined(BlockHeader, usize),
    /// Pending: the sender's nonce proves that it is not mined yet, or an upstream says so. The transaction itself
    /// matches the requested hash.
    Pending(Arc<Transaction>),
    /// No upstream knows the transaction.
    Unknown,
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

/// The miner of a local chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miner {
    /// The account that receives the fees.
    pub coinbase: Address,
    /// Whether blocks are mined without requests.
    pub active: bool,
    /// The gas price in wei that a transaction must offer now.
    pub price: U256,
}

/// A chain at one head. Everything that it returns is proven.
pub trait View {
    /// What is fixed for all requests on this view.
    fn policy(&self) -> &Policy<'_>;

    /// The progress of synchronization, or `None` if the head is current.
    fn syncing(&self) -> Option<SyncProgress>;

    /// Names of the upstreams in use, without credentials; empty for a chain without upstreams.
    fn upstreams(&self) -> Vec<String>;

    /// The light client at its pinned head; `None` on a chain that is executed locally.
    #[cfg(feature = "light")]
    fn light(&self) -> Option<&crate::light::PinnedHead> {
        None
    }

    /// Whether a header's merged-mining fields may be shown. A light client shows those that are proven
    /// ([`BlockHeader::shows_work`]), a chain that is executed locally shows all.
    fn shows_work(&self, _header: &BlockHeader) -> bool {
        true
    }

    /// The pinned head.
    ///
    /// # Errors
    /// Refused during synchronization, and if the head is younger than the required depth allows.
    fn head(&self) -> Need<BlockHeader>;

    /// Height of the pinned head.
    ///
    /// # Errors
    /// Refused during synchronization.
    fn height(&self) -> Need<u64> {
        Ok(self.head()?.number)
    }

    /// The canonical header of this height; `None` above the head.
    ///
    /// # Errors
    /// Refused during synchronization, below the checkpoint, and if the block has too few blocks on top.
    fn header_by_number(&self, number: u64) -> Need<Option<BlockHeader>>;

    /// A header by hash, canonical or not.
    ///
    /// # Errors
    /// Missing if it has to be fetched; refused as by number.
    fn header_by_hash(&self, hash: B256) -> Need<Option<BlockHeader>>;

    /// The ancestor of a block at a height, or the block itself; on the block's own branch, canonical or not.
    ///
    /// # Errors
    /// Refused if the ancestor is not known.
    fn ancestor(&self, block: B256, number: u64) -> Need<Option<BlockHeader>> {
        let mut at = self.header_by_hash(block)?;
        while let Some(header) = at.as_ref().filter(|header| header.number > number) {
            at = self.header_by_hash(header.parent_hash)?;
        }
        Ok(at.filter(|header| header.number == number))
    }

    /// Whether this block is on the canonical chain of the pinned head.
    fn is_canonical(&self, block: BlockRef) -> bool;

    /// Total difficulty up to and including the block; `None` if not all uncles can be proven.
    ///
    /// # Errors
    /// Refused while uncles are still being fetched.
    fn total_difficulty(&self, hash: B256) -> Need<Option<U256>>;

    /// All transactions of a block.
    ///
    /// # Errors
    /// Missing facts.
    fn body(&self, header: &BlockHeader) -> Need<Arc<VerifiedBody>>;

    /// All uncles of a block.
    ///
    /// # Errors
    /// Missing facts.
    fn uncles(&self, header: &BlockHeader) -> Need<Arc<VerifiedUncles>>;

    /// All receipts of a block.
    ///
    /// # Errors
    /// Missing facts.
    fn receipts(&self, header: &BlockHeader) -> Need<Arc<VerifiedReceipts>>;

    /// The place of a transaction. `given` is the transaction itself, if the caller has it: its sender's nonce tells
    /// whether it is mined.
    ///
    /// # Errors
    /// Missing facts.
    fn locate(&self, transaction: B256, given: Option<&Arc<Transaction>>) -> Need<TransactionPlace>;

    /// The state after a block. Reading a key that is not proven fails with that key.
    ///
    /// # Errors
    /// Refused for blocks without provable state.
    fn state<'a>(&'a self, header: &BlockHeader) -> Need<Box<dyn StateReader + 'a>>;

    /// Executes a block again on its parent's state and reports to the observer, for traces.
    ///
    /// # Errors
    /// Refused if this view executes no blocks, or the parent's state is not kept.
    fn replay(&self, header: &BlockHeader, _observer: &mut dyn BlockObserver) -> Need<()> {
        Err(Stop::Refused(Refusal::NotExecuted { number: header.number }))
    }

    /// The environment of the block after this one, as its transactions would see it.
    ///
    /// # Errors
    /// As the other look-ups.
    fn next_environment(&self, header: &BlockHeader) -> Need<BlockEnvironment> {
        let mut next = BlockEnvironment::from(header.header());
        next.number = next.number.saturating_add(1);
        next.timestamp = next.timestamp.saturating_add(1);
        Ok(next)
    }

    /// The numbers of the blocks of a range, both ends included, that may have a log that the filter selects, in
    /// ascending order. Without an index these are all blocks.
    fn log_blocks<'a>(&'a self, _filter: &LogFilter, from: u64, to: u64) -> BlockNumbers<'a> {
        Box::new(from..=to)
    }

    /// The numbers of the blocks of a range, both ends included, that may have a transaction from one of the senders
    /// to one of the recipients, in ascending order. An empty list stands for any account.
    #[cfg(feature = "local")]
    fn transaction_blocks<'a>(
        &'a self,
        _senders: &[Address],
        _recipients: &[Address],
        from: u64,
        to: u64,
    ) -> BlockNumbers<'a> {
        Box::new(from..=to)
    }

    /// The analysed code that calls on this chain share, if any is kept.
    fn codes(&self) -> Option<&dyn crate::exec::CodeCache> {
        None
    }

    /// Root of the state that [`Self::state`] reads. It is the header's, unless the state was changed directly on a
    /// development chain.
    fn state_root(&self, header: &BlockHeader) -> B256 {
        header.state_root
    }

    /// The path of a key in the state after a block: its trie nodes, root first, to the key or to where it would be.
    ///
    /// # Errors
    /// A node is missing; [`Self::state`] names the missing key, which can be fetched.
    fn prove(&self, header: &BlockHeader, key: &[u8]) -> Result<Vec<Bytes>, WalkError>;

    /// Hash of the node at a key of the state after a block, if there is one.
    ///
    /// # Errors
    /// As [`Self::prove`].
    fn node_hash(&self, header: &BlockHeader, key: &[u8]) -> Result<Option<B256>, WalkError>;

    /// The state trie after a block, where it is in memory; `None` elsewhere.
    #[cfg(feature = "local")]
    fn state_trie(&self, _header: &BlockHeader) -> Option<&crate::trie::Trie> {
        None
    }

    /// Header of the pending block, with all transactions that can be mined; `None` if none is built. The other
    /// look-ups accept it as they do any header.
    ///
    /// # Errors
    /// As the other look-ups.
    fn pending(&self) -> Need<Option<BlockHeader>> {
        Ok(None)
    }

    /// The sender of a transaction of a block: recovered from the signature, or the impersonated account.
    ///
    /// # Errors
    /// The signature gives no sender.
    fn sender(
        &self,
        _block: &B256,
        _index: usize,
        transaction: &Transaction,
    ) -> Result<Address, SenderError> {
        transaction.recover_sender(self.policy().network.chain_id)
    }

    /// The transaction pool; `None` if there is none.
    fn pool(&self) -> Option<&dyn TransactionPool> {
        None
    }

    /// Whether the caller may learn that a transaction of this asker has entered the pool. `None` is for a transaction that
    /// was in a block, which all have seen.
    #[cfg(feature = "local")]
    fn shows_waiting_of(&self, _asker: Option<crate::types::Asker>) -> bool {
        true
    }

    /// The nonce of an account's next transaction, given its nonce in the state: it counts transactions that wait in
    /// the pool or were sent from here.
    fn next_nonce(&self, sender: &Address, nonce: u64) -> u64 {
        self.pool().map_or(nonce, |pool| pool.next_nonce(sender, nonce))
    }

    /// Accounts whose keys the node holds.
    fn accounts(&self) -> Vec<Address> {
        Vec::new()
    }

    /// The miner; `None` if this node does not mine.
    fn miner(&self) -> Option<Miner> {
        None
    }

    /// Every known block of a height, canonical or not.
    fn blocks_at(&self, _number: u64) -> Vec<B256> {
        Vec::new()
    }

    /// What happened last, in order; `None` on a view that records no events, such as a light client's. Filters then
    /// compare the chain with the blocks that they have reported.
    #[cfg(feature = "local")]
    fn events(&self) -> Option<&crate::local::Events> {
        None
    }
}

/// Combines two results, so that one round fetches the missing facts of both.
///
/// # Errors
/// The first refusal, else all missing facts.
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
