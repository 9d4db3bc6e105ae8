//! Announcements: messages that all front ends receive, if they are connected.
//!
//! An announcement can be lost: the server fails, the connection breaks, or a receiver is slow. [`Announcement::Gap`]
//! says that some may have been; whoever must not miss anything also asks for the state itself from time to time.

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

pub(super) const MAX_CHANNELS: usize = 64;
/// Announcements that a receiver may be behind; then it learns of a gap.
const BEHIND: usize = 256;
/// Longest announcement that is passed on, in bytes; a longer one is a gap.
const LONGEST: usize = 1024 * 1024;

/// An event for a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// A message.
    Message(Bytes),
    /// Messages may have been lost before this point. It is also the first thing after a connection is made.
    Gap,
}

/// The channels of a front end, by their whole names.
#[derive(Default)]
pub(super) struct Channels {
    senders: Mutex<HashMap<String, broadcast::Sender<Announcement>>>,
    /// Signals that there is a new channel.
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
        let (sender, receiver) = broadcast::channel(BEHIND);
        senders.insert(name, sender);
        drop(senders);
        self.added.notify_one();
        Some(receiver)
    }

    fn names(&self) -> Vec<String> {
        self.senders().keys().cloned().collect()
    }

    /// Passes on what the server pushed.
    fn pass(&self, pushed: PushInfo) {
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
            0..=LONGEST => Announcement::Message(message.into()),
            _ => Announcement::Gap,
        };
        if let Some(sender) = self.senders().get(&name) {
            // Without receivers nothing is to do.
            let _ = sender.send(announcement);
        }
    }

    fn gap(&self, name: &str) {
        if let Some(sender) = self.senders().get(name) {
            let _ = sender.send(Announcement::Gap);
        }
    }
}

/// Receives announcements for ever, from one server after another. A message that is published to a cluster reaches all of
/// its servers.
pub(super) async fn receive(config: StoreConfig, channels: Arc<Channels>) {
    let mut nodes = config.nodes.iter().cycle();
    loop {
        if channels.names().is_empty() {
            channels.added.notified().await;
        }
        let Some(node) = nodes.next() else { return };
        let passing = channels.clone();
        let push = move |pushed: PushInfo| {
            passing.pass(pushed);
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

/// Listens until the connection breaks. A server that does not answer any more is noticed, because it is asked regularly.
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
