//! The interface between the server and the JSON-RPC engine: a message in, a reply out.
//!
//! The trait [`Service`] separates the transports from the engine: HTTP and WebSocket handle frames, sizes and status codes, read
//! each message once and write each reply once; the service answers. Its implementations are in `native/node` and
//! `native/cluster`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use prometheus_client::registry::Registry;
use rootlight::light::bitcoin::BitcoinReport;
pub use rootlight::rpc::Caller;
use rootlight::rpc::envelope::{Id, MAX_BATCH};
use rootlight::rpc::{BitcoinStatus, Message, Notifications, Reply, RpcError, poll_message};
use rootlight_limits::Limits;
use rootlight_limits::budget::Reservation;
use rootlight_limits::caller_id::CallerId;
use tokio::sync::watch;

use crate::bans::HostBans;
use crate::methods::dispatcher;
use crate::metrics::Metrics;

/// JSON-RPC code of an internal error (JSON-RPC 2.0).
pub const INTERNAL_ERROR: i32 = -32603;

/// JSON-RPC code of a limit (EIP-1474).
pub const LIMIT_EXCEEDED: i32 = -32005;

/// JSON-RPC code of a message that took too long (the reference node's own).
pub const TIMED_OUT: i32 = -32011;

/// The reply to one message, with the memory that is reserved for it.
#[derive(Debug, Default)]
pub struct ReservedReply {
    /// The reply. Over HTTP the status is 400 if the message is not JSON-RPC, and otherwise 200, because client libraries
    /// hide the JSON-RPC error of a response with any other status.
    pub reply: Option<Reply>,
    /// The bytes of the answer budget that the reply holds until it is sent.
    pub reserved: Reservation,
    /// The text of the reply, if it is made while it is sent; `reply` is empty then.
    pub pieces: Option<Pieces>,
    /// Whether upstreams were asked for the reply.
    pub fetched: bool,
}

/// The text of a long answer in pieces, each with the bytes of the answer budget that it holds until it is sent. After an
/// error the answer is incomplete, and the connection must be closed.
pub struct Pieces(pub BoxStream<'static, std::io::Result<(String, Reservation)>>);

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").finish_non_exhaustive()
    }
}

impl ReservedReply {
    /// A reply that holds no bytes of the budget yet.
    #[must_use]
    pub fn of(reply: Reply) -> Self {
        Self { reply: Some(reply), ..Self::default() }
    }

    /// The error of a host that cannot answer a message, whose only request has this id.
    #[must_use]
    pub fn failed(id: Id, code: i32, text: &str) -> Self {
        let text = [text, id.remark()].concat();
        Self::of(Reply::to_one(id, Err(RpcError::Host { code, text, data: None })))
    }

    /// The text to send; `None` for notifications, which have no response.
    #[must_use]
    pub fn into_text(self) -> Option<String> {
        self.reply?.into_text()
    }
}

/// Parses a message that did not come over a connection, such as one of this program itself.
pub(crate) fn read(message: &[u8]) -> Message {
    Message::read(message, dispatcher(), MAX_BATCH)
}

/// Progress of building the index of logs of a store that an older version of this program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct IndexProgress {
    /// Number of blocks that the index has.
    pub done: u64,
    /// Number of blocks of the chain when the store was opened.
    pub total: u64,
}

/// The state of the service for `GET /health`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Health {
    /// Whether requests about the head can be answered now.
    pub ready: bool,
    /// Height of the head that answers refer to.
    #[serde(rename = "blockNumber", skip_serializing_if = "Option::is_none")]
    pub block_number: Option<u64>,
    /// Why the service is not ready, as text for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Progress of building the index of logs of an older store; `None` if the index is complete. Until then logs of the blocks
    /// that the index lacks are found by reading the headers of these blocks.
    #[serde(rename = "logIndex", skip_serializing_if = "Option::is_none")]
    pub log_index: Option<IndexProgress>,
    /// For a light client beside the operator's own node: number of the newest block whose state is on that node's disk.
    #[serde(rename = "provableBlock", skip_serializing_if = "Option::is_none")]
    pub provable_block: Option<u64>,
    /// The state of Bitcoin's chain, as `rootlight_syncStatus` shows it; `None` if no Bitcoin chain is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitcoin: Option<BitcoinStatus>,
}

/// The state of the chain and of the upstreams, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Number and timestamp (seconds since 1970) of the head; `None` if there is none yet.
    pub head: Option<(u64, u64)>,
    /// Number of the highest block that is known to exist.
    pub target: Option<u64>,
    /// Whether the head has reached that block.
    pub synced: bool,
    /// The upstreams, in the order of the command line.
    pub upstreams: Vec<UpstreamHealth>,
    /// Bitcoin's chain; `None` if it is not followed.
    pub bitcoin: Option<BitcoinHealth>,
}

/// The state of Bitcoin's chain, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BitcoinHealth {
    /// Height and time (seconds since 1970) of Bitcoin's newest block that a source has shown.
    pub tip: Option<(u32, u32)>,
    /// Number of sources that answered when they were last asked.
    pub sources: usize,
    /// Bitcoin's report on the Rootstock chain; `None` before the chain was judged.
    pub report: Option<BitcoinReport>,
}

/// The state of one upstream, for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamHealth {
    /// Scheme, host and port, without path and credentials.
    pub name: String,
    /// Whether the upstream gets requests. If not, it failed or lied and gets none for a while.
    pub healthy: bool,
    /// The height of its head that the upstream announced last.
    pub announced: Option<u64>,
    /// Smoothed time from a request to its response.
    pub latency: Duration,
    /// Demerits of the upstream, which good responses remove.
    pub demerits: u32,
    /// Number of responses of the upstream that no honest upstream gives.
    pub lies: u32,
}

/// The limits and the metrics of a service and its server. Another server has its own.
#[derive(Debug, Clone)]
pub struct Counts {
    /// The budgets of memory, and the threads of long work.
    pub limits: Arc<Limits>,
    /// The numbers for `GET /metrics`.
    pub metrics: Arc<Metrics>,
}

impl Counts {
    /// New metrics, beginning at zero, with these limits.
    #[must_use]
    pub fn within(limits: Arc<Limits>) -> Self {
        Self { limits, metrics: Arc::default() }
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self::within(Limits::new())
    }
}

/// Answers JSON-RPC messages.
///
/// Implementations must not panic on any input, and must not block the thread for long.
pub trait Service: Send + Sync + 'static {
    /// Answers one message (a single request or a batch).
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Message,
    ) -> BoxFuture<'a, ReservedReply>;

    /// As [`Self::answer_message`], for messages of this program itself, given as text.
    fn answer(&self, message: Vec<u8>) -> BoxFuture<'_, ReservedReply> {
        Box::pin(async move {
            let caller = Arc::new(CallerId::new(IpAddr::V4(Ipv4Addr::LOCALHOST)).caller(None));
            self.answer_message(&caller, read(&message)).await
        })
    }

    /// The new results of a caller's subscription, with the bytes of the answer budget that they hold.
    fn notifications<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        subscription: u128,
    ) -> BoxFuture<'a, (Notifications, Reservation)> {
        Box::pin(notifications_by_message(self, caller, subscription))
    }

    /// Ends the subscriptions of a caller that is gone.
    fn disconnect<'a>(&'a self, _: &'a Arc<Caller>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The limits and the metrics of the service. Its server reads them once and uses them too; by default they are the server's own.
    fn counts(&self) -> Counts {
        Counts::default()
    }

    /// The banned addresses; `None` if the service keeps none.
    fn bans(&self) -> Option<Arc<HostBans>> {
        None
    }

    /// A value that changes when subscriptions may have new results; `None` if the service sends no notifications.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// The state of the service for `GET /health`.
    fn health(&self) -> Health {
        Health { ready: true, ..Health::default() }
    }

    /// The state of the chain and of the upstreams, for metrics.
    fn chain_status(&self) -> ServiceStatus {
        ServiceStatus::default()
    }

    /// Adds metrics of the service itself.
    fn register(&self, _: &mut Registry) {}
}

/// Polls a subscription by a message of its caller. Returns the notifications, with the bytes of the answer budget that they
/// hold.
pub async fn notifications_by_message<S: Service + ?Sized>(
    service: &S,
    caller: &Arc<Caller>,
    subscription: u128,
) -> (Notifications, Reservation) {
    let ReservedReply { reply, reserved, .. } =
        service.answer_message(caller, poll_message(subscription, dispatcher())).await;
    (reply.map(|reply| reply.into_notifications(subscription)).unwrap_or_default(), reserved)
}

/// A service shared by all connections.
pub type SharedService = Arc<dyn Service>;
