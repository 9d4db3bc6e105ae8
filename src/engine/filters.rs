//! Filters and subscriptions: each remembers up to where its owner was informed, and is polled for what is new.
//!
//! They need only a [`View`] of the present head. What a reorganisation took back follows from the reported blocks
//! that are no longer canonical.

use alloc::{collections::BTreeMap, vec::Vec};
use core::ops::Range;

use alloy_primitives::{B256, keccak256};

use super::{
    BlockHeader, Refusal,
    block_id::settled_height,
    log_filter::LogFilter,
    logs::{FoundLog, RangeStop, logs_by_hash, range_logs},
    view::{Need, Stop, SyncProgress, View},
};
use crate::types::BlockRef;

/// Seconds without a poll after which a filter is dropped.
pub const FILTER_IDLE: u64 = 300;
/// Seconds by which a poll may be older than one that was answered before it. A larger difference means that the
/// clock was set back.
const OVERTAKEN: u64 = 120;
/// Seconds without a poll after which a subscription is dropped. Hosts poll every few seconds, but machines sleep.
pub const SUBSCRIPTION_IDLE: u64 = 3_600;
/// Most filters and subscriptions that are kept.
pub const MAX_FILTERS: usize = 4_096;
/// Number of reported blocks that a filter remembers. A deeper reorganisation is not reported as taken back.
pub const TRAIL: usize = 256;
/// Number of reported logs that a filter remembers, so that they can be taken back even if the host no longer has
/// their blocks.
pub const MAX_TOLD_LOGS: usize = 4_096;
/// Most bytes of all filters and subscriptions, approximately. Each takes some 16 KiB for the blocks that it
/// remembers.
const MAX_FILTER_BYTES: usize = 64 << 20;
/// Approximate bytes of a remembered log without its data.
const LOG_BYTES: usize = 256;
/// Most pending transactions kept for a filter between two polls; older ones are dropped.
pub const MAX_PENDING: usize = 10_000;

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

/// A reported block, with the reported logs of it.
#[derive(Debug, Clone)]
struct ReportedBlock {
    block: BlockRef,
    logs: Vec<FoundLog>,
}

#[derive(Debug, Clone)]
struct Open {
    id: u128,
    watch: Watch,
    /// Whether there was no poll yet.
    fresh: bool,
    /// The last reported blocks, oldest first.
    trail: Vec<ReportedBlock>,
    pending: Vec<B256>,
    polled: u64,
    /// Number of the connection, if this is a subscription. Its host polls it and sends only what is new.
    subscription: Option<u64>,
    /// Whether synchronization was in progress at the last poll.
    syncing: bool,
    /// The asker that installed it.
    asker: u64,
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
        if !cfg!(feature = "local") {
            return;
        }
        let logs = self.trail.iter().flat_map(|told| &told.logs);
        let logs =
            logs.fold(0_usize, |sum, log| sum.saturating_add(log.log.data.len()).saturating_add(LOG_BYTES));
        let kept = size_of::<Self>().saturating_add(size_of_val(&*self.trail));
        let kept = kept.saturating_add(size_of_val(&*self.pending));
        self.bytes = kept.saturating_add(logs).saturating_add(self.watch.bytes());
    }

    /// What is new. An error leaves the filter unchanged.
    fn news(&mut self, view: &dyn View) -> Result<Changes, RangeStop> {
        match &self.watch {
            Watch::Pending => return Ok(Changes::Hashes(core::mem::take(&mut self.pending))),
            Watch::Syncing => {
                let now = view.syncing();
                let turned = now.is_some() != core::mem::replace(&mut self.syncing, now.is_some());
                return Ok(Changes::Syncing(turned.then_some(now)));
            }
            Watch::BlockLogs { filter, block } => {
                let logs = if self.fresh { logs_by_hash(view, *block, filter)? } else { Vec::new() };
                return Ok(Changes::Logs(marked(logs, false)));
            }
            Watch::Blocks | Watch::Heads | Watch::Logs { .. } => {}
        }
        let mut head = settled_height(view)?;
        let (stayed, kept) = self.fork(view, head);
        let logs = loop {
            match self.new_logs(view, kept, head) {
                // A subscriber cannot ask for a smaller range: the later blocks are reported in the next poll. Logs
                // of a single block beyond the limit are not reported.
                Err(RangeStop::TooLong { .. }) if self.subscription.is_some() => {
                    match head.saturating_sub(kept) {
                        0 | 1 => break Vec::new(),
                        blocks => head = kept.saturating_add(blocks / 2),
                    }
                }
                logs => break logs?,
            }
        };
        let new = headers(view, kept.saturating_add(1), head)?;
        let removed = self.go_on(stayed, &new, &logs);
        Ok(match self.watch {
            Watch::Logs { .. } => {
                let mut changes = marked(removed, true);
                changes.extend(marked(logs, false));
                Changes::Logs(changes)
            }
            Watch::Heads => Changes::Heads(new),
            _ => Changes::Hashes(new.iter().map(|block| block.hash()).collect()),
        })
    }

    /// How many blocks of the trail are still canonical, and the height of the last of them.
    fn fork(&self, view: &dyn View, head: u64) -> (usize, u64) {
        let stayed = self.trail.iter().rposition(|told| view.is_canonical(told.block));
        let kept = match (stayed.and_then(|at| self.trail.get(at)), self.trail.first()) {
            (Some(told), _) => told.block.number,
            (None, Some(oldest)) => oldest.block.number.saturating_sub(1).min(head),
            (None, None) => head,
        };
        (stayed.map_or(0, |at| at.saturating_add(1)), kept)
    }

    /// Logs above a height; in the first poll, those of the whole range.
    fn new_logs(&self, view: &dyn View, kept: u64, head: u64) -> Result<Vec<FoundLog>, RangeStop> {
        let Watch::Logs { filter, from, to } = &self.watch else { return Ok(Vec::new()) };
        let mut first = if self.fresh { *from } else { kept.saturating_add(1).max(*from) };
        if self.subscription.is_some() {
            // A subscriber cannot ask for a smaller range, so that it gets the newest blocks that one request may
            // cover.
            first = first.max(head.saturating_add(1).saturating_sub(view.max_log_blocks()));
        }
        let to = to.map_or(head, |to| to.min(head));
        if first > to {
            return Ok(Vec::new());
        }
        range_logs(view, first, to, filter)
    }

    /// Replaces the blocks that left the chain by the new blocks. Returns the logs reported of the former, oldest
    /// first.
    fn go_on(&mut self, stayed: usize, new: &[BlockHeader], logs: &[FoundLog]) -> Vec<FoundLog> {
        let removed = self.trail.split_off(stayed).into_iter().flat_map(|told| told.logs).collect();
        self.trail
            .extend(new.iter().map(|header| ReportedBlock { block: block_ref(header), logs: Vec::new() }));
        self.trail.drain(..self.trail.len().saturating_sub(TRAIL));
        let mut held = 0_usize;
        for told in self.trail.iter_mut().rev() {
            // The first poll may report logs of blocks that are in the trail already.
            told.logs.extend(logs.iter().filter(|log| log.block == told.block).cloned());
            held = held.saturating_add(told.logs.len());
            if held > MAX_TOLD_LOGS {
                told.logs.clear();
            }
        }
        removed
    }
}

/// The blocks of a range that the view has, oldest first.
fn headers(view: &dyn View, from: u64, to: u64) -> Need<Vec<BlockHeader>> {
    let mut blocks = Vec::new();
    for number in from..=to {
        match view.header_by_number(number) {
            Ok(header) => blocks.extend(header),
            // A light client has no headers far below its checkpoint, and no reorganisation reaches them.
            Err(Stop::Refused(Refusal::TooOld { .. })) => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(blocks)
}

/// The numbers of askers that are API keys. Addresses have other numbers.
pub const KEY_ASKERS: Range<u64> = 1 << 32..2 << 32;

/// The owner of filters and subscriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owner {
    /// Identifies the asker, for example its address: filters are shared out between askers. The filters of an API key
    /// ([`KEY_ASKERS`]) do not exist for other askers, and those of other askers do not exist for it.
    pub asker: u64,
    /// Number of the connection that owns the subscriptions.
    pub connection: u64,
    /// Most subscriptions that the connection may have.
    pub subscriptions: usize,
}

impl Owner {
    /// Whether a filter exists for this owner.
    fn knows(&self, open: &Open) -> bool {
        // The browser has no API keys.
        let is_key = |asker: &u64| cfg!(feature = "local") && KEY_ASKERS.contains(asker);
        open.asker == self.asker || !(is_key(&open.asker) || is_key(&self.asker))
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
}

impl Filters {
    /// Makes an empty set. Ids derive from `secret`, so that they cannot be guessed without it.
    pub fn new(secret: B256) -> Self {
        Self { secret, made: 0, open: Vec::new(), owner: Owner::default() }
    }

    /// Sets the owner of filters that are installed from now on. If there are too many filters, the asker with the
    /// most loses some, so that one asker cannot keep the others from having any.
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

    /// Drops filters until there is room. Returns `false` if the owner's asker has the most already.
    fn make_room(&mut self, count: usize, bytes: usize) -> bool {
        // The light client of a page has one asker, which can exhaust only the memory of that page.
        if !cfg!(feature = "local") {
            return self.open.len().saturating_add(count) <= MAX_FILTERS;
        }
        loop {
            let (mut all, mut sums) = (bytes, BTreeMap::<u64, usize>::new());
            for open in &self.open {
                all = all.saturating_add(open.bytes);
                let sum = sums.entry(open.asker).or_default();
                *sum = sum.saturating_add(open.bytes);
            }
            if self.open.len().saturating_add(count) <= MAX_FILTERS && all <= MAX_FILTER_BYTES {
                return true;
            }
            let own = sums.get(&self.owner.asker).map_or(0, |own| *own).saturating_add(bytes);
            let Some((most, theirs)) = sums.into_iter().max_by_key(|(_, sum)| *sum) else { return false };
            if count > 0 && theirs <= own {
                return false;
            }
            let of_most = self.open.iter().enumerate().filter(|(_, open)| open.asker == most);
            let Some((place, _)) = of_most.min_by_key(|(_, open)| open.polled) else { return false };
            self.open.remove(place);
        }
    }

    /// The number of filters and subscriptions.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are no filters or subscriptions.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Installs a filter at `now` (seconds since 1970). Returns its id, or `None` if there are too many filters.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn install(&mut self, watch: Watch, view: &dyn View, now: u64) -> Need<Option<u128>> {
        self.add(watch, view, now, None)
    }

    /// As [`Self::install`], for a subscription. It reports only later events, whatever the start of its range.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn subscribe(&mut self, watch: Watch, view: &dyn View, now: u64) -> Need<Option<u128>> {
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
    ) -> Need<Option<u128>> {
        self.open.retain(|open| open.is_alive(now));
        // A reorganisation may go below the present head, so that the trail starts with earlier blocks.
        let trail = match watch {
            Watch::Blocks | Watch::Heads | Watch::Logs { .. } => {
                let head = settled_height(view)?;
                headers(view, head.saturating_sub(TRAIL as u64), head)?
            }
            Watch::BlockLogs { .. } | Watch::Pending | Watch::Syncing => Vec::new(),
        };
        let trail =
            trail.iter().map(|header| ReportedBlock { block: block_ref(header), logs: Vec::new() }).collect();
        let id = self.next_id();
        let mut made = Open {
            id,
            watch,
            fresh: subscription.is_none(),
            trail,
            pending: Vec::new(),
            polled: now,
            subscription,
            syncing: view.syncing().is_some(),
            asker: self.owner.asker,
            bytes: 0,
        };
        made.weigh();
        if !self.make_room(1, made.bytes) {
            return Ok(None);
        }
        self.open.push(made);
        Ok(Some(id))
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
        self.open.iter_mut().find(|open| open.id == id && open.is_alive(now) && owner.knows(open))
    }

    /// Notes that a transaction entered the pool.
    pub fn pending(&mut self, transaction: B256) {
        for open in self.open.iter_mut().filter(|open| open.watch == Watch::Pending) {
            if open.pending.len() >= MAX_PENDING {
                open.pending.remove(0);
            }
            open.pending.push(transaction);
            open.weigh();
        }
        self.make_room(0, 0);
    }

    /// What is new since the last poll; `None` if the filter does not exist. A poll that fails leaves the filter
    /// unchanged. A poll that was overtaken by a later one while it waited for proofs returns nothing: from its older
    /// view, the newest blocks would seem to have left the chain.
    ///
    /// # Errors
    /// As the look-ups of the view.
    pub fn poll(&mut self, id: u128, view: &dyn View, now: u64) -> Result<Option<Changes>, RangeStop> {
        let Some(open) = self.alive(id, now) else { return Ok(None) };
        if (1..=OVERTAKEN).contains(&open.polled.saturating_sub(now)) {
            return Ok(Some(Changes::Hashes(Vec::new())));
        }
        let changes = open.news(view)?;
        open.fresh = false;
        open.polled = now;
        open.weigh();
        self.make_room(0, 0);
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
        let logs = match &open.watch {
            // Subscriptions have no range to return the logs of.
            _ if open.subscription.is_some() => return Ok(None),
            Watch::Blocks | Watch::Heads | Watch::Pending | Watch::Syncing => return Ok(None),
            Watch::BlockLogs { filter, block } => logs_by_hash(view, *block, filter)?,
            Watch::Logs { filter, from, to } => {
                let head = settled_height(view)?;
                range_logs(view, *from, to.map_or(head, |to| to.min(head)), filter)?
            }
        };
        open.polled = now;
        Ok(Some(logs))
    }
}

fn block_ref(header: &BlockHeader) -> BlockRef {
    BlockRef { number: header.number, hash: header.hash() }
}

fn marked(logs: Vec<FoundLog>, removed: bool) -> Vec<(FoundLog, bool)> {
    logs.into_iter().map(|log| (log, removed)).collect()
}
