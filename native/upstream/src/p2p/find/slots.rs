//! Slots of a light client. A slot is an upstream that sends its requests to one discovered node at a time, and takes another node
//! from the `NodeList` when the present one is of no use or has lied.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_limits::budget::Reservation;
use rootlight_p2p::discovery::NodeRecord;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::finder::Finder;
use super::known::peer_address;
use super::slot_context::{SlotContext, SlotOptions};
use crate::p2p::PeerUpstream;
use crate::p2p::link::PeerLink;
use crate::{CurrentSource, Dismissal, ReservedResults, SharedUpstream, Upstream, UpstreamError};

/// How long a request waits for a node at the start, while no slot has one.
const PATIENCE: Duration = Duration::from_secs(8);

/// Longest time between two searches of an empty slot for a node.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The error of requests to a slot without a node.
const NO_NODE: &str = "no node of the network was found: `rootlight doctor` says why";

/// Interval between two checks whether the present node is still of use.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Number of checks (a minute) after which a node that announces blocks is noted as useful.
const USEFUL_CHECKS: u32 = 12;

/// Starts slots that take nodes from the finder's list; must be called inside a runtime.
#[must_use]
pub fn start_slots(finder: Finder, options: SlotOptions) -> Vec<SharedUpstream> {
    finder.list().avoid(&options.avoid);
    let count = options.count;
    let context = Arc::new(SlotContext::new(finder, options));
    (0..count).map(|index| Arc::new(PeerSlot::start(index, context.clone())) as SharedUpstream).collect()
}

/// An upstream that sends its requests to one discovered node, and to another one when the first is of no use.
pub struct PeerSlot {
    slot: Arc<SlotState>,
    task: JoinHandle<()>,
}

/// State that the slot shares with the task that fills it ([`run_slot`]).
struct SlotState {
    /// The index of the slot among those of the client.
    index: usize,
    name: String,
    context: Arc<SlotContext>,
    content: Mutex<SlotContent>,
    /// Tells the task why the client dismissed the present node.
    dismissals: mpsc::Sender<Dismissal>,
    /// Signals that a node fills the slot.
    filled: Notify,
}

/// The node of a slot.
#[derive(Default)]
struct SlotContent {
    /// [`CurrentSource::number`]: grows whenever a node fills the slot or leaves it.
    number: u64,
    /// The present node; `None` while the slot is empty.
    current: Option<Arc<SlotNode>>,
}

/// A node of the list, and the upstream that dials it.
struct SlotNode {
    node: NodeRecord,
    upstream: PeerUpstream,
}

impl SlotContent {
    /// Removes the present node. Returns whether there was one.
    fn vacate(&mut self) -> bool {
        let was_filled = self.current.take().is_some();
        self.number = self.number.saturating_add(was_filled.into());
        was_filled
    }
}

impl PeerSlot {
    /// Makes an empty slot, and starts the task that fills it, which ends when the slot is dropped.
    pub(super) fn start(index: usize, context: Arc<SlotContext>) -> Self {
        let (dismissals, dismissed) = mpsc::channel(1);
        let slot = Arc::new(SlotState {
            index,
            name: format!("peer {}", index.saturating_add(1)),
            context,
            content: Mutex::default(),
            dismissals,
            filled: Notify::new(),
        });
        let task = tokio::spawn(run_slot(slot.clone(), dismissed));
        Self { slot, task }
    }
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        self.task.abort();
        self.slot.context.list.release(self.slot.index);
    }
}

impl SlotState {
    fn content(&self) -> MutexGuard<'_, SlotContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<Arc<SlotNode>> {
        self.content().current.clone()
    }

    /// The present node. At the start, while no slot has a node, waits for it for [`PATIENCE`].
    async fn node(&self) -> Option<Arc<SlotNode>> {
        let wait = async {
            loop {
                let filled = self.filled.notified();
                if let Some(current) = self.current() {
                    return Some(current);
                }
                if self.context.list.in_use() > 0 {
                    return None;
                }
                tokio::select! { () = filled => {} () = sleep(LOOK_INTERVAL) => {} }
            }
        };
        timeout(PATIENCE, wait).await.ok().flatten()
    }

    /// Fills the slot with a node.
    fn put(&self, current: Arc<SlotNode>) {
        let mut content = self.content();
        (content.number, content.current) = (content.number.saturating_add(1), Some(current));
        drop(content);
        self.filled.notify_waiters();
    }

    /// Removes the node that fills the slot under this number, if it still does, and tells the task the reason.
    fn dismiss(&self, number: u64, reason: Dismissal) {
        let mut content = self.content();
        if content.number == number && content.vacate() {
            // The channel of one reason is empty: a node is removed once, and the task takes the reason before the next node.
            let _ = self.dismissals.try_send(reason);
        }
    }

    /// Removes the present node, if it was not dismissed.
    fn empty(&self) {
        self.content().vacate();
    }
}

/// Fills a slot with one node after another.
async fn run_slot(slot: Arc<SlotState>, mut dismissed: mpsc::Receiver<Dismissal>) {
    let list = slot.context.list.clone();
    let mut changes = list.changes();
    loop {
        changes.mark_unchanged();
        let Some(node) = list.take(slot.index) else {
            tokio::select! { _ = changes.changed() => {} () = sleep(LOOK_INTERVAL) => {} }
            continue;
        };
        let current = Arc::new(SlotNode { node, upstream: slot.context.upstream(&node) });
        debug!("{}: dialling {}", slot.name, peer_address(&node));
        // A discovered node has answered recently, so that requests may wait for its connection. A state server may not answer at
        // all, so that it fills the slot only once it is connected.
        if !list.is_state_server(&node.id) {
            slot.put(current.clone());
        }
        let reason = use_node(&slot, &current, &mut dismissed).await;
        slot.empty();
        // A dismissal that came at the same time is the better reason, because it may be a lie.
        let reason = dismissed.try_recv().unwrap_or(reason);
        note_dismissal(&slot, &node, reason);
        list.release(slot.index);
    }
}

/// Waits until the node has to be replaced, and returns the reason. A node that does not fill the slot yet fills it once it is
/// connected.
async fn use_node(
    slot: &SlotState,
    current: &Arc<SlotNode>,
    dismissed: &mut mpsc::Receiver<Dismissal>,
) -> Dismissal {
    let (list, id) = (&slot.context.list, current.node.id);
    let mut fills_slot = slot.current().is_some();
    let opened = |link: &PeerLink| {
        if !std::mem::replace(&mut fills_slot, true) {
            slot.put(current.clone());
        }
        list.connected(&id, &link.peer.hello);
        info!("{}: connected to {}, {}", slot.name, peer_address(&current.node), link.peer.hello.client_id);
    };
    let is_replaced = async {
        for checks in 1u32.. {
            sleep(CHECK_INTERVAL).await;
            // Only the first slot looks for snapshot service, so that not all slots replace their nodes at once.
            if slot.index == 0 && list.wants_state(slot.index) {
                break;
            }
            if checks % USEFUL_CHECKS == 0 && current.upstream.node().best().is_some() {
                list.useful(&id);
            }
        }
    };
    tokio::select! {
        reason = current.upstream.node().given_up(opened) => Dismissal::Useless(reason),
        Some(reason) = dismissed.recv() => reason,
        () = is_replaced => Dismissal::Useless("no peer serves state chunks; another one may".into()),
    }
}

/// Notes in the list why a node was replaced.
fn note_dismissal(slot: &SlotState, node: &NodeRecord, reason: Dismissal) {
    let (list, address) = (&slot.context.list, peer_address(node));
    match reason {
        Dismissal::Lied(what) => {
            warn!("{}: {address} was caught with a lie, and is left alone for a day: {what}", slot.name);
            list.caught(&node.id, &what);
            let list = list.clone();
            tokio::task::spawn_blocking(move || list.save());
        }
        Dismissal::Useless(why) => {
            debug!("{}: {address}: {why}; taking another node", slot.name);
            list.failed(&node.id);
        }
    }
}

impl Upstream for PeerSlot {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            let Some(current) = self.slot.node().await else {
                let none = || Err(UpstreamError::Transport(NO_NODE.into()));
                return (requests.iter().map(|_| none()).collect(), Reservation::default());
            };
            current.upstream.request_reserved(requests).await
        })
    }

    fn name(&self) -> &str {
        &self.slot.name
    }

    fn address(&self) -> Option<IpAddr> {
        self.slot.current().map(|current| current.node.address.ip())
    }

    fn current_source(&self) -> Option<CurrentSource> {
        let content = self.slot.content();
        let name = content.current.as_ref().map_or_else(
            || format!("{} (vacant)", self.slot.name),
            |current| current.upstream.name().to_owned(),
        );
        Some(CurrentSource { number: content.number, name, vacant: content.current.is_none() })
    }

    fn dismiss(&self, number: u64, reason: Dismissal) {
        self.slot.dismiss(number, reason);
    }

    fn head_signal(&self) -> Option<Arc<Notify>> {
        self.slot.current().and_then(|current| current.upstream.head_signal())
    }
}
