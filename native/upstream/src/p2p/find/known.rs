//! A discovered node, with its failures and lies, as the `NodeList` and its file have it.

use std::net::SocketAddr;
use std::time::Duration;

use rootlight_limits::sanitize::is_unseen;
use rootlight_p2p::discovery::{NodeRecord, is_public, one_owner};
use rootlight_p2p::rlpx::NodeId;
use rootlight_p2p::session::Hello;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::p2p::PeerAddress;

/// Most nodes in the list. A client uses a few; the others are choice for later.
pub(super) const MAX_NODES: usize = 512;

/// How long a node that was caught with a lie is not dialled, in seconds: a day.
pub(super) const CAUGHT_SECONDS: u64 = 86_400;

/// Longest text about a lie, and longest name of a node's client, that is stored, in characters.
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
    /// When the node answered last, in seconds since 1970; 0 for a state server that has never answered.
    pub seen: u64,
    /// The name of the node's client; empty until the node was connected.
    pub client: String,
    /// Whether the node serves state chunks; `None` until the node was connected.
    pub snap: Option<bool>,
    /// The latest lie, if the node was caught with one.
    pub caught: Option<Misbehaviour>,
    /// Failures since the node was last of use.
    pub failures: u32,
    /// Whether the network's data names the node as a state server.
    pub(super) is_state_server: bool,
    /// The time of the latest failure since the node was last of use.
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

    /// The address at which the node is dialled.
    pub fn address(&self) -> PeerAddress {
        peer_address(&self.node)
    }

    /// Whether the network's data names the node as a state server. Such a node need not have answered discovery.
    pub const fn is_state_server(&self) -> bool {
        self.is_state_server
    }

    /// Whether the node is not dialled because of a lie, at the time `now` in seconds since 1970.
    pub fn is_caught(&self, now: u64) -> bool {
        // `abs_diff`: a lie whose time is more than a day in the future was noted by a wrong clock, and does not count either.
        self.caught.as_ref().is_some_and(|caught| now.abs_diff(caught.at) < CAUGHT_SECONDS)
    }

    /// Whether the node failed so recently that it is not dialled now. `needed` is true for a client that has no node at all: then
    /// all pauses are the shortest, so that the client does not wait for an hour after an outage of its own network.
    pub(super) fn is_backing_off(&self, needed: bool) -> bool {
        let doublings = if needed { 0 } else { self.failures.saturating_sub(1).min(10) };
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
        self.failed_at.is_some_and(|at| at.elapsed() < pause)
    }

    /// Notes a failure.
    pub(super) fn fail(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(Instant::now());
    }

    /// Forgets failures.
    pub(super) fn reset_failures(&mut self) {
        (self.failures, self.failed_at) = (0, None);
    }

    /// Notes the HELLO of a connection, at the time `now` in seconds since 1970.
    pub(super) fn connected(&mut self, hello: &Hello, now: u64) {
        self.client = short(&hello.client_id);
        (self.snap, self.seen) = (Some(hello.serves_snap()), now);
    }

    /// Whether another address probably has the same owner. `false` for private addresses: in a private network, one machine runs
    /// many nodes.
    pub(super) fn shares_owner(&self, other: &SocketAddr) -> bool {
        let own = self.node.address.ip();
        is_public(own) && is_public(other.ip()) && one_owner(own) == one_owner(other.ip())
    }
}

/// The first characters of a text, without those that a reader cannot see.
pub(super) fn short(text: &str) -> String {
    text.chars().filter(|c| !is_unseen(*c)).take(MAX_TEXT).collect()
}

/// The address of a node in the form `ID@HOST:PORT`.
pub(super) fn peer_address(node: &NodeRecord) -> PeerAddress {
    let host = match node.address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    PeerAddress { id: node.id, host, port: node.address.port() }
}

/// A node as the file stores it.
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
    /// The node, if its id is valid. Long texts are cut.
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
