//! The newest block whose state is on disk.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use rootlight::consensus::ChainView;
use rootlight::light::PinnedHead;
use rootlight::types::BlockRef;
use rootlight_limits::priority;

use super::NodeStore;

/// Finds the newest block of the chain whose state the store has.
#[derive(Debug)]
pub(super) struct ProvableBlockFinder {
    store: Arc<dyn NodeStore>,
    found: Mutex<Option<ProvableBlock>>,
    searching: Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
struct ProvableBlock {
    version: u64,
    head: BlockRef,
    newest: Option<u64>,
}

impl ProvableBlockFinder {
    pub(super) fn new(store: Arc<dyn NodeStore>) -> Self {
        Self { store, found: Mutex::new(None), searching: Mutex::new(()) }
    }

    /// The number of the newest block of the pinned chain whose state is on disk; `None` if there is none from the start of
    /// the chain on. A search reads files, so the thread's other work goes on elsewhere; who asks meanwhile learns what was
    /// found before.
    pub(super) fn newest(&self, pinned: &PinnedHead) -> Option<u64> {
        let chain = pinned.chain()?;
        let (version, head) =
            (self.store.version(), BlockRef { number: chain.head().number, hash: chain.head().hash() });
        let before = *self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = before.filter(|known| (known.version, known.head) == (version, head)) {
            return known.newest;
        }
        let _searching = match self.searching.try_lock() {
            Ok(searching) => searching,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return before?.newest,
        };
        let newest = priority::in_place(true, || self.search_from(before, chain, version));
        let found = Some(ProvableBlock { version, head, newest });
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
        newest
    }

    /// Searches as little of the chain as what was found before allows.
    fn search_from(&self, before: Option<ProvableBlock>, chain: &ChainView, version: u64) -> Option<u64> {
        match before {
            // Nothing was written: a newer block is provable only if its state is one that was there before.
            Some(known)
                if known.version == version && chain.is_canonical(known.head.number, &known.head.hash) =>
            {
                self.search(chain, known.head.number.saturating_add(1)).or(known.newest)
            }
            Some(ProvableBlock { newest: Some(newest), .. }) => {
                self.search(chain, newest).or_else(|| self.search(chain, chain.lowest()))
            }
            _ => self.search(chain, chain.lowest()),
        }
    }

    /// The newest block from `floor` on whose state is on disk.
    fn search(&self, chain: &ChainView, floor: u64) -> Option<u64> {
        let stored = |number: &u64| {
            chain.by_number(*number).is_some_and(|header| self.store.node(&header.state_root).is_some())
        };
        (floor..=chain.head().number).rev().find(stored)
    }
}
