//! The connection that a message comes from, and what it may do.

use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(feature = "dev")]
use super::page_access::PageAccess;
use super::{
    envelope::{BATCH_LIMIT, MAX_BATCH},
    method::Method,
};
use crate::engine::Owner;

/// Chooses the row that serves a method for a connection; `None`: the connection does not have the method.
pub type Selection = fn(&'static Method) -> Option<&'static Method>;

/// A connection of a caller: over HTTP, over WebSocket, or of the page that holds a provider. The host makes it and
/// passes it in with each message.
///
/// By default, a connection belongs to the operator and to no web page, and cannot receive notifications.
#[derive(Debug, Default)]
pub struct Connection {
    owner: Owner,
    foreign_page: Option<String>,
    #[cfg(feature = "dev")]
    admitted: bool,
    guest: bool,
    select: Option<Selection>,
    notified: bool,
    batch_limit: Option<usize>,
    closed: AtomicBool,
    unsubscribed: AtomicUsize,
}

impl Connection {
    /// A connection of a caller. `asker` identifies the caller, for example by address; filters are shared out
    /// between callers. `number` identifies the connection.
    pub fn new(asker: u64, number: u64) -> Self {
        let owner = Owner { asker: asker.into(), connection: number, ..Owner::default() };
        Self { owner, ..Self::default() }
    }

    /// Returns the connection, marked as coming from a web page of this origin. Such a page may not call methods of
    /// [`PageAccess::Own`](super::PageAccess::Own), and is an asker of its own: filters and waiting transactions of the
    /// caller's programs and of its other pages do not exist for it. `None` leaves it unmarked. Pages without an
    /// origin of their own are told apart by `frame`; filters of one exist for the others, if they know the ids.
    #[must_use]
    pub fn from_foreign_page(mut self, origin: Option<String>, frame: u64) -> Self {
        self.owner.asker = self.owner.asker.on_page(origin.as_deref(), frame);
        Self { foreign_page: origin, ..self }
    }

    /// Returns the connection, of the operator of the host or of another caller, for whom methods of
    /// [`PageAccess::Operator`](super::PageAccess::Operator) do not exist.
    #[must_use]
    pub fn with_operator(self, operator: bool) -> Self {
        Self { guest: !operator, ..self }
    }

    /// Whether the caller is the operator of the host, and not through a page of another origin.
    pub fn is_operator(&self) -> bool {
        !self.guest && self.foreign_page.is_none()
    }

    /// Returns the connection, for which a function chooses the rows that serve methods.
    #[must_use]
    pub fn with_selection(self, select: Selection) -> Self {
        Self { select: Some(select), ..self }
    }

    /// Whether the host chooses the rows: a service, whose callers need not know the operator's network.
    #[cfg(feature = "light")]
    pub(super) fn is_selected(&self) -> bool {
        self.select.is_some()
    }

    /// The row that serves a method for this connection; `None` if the connection does not have the method.
    pub(super) fn row(&self, row: &'static Method) -> Option<&'static Method> {
        match self.select {
            Some(select) => select(row),
            None => Some(row),
        }
    }

    /// Returns the connection, able to receive notifications of at most this many subscriptions.
    #[must_use]
    pub fn with_subscriptions(mut self, most: usize) -> Self {
        self.owner.subscriptions = most;
        self.notified = true;
        self
    }

    /// The connection of the WebSocket that a request of this connection opens, able to receive notifications of at most this
    /// many subscriptions. `frame` is that of [`Self::from_foreign_page`].
    #[must_use]
    pub fn for_socket(&self, frame: u64, subscriptions: usize) -> Self {
        let foreign_page = self.foreign_page.clone();
        let asker = self.owner.asker.on_page(foreign_page.as_deref(), frame);
        Self {
            owner: Owner { asker, subscriptions, ..self.owner },
            foreign_page,
            notified: true,
            closed: AtomicBool::default(),
            unsubscribed: AtomicUsize::default(),
            ..*self
        }
    }

    /// Returns the connection, whose batches have at most this many calls, and no more than [`MAX_BATCH`].
    #[must_use]
    pub fn with_batch_limit(self, most: usize) -> Self {
        Self { batch_limit: Some(most.min(MAX_BATCH)), ..self }
    }

    /// The number of calls that a batch may have; [`BATCH_LIMIT`] by default.
    pub fn batch_limit(&self) -> usize {
        self.batch_limit.unwrap_or(BATCH_LIMIT)
    }

    /// Returns the connection of a caller with these rights. Filters that an API key made with other rights do not exist
    /// for it.
    #[must_use]
    pub fn with_rights(mut self, rights: u64) -> Self {
        self.owner.rights = rights;
        self
    }

    /// Returns the connection, of a page that may use keys and change the chain although it is of another origin, because
    /// the operator allows that to every page.
    #[cfg(feature = "dev")]
    #[must_use]
    pub fn admitting_all_pages(self, admitted: bool) -> Self {
        Self { admitted, ..self }
    }

    /// Whether the connection belongs to a page of another origin that may not call methods of these pages.
    #[cfg(feature = "dev")]
    pub(super) fn refuses(&self, pages: PageAccess) -> Option<&str> {
        let refused = match pages {
            PageAccess::Any | PageAccess::Operator => false,
            PageAccess::Own if self.admitted => false,
            PageAccess::Own | PageAccess::Named => true,
        };
        self.foreign_page().filter(|_| refused)
    }

    /// The number that identifies this connection.
    pub fn number(&self) -> u64 {
        self.owner.connection
    }

    /// Origin of the web page, if the connection belongs to a page that may not call every method.
    pub fn foreign_page(&self) -> Option<&str> {
        self.foreign_page.as_deref()
    }

    /// Whether the connection can receive notifications.
    pub fn is_notified(&self) -> bool {
        self.notified
    }

    /// The owner of the filters that the connection's messages install. A closed connection may have no
    /// subscriptions. Call it while holding the lock of the filters, so that the connection cannot close in between.
    pub fn owner(&self) -> Owner {
        match self.closed.load(Ordering::SeqCst) {
            true => Owner { subscriptions: 0, ..self.owner },
            false => self.owner,
        }
    }

    /// Marks the connection as closed. Messages that are still being answered make no subscriptions from now on;
    /// [`Filters::close`](crate::engine::Filters::close) ends the existing ones.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// How many subscriptions `eth_unsubscribe` has ended. When a subscription is not found, the host compares this
    /// with the ends it was told of by [`Effect::Unsubscribed`](super::Effect::Unsubscribed): if they are equal, the
    /// subscription was lost.
    pub fn unsubscribed(&self) -> usize {
        self.unsubscribed.load(Ordering::SeqCst)
    }

    /// Counts a subscription that has ended.
    pub(super) fn count_unsubscribed(&self) {
        self.unsubscribed.fetch_add(1, Ordering::SeqCst);
    }
}
