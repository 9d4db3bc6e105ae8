//! Limits of the number of connections, and the choice of the one that is closed when all slots are taken.
//!
//! A client cannot keep others out with connections that it does not use: when all slots are taken, the server
//! closes the connection that has been idle for longest, of the site with the most connections and there of the address with
//! the most ([`NetworkCounts`]).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use rootlight_limits::budget::{Reservation, SMALL_ANSWER, milliseconds as now};
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::network_counts::NetworkCounts;
use rootlight_limits::quota_owner::QuotaOwner;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::service::Counts;

/// The idle time before a connection may be closed for another one, because a client that has just connected may be about to
/// send a request; also the longest wait for the slot that such a connection frees.
const GRACE: Duration = Duration::from_secs(1);

/// The time between two searches for a connection that can be closed, while all slots are taken.
const ROOM_INTERVAL: Duration = Duration::from_millis(100);

/// The number of bytes that a client must receive within the write time limit, unless it receives all. A client that
/// reads more slowly would hold memory for long.
const TAKEN_BYTES: u64 = 256 * 1024;

/// The write time limit while other clients wait for bytes of the answer budget.
const CONTENDED_WRITE: Duration = Duration::from_secs(1);

/// The number of first bytes of a body or message that the request budget does not count. For 4,096 connections, as many as a
/// server has by default besides WebSockets, they make at most 64 MiB.
pub(crate) const FREE_BYTES: usize = 16 * 1024;

/// The number of bytes of the request budget that a WebSocket message takes at a time: its length is not known before its
/// last frame.
const BODY_STEP: usize = 256 * 1024;

/// The bytes of a control frame of a client besides its payload: two, and the mask (RFC 6455, 5.2).
const CLIENT_HEADER: usize = 6;

/// The bytes of a control frame of the server besides its payload.
const SERVER_HEADER: usize = 2;

/// The activity of a connection, and the signal to close it.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    /// The other side of the connection: a client, or a proxy.
    pub(crate) id: CallerId,
    /// The full IP address of the other side; 127.0.0.1 for a Unix socket.
    pub(crate) source: IpAddr,
    /// Whether the connection came over a Unix socket.
    pub(crate) is_unix: bool,
    pub(crate) counts: Counts,
    /// The client of a WebSocket that a trusted proxy passes on, once the connection is such a WebSocket.
    forwarded: OnceLock<CallerId>,
    /// The owner in whose quota messages and answers count: the client or its API key, or its pages.
    owner: Mutex<QuotaOwner>,
    /// Number of messages that are being read or answered.
    working: AtomicUsize,
    /// The time when the last of these messages was answered, or when the connection was opened, in milliseconds of the clock of
    /// `budget::milliseconds`.
    idle_since: AtomicU64,
    /// Bytes of answers that have not been written to the socket yet.
    unsent: AtomicUsize,
    /// Signals that there are unsent bytes.
    sends: Notify,
    /// Total bytes written to the socket.
    written: AtomicU64,
    /// The received part of an incomplete WebSocket message; `None` while the connection speaks HTTP, whose bodies are counted
    /// in `body.rs`.
    inbound: Mutex<Option<Inbound>>,
    /// Signals that the connection must be closed in favour of another one.
    leave: Notify,
}

/// The memory and the start time of an incomplete WebSocket message.
#[derive(Debug, Default)]
struct Inbound {
    bytes: usize,
    reserved: Reservation,
    /// The time of the message's first byte.
    since: Option<Instant>,
}

impl ClientConnection {
    /// A new connection of this address; `None` for a Unix socket, whose connections count as those of this machine.
    pub(crate) fn new(address: Option<IpAddr>, counts: &Counts) -> Arc<Self> {
        let source = address.map_or(Ipv4Addr::LOCALHOST.into(), |address| address.to_canonical());
        let id = CallerId::new(source);
        Arc::new(Self {
            id,
            source,
            is_unix: address.is_none(),
            counts: counts.clone(),
            forwarded: OnceLock::new(),
            owner: Mutex::new(id.quota_owner()),
            working: AtomicUsize::new(0),
            idle_since: AtomicU64::new(now()),
            unsent: AtomicUsize::new(0),
            sends: Notify::new(),
            written: AtomicU64::new(0),
            inbound: Mutex::new(None),
            leave: Notify::new(),
        })
    }

    /// The client that uses the connection; for requests of proxies, the proxy.
    pub(crate) fn client(&self) -> CallerId {
        self.forwarded.get().copied().unwrap_or(self.id)
    }

    /// Counts the connection for this client from now on, because it has become a WebSocket of the client.
    pub(crate) fn assign_to(&self, client: CallerId) {
        if client != self.id {
            let _ = self.forwarded.set(client);
        }
    }

    /// Marks the connection as working until the returned value is dropped.
    pub(crate) fn work(self: &Arc<Self>) -> Work {
        self.working.fetch_add(1, Ordering::Relaxed);
        Work(self.clone())
    }

    /// Counts messages and answers for this client, or for the API key that it stands for, from now on.
    pub(crate) fn count_for(&self, id: CallerId) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = id.quota_owner();
    }

    fn quota_owner(&self) -> QuotaOwner {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes as unsent until the returned value is dropped. Bytes for which `reserved` has no reservation take one of the
    /// answer budget now, if the connection has more than [`SMALL_ANSWER`] unsent bytes. Returns `None` if the budget is used
    /// up.
    pub(crate) async fn sending(
        self: &Arc<Self>,
        body: impl Into<Bytes>,
        mut reserved: Reservation,
    ) -> Option<Unsent> {
        let mut unsent = self.sending_uncounted(body.into());
        let bytes = unsent.body.len();
        reserved.shrink_to(bytes);
        let lacking = bytes.saturating_sub(reserved.bytes());
        let further = if lacking > 0 && self.unsent() > SMALL_ANSWER {
            Box::pin(self.counts.limits.reserve_bytes(self.quota_owner(), lacking)).await?
        } else {
            Reservation::default()
        };
        unsent.reserved = [reserved, further];
        Some(unsent)
    }

    /// Counts bytes as unsent without a reservation: bytes that all connections share, or few.
    pub(crate) fn sending_uncounted(self: &Arc<Self>, body: Bytes) -> Unsent {
        let counted = body.len();
        self.unsent.fetch_add(counted, Ordering::Relaxed);
        self.sends.notify_one();
        Unsent { work: self.work(), body, counted, reserved: Default::default() }
    }

    /// As [`Self::sending_uncounted`], for a control frame of a WebSocket, which has a header even if its payload is empty.
    pub(crate) fn sending_control(self: &Arc<Self>, payload: Bytes) -> Unsent {
        self.unsent.fetch_add(SERVER_HEADER, Ordering::Relaxed);
        let mut unsent = self.sending_uncounted(payload);
        unsent.counted = unsent.counted.saturating_add(SERVER_HEADER);
        unsent
    }

    /// The number of bytes of unsent answers.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Notes that bytes were written to the socket.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The time since when the connection is idle, in milliseconds; `None` if it is working.
    fn idle_since(&self) -> Option<u64> {
        (self.working.load(Ordering::Relaxed) == 0).then(|| self.idle_since.load(Ordering::Relaxed))
    }

    fn inbound(&self) -> MutexGuard<'_, Option<Inbound>> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts received bytes as parts of WebSocket messages from now on.
    pub(crate) fn count_messages(&self) {
        *self.inbound() = Some(Inbound::default());
    }

    /// Counts received bytes. Returns `false` if the request budget is used up.
    pub(crate) fn received(&self, bytes: usize) -> bool {
        let mut inbound = self.inbound();
        let Some(inbound) = inbound.as_mut() else { return true };
        if bytes > 0 {
            inbound.since.get_or_insert_with(Instant::now);
        }
        inbound.bytes += bytes;
        if inbound.bytes <= FREE_BYTES + inbound.reserved.bytes() {
            return true;
        }
        let more = self.counts.limits.requests().take_or_refuse(self.quota_owner(), BODY_STEP.max(bytes));
        more.map(|more| inbound.reserved.merge(more)).is_some()
    }

    /// Notes that a message is complete. Its bytes stay counted until the returned value is dropped.
    pub(crate) fn message(&self) -> Reservation {
        let mut inbound = self.inbound();
        inbound.replace(Inbound::default()).map_or_else(Reservation::default, |inbound| inbound.reserved)
    }

    /// Notes that received bytes were those of a control frame, such as a ping, which is part of no message.
    pub(crate) fn control_frame(&self, payload: usize) {
        let mut inbound = self.inbound();
        let Some(inbound) = inbound.as_mut() else { return };
        inbound.bytes = inbound.bytes.saturating_sub(CLIENT_HEADER + payload);
        if inbound.bytes == 0 {
            *inbound = Inbound::default();
        }
    }

    /// Completes when a message has been incomplete for too long.
    pub(crate) async fn message_overdue(&self, limit: Duration) {
        loop {
            tokio::time::sleep(limit.min(CONTENDED_WRITE)).await;
            let is_contended = self.counts.limits.requests().is_contended(self.quota_owner());
            let late = |inbound: &Inbound| {
                let limit = if is_contended { limit.min(CONTENDED_WRITE) } else { limit };
                inbound.reserved.bytes() > 0 && inbound.since.is_some_and(|since| since.elapsed() >= limit)
            };
            if self.inbound().as_ref().is_some_and(late) {
                return;
            }
        }
    }

    /// Completes when the connection must be closed in favour of another one.
    pub(crate) async fn close_requested(&self) {
        self.leave.notified().await;
    }

    /// Completes when a client reads too slowly: within the limit it received neither all of its answers nor
    /// [`TAKEN_BYTES`].
    pub(crate) async fn stalled(&self, limit: Duration) {
        // The start of the current period, and the total written at that time.
        let mut mark: Option<(Instant, u64)> = None;
        loop {
            if self.unsent() == 0 {
                // An idle connection has no timer, because timers of thousands of them take processor time.
                self.sends.notified().await;
                mark = Some((Instant::now(), self.written.load(Ordering::Relaxed)));
            }
            tokio::time::sleep(limit.min(CONTENDED_WRITE)).await;
            let written = self.written.load(Ordering::Relaxed);
            let contended = self.unsent() > 0 && self.counts.limits.answers_contended(self.quota_owner());
            let allowed = if contended { limit.min(CONTENDED_WRITE) } else { limit };
            mark = match mark {
                _ if self.unsent() == 0 => None,
                Some((since, before)) if written.saturating_sub(before) < TAKEN_BYTES => {
                    if since.elapsed() >= allowed {
                        return;
                    }
                    mark
                }
                _ => Some((Instant::now(), written)),
            };
        }
    }
}

/// Marks a connection as working until it is dropped.
#[derive(Debug)]
pub(crate) struct Work(Arc<ClientConnection>);

impl Drop for Work {
    fn drop(&mut self) {
        if self.0.working.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.idle_since.store(now(), Ordering::Relaxed);
        }
    }
}

/// An unsent answer. Its bytes are counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Unsent {
    work: Work,
    body: Bytes,
    /// The bytes that count as unsent; more than those of the body for a control frame, whose header counts too.
    counted: usize,
    /// The reservation that came with the answer, and the one for the rest of its bytes, which sending the answer took.
    reserved: [Reservation; 2],
}

impl Unsent {
    /// Takes the answer's bytes, which stay counted until the returned guard is dropped.
    pub(crate) fn take(&mut self) -> (Bytes, Sending) {
        let body = std::mem::take(&mut self.body);
        let reserved = std::mem::take(&mut self.reserved);
        let bytes = std::mem::take(&mut self.counted);
        let sending = Sending { connection: self.work.0.clone(), bytes, _held: reserved };
        (body, sending)
    }
}

#[cfg(test)]
impl Unsent {
    /// The bytes that it holds of the answer budget.
    pub(crate) fn held_bytes(&self) -> usize {
        self.reserved.iter().map(Reservation::bytes).sum()
    }
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.work.0.unsent.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// Counts the bytes of an answer that the library is writing to the socket.
#[derive(Debug)]
pub(crate) struct Sending {
    connection: Arc<ClientConnection>,
    bytes: usize,
    _held: [Reservation; 2],
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.connection.unsent.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The slots for connections of one kind: the WebSockets of a server, or its other connections.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    free: Arc<Semaphore>,
    /// The number of all slots.
    most: usize,
    /// The connections that have a slot, by the number of the connection.
    taken: Mutex<BTreeMap<u64, Arc<ClientConnection>>>,
}

/// A taken slot. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    id: u64,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.taken().remove(&self.id);
    }
}

impl ConnectionSlots {
    /// Makes `most` slots.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { free: Arc::new(Semaphore::new(most)), most, taken: Mutex::default() })
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ClientConnection>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot. If all are taken, an idle connection is told to close.
    pub(crate) async fn enter(self: &Arc<Self>, connection: &Arc<ClientConnection>) -> ConnectionSlot {
        loop {
            // With a free slot the wait is over at once, unless another connection takes the slot first: then after a millisecond.
            let within = if self.free.available_permits() > 0 { Duration::ZERO } else { ROOM_INTERVAL };
            if within > Duration::ZERO {
                self.make_room(connection, 0);
            }
            if let Some(slot) = self.wait(connection, within.max(Duration::from_millis(1))).await {
                return slot;
            }
        }
    }

    /// Takes a slot, if necessary that of an idle connection of an address with more connections than this one.
    /// Returns `None` if there is no such slot.
    pub(crate) async fn enter_or_refuse(
        self: &Arc<Self>,
        connection: &Arc<ClientConnection>,
    ) -> Option<ConnectionSlot> {
        if self.free.available_permits() == 0 && !self.make_room(connection, 1) {
            return None;
        }
        self.wait(connection, GRACE).await
    }

    async fn wait(
        self: &Arc<Self>,
        connection: &Arc<ClientConnection>,
        limit: Duration,
    ) -> Option<ConnectionSlot> {
        // The semaphore is never closed.
        let permit = tokio::time::timeout(limit, self.free.clone().acquire_owned()).await.ok()?.ok()?;
        let id = connection.id.connection;
        self.taken().insert(id, connection.clone());
        Some(ConnectionSlot { slots: self.clone(), id, _permit: permit })
    }

    /// Tells an idle connection to close, of a site or address that has at least `more` connections more than that of the
    /// newcomer. Returns whether there was such a connection. If a site or address holds more than half of all slots, its
    /// connections may be closed however short they are idle, so that newcomers do not wait while it opens connections.
    fn make_room(&self, newcomer: &ClientConnection, more: usize) -> bool {
        let taken = self.taken();
        let crowd = NetworkCounts::of(taken.values().map(|connection| connection.client().address));
        let compare = |connection: &ClientConnection| {
            crowd.compare(connection.client().address, newcomer.client().address)
        };
        let grace = u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX);
        // A single connection may not be closed before its grace is over, even where there is only one slot.
        let most = (self.most / 2).max(1);
        let idle = taken.values().filter_map(|connection| Some((connection, connection.idle_since()?)));
        let idle = idle.filter(|(connection, since)| {
            let (theirs, own) = compare(connection);
            let past_grace = now().saturating_sub(*since) >= grace;
            theirs >= own.saturating_add(more) && (theirs > most || past_grace)
        });
        let longest = idle.max_by_key(|(connection, since)| {
            (crowd.counts(connection.client().address), std::cmp::Reverse(*since))
        });
        let longest = longest.map(|(connection, _)| connection).or_else(|| {
            // All connections are working: a site or address that holds more than half of all slots loses one of them.
            let greedy = |connection: &&Arc<ClientConnection>| {
                let foreign = connection.client().address != newcomer.client().address;
                foreign && compare(connection).0 > self.most / 2 && connection.idle_since().is_none()
            };
            taken.values().find(greedy)
        });
        longest.inspect(|connection| connection.leave.notify_one()).is_some()
    }

    /// Waits until all connections are closed.
    pub(crate) async fn empty(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        let _ = self.free.acquire_many(all).await;
    }
}

#[cfg(test)]
#[path = "connection_slots_test.rs"]
mod tests;
