//! The interface between the server and the JSON-RPC engine: a message in, a reply out.
//!
//! The trait separates the transports from the engine: HTTP and WebSocket handle frames, sizes and status codes, read each
//! message once and write each reply once; a [`Service`] answers.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use prometheus_client::registry::Registry;
use rootlight::light::bitcoin::BitcoinReport;
use rootlight::rpc::envelope::{Id, MAX_BATCH};
use rootlight::rpc::{BitcoinStatus, Connection, Message, Notifications, Reply, RpcError, poll_message};
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

/// The reply to one message, on its way to the caller.
#[derive(Debug, Default)]
pub struct ReservedReply {
    /// The reply. Over HTTP the status is 400 if the message is not JSON-RPC, and otherwise 200, because client libraries
    /// hide the JSON-RPC error of a response with any other status.
    pub reply: Option<Reply>,
    /// The bytes of the answer budget that the reply holds until it is sent.
    pub reserved: Reservation,
    /// The text of the reply, if it is made while it is sent; `reply` is empty then.
    pub pieces: Option<Pieces>,
    /// Whether upstreams were asked for it.
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

    /// The reply of a host that cannot answer the message whose only request has this id.
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

/// Reads a message that no connection has sent, such as one of this program itself.
pub(crate) fn read(message: &[u8]) -> Message {
    Message::read(message, dispatcher(), MAX_BATCH)
}

/// Progress of building the index of an older store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct IndexProgress {
    /// Number of blocks that the index has.
    pub done: u64,
    /// Number of blocks of the chain when it was opened.
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
    /// Progress of building the index of logs of an older store. Meanwhile logs of the blocks that it lacks are found by
    /// reading their headers.
    #[serde(rename = "logIndex", skip_serializing_if = "Option::is_none")]
    pub log_index: Option<IndexProgress>,
    /// Number of the newest block whose state is on the node's disk, beside a node of one's own.
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
    /// Whether that block is reached.
    pub synced: bool,
    /// The upstreams, in the order of the command line.
    pub upstreams: Vec<UpstreamHealth>,
    /// Bitcoin's chain; `None` if it is not followed.
    pub bitcoin: Option<BitcoinHealth>,
}

/// The state of Bitcoin's chain, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BitcoinHealth {
    /// Height and time (seconds since 1970) of its newest block that a source has shown.
    pub tip: Option<(u32, u32)>,
    /// Number of sources that have answered the last time that they were asked.
    pub sources: usize,
    /// Bitcoin's report on the Rootstock chain; `None` before the chain was judged.
    pub report: Option<BitcoinReport>,
}

/// The state of one upstream, for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamHealth {
    /// Scheme, host and port, without path and credentials.
    pub name: String,
    /// Whether it is asked; otherwise it is left alone for a while, because it failed or lied.
    pub healthy: bool,
    /// The height that it announced last.
    pub announced: Option<u64>,
    /// Smoothed time of one exchange.
    pub latency: Duration,
    /// Its demerits, which good exchanges remove.
    pub demerits: u32,
    /// Number of its responses that no honest upstream gives.
    pub lies: u32,
}

/// The sender of a message.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The connection that the message comes from, by which work and memory are divided.
    pub id: CallerId,
    /// The rights and the subscriptions of the sender.
    pub connection: Arc<Connection>,
    /// Whether the sender can receive an answer in pieces.
    pub takes_pieces: bool,
}

impl Caller {
    /// A sender that cannot receive notifications: a program, or a page of this origin that may not call methods that
    /// use keys or change the chain.
    #[must_use]
    pub fn new(id: CallerId, foreign_page: Option<String>) -> Self {
        Self::with_rights(id, foreign_page, |connection| connection)
    }

    /// As [`Self::new`], for a sender whose connection gets rights beyond those of a sender that is not the operator.
    #[must_use]
    pub fn with_rights(
        id: CallerId,
        foreign_page: Option<String>,
        give: impl FnOnce(Connection) -> Connection,
    ) -> Self {
        // Frames that send no origin may share a connection, so that each message over HTTP is one of another frame. Static,
        // because the numbers only tell frames apart: they do not run out, and no sender sees them.
        static FRAMES: AtomicU64 = AtomicU64::new(0);
        let frame = FRAMES.fetch_add(1, Ordering::Relaxed);
        let connection = Connection::new(id.asker().number, id.connection).with_operator(false);
        let connection = give(connection).from_foreign_page(foreign_page, frame);
        let id = CallerId { page: connection.owner().asker.quota_owner().page, ..id };
        Self { id, connection: Arc::new(connection), takes_pieces: false }
    }

    /// A number for the sender of transactions, by which hosts that answer together name it to each other. Pages of other
    /// origins have numbers of their own.
    #[must_use]
    pub fn transaction_sender(&self) -> u64 {
        self.connection.owner().asker.shared_id()
    }

    /// The same sender, able to receive notifications of so many subscriptions at most.
    #[must_use]
    pub fn with_subscriptions(&self, most: usize) -> Self {
        // Numbers of connections may be those of frames over HTTP, so that they count from the other end.
        let frame = u64::MAX - self.id.connection;
        Self { connection: Arc::new(self.connection.for_socket(frame, most)), ..*self }
    }
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
    /// Counts from zero, in these limits.
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
    fn answer_message<'a>(&'a self, caller: &'a Caller, message: Message) -> BoxFuture<'a, ReservedReply>;

    /// As [`Self::answer_message`], for messages of this program itself, given as text.
    fn answer(&self, message: Vec<u8>) -> BoxFuture<'_, ReservedReply> {
        Box::pin(async move {
            let caller = Caller::new(CallerId::new(IpAddr::V4(Ipv4Addr::LOCALHOST)), None);
            self.answer_message(&caller, read(&message)).await
        })
    }

    /// The new results of a sender's subscription, with the bytes of the answer budget that they hold.
    fn notifications<'a>(
        &'a self,
        caller: &'a Caller,
        subscription: u128,
    ) -> BoxFuture<'a, (Notifications, Reservation)> {
        Box::pin(news_by_message(self, caller, subscription))
    }

    /// Ends the subscriptions of a sender that is gone.
    fn disconnect<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, ()> {
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

    /// A value that changes when new notifications may be due; `None` if the service sends no notifications.
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

    /// Adds metrics of its own.
    fn register(&self, _: &mut Registry) {}
}

/// Asks for the news of a subscription by a message of its sender.
pub async fn news_by_message<S: Service + ?Sized>(
    service: &S,
    caller: &Caller,
    subscription: u128,
) -> (Notifications, Reservation) {
    let ReservedReply { reply, reserved, .. } =
        service.answer_message(caller, poll_message(subscription, dispatcher())).await;
    (reply.map(|reply| reply.into_notifications(subscription)).unwrap_or_default(), reserved)
}

/// A service shared by all connections.
pub type SharedService = Arc<dyn Service>;

#[cfg(test)]
mod tests {
    use rootlight::types::KEY_ASKERS;

    use super::*;

    #[test]
    fn the_clients_of_a_key_share_its_work_and_memory() {
        let at = |address: &str, key: Option<u32>| {
            let id = CallerId::new(address.parse().unwrap());
            Caller::new(key.map_or(id, |key| id.of_key(key)), None).id
        };
        let (one, two) = (at("192.0.2.1", Some(7)), at("2001:db8::1", Some(7)));
        assert_eq!((one.address, one.asker()), (two.address, two.asker()));
        assert_ne!(one.connection, two.connection);
        assert_eq!(one.asker().number, KEY_ASKERS.start + 7);
        let last = at("192.0.2.1", Some(u32::MAX));
        assert!(KEY_ASKERS.contains(&last.asker().number));
        for other in [at("192.0.2.1", Some(8)), at("192.0.2.1", None), last] {
            assert!(one.address != other.address && one.asker() != other.asker());
        }
    }

    #[test]
    fn a_page_shares_work_as_its_origin_and_a_key_as_the_key() {
        let at = |page: Option<&str>, key: Option<u32>| {
            let id = CallerId::new(Ipv4Addr::LOCALHOST.into());
            Caller::new(key.map_or(id, |key| id.of_key(key)), page.map(str::to_owned))
        };
        let page = |page| at(page, None).id.page;
        assert_eq!(page(None), 0);
        let askers = [None, Some("https://a.example"), Some("https://b.example"), Some("null")].map(page);
        assert_eq!(std::collections::BTreeSet::from(askers).len(), askers.len());
        assert_eq!(
            askers,
            [None, Some("https://a.example"), Some("https://b.example"), Some("null")].map(page)
        );
        assert_eq!(at(Some("https://a.example"), Some(7)).id.page, 0);
        // One page can have many origins, so that all are one asker beside the programs.
        let asker = |page| at(page, None).id.asker();
        let [program, page] = [None, Some("https://a.example")].map(asker);
        assert!(program != page && program.number == page.number);
        assert!([Some("https://b.example"), Some("null")].map(asker) == [page; 2]);
        // Frames that send no origin are told apart all the same: by message, or by WebSocket.
        let frames = [at(Some("null"), None), at(Some("null"), None)];
        let sockets = frames.each_ref().map(|frame| frame.with_subscriptions(9));
        assert_eq!(sockets[0].transaction_sender(), frames[0].with_subscriptions(1).transaction_sender());
        let senders = frames.iter().chain(&sockets).map(Caller::transaction_sender);
        assert_eq!(senders.collect::<std::collections::BTreeSet<_>>().len(), 4);
    }
}
