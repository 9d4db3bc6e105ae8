//! A discovered node, with its failures and lies.

use std::net::SocketAddr;
use std::time::Duration;

use rootlight_limits::sanitize::is_unseen;
use rootlight_p2p::discovery::{NodeRecord, is_public, one_owner};
use rootlight_p2p::rlpx::NodeId;
use rootlight_p2p::session::Hello;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::p2p::PeerAddress;

/// Most nodes that are known at a time.
pub(super) const MAX_NODES: usize = 512;

/// How long a node that was caught with a lie is left alone, in seconds: a day.
pub(super) const CAUGHT_SECONDS: u64 = 86_400;

/// Longest text that is kept of what a node was caught with, and of its client's name, in characters.
pub(super) const MAX_TEXT: usize = 256;

/// Pause after a node failed; it doubles with each further failure up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(30);

/// Longest pause between two tries of a node.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// A lie with which a node was caught.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misbehaviour {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The false statement, and the rule that it breaks.
    pub what: String,
}

/// A node that has answered at its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode {
    /// Id and address.
    pub node: NodeRecord,
    /// When it answered last, in seconds since 1970; 0 if it did not in this run or the one before.
    pub seen: u64,
    /// The name of its client; empty until it was connected.
    pub client: String,
    /// Whether it serves state chunks; `None` until it was connected.
    pub snap: Option<bool>,
    /// The latest lie, if it was caught with one.
    pub caught: Option<Misbehaviour>,
    /// Failures since it was of use last.
    pub failures: u32,
    /// Whether the network's data names it as a state server.
    pub(super) is_state_server: bool,
    pub(super) failed_at: Option<Instant>,
}

impl KnownNode {
    pub(super) fn new(node: NodeRecord, seen: u64) -> Self {
        Self {
            node,
            seen,
            client: String::new(),
            snap: None,
            caught: None,
            failures: 0,
            is_state_server: false,
            failed_at: None,
        }
    }

    /// Where to dial it.
    pub fn address(&self) -> PeerAddress {
        peer_address(&self.node)
    }

    /// Whether the network's data names it as a state server. Such a node need not have answered discovery.
    pub const fn is_state_server(&self) -> bool {
        self.is_state_server
    }

    /// Whether it is left alone because of a lie.
    pub fn is_caught(&self, now: u64) -> bool {
        // A lie that lies more than the whole time ahead was noted under a wrong clock, and is forgotten too.
        self.caught.as_ref().is_some_and(|caught| now.abs_diff(caught.at) < CAUGHT_SECONDS)
    }

    /// Whether it failed so lately that it is not tried now. `needed` is for a client that has no node at all: after an
    /// outage of its own network, it does not wait for pauses of an hour.
    pub(super) fn is_backing_off(&self, needed: bool) -> bool {
        let doublings = if needed { 0 } else { self.failures.saturating_sub(1).min(10) };
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
        self.failed_at.is_some_and(|at| at.elapsed() < pause)
    }

    pub(super) fn fail(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(Instant::now());
    }

    /// Forgets failures.
    pub(super) fn reset_failures(&mut self) {
        (self.failures, self.failed_at) = (0, None);
    }

    pub(super) fn connected(&mut self, hello: &Hello, now: u64) {
        self.client = short(&hello.client_id);
        (self.snap, self.seen) = (Some(hello.serves_snap()), now);
    }

    /// Whether another address probably has the same owner. Nothing is said of private addresses: in a network of one's
    /// own, one machine runs many nodes.
    pub(super) fn shares_owner(&self, other: &SocketAddr) -> bool {
        let own = self.node.address.ip();
        is_public(own) && is_public(other.ip()) && one_owner(own) == one_owner(other.ip())
    }
}

/// The first characters of a text, without those that are not seen.
pub(super) fn short(text: &str) -> String {
    text.chars().filter(|c| !is_unseen(*c)).take(MAX_TEXT).collect()
}

pub(super) fn peer_address(node: &NodeRecord) -> PeerAddress {
    let host = match node.address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    PeerAddress { id: node.id, host, port: node.address.port() }
}

/// The form in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredNode {
    id: String,
    address: SocketAddr,
    seen: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    client: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snap: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caught: Option<Misbehaviour>,
}

impl From<&KnownNode> for StoredNode {
    fn from(known: &KnownNode) -> Self {
        Self {
            id: known.node.id.to_string(),
            address: known.node.address,
            seen: known.seen,
            client: known.client.clone(),
            snap: known.snap,
            caught: known.caught.clone(),
        }
    }
}

impl StoredNode {
    /// The node, if the id is one; texts are cut.
    pub(super) fn known(self) -> Option<KnownNode> {
        let id: NodeId = self.id.parse().ok()?;
        let address = rootlight_p2p::discovery::canonical(self.address);
        let caught = self.caught.map(|caught| Misbehaviour { at: caught.at, what: short(&caught.what) });
        let node = NodeRecord { id, address };
        Some(KnownNode {
            client: short(&self.client),
            snap: self.snap,
            caught,
            ..KnownNode::new(node, self.seen)
        })
    }
}
