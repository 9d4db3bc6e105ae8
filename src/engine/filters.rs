//! Filters that are polled: each remembers how far it has told its owner.

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use alloy_primitives::{keccak256, B256};

use super::{
    logs::{block_logs, range_logs, FoundLog, LogFilter, RangeStop},
    view::{Need, View},
};
use crate::{consensus::VerifiedHeader, light::BlockRef};

/// Seconds after which a filter nobody polls is dropped.
pub const FILTER_IDLE: u64 = 300;
/// Filters kept at once.
pub const MAX_FILTERS: usize = 4_096;
/// Blocks a filter remembers having told of: a deeper reorganisation is not taken back.
pub const TRAIL: usize = 256;
/// Logs remembered with them, so that they can be taken back even where their blocks are forgotten.
pub const MAX_TOLD_LOGS: usize = 4_096;
/// Pending transactions kept for a filter between two polls; older ones are dropped.
pub const MAX_PENDING: usize = 10_000;

/// What a filter watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// Logs of a range of blocks; `to` is open for one that goes on with the chain.
    Logs {
        /// Which logs.
        filter: LogFilter,
        /// First block.
        from: u64,
        /// Last block.
        to: Option<u64>,
    },
    /// Logs of one block.
    BlockLogs {
        /// Which logs.
        filter: LogFilter,
        /// The block.
        block: B256,
    },
    /// New blocks.
    Blocks,
    /// Transactions that enter the pool.
    Pending,
}

/// What is new since the last poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Logs, with a mark on those that a reorganisation took back.
    Logs(Vec<(FoundLog, bool)>),
    /// Hashes of blocks or transactions.
    Hashes(Vec<B256>),
}

/// A block whose content was told, with the logs that were.
#[derive(Debug, Clone)]
struct Told {
    block: BlockRef,
    logs: Vec<FoundLog>,
}

#[derive(Debug, Clone)]
struct Open {
    watch: Watch,
    /// Nothing was told yet.
    fresh: bool,
    /// The last blocks told of, oldest first.
    trail: VecDeque<Told>,
    pending: VecDeque<B256>,
    polled: u64,
}

impl Open {
    /// What is new, and the trail that leads there.
    fn news(&self, view: &dyn View) -> Result<(Changes, VecDeque<Told>), RangeStop> {
        let head = view.head()?.number;
        let (removed, kept) = self.fork(view, head);
        match &self.watch {
            Watch::Pending => Ok((Changes::Hashes(self.pending.iter().copied().collect()), VecDeque::new())),
            Watch::Blocks => {
                let new = headers(view, kept.saturating_add(1), head)?;
                let trail = self.extended(kept, new.clone(), &[]);
                Ok((Changes::Hashes(new.iter().map(|block| block.hash).collect()), trail))
            }
            Watch::BlockLogs { filter, block } if self.fresh => {
                Ok((Changes::Logs(marked(logs_by_hash(view, *block, filter)?, false)), VecDeque::new()))
            }
            Watch::BlockLogs { .. } => Ok((Changes::Logs(Vec::new()), VecDeque::new())),
            Watch::Logs { filter, from, to } => {
                let first = if self.fresh { *from } else { kept.saturating_add(1).max(*from) };
                let to = to.unwrap_or(u64::MAX);
                let new = if first <= to { range_logs(view, first, to, filter)? } else { Vec::new() };
                let trail = self.extended(kept, headers(view, kept.saturating_add(1), head)?, &new);
                let mut changes = marked(removed, true);
                changes.extend(marked(new, false));
                Ok((Changes::Logs(changes), trail))
            }
        }
    }

    /// Logs of told blocks that left the chain, oldest first, and the height of the newest that stayed.
    fn fork(&self, view: &dyn View, head: u64) -> (Vec<FoundLog>, u64) {
        let stayed = self.trail.iter().rposition(|told| view.is_canonical(told.block));
        let gone = stayed.map_or(0, |at| at.saturating_add(1));
        let removed = self.trail.iter().skip(gone).flat_map(|told| told.logs.iter().cloned()).collect();
        let kept = match (stayed.and_then(|at| self.trail.get(at)), self.trail.front()) {
            (Some(told), _) => told.block.number,
            (None, Some(oldest)) => oldest.block.number.saturating_sub(1).min(head),
            (None, None) => head,
        };
        (removed, kept)
    }

    /// The trail up to a height, and on with new blocks and what of their logs was found.
    fn extended(&self, kept: u64, new: Vec<BlockRef>, logs: &[FoundLog]) -> VecDeque<Told> {
        let old = self.trail.iter().filter(|told| told.block.number <= kept).cloned();
        let of = |block: BlockRef| logs.iter().filter(move |log| log.block == block).cloned().collect();
        // The first poll may tell of blocks that the trail holds already.
        let mut trail: VecDeque<Told> = old
            .map(|told| if self.fresh { Told { logs: of(told.block), ..told } } else { told })
            .chain(new.into_iter().map(|block| Told { block, logs: of(block) }))
            .collect();
        while trail.len() > TRAIL {
            trail.pop_front();
        }
        let mut held = 0_usize;
        for told in trail.iter_mut().rev() {
            held = held.saturating_add(told.logs.len());
            if held > MAX_TOLD_LOGS {
                told.logs.clear();
            }
        }
        trail
    }
}

/// The last blocks of a range, oldest first.
fn headers(view: &dyn View, from: u64, to: u64) -> Need<Vec<BlockRef>> {
    let mut blocks = Vec::new();
    for number in from..=to {
        if let Some(header) = view.header_by_number(number)? {
            blocks.push(block_ref(&header));
        }
    }
    Ok(blocks)
}

/// All filters of an engine.
#[derive(Debug, Clone)]
pub struct Filters {
    secret: B256,
    made: u64,
    open: BTreeMap<u128, Open>,
}

impl Filters {
    /// No filters. Ids come from `secret`: who does not know it cannot guess them.
    pub fn new(secret: B256) -> Self {
        Self { secret, made: 0, open: BTreeMap::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Installs a filter at a time (seconds since 1970); `None` when there are too many.
    ///
    /// # Errors
    /// As the view's look-ups.
    pub fn install(&mut self, watch: Watch, view: &dyn View, now: u64) -> Need<Option<u128>> {
        self.open.retain(|_, open| now.saturating_sub(open.polled) <= FILTER_IDLE);
        if self.open.len() >= MAX_FILTERS {
            return Ok(None);
        }
        // A reorganisation may go below the present head.
        let head = view.head()?.number;
        let trail = match watch {
            Watch::Blocks | Watch::Logs { .. } => headers(view, head.saturating_sub(TRAIL as u64), head)?,
            Watch::BlockLogs { .. } | Watch::Pending => Vec::new(),
        };
        let trail = trail.into_iter().map(|block| Told { block, logs: Vec::new() }).collect();
        let id = self.next_id();
        self.open.insert(id, Open { watch, fresh: true, trail, pending: VecDeque::new(), polled: now });
        Ok(Some(id))
    }

    /// A random 128-bit number without a leading zero bit.
    fn next_id(&mut self) -> u128 {
        self.made = self.made.saturating_add(1);
        let mut seed = self.secret.to_vec();
        seed.extend_from_slice(&self.made.to_be_bytes());
        let [half @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = keccak256(&seed).0;
        u128::from_be_bytes(half) | 1 << 127
    }

    /// Removes a filter; `false` if there is none.
    pub fn uninstall(&mut self, id: u128) -> bool {
        self.open.remove(&id).is_some()
    }

    /// What a filter watches; `None` if there is none or it was idle too long.
    pub fn watched(&self, id: u128, now: u64) -> Option<&Watch> {
        self.alive(id, now).map(|open| &open.watch)
    }

    fn alive(&self, id: u128, now: u64) -> Option<&Open> {
        self.open.get(&id).filter(|open| now.saturating_sub(open.polled) <= FILTER_IDLE)
    }

    /// Notes that a transaction entered the pool.
    pub fn pending(&mut self, transaction: B256) {
        for open in self.open.values_mut().filter(|open| open.watch == Watch::Pending) {
            if open.pending.len() >= MAX_PENDING {
                open.pending.pop_front();
            }
            open.pending.push_back(transaction);
        }
    }

    /// What is new since the last poll; `None` if there is no such filter. A poll that fails leaves the
    /// filter as it was.
    ///
    /// # Errors
    /// As the view's look-ups.
    pub fn poll(&mut self, id: u128, view: &dyn View, now: u64) -> Result<Option<Changes>, RangeStop> {
        let Some(open) = self.alive(id, now) else { return Ok(None) };
        let (changes, trail) = open.news(view)?;
        if let Some(open) = self.open.get_mut(&id) {
            open.pending.clear();
            open.trail = trail;
            open.fresh = false;
            open.polled = now;
        }
        Ok(Some(changes))
    }

    /// All logs in the range of a log filter; `None` if there is no such log filter.
    ///
    /// # Errors
    /// As the view's look-ups.
    pub fn all_logs(
        &mut self,
        id: u128,
        view: &dyn View,
        now: u64,
    ) -> Result<Option<Vec<FoundLog>>, RangeStop> {
        let Some(open) = self.alive(id, now) else { return Ok(None) };
        let logs = match &open.watch {
            Watch::Blocks | Watch::Pending => return Ok(None),
            Watch::BlockLogs { filter, block } => logs_by_hash(view, *block, filter)?,
            Watch::Logs { filter, from, to } => range_logs(view, *from, to.unwrap_or(u64::MAX), filter)?,
        };
        if let Some(open) = self.open.get_mut(&id) {
            open.polled = now;
        }
        Ok(Some(logs))
    }
}

fn block_ref(header: &VerifiedHeader) -> BlockRef {
    BlockRef { number: header.number, hash: header.hash() }
}

fn marked(logs: Vec<FoundLog>, removed: bool) -> Vec<(FoundLog, bool)> {
    logs.into_iter().map(|log| (log, removed)).collect()
}

fn logs_by_hash(view: &dyn View, block: B256, filter: &LogFilter) -> Need<Vec<FoundLog>> {
    match view.header_by_hash(block)? {
        Some(header) => block_logs(view, &header, filter),
        None => Ok(Vec::new()),
    }
}
