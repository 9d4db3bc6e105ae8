//! The list of discovered nodes. The finder adds nodes to it, the slots take nodes from it, and a file stores it
//! between runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rootlight_limits::unix_time::unix_time;
use rootlight_p2p::discovery::{NodeRecord, allowed, is_public, networks};
use rootlight_p2p::rlpx::NodeId;
use rootlight_p2p::session::Hello;
use tokio::sync::watch;
use tracing::warn;

use super::choose::choose;
use super::known::{KnownNode, MAX_NODES, Misbehaviour, short};
use super::node_file;

/// Most nodes of one /16 of IPv4, or /32 of IPv6, as in the table of discovery.
const PER_NETWORK: usize = rootlight_p2p::discovery::PER_SLASH_16;

/// Number of failures after which a node that was never connected and does not answer discovery is removed from the list.
const HOPELESS: u32 = 3;

/// A node that has not answered for this many seconds counts as a node that does not answer discovery.
const SILENT_SECONDS: u64 = 600;

/// The nodes that have answered discovery, of this run and, with a folder, of earlier ones.
pub struct NodeList {
    /// The number of the peer-to-peer network.
    network: u64,
    /// Whether nodes at private and other special addresses are used.
    allow_private: bool,
    /// The folder of the file; `None` for a list in memory only.
    folder: Option<PathBuf>,
    state: Mutex<BookState>,
    /// The number of changes so far, by which slots without a node notice new ones.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct BookState {
    nodes: BTreeMap<NodeId, KnownNode>,
    /// The node of each slot, by the index of the slot.
    in_use: BTreeMap<usize, NodeRecord>,
    /// Nodes that no slot may take, because they are connected otherwise.
    avoided: BTreeSet<NodeId>,
    /// Whether the list has changed since the file was written.
    unsaved: bool,
}

impl NodeList {
    /// The list of a peer-to-peer network. With a folder, the file of an earlier run is read from there, and [`Self::save`] writes
    /// it. A file that cannot be used is reported in the log and replaced. With `allow_private`, nodes at private and other
    /// special addresses are used too.
    #[must_use]
    pub fn open(network: u64, allow_private: bool, folder: Option<&Path>) -> Self {
        let mut state = BookState::default();
        if let Some(folder) = folder {
            match node_file::read_node_file(folder, network) {
                Ok(nodes) => {
                    let now = unix_time();
                    for mut known in
                        nodes.into_iter().filter(|known| allowed(known.node.address, allow_private))
                    {
                        // If the clock was wrong, an earlier run stored times in the future. A node with such a time would never
                        // be the oldest, and so never be removed from a full list.
                        known.seen = known.seen.min(now);
                        state.insert(known, now);
                    }
                }
                Err(error) => {
                    warn!(
                        "{}: {error}; the list of nodes starts afresh",
                        folder.join(node_file::FILE).display()
                    );
                }
            }
        }
        Self {
            network,
            allow_private,
            folder: folder.map(Into::into),
            state: Mutex::new(state),
            changes: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, BookState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes one node, if it is known.
    fn change(&self, id: &NodeId, change: impl FnOnce(&mut KnownNode)) {
        let mut state = self.state();
        if let Some(known) = state.nodes.get_mut(id) {
            change(known);
            state.unsaved = true;
        }
        drop(state);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// All nodes, by id.
    pub fn nodes(&self) -> Vec<KnownNode> {
        self.state().nodes.values().cloned().collect()
    }

    /// Number of the peer-to-peer network.
    pub const fn network(&self) -> u64 {
        self.network
    }

    /// Whether private addresses are dialled.
    pub(crate) const fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// Notes that a node has answered discovery.
    pub(super) fn found(&self, node: NodeRecord) {
        let now = unix_time();
        let mut state = self.state();
        match state.nodes.get_mut(&node.id) {
            // Only the address and the time change: a node at a new address keeps its lies.
            Some(known) => {
                (known.node, known.seen) = (node, now);
                // The node or this machine was offline, so a connection that failed before may work now.
                known.reset_failures();
            }
            None => state.insert(KnownNode::new(node, now), now),
        }
        state.unsaved = true;
        drop(state);
        self.changed();
    }

    /// Adds a node that the network's data names as a state server, a node that sends state chunks. There are few of them, so that
    /// they may exceed the limits of the list.
    pub(super) fn add_state_server(&self, node: NodeRecord) {
        let mut state = self.state();
        // 0: the node has never answered discovery.
        let known = state.nodes.entry(node.id).or_insert_with(|| KnownNode::new(node, 0));
        (known.node, known.is_state_server) = (node, true);
        drop(state);
        self.changed();
    }

    pub(super) fn is_state_server(&self, id: &NodeId) -> bool {
        self.state().nodes.get(id).is_some_and(KnownNode::is_state_server)
    }

    /// Notes that a node answered discovery this long ago.
    pub(super) fn seen(&self, id: &NodeId, ago: Duration) {
        let mut state = self.state();
        if let Some(known) = state.nodes.get_mut(id) {
            known.seen = known.seen.max(unix_time().saturating_sub(ago.as_secs()));
            state.unsaved = true;
        }
    }

    /// Notes that a node no longer answers discovery. A node that never was of use is removed. Nodes that were of use stay,
    /// because this machine may have been offline.
    pub(super) fn lost(&self, id: &NodeId) {
        self.state().forget(id, |_| true);
    }

    /// Notes that a node was connected and sent this HELLO.
    pub(super) fn connected(&self, id: &NodeId, hello: &Hello) {
        self.change(id, |known| known.connected(hello, unix_time()));
    }

    /// Notes that a node stayed connected for a while and was of use.
    pub(super) fn useful(&self, id: &NodeId) {
        self.change(id, |known| {
            known.reset_failures();
            known.seen = unix_time();
        });
    }

    /// Notes that a node could not be dialled, failed, or was of no use. It is not dialled for a while.
    pub(super) fn failed(&self, id: &NodeId) {
        self.change(id, KnownNode::fail);
        let silent = |known: &KnownNode| known.seen.saturating_add(SILENT_SECONDS) < unix_time();
        self.state().forget(id, |known| known.failures >= HOPELESS && silent(known));
    }

    /// Notes that a node sent data that no honest node sends (`what`). The node and others at its address are not dialled for a
    /// day.
    pub(super) fn caught(&self, id: &NodeId, what: &str) {
        let caught = Misbehaviour { at: unix_time(), what: short(what) };
        self.change(id, |known| known.caught = Some(caught));
    }

    /// Excludes these nodes from the slots.
    pub(super) fn avoid(&self, nodes: &[NodeId]) {
        self.state().avoided.extend(nodes);
    }

    /// Chooses a node for a slot that has none, by the rule of `choose`, and gives it to the slot.
    pub(super) fn take(&self, slot: usize) -> Option<NodeRecord> {
        let mut state = self.state();
        let in_use: Vec<NodeRecord> = state.in_use.values().copied().collect();
        let node = choose(state.nodes.values(), &in_use, |node| self.allows(&state, node), unix_time())?;
        state.in_use.insert(slot, node);
        Some(node)
    }

    /// Notes that a slot has no node any more.
    pub(super) fn release(&self, slot: usize) {
        self.state().in_use.remove(&slot);
        self.changed();
    }

    /// The number of slots that have a node.
    pub(super) fn in_use(&self) -> usize {
        self.state().in_use.len()
    }

    /// Whether the node of this slot should be replaced, because no node of any slot serves state and another node may.
    pub(super) fn wants_state(&self, slot: usize) -> bool {
        let state = self.state();
        // A node that was not connected yet (`None`) may serve state.
        let snap = |node: &NodeRecord| state.nodes.get(&node.id).and_then(|known| known.snap);
        if state.in_use.values().any(|node| snap(node) != Some(false)) || !state.in_use.contains_key(&slot) {
            return false;
        }
        let others: Vec<NodeRecord> =
            state.in_use.iter().filter(|(other, _)| **other != slot).map(|(_, node)| *node).collect();
        let may_serve = state.nodes.values().filter(|known| known.snap != Some(false));
        choose(may_serve, &others, |node| self.allows(&state, node), unix_time()).is_some()
    }

    /// Whether slots may take a node.
    fn allows(&self, state: &BookState, node: &NodeRecord) -> bool {
        allowed(node.address, self.allow_private) && !state.avoided.contains(&node.id)
    }

    /// Writes the file, if there is a folder and something has changed.
    pub fn save(&self) {
        let Some(folder) = &self.folder else { return };
        let mut state = self.state();
        if !std::mem::take(&mut state.unsaved) {
            return;
        }
        let text = node_file::text(self.network, state.nodes.values());
        drop(state);
        if let Some(Err(error)) = text.map(|text| node_file::write(folder, &text)) {
            // The next call tries again, also if nothing changes until then.
            self.state().unsaved = true;
            warn!("{}: {error}", folder.join(node_file::FILE).display());
        }
    }
}

impl Drop for NodeList {
    fn drop(&mut self) {
        self.save();
    }
}

impl BookState {
    /// Adds a node, if the list does not have too many nodes of its network. If the list is full, the node that answered longest
    /// ago is removed first; a node that was caught with a lie is removed only after all others, so that its lie is remembered.
    fn insert(&mut self, known: KnownNode, now: u64) {
        if !self.network_has_room(known.node.address.ip()) {
            return;
        }
        if self.nodes.len() >= MAX_NODES {
            let leaves = |known: &&KnownNode| {
                !known.is_state_server && !self.in_use.values().any(|node| node.id == known.node.id)
            };
            let order = |known: &&KnownNode| (known.is_caught(now), known.seen);
            let Some(oldest) = self.nodes.values().filter(leaves).min_by_key(order) else { return };
            let id = oldest.node.id;
            self.nodes.remove(&id);
        }
        self.nodes.insert(known.node.id, known);
    }

    /// Removes a node if `reason` says so, unless it was connected once, is in a slot or was caught with a lie.
    fn forget(&mut self, id: &NodeId, reason: impl Fn(&KnownNode) -> bool) {
        let in_use = self.in_use.values().any(|node| node.id == *id);
        let new = |known: &KnownNode| {
            !in_use && !known.is_state_server && known.snap.is_none() && known.caught.is_none()
        };
        if self.nodes.get(id).is_some_and(|known| new(known) && reason(known)) {
            self.nodes.remove(id);
            self.unsaved = true;
        }
    }

    /// Whether the list has fewer than [`PER_NETWORK`] nodes of the network of an address.
    fn network_has_room(&self, ip: IpAddr) -> bool {
        let large = |ip| networks(ip).1;
        let same = |known: &&KnownNode| {
            let other = known.node.address.ip();
            is_public(other) && other.is_ipv4() == ip.is_ipv4() && large(other) == large(ip)
        };
        !is_public(ip) || self.nodes.values().filter(same).count() < PER_NETWORK
    }
}

#[cfg(test)]
#[path = "list_test.rs"]
mod tests;
