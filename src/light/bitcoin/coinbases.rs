//! The proven coinbases of the newest Bitcoin blocks.

use alloc::collections::BTreeMap;

use crate::consensus::bitcoin::{BitcoinChain, ProvenCoinbase, Tag};
use crate::types::B256;

/// Most coinbases that are kept: twice as many as are judged, so that a reorganisation does not lose those below it.
pub const KEPT_COINBASES: usize = 144;

/// Proven coinbases by height. One height has one coinbase: the one that was proven last.
#[derive(Debug, Clone, Default)]
pub struct Coinbases(BTreeMap<u32, (B256, Option<Tag>)>);

impl Coinbases {
    /// Keeps a coinbase. The lowest one is dropped where there are too many.
    pub fn insert(&mut self, proven: &ProvenCoinbase) {
        self.0.insert(proven.height(), (proven.block(), proven.tag().copied()));
        while self.0.len() > KEPT_COINBASES {
            self.0.pop_first();
        }
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

    /// The tag of the chain's block at a height: `None` if its coinbase is not proven, `Some(None)` if it has none.
    #[must_use]
    pub fn tag_at(&self, bitcoin: &BitcoinChain, height: u32) -> Option<Option<&Tag>> {
        let (block, tag) = self.0.get(&height)?;
        bitcoin.at(height).filter(|found| found.hash == *block).map(|_| tag.as_ref())
    }

    /// The heights from `from` to `to` whose coinbases are not proven.
    pub fn wanted<'a>(
        &'a self,
        bitcoin: &'a BitcoinChain,
        from: u32,
        to: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        (from..=to).filter(|height| bitcoin.at(*height).is_some() && self.tag_at(bitcoin, *height).is_none())
    }
}
