//! The subscriptions of one WebSocket connection.
//!
//! The service creates and ends them. When the chain has changed, this module polls them and sends the
//! notifications.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rootlight::rpc::{Effect, MORE_NOTIFICATIONS, Message, Notifications, Reply};
use rootlight_limits::budget::Reservation;
use tokio::sync::{Notify, mpsc};

use super::connection_slots::ClientConnection;
use super::outgoing::Outgoing;
use crate::metrics::{GaugeGuard, Metrics};
use crate::service::{Caller, ReservedReply, SharedService};

/// Interval at which subscriptions are polled even if the service reports no change, so that results that could not be proven
/// before are tried again.
const INTERVAL: Duration = Duration::from_secs(10);

/// Bytes of the notifications of one poll from which on the subscription is polled again at once, because there may be more.
const MORE_BYTES: usize = 1024 * 1024;

#[derive(Default)]
struct OpenSubscriptions {
    /// The subscriptions by id.
    ids: BTreeMap<u128, Subscription>,
    /// How many subscriptions the client has ended on this connection.
    unsubscribed: usize,
}

struct Subscription {
    /// Whether the client has been sent the id and may receive notifications.
    begun: bool,
    _counted: GaugeGuard,
}

impl Subscription {
    fn new(metrics: &Metrics) -> Self {
        Self { begun: false, _counted: GaugeGuard::one(&metrics.subscriptions) }
    }
}

/// The subscriptions of one connection.
pub(super) struct Subscriptions {
    service: SharedService,
    caller: Arc<Caller>,
    connection: Arc<ClientConnection>,
    open: Mutex<OpenSubscriptions>,
    /// Signals that a new subscription may have notifications already.
    begun: Notify,
}

impl Subscriptions {
    /// A connection without subscriptions, which may have this many.
    pub(super) fn new(
        service: SharedService,
        most: usize,
        connection: Arc<ClientConnection>,
        caller: &Arc<Caller>,
    ) -> Arc<Self> {
        let caller = match service.changes() {
            Some(_) => Arc::new(caller.for_socket(most)),
            None => caller.clone(),
        };
        Arc::new(Self { service, caller, connection, open: Mutex::default(), begun: Notify::new() })
    }

    fn open(&self) -> MutexGuard<'_, OpenSubscriptions> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a message. The caller passes the ids of new subscriptions to [`Self::begin`] once the answer is in the
    /// send queue.
    pub(super) async fn answer(&self, message: Message) -> ReservedReply {
        let reserved = self.service.answer_message(&self.caller, message).await;
        for effect in reserved.reply.iter().flat_map(Reply::effects) {
            let mut open = self.open();
            match effect {
                Effect::Subscribed(id) => drop(open.ids.insert(id, Subscription::new(self.metrics()))),
                Effect::Unsubscribed(id) => {
                    open.ids.remove(&id);
                    open.unsubscribed = open.unsubscribed.saturating_add(1);
                }
                Effect::Filter(_) | Effect::Uninstalled(_) | Effect::Sent(_) | Effect::About(_) => {}
            }
        }
        reserved
    }

    fn metrics(&self) -> &Metrics {
        &self.connection.counts.metrics
    }

    /// The caller of the connection's messages.
    pub(super) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// Starts sending notifications of the subscriptions among these effects.
    pub(super) fn begin(&self, effects: &[Effect]) {
        let mut open = self.open();
        let made = effects.iter().filter_map(|effect| match effect {
            Effect::Subscribed(id) => Some(id),
            _ => None,
        });
        let begun = made.filter_map(|id| open.ids.get_mut(id).map(|open| open.begun = true)).count();
        if begun > 0 {
            self.begun.notify_one();
        }
    }

    /// Sends notifications while the connection is open. Returns the reason if it cannot continue.
    pub(super) async fn notify(&self, queue: mpsc::Sender<Outgoing>) -> &'static str {
        let Some(mut changes) = self.service.changes() else { return std::future::pending().await };
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return "the service has ended" },
                () = self.begun.notified() => {}
                () = tokio::time::sleep(INTERVAL) => {}
            }
            let begun = |(id, open): (&u128, &Subscription)| open.begun.then_some(*id);
            let ids: Vec<u128> = self.open().ids.iter().filter_map(begun).collect();
            for id in ids {
                if !self.send_all(id, &queue).await {
                    return "a subscription fell behind or was dropped";
                }
            }
        }
    }

    /// Sends the notifications of one subscription. Returns `false` if they cannot be sent or the service no longer
    /// has the subscription.
    async fn send_all(&self, id: u128, queue: &mpsc::Sender<Outgoing>) -> bool {
        loop {
            match self.poll_once(id, queue).await {
                Some(true) => {}
                end => return end.is_some(),
            }
        }
    }

    /// Polls a subscription once and sends its notifications. Returns whether there may be more, and `None` if they cannot
    /// be sent or the service no longer has the subscription.
    async fn poll_once(&self, id: u128, queue: &mpsc::Sender<Outgoing>) -> Option<bool> {
        let (mut notified, mut bytes) = (0_usize, 0_usize);
        let (Notifications { texts, is_gone }, _held) = self.service.notifications(&self.caller, id).await;
        for text in texts {
            // The client may have unsubscribed meanwhile.
            if !self.open().ids.contains_key(&id) {
                return Some(false);
            }
            (notified, bytes) = (notified.saturating_add(1), bytes.saturating_add(text.len()));
            let Some(unsent) = self.connection.sending(text, Reservation::default()).await else {
                self.metrics().dropped.inc();
                return None;
            };
            // Sending to the queue fails only while the connection ends.
            if queue.send(Outgoing::Text(unsent)).await.is_err() {
                return Some(false);
            }
            self.metrics().notified.inc();
        }
        (!(is_gone && self.is_lost(id))).then_some(notified >= MORE_NOTIFICATIONS || bytes >= MORE_BYTES)
    }

    /// Whether a subscription that the service does not have was dropped by the service. The answer to the client's own
    /// `eth_unsubscribe` may still be under way.
    fn is_lost(&self, id: u128) -> bool {
        let open = self.open();
        open.ids.contains_key(&id) && self.caller.unsubscribed() == open.unsubscribed
    }

    /// Ends all subscriptions of a closed connection.
    pub(super) async fn end(&self) {
        if self.caller.is_notified() {
            self.service.disconnect(&self.caller).await;
        }
    }
}
