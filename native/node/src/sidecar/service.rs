//! The sidecar as a service: a light client of the operator's node, and the tasks that read and flush the node's states.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::light::SyncOptions;
use rootlight::rpc::{Message, Notifications};
use rootlight_limits::budget::Reservation;
use rootlight_server::bans::HostBans;
use rootlight_server::service::{Caller, Counts, Health, ReservedReply, Service, ServiceStatus};
use rootlight_upstream::SharedUpstream;
use tokio::sync::watch;

use super::limited_node::LimitedNode;
use super::state::SidecarState;
use super::{NodeStore, SidecarError, flush, start};
use crate::light::{LightOptions, LightService, OwnNode};

/// Blocks between the node's head and the start of the verified chain. They cover the blocks between two times that the node writes its
/// states, and the 4,000 blocks below a block whose fees its execution pays out, with their forks.
const DEPTH: u64 = 8_192;

/// Options of a sidecar.
#[derive(Debug, Clone)]
pub struct SidecarOptions {
    /// Options of the client that follows the node.
    pub light: LightOptions,
    /// Whether calls, estimates and traces run here; otherwise the node runs them.
    pub executes: bool,
    /// How often the node is asked to write its newest states to disk, at most; `None` for never.
    pub flush: Option<Duration>,
    /// Number of blocks between the node's head and the start of the verified chain. Blocks below are taken from the node
    /// without proof.
    pub depth: u64,
}

impl Default for SidecarOptions {
    fn default() -> Self {
        Self { light: LightOptions::default(), executes: false, flush: None, depth: DEPTH }
    }
}

/// Serves proofs from the store of a node, and passes other requests on to the node.
pub struct SidecarService {
    parts: Arc<SidecarState>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl SidecarService {
    /// Starts beside a node; must be called inside a runtime. Waits until the node answers.
    ///
    /// # Errors
    /// The node is on another network, or the store is not the node's.
    pub async fn start(
        network: Network,
        node: SharedUpstream,
        store: Arc<dyn NodeStore>,
        options: SidecarOptions,
    ) -> Result<Self, SidecarError> {
        let checkpoint = start::checkpoint(&network, &node, &*store, options.depth).await?;
        let own_node = OwnNode { store: store.clone(), executes: options.executes };
        let light = LightOptions {
            own_node: Some(own_node),
            // The operator's own node need not show honest miners' work.
            sync: SyncOptions { work_floor: 0, ..options.light.sync },
            ..options.light
        };
        let shared = Arc::new(LimitedNode::new(node.clone()));
        let light = LightService::start(network, checkpoint, vec![shared], light);
        let parts = Arc::new(SidecarState::new(light, node, store));
        let mut tasks = vec![tokio::spawn(follow(parts.clone()))];
        if let Some(interval) = options.flush {
            tasks.push(tokio::spawn(flush::run(Arc::downgrade(&parts), interval)));
        }
        Ok(Self { parts, tasks })
    }

    /// What the tasks share.
    pub(super) fn parts(&self) -> &SidecarState {
        &self.parts
    }

    /// Waits until the head is verified or a fault is known, but no longer than `limit`.
    pub async fn settled(&self, limit: Duration) {
        self.parts.light.settled(limit).await;
    }

    /// The number of the newest block whose state is on disk.
    pub fn provable_block(&self) -> Option<u64> {
        self.parts.provable.newest(&self.parts.light.pinned())
    }
}

/// Reads what the node has written whenever it has a new head.
async fn follow(parts: Arc<SidecarState>) {
    let Some(mut changes) = parts.light.changes() else { return };
    while changes.changed().await.is_ok() {
        parts.catch_up().await;
    }
}

impl Drop for SidecarService {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Service for SidecarService {
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Message,
    ) -> BoxFuture<'a, ReservedReply> {
        self.parts.light.answer_message(caller, message)
    }

    fn counts(&self) -> Counts {
        self.parts.light.counts()
    }

    fn notifications<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        subscription: u128,
    ) -> BoxFuture<'a, (Notifications, Reservation)> {
        self.parts.light.notifications(caller, subscription)
    }

    fn disconnect<'a>(&'a self, caller: &'a Arc<Caller>) -> BoxFuture<'a, ()> {
        self.parts.light.disconnect(caller)
    }

    fn bans(&self) -> Option<Arc<HostBans>> {
        self.parts.light.bans()
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.parts.light.changes()
    }

    fn health(&self) -> Health {
        Health { provable_block: self.provable_block(), ..self.parts.light.health() }
    }

    fn chain_status(&self) -> ServiceStatus {
        self.parts.light.chain_status()
    }
}
