//! The kinds of filters: what each selects, and which blocks it has reported.

use alloc::vec::Vec;

use alloy_primitives::B256;

#[cfg(feature = "local")]
use super::events;
#[cfg(feature = "light")]
use super::reported_blocks::ReportedBlocks;
use super::spec::{FilterChanges, FilterSpec, marked};
use crate::engine::{
    block_id::newest_answerable_height,
    log_filter::LogFilter,
    logs::{FoundLog, RangeStop, logs_by_hash, range_logs},
    stop::ViewResult,
    view::View,
};
#[cfg(feature = "local")]
use crate::local::EventBlock;

/// Most pending transactions that a light client keeps for a filter between two polls, 32 bytes each; older ones are dropped.
#[cfg(feature = "light")]
pub const MAX_PENDING: usize = 10_000;

/// The kind of a poll.
#[derive(Clone, Copy)]
pub(super) struct PollMode {
    /// Whether this is the first poll of a filter, which reports the whole range of a log filter.
    pub(super) is_first: bool,
    /// Whether the host polls a subscription. The subscriber cannot ask for a smaller range, so a poll reports as much as fits.
    #[cfg(feature = "light")]
    pub(super) is_subscription: bool,
}

/// The blocks that a filter has reported so far.
#[derive(Debug, Clone)]
pub(super) enum ReportedUpTo {
    /// On an executed chain: the number of the first event that is not reported yet.
    #[cfg(feature = "local")]
    Events(u64),
    /// On a light client: the reported blocks.
    #[cfg(feature = "light")]
    Blocks(ReportedBlocks),
}

impl ReportedUpTo {
    fn new(view: &dyn View) -> ViewResult<Self> {
        #[cfg(feature = "local")]
        if let Some(next) = next_event(view) {
            return Ok(Self::Events(next));
        }
        #[cfg(feature = "light")]
        return ReportedBlocks::new(view).map(Self::Blocks);
        // Without `light` every view is that of an executed chain, which has events, so this line is not reached.
        #[cfg(not(feature = "light"))]
        Ok(Self::Events(0))
    }

    fn bytes(&self) -> usize {
        match self {
            #[cfg(feature = "local")]
            Self::Events(_) => 0,
            #[cfg(feature = "light")]
            Self::Blocks(reported) => reported.bytes(),
        }
    }
}

/// The number of the event that the chain will record next; `None` on a light client.
#[cfg(feature = "local")]
fn next_event(view: &dyn View) -> Option<u64> {
    view.events().map(crate::local::Events::next)
}

/// Logs of a range of blocks.
#[derive(Debug, Clone)]
pub(super) struct Logs {
    pub(super) filter: LogFilter,
    pub(super) from: u64,
    /// The last block; without one, the range grows with the chain.
    pub(super) to: Option<u64>,
    pub(super) reported_to: ReportedUpTo,
}

impl Logs {
    /// All logs of the range, whether they were reported or not.
    fn all(&self, view: &dyn View) -> Result<Vec<FoundLog>, RangeStop> {
        let head = newest_answerable_height(view)?;
        range_logs(view, self.from, self.to.map_or(head, |to| to.min(head)), &self.filter)
    }

    /// The new logs, each with whether its block has left the chain; `None` if events were missed.
    fn changes(
        &mut self,
        view: &dyn View,
        poll: PollMode,
    ) -> Result<Option<Vec<(FoundLog, bool)>>, RangeStop> {
        // The first poll reports the whole range, also blocks that are older than the filter and its first event.
        #[cfg(feature = "local")]
        if let (ReportedUpTo::Events(_), true) = (&self.reported_to, poll.is_first) {
            let logs = self.all(view)?;
            // The filter follows events, so the view has them and there is a next one.
            self.reported_to = ReportedUpTo::Events(next_event(view).unwrap_or_default());
            return Ok(Some(marked(logs, false)));
        }
        let Self { filter, from, to, reported_to } = self;
        match reported_to {
            #[cfg(feature = "local")]
            ReportedUpTo::Events(next) => {
                let select = |block: &EventBlock| {
                    let number = block.header.number;
                    let is_inside = number >= *from && to.is_none_or(|to| number <= to);
                    if is_inside { events::logs_of(filter, block) } else { Vec::new() }
                };
                Ok(view.events().and_then(|events| events::logs(next, events, select)))
            }
            #[cfg(feature = "light")]
            ReportedUpTo::Blocks(reported) => {
                let range = LogRange { filter, from: *from, to: *to };
                let delta = reported
                    .advance(view, poll.is_first, |kept, head| range.new_logs(view, poll, kept, head))?;
                let mut changes = marked(delta.removed, true);
                changes.extend(marked(delta.logs, false));
                Ok(Some(changes))
            }
        }
    }
}

/// The range of a filter of a light client.
#[cfg(feature = "light")]
struct LogRange<'a> {
    filter: &'a LogFilter,
    from: u64,
    to: Option<u64>,
}

#[cfg(feature = "light")]
impl LogRange<'_> {
    /// Logs of the blocks above `kept`, the newest reported block that is still canonical, up to `head`; in the first poll, those of
    /// the whole range. For a subscription with too many logs, `head` is lowered until the logs fit, and the next poll reports the
    /// later blocks. If a single block has too many, none of its logs are reported.
    fn new_logs(
        &self,
        view: &dyn View,
        poll: PollMode,
        kept: u64,
        head: &mut u64,
    ) -> Result<Vec<FoundLog>, RangeStop> {
        loop {
            match self.logs_above(view, poll, kept, *head) {
                Err(RangeStop::TooLong { .. }) if poll.is_subscription => match head.saturating_sub(kept) {
                    0 | 1 => return Ok(Vec::new()),
                    blocks => *head = kept.saturating_add(blocks / 2),
                },
                logs => return logs,
            }
        }
    }

    /// As [`Self::new_logs`], but with an error where the logs do not fit.
    fn logs_above(
        &self,
        view: &dyn View,
        poll: PollMode,
        kept: u64,
        head: u64,
    ) -> Result<Vec<FoundLog>, RangeStop> {
        let mut first = if poll.is_first { self.from } else { kept.saturating_add(1).max(self.from) };
        if poll.is_subscription {
            // A subscription that has fallen behind continues with the newest blocks that one request may cover.
            first = first.max(head.saturating_add(1).saturating_sub(view.policy().max_log_blocks));
        }
        let to = self.to.map_or(head, |to| to.min(head));
        if first > to {
            return Ok(Vec::new());
        }
        range_logs(view, first, to, self.filter)
    }
}

/// Logs of one block, which are reported once.
#[derive(Debug, Clone)]
pub(super) struct BlockLogs {
    pub(super) filter: LogFilter,
    pub(super) block: B256,
}

impl BlockLogs {
    fn all(&self, view: &dyn View) -> Result<Vec<FoundLog>, RangeStop> {
        Ok(logs_by_hash(view, self.block, &self.filter)?)
    }
}

/// New blocks.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    /// Whether headers are reported instead of hashes.
    pub(super) with_headers: bool,
    pub(super) reported_to: ReportedUpTo,
}

impl Blocks {
    fn changes(&mut self, view: &dyn View) -> Result<Option<FilterChanges>, RangeStop> {
        match &mut self.reported_to {
            #[cfg(feature = "local")]
            ReportedUpTo::Events(next) => {
                let Some(events) = view.events() else { return Ok(None) };
                Ok(if self.with_headers {
                    events::heads(next, events).map(FilterChanges::Heads)
                } else {
                    events::blocks(next, events).map(FilterChanges::Hashes)
                })
            }
            #[cfg(feature = "light")]
            ReportedUpTo::Blocks(reported) => {
                // A filter of blocks has no range that its first poll would report, and no logs.
                let is_first = false;
                let new = reported.advance(view, is_first, |_, _| Ok(Vec::new()))?.new;
                Ok(Some(if self.with_headers {
                    FilterChanges::Heads(new)
                } else {
                    FilterChanges::Hashes(new.iter().map(|block| block.hash()).collect())
                }))
            }
        }
    }
}

/// Transactions that enter the pool.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    /// On an executed chain: the number of the first event that is not reported yet; `None` on a light client.
    #[cfg(feature = "local")]
    pub(super) next: Option<u64>,
    /// On a light client: hashes of the transactions that are not reported yet, oldest first.
    #[cfg(feature = "light")]
    pub(super) waiting: Vec<B256>,
}

impl Pending {
    /// Adds a transaction that is not reported yet.
    #[cfg(feature = "light")]
    pub(super) fn add(&mut self, transaction: B256) {
        if self.waiting.len() >= MAX_PENDING {
            self.waiting.remove(0);
        }
        self.waiting.push(transaction);
    }

    #[cfg_attr(not(feature = "local"), expect(unused_variables, reason = "only executed chains have events"))]
    fn changes(&mut self, view: &dyn View) -> Option<Vec<B256>> {
        #[cfg(feature = "local")]
        if let Some(next) = &mut self.next {
            return view.events().and_then(|events| events::pending(next, events, view));
        }
        #[cfg(feature = "light")]
        return Some(core::mem::take(&mut self.waiting));
        #[cfg(not(feature = "light"))]
        None
    }
}

/// Whether the chain is synchronizing.
#[derive(Debug, Clone)]
pub(super) struct Syncing {
    /// Whether synchronization was in progress at the last poll.
    in_progress: bool,
}

impl Syncing {
    fn changes(&mut self, view: &dyn View) -> FilterChanges {
        let now = view.syncing();
        let began_or_ended = now.is_some() != core::mem::replace(&mut self.in_progress, now.is_some());
        FilterChanges::Syncing(began_or_ended.then_some(now))
    }
}

/// A filter of one kind, with what it has reported.
#[derive(Debug, Clone)]
pub(super) enum FilterKind {
    Logs(Logs),
    BlockLogs(BlockLogs),
    Blocks(Blocks),
    Pending(Pending),
    Syncing(Syncing),
}

impl FilterKind {
    /// A filter that has reported nothing yet.
    pub(super) fn new(spec: FilterSpec, view: &dyn View) -> ViewResult<Self> {
        Ok(match spec {
            FilterSpec::Logs { filter, from, to } => {
                Self::Logs(Logs { filter, from, to, reported_to: ReportedUpTo::new(view)? })
            }
            FilterSpec::BlockLogs { filter, block } => Self::BlockLogs(BlockLogs { filter, block }),
            FilterSpec::Blocks => {
                Self::Blocks(Blocks { with_headers: false, reported_to: ReportedUpTo::new(view)? })
            }
            FilterSpec::Heads => {
                Self::Blocks(Blocks { with_headers: true, reported_to: ReportedUpTo::new(view)? })
            }
            FilterSpec::Pending => Self::Pending(Pending {
                #[cfg(feature = "local")]
                next: next_event(view),
                #[cfg(feature = "light")]
                waiting: Vec::new(),
            }),
            FilterSpec::Syncing => Self::Syncing(Syncing { in_progress: view.syncing().is_some() }),
        })
    }

    /// The changes since the last poll; `None` if events were missed. An error leaves the filter unchanged.
    pub(super) fn changes(
        &mut self,
        view: &dyn View,
        poll: PollMode,
    ) -> Result<Option<FilterChanges>, RangeStop> {
        Ok(match self {
            Self::Logs(logs) => logs.changes(view, poll)?.map(FilterChanges::Logs),
            Self::BlockLogs(logs) => {
                let logs = if poll.is_first { logs.all(view)? } else { Vec::new() };
                Some(FilterChanges::Logs(marked(logs, false)))
            }
            Self::Blocks(blocks) => blocks.changes(view)?,
            Self::Pending(pending) => pending.changes(view).map(FilterChanges::Hashes),
            Self::Syncing(syncing) => Some(syncing.changes(view)),
        })
    }

    /// All logs of the range or block; `None` for other kinds of filters.
    pub(super) fn all_logs(&self, view: &dyn View) -> Result<Option<Vec<FoundLog>>, RangeStop> {
        Ok(Some(match self {
            Self::Logs(logs) => logs.all(view)?,
            Self::BlockLogs(logs) => logs.all(view)?,
            Self::Blocks(_) | Self::Pending(_) | Self::Syncing(_) => return Ok(None),
        }))
    }

    /// The heap memory of the filter in bytes, approximately.
    pub(super) fn bytes(&self) -> usize {
        let (filter, reported_to) = match self {
            Self::Logs(logs) => (Some(&logs.filter), Some(&logs.reported_to)),
            Self::BlockLogs(logs) => (Some(&logs.filter), None),
            Self::Blocks(blocks) => (None, Some(&blocks.reported_to)),
            #[cfg(feature = "light")]
            Self::Pending(pending) => return size_of_val(&*pending.waiting),
            // These have nothing on the heap: without `light`, a filter of pending transactions is the number of an event.
            _ => return 0,
        };
        filter.map_or(0, filter_bytes).saturating_add(reported_to.map_or(0, ReportedUpTo::bytes))
    }

    /// The number of events that a poll reads; `None` if the poll also reads logs, or if the chain has no events.
    #[cfg(feature = "local")]
    pub(super) fn events_ahead(&self, events: &crate::local::Events) -> Option<u64> {
        let next = match self {
            Self::Blocks(Blocks { reported_to: ReportedUpTo::Events(next), .. }) => *next,
            Self::Pending(pending) => pending.next?,
            Self::Syncing(_) => return Some(0),
            _ => return None,
        };
        Some(events.next().saturating_sub(next))
    }
}

/// The heap memory of a selection of logs in bytes.
fn filter_bytes(filter: &LogFilter) -> usize {
    let topics = filter.topics.iter().map(|any| size_of_val(&**any)).fold(0, usize::saturating_add);
    size_of_val(&*filter.addresses).saturating_add(topics)
}
