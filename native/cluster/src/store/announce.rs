//! Announcements: messages that all front ends receive, if they are connected.
//!
//! An announcement can be lost: the server fails, the connection breaks, or a receiver is slow. [`Announcement::Gap`]
//! says that some may have been lost. A receiver that must not miss a change also reads the state itself from time to time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, Value, cmd};
use tokio::sync::{Notify, broadcast};
use tokio::time::timeout;
use tracing::debug;

use super::config::StoreConfig;
use super::connection;

/// Most channels of a front end, which uses fewer than ten; the number bounds memory.
pub(super) const MAX_CHANNELS: usize = 64;
/// Most announcements that wait for a receiver. A slower receiver loses the oldest, and gets `RecvError::Lagged`.
const MAX_BEHIND: usize = 256;
/// Longest announcement that receivers get, in bytes; a longer one becomes a gap.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// An event for a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// A message.
    Message(Bytes),
    /// Messages may have been lost before this one. It is also the first announcement after a connection is made.
    Gap,
}

/// The channels of a front end, by their names with the prefix of the service.
#[derive(Default)]
pub(super) struct Channels {
    senders: Mutex<HashMap<String, broadcast::Sender<Announcement>>>,
    /// Notified when a channel is added.
    added: Notify,
}

impl Channels {
    fn senders(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Announcement>>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver of a channel; `None` if there are too many channels.
    pub(super) fn receiver(&self, name: String) -> Option<broadcast::Receiver<Announcement>> {
        let mut senders = self.senders();
        if let Some(sender) = senders.get(&name) {
            return Some(sender.subscribe());
        }
        if senders.len() >= MAX_CHANNELS {
            return None;
        }
        let (sender, receiver) = broadcast::channel(MAX_BEHIND);
        senders.insert(name, sender);
        drop(senders);
        self.added.notify_one();
        Some(receiver)
    }

    /// The names of all channels.
    fn names(&self) -> Vec<String> {
        self.senders().keys().cloned().collect()
    }

    /// Sends a message that the server has pushed to the receivers of its channel.
    fn forward(&self, pushed: PushInfo) {
        if pushed.kind != PushKind::Message {
            return;
        }
        let mut data = pushed.data.into_iter();
        let (Some(Value::BulkString(name)), Some(Value::BulkString(message))) = (data.next(), data.next())
        else {
            return;
        };
        let Ok(name) = String::from_utf8(name) else { return };
        let announcement = match message.len() {
            0..=MAX_MESSAGE_BYTES => Announcement::Message(message.into()),
            _ => Announcement::Gap,
        };
        if let Some(sender) = self.senders().get(&name) {
            // Sending fails if the channel has no receivers any more, which does no harm.
            let _ = sender.send(announcement);
        }
    }

    /// Sends a gap to the receivers of a channel.
    fn gap(&self, name: &str) {
        if let Some(sender) = self.senders().get(name) {
            let _ = sender.send(Announcement::Gap);
        }
    }
}

/// Receives announcements for ever, from one server until it fails, then from the next. Any server of a cluster will do: a message
/// that is published to one reaches all.
pub(super) async fn receive(config: StoreConfig, channels: Arc<Channels>) {
    let mut nodes = config.nodes.iter().cycle();
    loop {
        if channels.names().is_empty() {
            channels.added.notified().await;
        }
        let Some(node) = nodes.next() else { return };
        let forwarding = channels.clone();
        let push = move |pushed: PushInfo| {
            forwarding.forward(pushed);
            Ok::<(), std::convert::Infallible>(())
        };
        let settings = connection::settings(&config.limits).set_push_sender(push);
        match connection::connect(node, &settings).await {
            Ok(connection) => {
                let end = listen(connection, &channels, config.limits.check).await;
                debug!("the connection for announcements ended: {end}");
            }
            Err(error) => debug!("no connection for announcements: {error}"),
        }
        tokio::time::sleep(config.limits.pause).await;
    }
}

/// Subscribes to the channels and waits until the connection breaks. A PING after each interval of `check` notices a server that
/// does not answer any more.
async fn listen(
    mut connection: MultiplexedConnection,
    channels: &Channels,
    check: Duration,
) -> redis::RedisError {
    let mut subscribed: Vec<String> = Vec::new();
    loop {
        for name in channels.names() {
            if subscribed.contains(&name) {
                continue;
            }
            if let Err(error) = connection.subscribe(&name).await {
                return error;
            }
            channels.gap(&name);
            subscribed.push(name);
        }
        if timeout(check, channels.added.notified()).await.is_err()
            && let Err(error) = cmd("PING").exec_async(&mut connection).await
        {
            return error;
        }
    }
}
