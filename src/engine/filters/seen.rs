//! What a filter of a light client reports: the difference between the view and the blocks that it reported before.

use alloc::vec::Vec;

use alloy_primitives::B256;

use super::{Changes, Filters, Open, Watch, marked};
use crate::{
    engine::{
        BlockHeader, Refusal,
        block_id::settled_height,
        logs::{FoundLog, RangeStop, range_logs},
        view::{Need, Stop, View},
    },
    types::{Asker, BlockRef},
};

/// Number of reported blocks that a filter remembers. A deeper reorganisation is not reported as taken back.
pub const TRAIL: usize = 256;
/// Number of reported logs that a filter remembers, so that they can be taken back even if the host no longer has
/// their blocks.
pub const MAX_TOLD_LOGS: usize = 4_096;
/// Most pending transactions that a light client keeps for a filter between two polls; older ones are dropped.
pub const MAX_PENDING: usize = 10_000;
/// Approximate bytes of a remembered log without its data.
const LOG_BYTES: usize = 256;

/// A reported block, with the reported logs of it.
#[derive(Debug, Clone)]
pub(super) struct ReportedBlock {
    pub(super) block: BlockRef,
    pub(super) logs: Vec<FoundLog>,
}

/// The blocks that a filter has reported, and the transactions that it has not reported yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The last reported blocks, oldest first.
    pub(super) trail: Vec<ReportedBlock>,
    pub(super) pending: Vec<B256>,
}

impl Seen {
    /// What a new filter has seen. On a view with events it remembers nothing.
    pub(super) fn new(watch: &Watch, view: &dyn View) -> Need<Self> {
        let mut seen = Self::default();
        #[cfg(feature = "local")]
        if view.events().is_some() {
            return Ok(seen);
        }
        if matches!(watch, Watch::Blocks | Watch::Heads | Watch::Logs { .. }) {
            // A reorganisation may go below the present head, so that the trail starts with earlier blocks.
            let head = settled_height(view)?;
            seen.extend(&headers(view, head.saturating_sub(TRAIL as u64), head)?);
        }
        Ok(seen)
    }

    /// Adds a transaction that is not reported yet.
    pub(super) fn add_pending(&mut self, transaction: B256) {
        if self.pending.len() >= MAX_PENDING {
            self.pending.remove(0);
        }
        self.pending.push(transaction);
    }

    /// Its memory in bytes, approximately.
    pub(super) fn bytes(&self) -> usize {
        let logs = self.trail.iter().flat_map(|told| &told.logs);
        let logs =
            logs.fold(0_usize, |sum, log| sum.saturating_add(log.log.data.len()).saturating_add(LOG_BYTES));
        let kept = size_of_val(&*self.trail).saturating_add(size_of_val(&*self.pending));
        kept.saturating_add(logs)
    }

    fn extend(&mut self, new: &[BlockHeader]) {
        let blocks = new.iter().map(|header| BlockRef { number: header.number, hash: header.hash() });
        self.trail.extend(blocks.map(|block| ReportedBlock { block, logs: Vec::new() }));
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

    /// Replaces the blocks that left the chain by the new blocks. Returns the logs reported of the former, oldest
    /// first.
    fn go_on(&mut self, stayed: usize, new: &[BlockHeader], logs: &[FoundLog]) -> Vec<FoundLog> {
        let removed = self.trail.split_off(stayed).into_iter().flat_map(|told| told.logs).collect();
        self.extend(new);
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

impl Open {
    /// What is new compared with the blocks that were reported before.
    pub(super) fn compared(&mut self, view: &dyn View) -> Result<Changes, RangeStop> {
        if matches!(self.watch, Watch::Pending) {
            return Ok(Changes::Hashes(core::mem::take(&mut self.seen.pending)));
        }
        let mut head = settled_height(view)?;
        let (stayed, kept) = self.seen.fork(view, head);
        if kept == head && stayed < self.seen.trail.len() && !self.fresh {
            // The view is older than the one that was polled last: the blocks above its head have not left the chain. On a
            // light client the head never goes back on its own branch.
            return Ok(self.nothing());
        }
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
        let removed = self.seen.go_on(stayed, &new, &logs);
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

    fn nothing(&self) -> Changes {
        match self.watch {
            Watch::Logs { .. } => Changes::Logs(Vec::new()),
            Watch::Heads => Changes::Heads(Vec::new()),
            _ => Changes::Hashes(Vec::new()),
        }
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
}

impl Filters {
    /// Notes that an asker has sent a transaction to the pool of the upstreams. Its own filters report it.
    pub fn pending(&mut self, transaction: B256, asker: Asker) {
        self.pending_where(transaction, |open| open.asker == asker);
    }

    /// As [`Self::pending`], for subscriptions alone, of the asker that other hosts name so ([`Asker::told`]).
    #[cfg(feature = "hosted")]
    pub fn pending_for_subscriptions(&mut self, transaction: B256, told: u64) {
        self.pending_where(transaction, |open| open.asker.told() == told && open.subscription.is_some());
    }

    fn pending_where(&mut self, transaction: B256, is_told: impl Fn(&Open) -> bool) {
        for open in self.open.iter_mut().filter(|open| matches!(open.watch, Watch::Pending) && is_told(open))
        {
            open.seen.add_pending(transaction);
            open.weigh();
        }
        let _ = self.make_room(Asker::default(), 0, 0);
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
