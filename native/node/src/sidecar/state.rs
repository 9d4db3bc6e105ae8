//! State that a sidecar's service and its tasks share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rootlight::trie::NodeSource;
use rootlight_upstream::SharedUpstream;
use tracing::warn;

use super::NodeStore;
use super::provable::ProvableBlockFinder;
use crate::light::LightService;

/// State that the service shares with its tasks.
pub(super) struct SidecarState {
    pub(super) light: LightService,
    pub(super) node: SharedUpstream,
    pub(super) provable: ProvableBlockFinder,
    store: Arc<dyn NodeStore>,
    /// Whether the last attempt to catch up failed.
    behind: AtomicBool,
}

impl SidecarState {
    pub(super) fn new(light: LightService, node: SharedUpstream, store: Arc<dyn NodeStore>) -> Self {
        let (provable, behind) = (ProvableBlockFinder::new(store.clone()), AtomicBool::new(false));
        Self { light, node, provable, store, behind }
    }

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
        if let (Err(error), false) = (&failed, self.behind.load(Ordering::Relaxed)) {
            warn!("the node's store: {error}; what it had before is still served");
        }
        self.behind.store(failed.is_err(), Ordering::Relaxed);
    }
}
