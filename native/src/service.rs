//! What the server needs from whatever answers JSON-RPC: bytes of a message in, bytes of an answer out.
//!
//! The trait keeps the transports apart from the core: HTTP and WebSocket know frames, sizes and
//! status codes, a [`Service`] knows JSON-RPC.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::budget::Held;

/// How a transport that has a status of its own (HTTP) labels an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The message was JSON-RPC; errors of single calls are inside the answer. HTTP 200.
    Served,
    /// The message could not be taken as JSON-RPC at all (not JSON, not an object or array, batch
    /// too long). HTTP 400; everything else is 200 because client libraries hide the JSON-RPC
    /// error behind any other status.
    Unusable,
}

/// The answer to one message.
#[derive(Debug)]
pub struct Answer {
    /// How HTTP labels it.
    pub outcome: Outcome,
    /// The JSON text, or `None` when nothing is to be said (only notifications).
    pub body: Option<Vec<u8>>,
    /// Bytes of the budget of answers that it takes until it is sent.
    pub held: Held,
}

impl Answer {
    /// An answer of a message that was JSON-RPC; `None` for nothing but notifications.
    #[must_use]
    pub fn served(body: Option<Vec<u8>>) -> Self {
        Self { outcome: Outcome::Served, body, held: Held::default() }
    }

    /// An error envelope for a message that was no JSON-RPC.
    #[must_use]
    pub fn unusable(body: Vec<u8>) -> Self {
        Self { outcome: Outcome::Unusable, body: Some(body), held: Held::default() }
    }
}

impl Answer {
    /// The same answer, which takes these bytes of the budget.
    #[must_use]
    pub fn holding(self, held: Held) -> Self {
        Self { held, ..self }
    }
}

/// State of the service for `GET /health`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Health {
    /// Whether questions about the head can be answered now.
    pub ready: bool,
    /// Height of the head that answers come from.
    #[serde(rename = "blockNumber", skip_serializing_if = "Option::is_none")]
    pub block_number: Option<u64>,
    /// Why it is not ready, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A connection that messages come from: what work and memory are shared out by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Tells connections of one address apart.
    pub connection: u64,
}

impl Peer {
    /// A new connection of an address.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        Self { address, connection: MADE.fetch_add(1, Ordering::Relaxed) }
    }

    /// A number for the address, by which filters are shared out. Of IPv6 the network counts, since one caller has all
    /// the addresses in it.
    #[must_use]
    pub fn asker(&self) -> u64 {
        match self.address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            // The upper half of an IPv4 address is zero here; no IPv6 network begins with 32 zero bits.
            IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).unwrap_or(u64::MAX),
        }
    }
}

/// Who sends a message.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The connection it comes from.
    pub peer: Peer,
    /// Origin of the web page that sends it, where that page may not call what uses keys or changes a chain by hand.
    pub foreign_page: Option<Arc<str>>,
    /// Whether notifications can be sent: `eth_subscribe` gives an id, and `eth_getFilterChanges` of it the `result`s
    /// of the notifications that are due.
    pub notified: bool,
}

impl Caller {
    /// A program on this connection, which cannot be notified.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self { peer, foreign_page: None, notified: false }
    }
}

/// Something that answers JSON-RPC messages.
///
/// Implementations must not panic on any input; work that takes long yields.
pub trait Service: Send + Sync + 'static {
    /// Answers one message (a single request or a batch) as it came over the wire.
    fn answer_to<'a>(&'a self, caller: &'a Caller, message: Vec<u8>) -> BoxFuture<'a, Answer>;

    /// As [`Self::answer_to`] for this program itself.
    fn answer(&self, message: Vec<u8>) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let caller = Caller::new(Peer::new(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            self.answer_to(&caller, message).await
        })
    }

    /// Changes when there may be something to notify of; `None` where nobody is notified of anything.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// For `GET /health`.
    fn health(&self) -> Health {
        Health { ready: true, block_number: None, reason: None }
    }
}

/// A service shared by all connections.
pub type SharedService = Arc<dyn Service>;
