//! The proven coinbases of the newest Bitcoin blocks: from their tags the client judges whose Rootstock chain Bitcoin's miners
//! support (`tags`), and their proofs are served to other clients.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::consensus::bitcoin::{BitcoinChain, CoinbaseProofBuf, ProvenCoinbase, Tag};
use crate::types::B256;

/// Most coinbases that are kept: twice as many as are judged, so that those below a reorganisation are still there.
pub const KEPT_COINBASES: usize = 144;
/// Most bytes of a coinbase whose proof is kept for other clients. Pools that pay hundreds of miners in the coinbase need up to
/// 30 kB; the proofs of all kept coinbases then take less than 5 MB.
pub const MAX_SERVED_COINBASE: usize = 32 * 1024;

/// Proven coinbases, sorted by height. One height has one coinbase: the one that was proven last.
#[derive(Debug, Clone, Default)]
pub struct Coinbases(Vec<KeptCoinbase>);

/// The coinbase of one Bitcoin block, without the parts that are not needed.
#[derive(Debug, Clone)]
struct KeptCoinbase {
    /// Height of the Bitcoin block.
    height: u32,
    /// Hash of the Bitcoin block.
    block: B256,
    /// The Rootstock block that the coinbase names; `None` if it has no tag.
    tag: Option<Tag>,
    /// The proof, which is served to other clients; `None` if it is too long to serve, or if this client serves none.
    proof: Option<Arc<CoinbaseProofBuf>>,
}

impl Coinbases {
    /// Keeps a coinbase. If there are too many, the one with the lowest height is dropped.
    pub fn insert(&mut self, proven: &ProvenCoinbase) {
        self.keep(proven, None);
    }

    /// Does what [`Self::insert`] does, and keeps the proof for other clients.
    pub fn insert_with_proof(&mut self, proven: &ProvenCoinbase, proof: CoinbaseProofBuf) {
        let proof = (proof.coinbase.len() <= MAX_SERVED_COINBASE).then(|| Arc::new(proof));
        self.keep(proven, proof);
    }

    fn keep(&mut self, proven: &ProvenCoinbase, proof: Option<Arc<CoinbaseProofBuf>>) {
        let (height, block, tag) = (proven.height(), proven.block(), proven.tag().copied());
        let kept = KeptCoinbase { height, block, tag, proof };
        match self.index_of(height).map(|index| self.0.get_mut(index)) {
            Ok(Some(found)) => *found = kept,
            // The index of a height that was found is in the list, so this does not occur.
            Ok(None) => {}
            Err(index) => self.0.insert(index, kept),
        }
        if self.0.len() > KEPT_COINBASES {
            self.0.remove(0);
        }
    }

    /// The index of a height in the list, or where to insert it (`Err`).
    fn index_of(&self, height: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&height, |kept| kept.height)
    }

    /// Number of coinbases kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The kept coinbase of the chain's block at a height.
    fn at(&self, bitcoin: &BitcoinChain, height: u32) -> Option<&KeptCoinbase> {
        let kept = self.0.get(self.index_of(height).ok()?)?;
        bitcoin.at(height).filter(|found| found.hash == kept.block).map(|_| kept)
    }

    /// The tag of the chain's block at a height: `None` if its coinbase is not proven, `Some(None)` if it has none.
    #[must_use]
    pub fn tag_at(&self, bitcoin: &BitcoinChain, height: u32) -> Option<Option<&Tag>> {
        self.at(bitcoin, height).map(|kept| kept.tag.as_ref())
    }

    /// The proof of the coinbase of the chain's block at a height; `None` if it is not kept.
    #[must_use]
    pub fn proof_at(&self, bitcoin: &BitcoinChain, height: u32) -> Option<&CoinbaseProofBuf> {
        self.at(bitcoin, height)?.proof.as_deref()
    }

    /// The heights from `from` to `to`, both included, whose coinbases are not proven.
    pub fn wanted<'a>(
        &'a self,
        bitcoin: &'a BitcoinChain,
        from: u32,
        to: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        (from..=to).filter(|height| bitcoin.at(*height).is_some() && self.tag_at(bitcoin, *height).is_none())
    }
}
