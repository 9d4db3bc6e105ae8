//! State that a sidecar's service shares with its tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rootlight::trie::NodeSource;
use rootlight_upstream::SharedUpstream;
use tracing::warn;

use super::NodeStore;
use super::provable::ProvableBlockFinder;
use crate::light::LightService;

/// The light client, the node and its store.
pub(super) struct SidecarState {
    pub(super) light: LightService,
    pub(super) node: SharedUpstream,
    pub(super) provable: ProvableBlockFinder,
    store: Arc<dyn NodeStore>,
    /// Whether the last attempt to catch up with the node's files failed.
    catch_up_failed: AtomicBool,
}

impl SidecarState {
    pub(super) fn new(light: LightService, node: SharedUpstream, store: Arc<dyn NodeStore>) -> Self {
        let (provable, catch_up_failed) = (ProvableBlockFinder::new(store.clone()), AtomicBool::new(false));
        Self { light, node, provable, store, catch_up_failed }
    }

    /// The trie nodes of the node's files.
    pub(super) fn store(&self) -> &dyn NodeSource {
        &*self.store
    }

    /// Makes new data of the node readable, on a thread that may read files.
    pub(super) async fn catch_up(self: &Arc<Self>) {
        let state = self.clone();
        if tokio::task::spawn_blocking(move || state.read_new_states()).await.is_err() {
            warn!("reading the node's store was interrupted");
        }
    }

    /// Reads new data of the node. A failure is logged once.
    fn read_new_states(&self) {
        let failed = self.store.catch_up();
        if let (Err(error), false) = (&failed, self.catch_up_failed.load(Ordering::Relaxed)) {
            warn!("the node's store: {error}; what it had before is still served");
        }
        self.catch_up_failed.store(failed.is_err(), Ordering::Relaxed);
    }
}
