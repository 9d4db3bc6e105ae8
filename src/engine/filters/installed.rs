//! One filter or subscription, with its owner.

#[cfg(feature = "light")]
use alloy_primitives::B256;

use super::{
    kinds::{FilterKind, PollMode},
    spec::{FilterChanges, FilterSpec},
};
use crate::{
    engine::{logs::RangeStop, stop::ViewResult, view::View},
    types::Asker,
};

/// Seconds without a poll after which a filter is dropped.
pub const FILTER_IDLE: u64 = 300;
/// Seconds without a poll after which a subscription is dropped. Hosts poll every few seconds, but machines sleep.
pub const SUBSCRIPTION_IDLE: u64 = 3_600;

/// The owner of filters and subscriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilterOwner {
    /// The asker. Limits on filters count per caller ([`Asker::number`]) and per page of a caller ([`Asker::counts_as`]).
    /// The filters of an isolated asker ([`Asker::is_isolated`]) do not exist for other askers, and
    /// theirs do not exist for it.
    pub asker: Asker,
    /// Number of the connection that owns the subscriptions.
    pub connection: u64,
    /// Most subscriptions that the connection may have.
    pub subscriptions: usize,
    /// A number that the host gives to the rights of the asker: equal numbers are equal rights. An isolated asker does not
    /// find filters that it made with other rights.
    pub rights: u64,
}

impl FilterOwner {
    /// Whether the owner may poll and remove a filter: its own, or any if neither asker is isolated.
    pub(super) fn owns(&self, filter: &InstalledFilter) -> bool {
        // A page with an opaque origin is another asker on each of its connections, and may poll over several of them. No
        // other page can guess the id.
        let both_opaque = [filter.asker, self.asker].iter().all(Asker::has_opaque_origin);
        let same_asker =
            filter.asker == self.asker || both_opaque && filter.asker.number == self.asker.number;
        let is_own = same_asker && filter.rights == self.rights;
        is_own || !(filter.asker.is_isolated() || self.asker.is_isolated())
    }
}

/// A filter or subscription as the engine polls it.
#[derive(Debug, Clone)]
pub(super) struct InstalledFilter {
    pub(super) id: u128,
    pub(super) kind: FilterKind,
    /// Whether the first poll is still to come, which reports the whole range of a log filter. Never for a subscription.
    pub(super) fresh: bool,
    /// Time of the last poll, or of the installation, in seconds since 1970.
    pub(super) polled: u64,
    /// Number of the connection, if this is a subscription. The host polls a subscription and sends only what is new.
    pub(super) subscription: Option<u64>,
    /// The asker that has made the filter.
    pub(super) asker: Asker,
    /// The asker's rights when it made the filter ([`FilterOwner::rights`]).
    pub(super) rights: u64,
    /// The memory of the filter in bytes, approximately.
    pub(super) bytes: usize,
}

impl InstalledFilter {
    /// A filter that is installed at `now` (seconds since 1970), or a subscription of its owner's connection.
    pub(super) fn new(
        id: u128,
        spec: FilterSpec,
        is_subscription: bool,
        owner: FilterOwner,
        view: &dyn View,
        now: u64,
    ) -> ViewResult<Self> {
        let mut filter = Self {
            id,
            kind: FilterKind::new(spec, view)?,
            fresh: !is_subscription,
            polled: now,
            subscription: is_subscription.then_some(owner.connection),
            asker: owner.asker,
            rights: owner.rights,
            bytes: 0,
        };
        filter.update_bytes();
        Ok(filter)
    }

    /// Whether the filter was polled recently enough at `now` (seconds since 1970).
    pub(super) fn is_alive(&self, now: u64) -> bool {
        let idle = if self.subscription.is_some() { SUBSCRIPTION_IDLE } else { FILTER_IDLE };
        now.saturating_sub(self.polled) <= idle
    }

    pub(super) fn update_bytes(&mut self) {
        self.bytes = size_of::<Self>().saturating_add(self.kind.bytes());
    }

    /// The changes since the last poll; `None` if events were missed. An error leaves the filter unchanged.
    pub(super) fn changes(&mut self, view: &dyn View) -> Result<Option<FilterChanges>, RangeStop> {
        let poll = PollMode {
            is_first: self.fresh,
            #[cfg(feature = "light")]
            is_subscription: self.subscription.is_some(),
        };
        self.kind.changes(view, poll)
    }

    /// Notes that a transaction is pending, if the filter reports pending transactions.
    #[cfg(feature = "light")]
    pub(super) fn add_pending(&mut self, transaction: B256) {
        if let FilterKind::Pending(pending) = &mut self.kind {
            pending.add(transaction);
            self.update_bytes();
        }
    }
}
