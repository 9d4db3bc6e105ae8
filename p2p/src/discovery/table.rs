//! The table of nodes that have shown that they receive at their address.
//!
//! These rules keep one attacker from filling the table:
//! - A node is added only after a PONG from its address that names the id of our PING, which was sent to that address only. So
//!   addresses cannot be forged.
//! - At most [`PER_SLASH_24`] nodes of one /24 and [`PER_SLASH_16`] of one /16 (in IPv6: /48 and /32) are in the whole table.
//!   To hold half of it, an attacker needs addresses in dozens of networks.
//! - A node that answers stays: a new node replaces none, neither in a full bin (the nodes at one distance from us) nor in a full
//!   network. Only `MAX_FAILURES` unanswered PINGs in a row remove a node.
//! - The bin of a node depends on the hash of its id. An attacker can make ids near to ours, but each of them needs an address too.
//!
//! Addresses that are not public (`DiscoveryConfig::allow_private`) are not counted by network.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use alloy_primitives::{B256, keccak256};

use super::address::{NodeRecord, is_public, networks};
use crate::rlpx::NodeId;

/// Most nodes at one distance from us, as in the reference.
pub const BIN_SIZE: usize = 16;
/// Most nodes in the table.
pub const MAX_NODES: usize = 512;
/// Most nodes of one /24 of IPv4, or /48 of IPv6.
pub const PER_SLASH_24: usize = 2;
/// Most nodes of one /16 of IPv4, or /32 of IPv6.
pub const PER_SLASH_16: usize = 8;
/// Unanswered PINGs in a row that remove a node.
pub(super) const MAX_FAILURES: u8 = 3;

/// A node that has answered.
#[derive(Debug, Clone)]
pub(super) struct TableEntry {
    pub(super) node: NodeRecord,
    /// The hash of the id that distances are computed from.
    hash: B256,
    /// Time of the latest PONG.
    pub(super) answered_ms: u64,
    /// PINGs in a row that were not answered.
    pub(super) failures: u8,
    /// When the node is to get a FIND_NODE; `None` until the next round chooses it.
    pub(super) ask_ms: Option<u64>,
}

/// The nodes, by their ids.
#[derive(Debug, Clone)]
pub(super) struct Table {
    own_id: NodeId,
    own_hash: B256,
    entries: BTreeMap<NodeId, TableEntry>,
}

/// The distance of two nodes: the number of bits of keccak(keccak(a)) XOR keccak(keccak(b)) without leading zeros, 0 to 256.
pub fn distance(a: &NodeId, b: &NodeId) -> u32 {
    distance_of_hashes(&double_hash(a), &double_hash(b))
}

/// The hash of an id that distances are computed from.
fn double_hash(id: &NodeId) -> B256 {
    keccak256(keccak256(id.as_bytes()))
}

/// The number of bits of the XOR of two hashes without leading zeros.
fn distance_of_hashes(a: &B256, b: &B256) -> u32 {
    // `Err` ends the count at the first bit that is set.
    let zeros = (*a ^ *b).iter().try_fold(0u32, |zeros, byte| match byte.leading_zeros() {
        8 => Ok(zeros.saturating_add(8)),
        some => Err(zeros.saturating_add(some)),
    });
    256u32.saturating_sub(zeros.unwrap_or_else(|zeros| zeros))
}

impl Table {
    pub(super) fn new(own_id: NodeId) -> Self {
        Self { own_id, own_hash: double_hash(&own_id), entries: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, id: &NodeId) -> Option<&TableEntry> {
        self.entries.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &NodeId) -> Option<&mut TableEntry> {
        self.entries.get_mut(id)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &TableEntry> {
        self.entries.values()
    }

    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut TableEntry> {
        self.entries.values_mut()
    }

    /// Whether a node of the table has this address.
    pub(super) fn has_address(&self, address: SocketAddr) -> bool {
        self.entries.values().any(|entry| entry.node.address == address)
    }

    /// Whether a node with this id and address could be added now.
    pub(super) fn admits(&self, node: &NodeRecord) -> bool {
        let known =
            node.id == self.own_id || self.entries.contains_key(&node.id) || self.has_address(node.address);
        if known || self.entries.len() >= MAX_NODES {
            return false;
        }
        let bin = distance_of_hashes(&self.own_hash, &double_hash(&node.id));
        let in_bin = self
            .entries
            .values()
            .filter(|entry| distance_of_hashes(&self.own_hash, &entry.hash) == bin)
            .count();
        in_bin < BIN_SIZE && self.network_admits(node)
    }

    /// Whether the limits by network admit a node.
    fn network_admits(&self, node: &NodeRecord) -> bool {
        let ip = node.address.ip();
        if !is_public(ip) {
            return true;
        }
        let (small, large) = networks(ip);
        let others = self.entries.values().map(|entry| networks(entry.node.address.ip()));
        let (in_small, in_large) =
            others.fold((0usize, 0usize), |(in_small, in_large), (other_small, other_large)| {
                (
                    in_small.saturating_add((other_small == small).into()),
                    in_large.saturating_add((other_large == large).into()),
                )
            });
        in_small < PER_SLASH_24 && in_large < PER_SLASH_16
    }

    /// Adds a node that has answered at the time `now_ms` and is to get a FIND_NODE at `ask_ms`. Returns `false` if the table does not
    /// admit the node.
    pub(super) fn insert(&mut self, node: NodeRecord, now_ms: u64, ask_ms: u64) -> bool {
        if !self.admits(&node) {
            return false;
        }
        let hash = double_hash(&node.id);
        let entry = TableEntry { node, hash, answered_ms: now_ms, failures: 0, ask_ms: Some(ask_ms) };
        self.entries.insert(node.id, entry);
        true
    }

    /// Counts a PING that was not answered; returns whether the node was removed because of it.
    pub(super) fn fail(&mut self, id: &NodeId) -> bool {
        let Some(entry) = self.entries.get_mut(id) else { return false };
        entry.failures = entry.failures.saturating_add(1);
        let is_lost = entry.failures >= MAX_FAILURES;
        if is_lost {
            self.entries.remove(id);
        }
        is_lost
    }

    /// The nodes nearest to an id, the nearest first, without the node of that id.
    pub(super) fn nearest(&self, id: &NodeId, count: usize) -> Vec<NodeRecord> {
        let hash = double_hash(id);
        let others = self.entries.values().filter(|entry| entry.node.id != *id);
        let mut nodes: Vec<(u32, NodeRecord)> =
            others.map(|entry| (distance_of_hashes(&hash, &entry.hash), entry.node)).collect();
        nodes.sort_by_key(|(distance, _)| *distance);
        nodes.truncate(count);
        nodes.into_iter().map(|(_, node)| node).collect()
    }
}
