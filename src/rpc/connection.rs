//! The connection that a message comes from, and what it may do.

use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::engine::Owner;

/// A connection of a host's client: over HTTP, over WebSocket, or the page that holds a provider. The host makes it,
/// and hands it in with each message.
///
/// By default a connection is of no web page and can not be sent notifications.
#[derive(Debug, Default)]
pub struct Connection {
    owner: Owner,
    foreign_page: Option<String>,
    notified: bool,
    closed: AtomicBool,
    unsubscribed: AtomicUsize,
}

impl Connection {
    /// A connection of an asker, among whom filters are divided, such as an address. `number` tells connections apart.
    pub fn new(asker: u64, number: u64) -> Self {
        let owner = Owner { asker, connection: number, subscriptions: 0 };
        Self { owner, ..Self::default() }
    }

    /// The same connection, if it comes from a web page of this origin, which may not call methods of
    /// [`Pages::Own`](super::Pages::Own).
    #[must_use]
    pub fn from_foreign_page(self, origin: Option<String>) -> Self {
        Self { foreign_page: origin, ..self }
    }

    /// The same connection, if it can be sent notifications: of so many subscriptions at most.
    #[must_use]
    pub fn with_subscriptions(mut self, most: usize) -> Self {
        self.owner.subscriptions = most;
        self.notified = true;
        self
    }

    /// The number that tells it from others.
    pub fn number(&self) -> u64 {
        self.owner.connection
    }

    /// Origin of the web page that may not call every method.
    pub fn foreign_page(&self) -> Option<&str> {
        self.foreign_page.as_deref()
    }

    /// Whether it can be sent notifications.
    pub fn is_notified(&self) -> bool {
        self.notified
    }

    /// Whose filters the connection's messages install; it subscribes to nothing more once it is closed. To be asked
    /// for while the filters are held.
    pub fn owner(&self) -> Owner {
        match self.closed.load(Ordering::SeqCst) {
            true => Owner { subscriptions: 0, ..self.owner },
            false => self.owner,
        }
    }

    /// The client is gone. Messages that are still being answered make no subscriptions from now on; those there are end
    /// by [`Filters::close`](crate::engine::Filters::close).
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// How many subscriptions `eth_unsubscribe` has ended. A subscription that is not found was lost only if all that
    /// ended were told to the host, by [`Reply::unsubscribed`](super::Reply::unsubscribed).
    pub fn unsubscribed(&self) -> usize {
        self.unsubscribed.load(Ordering::SeqCst)
    }

    /// A subscription has ended.
    pub(super) fn count_unsubscribed(&self) {
        self.unsubscribed.fetch_add(1, Ordering::SeqCst);
    }
}
