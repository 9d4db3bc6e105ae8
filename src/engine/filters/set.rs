//! All filters and subscriptions of an engine.

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
        need::ViewResult,
        view::View,
    },
    types::Asker,
};

/// Seconds by which a poll may be older than one that was answered before it. A larger difference means that the
/// clock was set back.
const OVERTAKEN: u64 = 120;

/// Most events of a poll that counts as short.
#[cfg(feature = "local")]
const FEW_EVENTS: u64 = 64;

/// All filters and subscriptions of an engine.
#[derive(Debug, Clone)]
pub struct Filters {
    secret: B256,
    made: u64,
    pub(super) installed: Vec<InstalledFilter>,
    /// The owner of filters that are installed now.
    owner: FilterOwner,
    /// The place of the filter that was found last.
    last: usize,
}

impl Filters {
    /// Makes an empty set. Ids derive from `secret`, so that they cannot be guessed without it.
    pub fn new(secret: B256) -> Self {
        Self { secret, made: 0, installed: Vec::new(), owner: FilterOwner::default(), last: 0 }
    }

    /// Sets the owner of filters that are installed from now on. If there are too many filters, the caller with the
    /// most loses some, so that one caller cannot keep the others from having any. Pages of other origins have a part of
    /// their caller's filters.
    pub fn ask_as(&mut self, owner: FilterOwner) {
        self.owner = owner;
    }

    /// The owner of filters that are installed now.
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

    /// Installs a filter at `now` (seconds since 1970). Returns its id, or the limit that leaves no room for it.
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

    /// As [`Self::install`], for a subscription. It reports only later events, whatever the start of its range.
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
        let room = make_room(&mut self.installed, made.asker, 1, made.bytes);
        Ok(room.map(|()| {
            self.installed.push(made);
            id
        }))
    }

    /// A pseudo-random 128-bit number whose first bit is set.
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

    /// Removes a filter. With a connection, it must be a subscription of that connection.
    fn remove(&mut self, id: u128, connection: Option<u64>) -> bool {
        let (before, owner) = (self.installed.len(), self.owner);
        self.installed.retain(|installed| {
            let other = connection.is_some() && installed.subscription != connection;
            installed.id != id || other || !owner.owns(installed)
        });
        self.installed.len() < before
    }

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

    /// The changes since the last poll, as far as one answer can hold them; `None` if the filter does not exist. A filter
    /// that missed events of its chain, because it was not polled for too long, is dropped, so that its owner learns of
    /// it. A poll that fails leaves the filter unchanged. A poll that was overtaken by a later one while it waited for
    /// proofs returns nothing: from its older view, the newest blocks would seem to have left the chain.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn poll(&mut self, id: u128, view: &dyn View, now: u64) -> Result<Option<FilterChanges>, RangeStop> {
        let Some(installed) = self.alive(id, now) else { return Ok(None) };
        if (1..=OVERTAKEN).contains(&installed.polled.saturating_sub(now)) {
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

    /// Whether the next poll of a filter of an executed chain takes microseconds: it reports no logs, and at most
    /// 64 events are new. A filter that does not exist counts as such.
    #[cfg(feature = "local")]
    pub fn poll_is_short(&mut self, id: u128, view: &dyn View, now: u64) -> bool {
        let Some(installed) = self.alive(id, now) else { return true };
        let ahead = view.events().and_then(|events| installed.kind.events_ahead(events));
        ahead.is_some_and(|ahead| ahead <= FEW_EVENTS)
    }

    /// Notes that an asker has sent a transaction to the pool of the upstreams. Its own filters report it.
    #[cfg(feature = "light")]
    pub fn pending(&mut self, transaction: B256, asker: Asker) {
        self.pending_where(transaction, |installed| installed.asker == asker);
    }

    /// As [`Self::pending`], for subscriptions alone, of the asker that other hosts name so ([`Asker::shared_id`]).
    #[cfg(feature = "light")]
    pub fn pending_for_subscriptions(&mut self, transaction: B256, asker: u64) {
        self.pending_where(transaction, |installed| {
            installed.asker.shared_id() == asker && installed.subscription.is_some()
        });
    }

    #[cfg(feature = "light")]
    fn pending_where(&mut self, transaction: B256, is_told: impl Fn(&InstalledFilter) -> bool) {
        self.installed
            .iter_mut()
            .filter(|installed| is_told(installed))
            .for_each(|installed| installed.add_pending(transaction));
        let _ = make_room(&mut self.installed, Asker::default(), 0, 0);
    }
}
