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
    /// The senders of the transactions, in the same order; the zero address for the unsigned transaction that calls
    /// REMASC, the contract that pays miners.
    pub senders: Vec<Address>,
}

/// The block of another network after which a local chain begins, its state ([`TrieBase`]) and the blocks below it. The host
/// provides it.
///
/// Data that the implementation has not fetched yet counts as absent, and the implementation notes which data that is. The
/// host then fetches the noted data, discards the result of the run, and runs again. Fetched data never changes.
pub trait ForkBase: TrieBase {
    /// The block after which the local chain begins.
    fn block(&self) -> &VerifiedHeader;

    /// The header of the fork's block or of one of its ancestors, by height. `None` if the header is not fetched yet.
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

    /// Another block of the same network to begin on. `url` is the upstream whose chain has the block (`None`: the present
    /// upstream), `number` its height (`None`: the head of that chain). `None` is returned while the block is not fetched.
    fn other_start(&self, url: Option<&str>, number: Option<u64>) -> Option<Arc<dyn ForkBase>>;

    /// Number of the oldest ancestor whose fees REMASC, the contract that pays miners, distributes above this block. Ancestors
    /// that are not fetched, and a block with uncles with all below it, pay nothing: REMASC pays the miners of uncles too, and
    /// those uncles are not fetched for it.
    fn first_rewarded_block(&self) -> u64;
}
