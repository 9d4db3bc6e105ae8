//! The newest block whose state is on disk.

use std::sync::{Arc, Mutex, PoisonError};

use rootlight::consensus::ChainView;
use rootlight::light::PinnedHead;
use rootlight::types::BlockRef;

use super::NodeStore;

/// Finds the newest block of the chain whose state the store has.
#[derive(Debug)]
pub(super) struct Provable {
    store: Arc<dyn NodeStore>,
    found: Mutex<Option<Found>>,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    /// What the store had, by its version.
    version: u64,
    head: BlockRef,
    newest: Option<u64>,
}

impl Provable {
    pub(super) fn new(store: Arc<dyn NodeStore>) -> Self {
        Self { store, found: Mutex::new(None) }
    }

    /// The number of the newest block of the pinned chain whose state is on disk; `None` if there is none from the start of
    /// the chain on.
    pub(super) fn newest(&self, pinned: &PinnedHead) -> Option<u64> {
        let chain = pinned.chain()?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, head) =
            (self.store.version(), BlockRef { number: chain.head().number, hash: chain.head().hash() });
        let newest = match *found {
            Some(known) if (known.version, known.head) == (version, head) => return known.newest,
            // Nothing was written: a newer block is provable only if its state is one that was there before.
            Some(known)
                if known.version == version && chain.is_canonical(known.head.number, &known.head.hash) =>
            {
                self.search(chain, known.head.number.saturating_add(1)).or(known.newest)
            }
            Some(Found { newest: Some(newest), .. }) => {
                self.search(chain, newest).or_else(|| self.search(chain, chain.lowest()))
            }
            _ => self.search(chain, chain.lowest()),
        };
        *found = Some(Found { version, head, newest });
        newest
    }

    /// The newest block from `floor` on whose state is on disk.
    fn search(&self, chain: &ChainView, floor: u64) -> Option<u64> {
        let stored = |number: &u64| {
            chain.by_number(*number).is_some_and(|header| self.store.node(&header.state_root).is_some())
        };
        (floor..=chain.head().number).rev().find(stored)
    }
}
