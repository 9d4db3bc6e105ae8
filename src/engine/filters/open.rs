//! One filter or subscription, and whose it is.

#[cfg(feature = "light")]
use alloy_primitives::B256;

use super::{
    kinds::{Kind, Poll},
    watch::{Changes, Watch},
};
use crate::{
    engine::{logs::RangeStop, need::Need, view::View},
    types::Asker,
};

/// Seconds without a poll after which a filter is dropped.
pub const FILTER_IDLE: u64 = 300;
/// Seconds without a poll after which a subscription is dropped. Hosts poll every few seconds, but machines sleep.
pub const SUBSCRIPTION_IDLE: u64 = 3_600;

/// The owner of filters and subscriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owner {
    /// The asker. Filters are shared out between callers ([`Asker::number`]) and their pages ([`Asker::sharer`]). The filters
    /// of an asker that is apart from others ([`Asker::is_apart`]) do not exist for other askers, and theirs do not exist
    /// for it.
    pub asker: Asker,
    /// Number of the connection that owns the subscriptions.
    pub connection: u64,
    /// Most subscriptions that the connection may have.
    pub subscriptions: usize,
    /// Stands for what the asker may ask about. Filters that an API key made with other rights do not exist for it.
    pub rights: u64,
}

impl Owner {
    /// Whether a filter exists for this owner.
    pub(super) fn knows(&self, open: &Open) -> bool {
        // A page without an origin of its own may poll over several connections. Nobody else can guess the id.
        let nameless = [open.asker, self.asker].iter().all(Asker::is_nameless);
        let asker = open.asker == self.asker || nameless && open.asker.number == self.asker.number;
        let same = asker && open.rights == self.rights;
        same || !(open.asker.is_apart() || self.asker.is_apart())
    }
}

/// A filter or subscription.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) id: u128,
    pub(super) kind: Kind,
    /// Whether there was no poll yet.
    pub(super) fresh: bool,
    /// Time of the last poll, in seconds since 1970.
    pub(super) polled: u64,
    /// Number of the connection, if this is a subscription. Its host polls it and sends only what is new.
    pub(super) subscription: Option<u64>,
    /// The asker that installed it.
    pub(super) asker: Asker,
    /// The asker's rights at that time.
    pub(super) rights: u64,
    /// Its memory in bytes, approximately.
    pub(super) bytes: usize,
}

impl Open {
    /// A filter that is installed at `now` (seconds since 1970), or a subscription of its owner's connection.
    pub(super) fn new(
        id: u128,
        watch: Watch,
        is_subscription: bool,
        owner: Owner,
        view: &dyn View,
        now: u64,
    ) -> Need<Self> {
        let mut open = Self {
            id,
            kind: Kind::new(watch, view)?,
            fresh: !is_subscription,
            polled: now,
            subscription: is_subscription.then_some(owner.connection),
            asker: owner.asker,
            rights: owner.rights,
            bytes: 0,
        };
        open.weigh();
        Ok(open)
    }

    /// Whether the filter is still kept at `now` (seconds since 1970).
    pub(super) fn is_alive(&self, now: u64) -> bool {
        let idle = if self.subscription.is_some() { SUBSCRIPTION_IDLE } else { FILTER_IDLE };
        now.saturating_sub(self.polled) <= idle
    }

    pub(super) fn weigh(&mut self) {
        self.bytes = size_of::<Self>().saturating_add(self.kind.bytes());
    }

    /// What is new; `None` if events were missed. An error leaves the filter unchanged.
    pub(super) fn news(&mut self, view: &dyn View) -> Result<Option<Changes>, RangeStop> {
        let poll = Poll {
            is_first: self.fresh,
            #[cfg(feature = "light")]
            is_subscription: self.subscription.is_some(),
        };
        self.kind.news(view, poll)
    }

    /// Notes that a transaction is pending, if the filter watches those.
    #[cfg(feature = "light")]
    pub(super) fn add_pending(&mut self, transaction: B256) {
        if let Kind::Pending(pending) = &mut self.kind {
            pending.add(transaction);
            self.weigh();
        }
    }
}
