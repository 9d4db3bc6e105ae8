//! Finds the newest block whose state the node has on disk, so that the sidecar can prove it.

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
    /// The result of the last search.
    found: Mutex<Option<ProvableBlock>>,
    /// Locked during a search, of which there is one at a time.
    searching: Mutex<()>,
}

/// The result of a search.
#[derive(Debug, Clone, Copy)]
struct ProvableBlock {
    /// The store's version ([`NodeStore::version`]).
    version: u64,
    /// The head of the chain.
    head: BlockRef,
    /// The newest block whose state is on disk.
    newest: Option<u64>,
}

impl ProvableBlockFinder {
    pub(super) fn new(store: Arc<dyn NodeStore>) -> Self {
        Self { store, found: Mutex::new(None), searching: Mutex::new(()) }
    }

    /// The number of the newest block of the pinned chain whose state is on disk; `None` if there is none from the start of
    /// the chain on. A search reads files, so the thread's other tasks move to another thread. A call during a search returns the result
    /// of the search before.
    pub(super) fn newest(&self, pinned: &PinnedHead) -> Option<u64> {
        let chain = pinned.chain()?;
        let (version, head) =
            (self.store.version(), BlockRef { number: chain.head().number, hash: chain.head().hash() });
        let before = *self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = before.filter(|found| (found.version, found.head) == (version, head)) {
            return found.newest;
        }
        let _searching = match self.searching.try_lock() {
            Ok(searching) => searching,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return before?.newest,
        };
        // `true`: the search may take long.
        let newest = priority::run_in_place(true, || self.search_from(before, chain, version));
        let found = Some(ProvableBlock { version, head, newest });
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
        newest
    }

    /// Searches only blocks that the result of the search before does not exclude.
    fn search_from(&self, before: Option<ProvableBlock>, chain: &ChainView, version: u64) -> Option<u64> {
        match before {
            // The node has written nothing since, so only blocks above the former head are searched: such a block may have a state that
            // was on disk already.
            Some(found)
                if found.version == version && chain.is_canonical(found.head.number, &found.head.hash) =>
            {
                self.search(chain, found.head.number.saturating_add(1)).or(found.newest)
            }
            Some(ProvableBlock { newest: Some(newest), .. }) => {
                self.search(chain, newest).or_else(|| self.search(chain, chain.lowest()))
            }
            _ => self.search(chain, chain.lowest()),
        }
    }

    /// The newest block from `lowest` on, itself included, whose state is on disk.
    fn search(&self, chain: &ChainView, lowest: u64) -> Option<u64> {
        let stored = |number: &u64| {
            chain.by_number(*number).is_some_and(|header| self.store.node(&header.state_root).is_some())
        };
        (lowest..=chain.head().number).rev().find(stored)
    }
}
