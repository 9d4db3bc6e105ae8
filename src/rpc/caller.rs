//! The caller that a message comes from, and the methods and rights that it has. A host makes the caller when it admits a
//! connection or request; the client passes it to the session of each message.

use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(feature = "dev")]
use super::page_access::PageAccess;
use super::{
    envelope::{BATCH_LIMIT, MAX_BATCH},
    method::Method,
};
use crate::engine::FilterOwner;

/// Chooses the row of the method table that serves a method for a caller, given the row of the core; `None`: the caller does
/// not have the method.
pub type Selection = fn(&'static Method) -> Option<&'static Method>;

/// The caller of a message, over one connection: over HTTP, over WebSocket, or in the page that holds a provider. The host
/// makes it once it has admitted the caller, and passes it in with each message.
///
/// By default, a caller is the operator and no web page, and cannot receive notifications.
#[derive(Debug, Default)]
pub struct Caller {
    owner: FilterOwner,
    /// The origin, if the caller is a web page of another origin that may not call every method.
    foreign_page: Option<String>,
    /// Whether a foreign page may use keys and change the chain all the same.
    #[cfg(feature = "dev")]
    admitted: bool,
    /// Whether the caller is not the operator.
    guest: bool,
    /// Chooses the rows of the caller; `None`: all rows.
    select: Option<Selection>,
    /// Whether the caller can receive notifications.
    notified: bool,
    /// Whether the caller can receive an answer in pieces.
    #[cfg(feature = "local")]
    takes_pieces: bool,
    /// Most calls of a batch; `None`: [`BATCH_LIMIT`].
    batch_limit: Option<usize>,
    /// Whether the connection is closed.
    closed: AtomicBool,
    /// Number of subscriptions that `eth_unsubscribe` has ended.
    unsubscribed: AtomicUsize,
}

impl Caller {
    /// A caller over the connection of this number. `asker` is a number that all callers have who share filters, for example
    /// those at one address.
    pub fn new(asker: u64, connection: u64) -> Self {
        let owner = FilterOwner { asker: asker.into(), connection, ..FilterOwner::default() };
        Self { owner, ..Self::default() }
    }

    /// Returns the caller, as a web page of this origin. Such a page may not call methods of
    /// [`PageAccess::Own`](super::PageAccess::Own), and is an asker of its own: it cannot see filters and waiting transactions
    /// of programs at the same address or of other pages. An origin of `None` stands for a program, or for a page that may call
    /// every method. All pages without an origin of their own, such as sandboxed frames, send the origin `null`. The number `frame`,
    /// another one for each message over HTTP, distinguishes them, but each can use the filters of the others if it knows the ids.
    #[must_use]
    pub fn from_foreign_page(mut self, origin: Option<String>, frame: u64) -> Self {
        self.owner.asker = self.owner.asker.on_page(origin.as_deref(), frame);
        Self { foreign_page: origin, ..self }
    }

    /// Returns the caller, as the operator of the host (`true`) or as another caller, who does not have the methods of
    /// [`PageAccess::Operator`](super::PageAccess::Operator).
    #[must_use]
    pub fn with_operator(self, operator: bool) -> Self {
        Self { guest: !operator, ..self }
    }

    /// Whether the caller is the operator of the host, and not through a page of another origin.
    pub fn is_operator(&self) -> bool {
        !self.guest && self.foreign_page.is_none()
    }

    /// Returns the caller, with a function that chooses the rows that serve methods; `None`: all rows.
    #[must_use]
    pub fn with_selection(self, select: Option<Selection>) -> Self {
        Self { select, ..self }
    }

    /// Whether the host chooses the rows. Such a host is a service, and its callers do not see the names of its upstreams.
    #[cfg(feature = "light")]
    pub(super) fn is_selected(&self) -> bool {
        self.select.is_some()
    }

    /// The row that serves a method for this caller; `None` if the caller does not have the method.
    pub(super) fn row(&self, row: &'static Method) -> Option<&'static Method> {
        match self.select {
            Some(select) => select(row),
            None => Some(row),
        }
    }

    /// Returns the caller, able to receive notifications of at most this many subscriptions.
    #[must_use]
    pub fn with_subscriptions(mut self, most: usize) -> Self {
        self.owner.subscriptions = most;
        self.notified = true;
        self
    }

    /// The caller over the WebSocket that a request of this caller opens, able to receive notifications of at most this many
    /// subscriptions.
    #[must_use]
    pub fn for_socket(&self, subscriptions: usize) -> Self {
        let foreign_page = self.foreign_page.clone();
        // All messages over the WebSocket are of one frame, numbered by its connection. Hosts number the messages over HTTP from 0
        // upwards, so that counting down from the greatest number keeps both kinds apart.
        let frame = u64::MAX.saturating_sub(self.owner.connection);
        let asker = self.owner.asker.on_page(foreign_page.as_deref(), frame);
        Self {
            owner: FilterOwner { asker, subscriptions, ..self.owner },
            foreign_page,
            notified: true,
            closed: AtomicBool::default(),
            unsubscribed: AtomicUsize::default(),
            ..*self
        }
    }

    /// Returns the caller, whose batches have at most this many calls, and no more than [`MAX_BATCH`].
    #[must_use]
    pub fn with_batch_limit(self, most: usize) -> Self {
        Self { batch_limit: Some(most.min(MAX_BATCH)), ..self }
    }

    /// The number of calls that a batch may have; [`BATCH_LIMIT`] by default.
    pub fn batch_limit(&self) -> usize {
        self.batch_limit.unwrap_or(BATCH_LIMIT)
    }

    /// Returns the caller, able to receive an answer in pieces.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn taking_pieces(self) -> Self {
        Self { takes_pieces: true, ..self }
    }

    /// Whether the caller can receive an answer in pieces.
    #[cfg(feature = "local")]
    pub fn takes_pieces(&self) -> bool {
        self.takes_pieces
    }

    /// Returns the caller, with the rights of its API key, as a number that is the same for the same rights. Filters that the
    /// key made while it had other rights cannot be used.
    #[must_use]
    pub fn with_rights(mut self, rights: u64) -> Self {
        self.owner.rights = rights;
        self
    }

    /// Returns the caller, as a page that may use keys and change the chain although it is of another origin, because the
    /// operator allows that to every page.
    #[cfg(feature = "dev")]
    #[must_use]
    pub fn admitting_all_pages(self, admitted: bool) -> Self {
        Self { admitted, ..self }
    }

    /// The origin of the caller, if the caller is a page of another origin that may not call methods with this access.
    #[cfg(feature = "dev")]
    pub(super) fn refuses(&self, access: PageAccess) -> Option<&str> {
        let refused = match access {
            PageAccess::Any | PageAccess::Operator => false,
            PageAccess::Own if self.admitted => false,
            PageAccess::Own | PageAccess::Named => true,
        };
        self.foreign_page().filter(|_| refused)
    }

    /// The number of the connection.
    pub fn connection(&self) -> u64 {
        self.owner.connection
    }

    /// Origin of the web page, if the caller is a page that may not call every method.
    pub fn foreign_page(&self) -> Option<&str> {
        self.foreign_page.as_deref()
    }

    /// Whether the caller can receive notifications.
    pub fn is_notified(&self) -> bool {
        self.notified
    }

    /// The owner of the filters that the caller's messages install. A caller whose connection is closed may have no
    /// subscriptions. To be called while the lock of the filters is held, so that the connection cannot close in between.
    pub fn owner(&self) -> FilterOwner {
        match self.closed.load(Ordering::SeqCst) {
            true => FilterOwner { subscriptions: 0, ..self.owner },
            false => self.owner,
        }
    }

    /// Marks the connection as closed. Messages that are still being answered make no subscriptions from now on;
    /// [`Filters::close`](crate::engine::Filters::close) ends the existing ones.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// How many subscriptions `eth_unsubscribe` has ended. When a subscription is not found, the host compares this number
    /// with the number of [`Effect::Unsubscribed`](super::Effect::Unsubscribed) that it has received: if they are equal, the
    /// subscription was lost.
    pub fn unsubscribed(&self) -> usize {
        self.unsubscribed.load(Ordering::SeqCst)
    }

    /// Counts a subscription that has ended.
    pub(super) fn count_unsubscribed(&self) {
        self.unsubscribed.fetch_add(1, Ordering::SeqCst);
    }
}
