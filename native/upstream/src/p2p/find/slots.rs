//! Slots of a light client. A slot is an upstream that holds one found node at a time.

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

/// How long a request waits for the first node of all.
const PATIENCE: Duration = Duration::from_secs(8);

/// A slot looks for a node at least this often.
const LOOK: Duration = Duration::from_secs(1);

/// Why no node can be asked, and what to do.
const NO_NODE: &str = "no node of the network was found: `rootlight doctor` says why";

/// Interval between two checks whether the node is still of use.
const CHECK: Duration = Duration::from_secs(5);

/// Number of checks after which a node that announces blocks is remembered as useful.
const USEFUL_CHECKS: u32 = 12;

/// Starts slots that take nodes from the finder's book; must be called inside a runtime.
#[must_use]
pub fn start_slots(finder: Finder, options: SlotOptions) -> Vec<SharedUpstream> {
    finder.book().avoid(&options.avoid);
    let count = options.count;
    let context = Arc::new(SlotContext::new(finder, options));
    (0..count).map(|index| Arc::new(PeerSlot::start(index, context.clone())) as SharedUpstream).collect()
}

/// An upstream that asks one found node, and another one when that is of no use.
pub struct PeerSlot {
    slot: Arc<SlotState>,
    task: JoinHandle<()>,
}

/// State that the slot shares with the task that fills it.
struct SlotState {
    index: usize,
    name: String,
    context: Arc<SlotContext>,
    state: Mutex<TurnState>,
    dismissals: mpsc::Sender<Dismissal>,
    filled: Notify,
}

#[derive(Default)]
struct TurnState {
    turn: u64,
    current: Option<Arc<SlotNode>>,
}

struct SlotNode {
    node: NodeRecord,
    upstream: PeerUpstream,
}

impl TurnState {
    /// Ends the turn of the present node, if there is one.
    fn leave(&mut self) -> bool {
        let left = self.current.take().is_some();
        self.turn = self.turn.saturating_add(left.into());
        left
    }
}

impl PeerSlot {
    /// A slot that is filled by a task, which ends with the value.
    pub(super) fn start(index: usize, context: Arc<SlotContext>) -> Self {
        let (dismissals, dismissed) = mpsc::channel(1);
        let slot = Arc::new(SlotState {
            index,
            name: format!("peer {}", index.saturating_add(1)),
            context,
            state: Mutex::default(),
            dismissals,
            filled: Notify::new(),
        });
        let task = tokio::spawn(fill(slot.clone(), dismissed));
        Self { slot, task }
    }
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        self.task.abort();
        self.slot.context.book.release(self.slot.index);
    }
}

impl SlotState {
    fn state(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<Arc<SlotNode>> {
        self.state().current.clone()
    }

    /// The node to ask. At the start, before any slot has one, it is waited for.
    async fn node(&self) -> Option<Arc<SlotNode>> {
        let wait = async {
            loop {
                let filled = self.filled.notified();
                if let Some(current) = self.current() {
                    return Some(current);
                }
                if self.context.book.in_use() > 0 {
                    return None;
                }
                tokio::select! { () = filled => {} () = sleep(LOOK) => {} }
            }
        };
        timeout(PATIENCE, wait).await.ok().flatten()
    }

    fn put(&self, current: Arc<SlotNode>) {
        let mut state = self.state();
        (state.turn, state.current) = (state.turn.saturating_add(1), Some(current));
        drop(state);
        self.filled.notify_waiters();
    }

    /// Ends a turn for a reason, unless it is over.
    fn dismiss(&self, turn: u64, reason: Dismissal) {
        let mut state = self.state();
        if state.turn == turn && state.leave() {
            // There is room: a turn ends once, and the task takes the reason before the next begins.
            let _ = self.dismissals.try_send(reason);
        }
    }

    /// Ends the present turn, if it was not dismissed.
    fn empty(&self) {
        self.state().leave();
    }
}

/// Takes one node after another.
async fn fill(slot: Arc<SlotState>, mut dismissed: mpsc::Receiver<Dismissal>) {
    let book = slot.context.book.clone();
    let mut changes = book.changes();
    loop {
        changes.mark_unchanged();
        let Some(node) = book.take(slot.index) else {
            tokio::select! { _ = changes.changed() => {} () = sleep(LOOK) => {} }
            continue;
        };
        let current = Arc::new(SlotNode { node, upstream: slot.context.upstream(&node) });
        debug!("{}: dialling {}", slot.name, peer_address(&node));
        // A found node has answered lately. A state server may not answer at all, so requests do not wait for its connection.
        if !book.is_state_server(&node.id) {
            slot.put(current.clone());
        }
        let reason = hold(&slot, &current, &mut dismissed).await;
        slot.empty();
        // A dismissal at the same moment says more.
        let reason = dismissed.try_recv().unwrap_or(reason);
        settle(&slot, &node, reason);
        book.release(slot.index);
    }
}

/// Waits until the node has to go. A node that does not fill the slot yet fills it once it is connected.
async fn hold(
    slot: &SlotState,
    current: &Arc<SlotNode>,
    dismissed: &mut mpsc::Receiver<Dismissal>,
) -> Dismissal {
    let (book, id) = (&slot.context.book, current.node.id);
    let mut fills_slot = slot.current().is_some();
    let opened = |link: &PeerLink| {
        if !std::mem::replace(&mut fills_slot, true) {
            slot.put(current.clone());
        }
        book.connected(&id, &link.peer.hello);
        info!("{}: connected to {}, {}", slot.name, peer_address(&current.node), link.peer.hello.client_id);
    };
    let is_replaced = async {
        for checks in 1u32.. {
            sleep(CHECK).await;
            // Only one slot at a time looks for snapshot service.
            if slot.index == 0 && book.wants_state(slot.index) {
                break;
            }
            if checks % USEFUL_CHECKS == 0 && current.upstream.node().best().is_some() {
                book.useful(&id);
            }
        }
    };
    tokio::select! {
        reason = current.upstream.node().given_up(opened) => Dismissal::Useless(reason),
        Some(reason) = dismissed.recv() => reason,
        () = is_replaced => Dismissal::Useless("no peer serves state chunks; another one may".into()),
    }
}

/// Notes why a node had to go.
fn settle(slot: &SlotState, node: &NodeRecord, reason: Dismissal) {
    let (book, address) = (&slot.context.book, peer_address(node));
    match reason {
        Dismissal::Lied(what) => {
            warn!("{}: {address} was caught with a lie, and is left alone for a day: {what}", slot.name);
            book.caught(&node.id, &what);
            let book = book.clone();
            tokio::task::spawn_blocking(move || book.save());
        }
        Dismissal::Useless(why) => {
            debug!("{}: {address}: {why}; taking another node", slot.name);
            book.failed(&node.id);
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
        let state = self.slot.state();
        let name = state.current.as_ref().map_or_else(
            || format!("{} (vacant)", self.slot.name),
            |current| current.upstream.name().to_owned(),
        );
        Some(CurrentSource { number: state.turn, name, vacant: state.current.is_none() })
    }

    fn dismiss(&self, turn: u64, reason: Dismissal) {
        self.slot.dismiss(turn, reason);
    }

    fn heads(&self) -> Option<Arc<Notify>> {
        self.slot.current().and_then(|current| current.upstream.heads())
    }
}
