//! All filters and subscriptions of one client or local chain: installing, polling and removing them.

use alloc::vec::Vec;

use alloy_primitives::{B256, keccak256};

use super::{
    installed::{FilterOwner, InstalledFilter},
    quota::{FilterLimit, make_room},
    spec::{FilterChanges, FilterSpec},
};
use crate::{
    engine::{
        logs::{FoundLog, RangeStop},
        stop::ViewResult,
        view::View,
    },
    types::Asker,
};

/// Seconds by which a poll may be older than one that was answered before it. A larger difference means that the
/// clock was set back, and such a poll is answered.
const MAX_OVERTAKEN_SECONDS: u64 = 120;

/// Most events of a poll that counts as short, so that a server answers it without moving it to another thread.
#[cfg(feature = "local")]
const FEW_EVENTS: u64 = 64;

/// All filters and subscriptions of one client or local chain.
#[derive(Debug, Clone)]
pub struct Filters {
    /// The seed of ids.
    secret: B256,
    /// How many ids were made, so that each id is another one.
    made: u64,
    /// The filters and subscriptions, oldest first.
    pub(super) installed: Vec<InstalledFilter>,
    /// The owner whose message is being answered.
    owner: FilterOwner,
    /// Index of the filter that was found last, at which the next search begins.
    last: usize,
}

impl Filters {
    /// Makes an empty set. Ids derive from `secret`, so that they cannot be guessed without it.
    pub fn new(secret: B256) -> Self {
        Self { secret, made: 0, installed: Vec::new(), owner: FilterOwner::default(), last: 0 }
    }

    /// Sets the owner whose messages are answered from now on: it owns the filters that are installed, and finds only filters that
    /// it may poll.
    pub fn set_owner(&mut self, owner: FilterOwner) {
        self.owner = owner;
    }

    /// The owner whose message is being answered.
    pub fn owner(&self) -> FilterOwner {
        self.owner
    }

    /// Whether the owner's connection may make another subscription at `now` (seconds since 1970).
    pub fn may_subscribe(&self, now: u64) -> bool {
        let own = |installed: &&InstalledFilter| {
            installed.subscription == Some(self.owner.connection) && installed.is_alive(now)
        };
        self.installed.iter().filter(own).count() < self.owner.subscriptions
    }

    /// Ends a subscription of the owner's connection; `false` if it has none with this id.
    pub fn unsubscribe(&mut self, id: u128) -> bool {
        self.remove(id, Some(self.owner.connection))
    }

    /// Ends all subscriptions of a connection.
    pub fn close(&mut self, connection: u64) {
        self.installed.retain(|installed| installed.subscription != Some(connection));
    }

    /// The number of filters and subscriptions.
    pub fn len(&self) -> usize {
        self.installed.len()
    }

    /// Whether there are no filters or subscriptions.
    pub fn is_empty(&self) -> bool {
        self.installed.is_empty()
    }

    /// Installs a filter at `now` (seconds since 1970). Returns its id, or the limit that the filter would exceed. If there are too
    /// many filters, the caller with the most loses some, so that one caller cannot keep the others from having any.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn install(
        &mut self,
        spec: FilterSpec,
        view: &dyn View,
        now: u64,
    ) -> ViewResult<Result<u128, FilterLimit>> {
        self.add(spec, view, now, false)
    }

    /// As [`Self::install`], for a subscription. A subscription reports only later events, so the range of the spec is ignored.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn subscribe(
        &mut self,
        spec: FilterSpec,
        view: &dyn View,
        now: u64,
    ) -> ViewResult<Result<u128, FilterLimit>> {
        let spec = match spec {
            FilterSpec::Logs { filter, .. } | FilterSpec::BlockLogs { filter, .. } => {
                FilterSpec::Logs { filter, from: 0, to: None }
            }
            other => other,
        };
        self.add(spec, view, now, true)
    }

    fn add(
        &mut self,
        spec: FilterSpec,
        view: &dyn View,
        now: u64,
        is_subscription: bool,
    ) -> ViewResult<Result<u128, FilterLimit>> {
        self.installed.retain(|installed| installed.is_alive(now));
        let id = self.next_id();
        let made = InstalledFilter::new(id, spec, is_subscription, self.owner, view, now)?;
        let fits = make_room(&mut self.installed, made.asker, 1, made.bytes);
        Ok(fits.map(|()| {
            self.installed.push(made);
            id
        }))
    }

    /// A pseudo-random 128-bit number whose first bit is set, which gives all ids 32 hexadecimal digits.
    fn next_id(&mut self) -> u128 {
        self.made = self.made.saturating_add(1);
        let mut seed = self.secret.to_vec();
        seed.extend_from_slice(&self.made.to_be_bytes());
        let [half @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = keccak256(&seed).0;
        u128::from_be_bytes(half) | 1 << 127
    }

    /// Removes a filter; returns `false` if there is none with this id.
    pub fn uninstall(&mut self, id: u128) -> bool {
        self.remove(id, None)
    }

    /// Removes a filter of the owner, or, if a connection is given, a subscription of that connection. Returns whether one was
    /// removed.
    fn remove(&mut self, id: u128, connection: Option<u64>) -> bool {
        let (before, owner) = (self.installed.len(), self.owner);
        self.installed.retain(|installed| {
            let is_of_other = connection.is_some() && installed.subscription != connection;
            installed.id != id || is_of_other || !owner.owns(installed)
        });
        self.installed.len() < before
    }

    /// The filter or subscription with this id, if the owner may poll it and it was not idle for too long.
    fn alive(&mut self, id: u128, now: u64) -> Option<&mut InstalledFilter> {
        let owner = self.owner;
        let is_wanted = |installed: &InstalledFilter| {
            installed.id == id && installed.is_alive(now) && owner.owns(installed)
        };
        // Servers poll subscriptions in the order in which they were made, so the next one is near the last one.
        let first = self.last.min(self.installed.len());
        let later = self.installed.iter().skip(first).position(is_wanted);
        let index = match later {
            Some(later) => first.saturating_add(later),
            None => self.installed.iter().position(is_wanted)?,
        };
        self.last = index;
        self.installed.get_mut(index)
    }

    /// The changes since the last poll, as far as one answer can carry them; `None` if the filter does not exist. A filter
    /// that missed events of its chain, because it was not polled for too long, is dropped, so that its owner notices
    /// the gap. A poll that fails leaves the filter unchanged. A poll that was overtaken by a later one while it waited for
    /// proofs returns nothing: from its older view, the newest blocks would seem to have left the chain.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn poll(&mut self, id: u128, view: &dyn View, now: u64) -> Result<Option<FilterChanges>, RangeStop> {
        let Some(installed) = self.alive(id, now) else { return Ok(None) };
        if (1..=MAX_OVERTAKEN_SECONDS).contains(&installed.polled.saturating_sub(now)) {
            // Changes of every kind are a list in JSON, so that an empty list of hashes stands for no changes of any kind.
            return Ok(Some(FilterChanges::Hashes(Vec::new())));
        }
        let Some(changes) = installed.changes(view)? else {
            self.remove(id, None);
            return Ok(None);
        };
        installed.fresh = false;
        installed.polled = now;
        let before = installed.bytes;
        installed.update_bytes();
        if installed.bytes > before {
            // Without a new filter this drops those beyond the limits and cannot fail.
            let _ = make_room(&mut self.installed, Asker::default(), 0, 0);
        }
        Ok(Some(changes))
    }

    /// All logs in the range of a log filter; `None` if there is no log filter with this id.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn all_logs(
        &mut self,
        id: u128,
        view: &dyn View,
        now: u64,
    ) -> Result<Option<Vec<FoundLog>>, RangeStop> {
        let Some(installed) = self.alive(id, now) else { return Ok(None) };
        // Subscriptions have no range to return the logs of.
        let logs = if installed.subscription.is_none() { installed.kind.all_logs(view)? } else { None };
        if logs.is_some() {
            installed.polled = now;
        }
        Ok(logs)
    }

    /// Whether the next poll of a filter of an executed chain takes only microseconds: it reports no logs, and at most
    /// 64 events are new. So does the poll of a filter that does not exist.
    #[cfg(feature = "local")]
    pub fn poll_is_short(&mut self, id: u128, view: &dyn View, now: u64) -> bool {
        let Some(installed) = self.alive(id, now) else { return true };
        let ahead = view.events().and_then(|events| installed.kind.events_ahead(events));
        ahead.is_some_and(|ahead| ahead <= FEW_EVENTS)
    }

    /// Notes that an asker has sent a transaction to the pool of the upstreams. The asker's own filters report the transaction.
    #[cfg(feature = "light")]
    pub fn pending(&mut self, transaction: B256, asker: Asker) {
        self.pending_where(transaction, |installed| installed.asker == asker);
    }

    /// As [`Self::pending`], for subscriptions alone, where another host has received the transaction. `asker` is the
    /// [`Asker::shared_id`] by which hosts name the asker to each other.
    #[cfg(feature = "light")]
    pub fn pending_for_subscriptions(&mut self, transaction: B256, asker: u64) {
        self.pending_where(transaction, |installed| {
            installed.asker.shared_id() == asker && installed.subscription.is_some()
        });
    }

    /// Notes a pending transaction for the filters that `selects` selects.
    #[cfg(feature = "light")]
    fn pending_where(&mut self, transaction: B256, selects: impl Fn(&InstalledFilter) -> bool) {
        self.installed
            .iter_mut()
            .filter(|installed| selects(installed))
            .for_each(|installed| installed.add_pending(transaction));
        // Without a new filter this drops those beyond the limits and cannot fail.
        let _ = make_room(&mut self.installed, Asker::default(), 0, 0);
    }
}
