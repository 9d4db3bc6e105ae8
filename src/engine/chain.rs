//! The blocks that handlers read.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use alloy_primitives::{Address, B256, U256};

use super::{BlockHeader, LogFilter, Policy, ViewResult};
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts, VerifiedUncles},
    types::{BlockRef, SenderError, Transaction},
};

/// Numbers of blocks, in ascending order.
pub type BlockNumbers<'a> = Box<dyn Iterator<Item = u64> + 'a>;

/// Where a transaction is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionLocation {
    /// In this block of the canonical chain, at this index.
    Mined(BlockHeader, usize),
    /// Pending: the sender's nonce proves that it is not mined yet, or an upstream says so. The transaction itself
    /// matches the requested hash.
    Pending(Arc<Transaction>),
    /// No upstream knows the transaction.
    Unknown,
}

/// The blocks of a chain at one head. All results are proven, except that upstreams alone may say that a transaction is pending
/// or unknown.
pub trait Chain {
    /// The settings and limits that hold for all requests on this view.
    fn policy(&self) -> &Policy<'_>;

    /// The pinned head.
    ///
    /// # Errors
    /// Refused during synchronization, and if the head is younger than the required depth allows.
    fn head(&self) -> ViewResult<BlockHeader>;

    /// Height of the pinned head.
    ///
    /// # Errors
    /// Refused during synchronization.
    fn height(&self) -> ViewResult<u64> {
        Ok(self.head()?.number)
    }

    /// The canonical header of this height; `None` above the head.
    ///
    /// # Errors
    /// Refused during synchronization, below the checkpoint, and if the block has too few blocks on top.
    fn header_by_number(&self, number: u64) -> ViewResult<Option<BlockHeader>>;

    /// A header by hash, canonical or not.
    ///
    /// # Errors
    /// The header is missing if it has to be fetched; it is refused for the same reasons as in [`Self::header_by_number`].
    fn header_by_hash(&self, hash: B256) -> ViewResult<Option<BlockHeader>>;

    /// The ancestor of a block at a height, or the block itself; on the block's own branch, canonical or not.
    ///
    /// # Errors
    /// Refused if the ancestor is not known.
    fn ancestor(&self, block: B256, number: u64) -> ViewResult<Option<BlockHeader>> {
        let mut at = self.header_by_hash(block)?;
        while let Some(header) = at.as_ref().filter(|header| header.number > number) {
            at = self.header_by_hash(header.parent_hash)?;
        }
        Ok(at.filter(|header| header.number == number))
    }

    /// Whether this block is on the canonical chain of the pinned head.
    fn is_canonical(&self, block: BlockRef) -> bool;

    /// Every block of a height that the view has and may list; on a light client the canonical one alone.
    fn blocks_at(&self, _number: u64) -> Vec<B256> {
        Vec::new()
    }

    /// Whether a header's merged-mining fields may be shown. A light client shows those that are proven
    /// ([`BlockHeader::shows_work`]), a chain that is executed locally shows all.
    fn shows_work(&self, _header: &BlockHeader) -> bool {
        true
    }

    /// Total difficulty up to and including the block; `None` if not all uncles can be proven.
    ///
    /// # Errors
    /// Refused while uncles are still being fetched.
    fn total_difficulty(&self, hash: B256) -> ViewResult<Option<U256>>;

    /// All transactions of a block.
    ///
    /// # Errors
    /// Missing facts.
    fn body(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedBody>>;

    /// All uncles of a block.
    ///
    /// # Errors
    /// Missing facts.
    fn uncles(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedUncles>>;

    /// All receipts of a block.
    ///
    /// # Errors
    /// Missing facts.
    fn receipts(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedReceipts>>;

    /// The location of a transaction, which its hash names. `given` is the transaction itself, if the handler has it: a light
    /// client then proves from the sender's nonce that it is not mined yet.
    ///
    /// # Errors
    /// Missing facts.
    fn locate(&self, transaction: B256, given: Option<&Arc<Transaction>>) -> ViewResult<TransactionLocation>;

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

    /// The numbers of the blocks of a range, both ends included, that may have a log that the filter selects, in
    /// ascending order. Without an index these are all blocks.
    fn log_blocks<'a>(&'a self, _filter: &LogFilter, from: u64, to: u64) -> BlockNumbers<'a> {
        Box::new(from..=to)
    }

    /// The numbers of the blocks of a range, both ends included, that may have a transaction from one of the senders
    /// to one of the recipients, in ascending order. An empty list stands for any account. Only traces are looked for so,
    /// which the feature `local` has.
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
}
