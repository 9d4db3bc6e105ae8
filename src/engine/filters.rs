//! Filters and subscriptions: each remembers up to where its owner was informed, and is polled for what is new.
//!
//! On an executed chain they report the chain's own events. On a light client they need only a [`View`] of the present
//! head: what a reorganisation took back follows from the reported blocks that are no longer canonical.

#[cfg(all(feature = "hosted", feature = "light"))]
mod carried;
#[cfg(feature = "local")]
mod events;
mod owner;
mod room;
#[cfg(feature = "light")]
mod seen;

use alloc::vec::Vec;

use alloy_primitives::{B256, keccak256};

#[cfg(all(feature = "hosted", feature = "light"))]
pub use self::carried::CarriedError;
pub use self::owner::Owner;
pub use self::room::FilterLimit;
#[cfg(feature = "light")]
use self::seen::Seen;
#[cfg(feature = "light")]
pub use self::seen::{MAX_PENDING, MAX_TOLD_LOGS, TRAIL};
use super::{
    BlockHeader,
    block_id::settled_height,
    log_filter::LogFilter,
    logs::{FoundLog, RangeStop, logs_by_hash, range_logs},
    view::{Need, SyncProgress, View},
};
use crate::types::Asker;

/// Seconds without a poll after which a filter is dropped.
pub const FILTER_IDLE: u64 = 300;
/// Seconds by which a poll may be older than one that was answered before it. A larger difference means that the
/// clock was set back.
const OVERTAKEN: u64 = 120;
/// Seconds without a poll after which a subscription is dropped. Hosts poll every few seconds, but machines sleep.
pub const SUBSCRIPTION_IDLE: u64 = 3_600;
/// Most filters and subscriptions that are kept.
pub const MAX_FILTERS: usize = 4_096;
/// What a filter watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// Logs of a range of blocks. Without `to` the range grows with the chain.
    Logs {
        /// The selection of logs.
        filter: LogFilter,
        /// First block.
        from: u64,
        /// Last block.
        to: Option<u64>,
    },
    /// Logs of one block.
    BlockLogs {
        /// The selection of logs.
        filter: LogFilter,
        /// The block.
        block: B256,
    },
    /// New blocks.
    Blocks,
    /// Transactions that enter the pool.
    Pending,
    /// New blocks, with their headers.
    Heads,
    /// Whether the chain is synchronizing.
    Syncing,
}

impl Watch {
    fn bytes(&self) -> usize {
        let (Self::Logs { filter, .. } | Self::BlockLogs { filter, .. }) = self else { return 0 };
        let topics = filter.topics.iter().map(|any| size_of_val(&**any)).fold(0, usize::saturating_add);
        size_of_val(&*filter.addresses).saturating_add(topics)
    }

    /// All logs of the range or block; `None` if it watches no logs.
    fn logs(&self, view: &dyn View) -> Result<Option<Vec<FoundLog>>, RangeStop> {
        Ok(Some(match self {
            Self::BlockLogs { filter, block } => logs_by_hash(view, *block, filter)?,
            Self::Logs { filter, from, to } => {
                let head = settled_height(view)?;
                range_logs(view, *from, to.map_or(head, |to| to.min(head)), filter)?
            }
            _ => return Ok(None),
        }))
    }
}

/// What is new since the last poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Logs, each with a flag that says whether a reorganisation took it back.
    Logs(Vec<(FoundLog, bool)>),
    /// Hashes of blocks or transactions.
    Hashes(Vec<B256>),
    /// Headers, oldest first.
    Heads(Vec<BlockHeader>),
    /// The progress of synchronization, if it has begun or ended since.
    Syncing(Option<Option<SyncProgress>>),
}

#[derive(Debug, Clone)]
struct Open {
    id: u128,
    watch: Watch,
    /// Whether there was no poll yet.
    fresh: bool,
    /// What it has reported of a view without events.
    #[cfg(feature = "light")]
    seen: Seen,
    /// Number of the first event that is not reported yet.
    #[cfg(feature = "local")]
    next: u64,
    polled: u64,
    /// Number of the connection, if this is a subscription. Its host polls it and sends only what is new.
    subscription: Option<u64>,
    /// Whether synchronization was in progress at the last poll.
    syncing: bool,
    /// The asker that installed it.
    asker: Asker,
    /// The asker's rights at that time.
    rights: u64,
    /// Its memory in bytes, approximately.
    bytes: usize,
}

impl Open {
    /// Whether the filter is still kept at `now` (seconds since 1970).
    fn is_alive(&self, now: u64) -> bool {
        let idle = if self.subscription.is_some() { SUBSCRIPTION_IDLE } else { FILTER_IDLE };
        now.saturating_sub(self.polled) <= idle
    }

    fn weigh(&mut self) {
        if !cfg!(feature = "hosted") {
            return;
        }
        self.bytes = size_of::<Self>().saturating_add(self.watch.bytes());
        #[cfg(feature = "light")]
        {
            self.bytes = self.bytes.saturating_add(self.seen.bytes());
        }
    }

    /// What is new; `None` if events were missed. An error leaves the filter unchanged.
    fn news(&mut self, view: &dyn View) -> Result<Option<Changes>, RangeStop> {
        if matches!(self.watch, Watch::Syncing) {
            let now = view.syncing();
            let turned = now.is_some() != core::mem::replace(&mut self.syncing, now.is_some());
            return Ok(Some(Changes::Syncing(turned.then_some(now))));
        }
        #[cfg(feature = "local")]
        let events = view.events();
        #[cfg(not(feature = "local"))]
        let events = None::<()>;
        let once = matches!(self.watch, Watch::BlockLogs { .. });
        if once || events.is_some() && self.fresh {
            let logs = if self.fresh { self.watch.logs(view)? } else { Some(Vec::new()) };
            if let Some(logs) = logs {
                #[cfg(feature = "local")]
                {
                    self.next = events.map(crate::local::Events::next).unwrap_or_default();
                }
                return Ok(Some(Changes::Logs(marked(logs, false))));
            }
        }
        #[cfg(feature = "local")]
        if let Some(events) = events {
            return Ok(events::news(&self.watch, &mut self.next, events, view));
        }
        #[cfg(feature = "light")]
        return self.compared(view).map(Some);
        #[cfg(not(feature = "light"))]
        Ok(None)
    }
}

/// All filters and subscriptions of an engine.
#[derive(Debug, Clone)]
pub struct Filters {
    secret: B256,
    made: u64,
    open: Vec<Open>,
    /// The owner of filters that are installed now.
    owner: Owner,
    /// The place of the filter that was found last.
    #[cfg(feature = "node-methods")]
    last: usize,
}

impl Filters {
    /// Makes an empty set. Ids derive from `secret`, so that they cannot be guessed without it.
    pub fn new(secret: B256) -> Self {
        Self {
            secret,
            made: 0,
            open: Vec::new(),
            owner: Owner::default(),
            #[cfg(feature = "node-methods")]
            last: 0,
        }
    }

    /// Sets the owner of filters that are installed from now on. If there are too many filters, the caller with the
    /// most loses some, so that one caller cannot keep the others from having any. Pages of other origins have a part of
    /// their caller's filters.
    pub fn ask_as(&mut self, owner: Owner) {
        self.owner = owner;
    }

    /// The owner of filters that are installed now.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Whether the owner's connection may make another subscription at `now` (seconds since 1970).
    pub fn may_subscribe(&self, now: u64) -> bool {
        let own = |open: &&Open| open.subscription == Some(self.owner.connection) && open.is_alive(now);
        self.open.iter().filter(own).count() < self.owner.subscriptions
    }

    /// Ends a subscription of the owner's connection; `false` if it has none with this id.
    pub fn unsubscribe(&mut self, id: u128) -> bool {
        self.remove(id, Some(self.owner.connection))
    }

    /// Ends all subscriptions of a connection.
    pub fn close(&mut self, connection: u64) {
        self.open.retain(|open| open.subscription != Some(connection));
    }

    /// The number of filters and subscriptions.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are no filters or subscriptions.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Installs a filter at `now` (seconds since 1970). Returns its id, or the limit that leaves no room for it.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn install(&mut self, watch: Watch, view: &dyn View, now: u64) -> Need<Result<u128, FilterLimit>> {
        self.add(watch, view, now, None)
    }

    /// As [`Self::install`], for a subscription. It reports only later events, whatever the start of its range.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn subscribe(&mut self, watch: Watch, view: &dyn View, now: u64) -> Need<Result<u128, FilterLimit>> {
        let watch = match watch {
            Watch::Logs { filter, .. } | Watch::BlockLogs { filter, .. } => {
                Watch::Logs { filter, from: 0, to: None }
            }
            other => other,
        };
        self.add(watch, view, now, Some(self.owner.connection))
    }

    fn add(
        &mut self,
        watch: Watch,
        view: &dyn View,
        now: u64,
        subscription: Option<u64>,
    ) -> Need<Result<u128, FilterLimit>> {
        self.open.retain(|open| open.is_alive(now));
        #[cfg(feature = "light")]
        let seen = Seen::new(&watch, view)?;
        let id = self.next_id();
        let mut made = Open {
            id,
            watch,
            fresh: subscription.is_none(),
            #[cfg(feature = "light")]
            seen,
            #[cfg(feature = "local")]
            next: view.events().map(crate::local::Events::next).unwrap_or_default(),
            polled: now,
            subscription,
            syncing: view.syncing().is_some(),
            asker: self.owner.asker,
            rights: self.owner.rights,
            bytes: 0,
        };
        made.weigh();
        let room = self.make_room(made.asker, 1, made.bytes);
        Ok(room.map(|()| {
            self.open.push(made);
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
        let (before, owner) = (self.open.len(), self.owner);
        self.open.retain(|open| {
            let other = connection.is_some() && open.subscription != connection;
            open.id != id || other || !owner.knows(open)
        });
        self.open.len() < before
    }

    /// What a filter watches; `None` if it does not exist or has expired.
    pub fn watched(&mut self, id: u128, now: u64) -> Option<&Watch> {
        self.alive(id, now).map(|open| &open.watch)
    }

    fn alive(&mut self, id: u128, now: u64) -> Option<&mut Open> {
        let owner = self.owner;
        let is_wanted = |open: &Open| open.id == id && open.is_alive(now) && owner.knows(open);
        // Servers poll subscriptions in the order in which they were made, so the next one is near the last one.
        #[cfg(feature = "node-methods")]
        {
            let first = self.last.min(self.open.len());
            let later = self.open.iter().skip(first).position(is_wanted);
            let place = match later {
                Some(later) => first.saturating_add(later),
                None => self.open.iter().position(is_wanted)?,
            };
            self.last = place;
            self.open.get_mut(place)
        }
        #[cfg(not(feature = "node-methods"))]
        self.open.iter_mut().find(|open| is_wanted(open))
    }

    /// What is new since the last poll, as far as one answer can hold it; `None` if the filter does not exist. A filter
    /// that missed events of its chain, because it was not polled for too long, is dropped, so that its owner learns of
    /// it. A poll that fails leaves the filter unchanged. A poll that was overtaken by a later one while it waited for
    /// proofs returns nothing: from its older view, the newest blocks would seem to have left the chain.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn poll(&mut self, id: u128, view: &dyn View, now: u64) -> Result<Option<Changes>, RangeStop> {
        let Some(open) = self.alive(id, now) else { return Ok(None) };
        if (1..=OVERTAKEN).contains(&open.polled.saturating_sub(now)) {
            return Ok(Some(Changes::Hashes(Vec::new())));
        }
        let Some(changes) = open.news(view)? else {
            self.remove(id, None);
            return Ok(None);
        };
        open.fresh = false;
        open.polled = now;
        let before = open.bytes;
        open.weigh();
        if open.bytes > before {
            let _ = self.make_room(Asker::default(), 0, 0);
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
        let Some(open) = self.alive(id, now) else { return Ok(None) };
        // Subscriptions have no range to return the logs of.
        let logs = if open.subscription.is_none() { open.watch.logs(view)? } else { None };
        if logs.is_some() {
            open.polled = now;
        }
        Ok(logs)
    }
}

fn marked(logs: Vec<FoundLog>, removed: bool) -> Vec<(FoundLog, bool)> {
    logs.into_iter().map(|log| (log, removed)).collect()
}
