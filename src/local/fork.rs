//! The chain of another network on which a local chain can begin.

use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::stored_block::StoredBlock;
use crate::consensus::{VerifiedBody, VerifiedHeader, VerifiedUncles};
use crate::trie::TrieBase;
use crate::types::SealedHeader;

/// The transactions of a block, and their senders.
#[derive(Debug, Clone)]
pub struct ForkBody {
    /// The transactions.
    pub body: Arc<VerifiedBody>,
    /// Their senders; the zero address for REMASC's.
    pub senders: Vec<Address>,
}

/// The block of another network after which a local chain begins, its state ([`TrieBase`]) and the blocks below it. The host
/// provides it.
///
/// Data that is not at hand counts as absent, and the implementation notes it. The host then fetches it, discards the
/// result of the run, and runs again. What is at hand never changes.
pub trait ForkBase: TrieBase {
    /// The block after which the local chain begins.
    fn block(&self) -> &VerifiedHeader;

    /// The header at a height: that of the fork's block or of one of its ancestors. `None` if the header is not known yet.
    fn header(&self, number: u64) -> Option<VerifiedHeader>;

    /// As [`Self::header`], by hash.
    fn header_by_hash(&self, hash: &B256) -> Option<VerifiedHeader>;

    /// Body and senders of the block with this header.
    fn body(&self, header: &SealedHeader) -> Option<Arc<ForkBody>>;

    /// As [`Self::body`], with the receipts.
    fn contents(&self, header: &SealedHeader) -> Option<Arc<StoredBlock>>;

    /// The uncles of the block with this header.
    fn uncles(&self, header: &SealedHeader) -> Option<Arc<VerifiedUncles>>;

    /// Block hash and index of a transaction of this block or of an ancestor.
    fn locate(&self, transaction: &B256) -> Option<(B256, usize)>;

    /// Another block of the same network to begin on: of the chain that this URL shows, at this height; without them of the
    /// same chain, at its head.
    fn other(&self, url: Option<&str>, number: Option<u64>) -> Option<Arc<dyn ForkBase>>;

    /// The oldest ancestor whose fees REMASC distributes above this block.
    fn first_rewarded(&self) -> u64;
}
