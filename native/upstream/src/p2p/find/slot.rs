//! A slot: an upstream that holds one found node at a time.

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

use super::known::peer_address;
use super::shared::SlotContext;
use crate::p2p::PeerUpstream;
use crate::p2p::link::PeerLink;
use crate::{CurrentSource, Dismissal, ReservedResults, Upstream, UpstreamError};

/// How long a request waits for the first node of all.
const PATIENCE: Duration = Duration::from_secs(8);

/// A slot looks for a node at least this often.
const LOOK: Duration = Duration::from_secs(1);

/// Why no node can be asked, and what to do.
const NO_NODE: &str = "no node of the network was found: `rootlight doctor` says why";

/// Interval between two looks at whether a node is still in its place.
const CHECK: Duration = Duration::from_secs(5);

/// After so many looks, a node that tells of blocks counts as one of use.
const USEFUL_CHECKS: u32 = 12;

/// An upstream that asks one found node, and another one when that is of no use.
pub struct PeerSlot {
    place: Arc<SlotInner>,
    filling: JoinHandle<()>,
}

/// What the slot and the task that fills it share.
struct SlotInner {
    index: usize,
    name: String,
    shared: Arc<SlotContext>,
    state: Mutex<SlotTurn>,
    dismissals: mpsc::Sender<Dismissal>,
    filled: Notify,
}

#[derive(Default)]
struct SlotTurn {
    turn: u64,
    current: Option<Arc<SlotNode>>,
}

struct SlotNode {
    node: NodeRecord,
    upstream: PeerUpstream,
}

impl SlotTurn {
    /// Ends the turn of the present node, if there is one.
    fn leave(&mut self) -> bool {
        let left = self.current.take().is_some();
        self.turn = self.turn.saturating_add(left.into());
        left
    }
}

impl PeerSlot {
    /// A slot that is filled by a task, which ends with the value.
    pub(super) fn start(index: usize, shared: Arc<SlotContext>) -> Self {
        let (dismissals, dismissed) = mpsc::channel(1);
        let place = Arc::new(SlotInner {
            index,
            name: format!("peer {}", index.saturating_add(1)),
            shared,
            state: Mutex::default(),
            dismissals,
            filled: Notify::new(),
        });
        let filling = tokio::spawn(fill(place.clone(), dismissed));
        Self { place, filling }
    }
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        self.filling.abort();
        self.place.shared.book.release(self.place.index);
    }
}

impl SlotInner {
    fn state(&self) -> MutexGuard<'_, SlotTurn> {
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
                if self.shared.book.in_use() > 0 {
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
async fn fill(place: Arc<SlotInner>, mut dismissed: mpsc::Receiver<Dismissal>) {
    let book = place.shared.book.clone();
    let mut changes = book.changes();
    loop {
        changes.mark_unchanged();
        let Some(node) = book.take(place.index) else {
            tokio::select! { _ = changes.changed() => {} () = sleep(LOOK) => {} }
            continue;
        };
        let current = Arc::new(SlotNode { node, upstream: place.shared.upstream(&node) });
        debug!("{}: dialling {}", place.name, peer_address(&node));
        // A found node has answered lately. Nobody has heard of a state server, so that nobody waits for its connection.
        if !book.is_state_server(&node.id) {
            place.put(current.clone());
        }
        let reason = hold(&place, &current, &mut dismissed).await;
        place.empty();
        // A dismissal at the same moment says more.
        let reason = dismissed.try_recv().unwrap_or(reason);
        settle(&place, &node, reason);
        book.release(place.index);
    }
}

/// Waits until the node has to go. A node that is not in its place yet takes it once it is connected.
async fn hold(
    place: &SlotInner,
    current: &Arc<SlotNode>,
    dismissed: &mut mpsc::Receiver<Dismissal>,
) -> Dismissal {
    let (book, id) = (&place.shared.book, current.node.id);
    let mut is_placed = place.current().is_some();
    let opened = |link: &PeerLink| {
        if !std::mem::replace(&mut is_placed, true) {
            place.put(current.clone());
        }
        book.connected(&id, &link.peer.hello);
        info!("{}: connected to {}, {}", place.name, peer_address(&current.node), link.peer.hello.client_id);
    };
    let out_of_place = async {
        for checks in 1u32.. {
            sleep(CHECK).await;
            // Only one slot at a time looks for snapshot service.
            if place.index == 0 && book.wants_state(place.index) {
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
        () = out_of_place => Dismissal::Useless("no peer serves state chunks; another one may".into()),
    }
}

/// Notes why a node had to go.
fn settle(place: &SlotInner, node: &NodeRecord, reason: Dismissal) {
    let (book, address) = (&place.shared.book, peer_address(node));
    match reason {
        Dismissal::Lied(what) => {
            warn!("{}: {address} was caught with a lie, and is left alone for a day: {what}", place.name);
            book.caught(&node.id, &what);
            let book = book.clone();
            tokio::task::spawn_blocking(move || book.save());
        }
        Dismissal::Useless(why) => {
            debug!("{}: {address}: {why}; taking another node", place.name);
            book.failed(&node.id);
        }
    }
}

impl Upstream for PeerSlot {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            let Some(current) = self.place.node().await else {
                let none = || Err(UpstreamError::Transport(NO_NODE.into()));
                return (requests.iter().map(|_| none()).collect(), Reservation::default());
            };
            current.upstream.request_reserved(requests).await
        })
    }

    fn name(&self) -> &str {
        &self.place.name
    }

    fn address(&self) -> Option<IpAddr> {
        self.place.current().map(|current| current.node.address.ip())
    }

    fn current_source(&self) -> Option<CurrentSource> {
        let state = self.place.state();
        let name = state.current.as_ref().map_or_else(
            || format!("{} (vacant)", self.place.name),
            |current| current.upstream.name().to_owned(),
        );
        Some(CurrentSource { number: state.turn, name, vacant: state.current.is_none() })
    }

    fn dismiss(&self, turn: u64, reason: Dismissal) {
        self.place.dismiss(turn, reason);
    }

    fn heads(&self) -> Option<Arc<Notify>> {
        self.place.current().and_then(|current| current.upstream.heads())
    }
}
