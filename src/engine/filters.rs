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

#[derive(Debug, Clone)]
struct Open {
    watch: Watch,
    /// The newest block told of.
    told: Option<BlockRef>,
    pending: VecDeque<B256>,
    polled: u64,
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

    /// Installs a filter at a head and a time (seconds since 1970); `None` when there are too many.
    pub fn install(&mut self, watch: Watch, head: BlockRef, now: u64) -> Option<u128> {
        self.open.retain(|_, open| now.saturating_sub(open.polled) <= FILTER_IDLE);
        if self.open.len() >= MAX_FILTERS {
            return None;
        }
        // A log filter first tells what its range holds already.
        let told = matches!(watch, Watch::Blocks).then_some(head);
        let id = self.next_id();
        self.open.insert(id, Open { watch, told, pending: VecDeque::new(), polled: now });
        Some(id)
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
        let head = block_ref(&view.head()?);
        let changes = match &open.watch {
            Watch::Pending => Changes::Hashes(open.pending.iter().copied().collect()),
            Watch::Blocks => Changes::Hashes(new_blocks(view, open.told, head)?),
            Watch::BlockLogs { filter, block } if open.told.is_none() => {
                Changes::Logs(marked(logs_by_hash(view, *block, filter)?, false))
            }
            Watch::BlockLogs { .. } => Changes::Logs(Vec::new()),
            Watch::Logs { filter, from, to } => {
                Changes::Logs(new_logs(view, filter, (*from, to.unwrap_or(u64::MAX)), open.told)?)
            }
        };
        if let Some(open) = self.open.get_mut(&id) {
            open.pending.clear();
            open.told = Some(head);
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

/// Blocks that left the chain since `told`, oldest first, and the height of the newest that stayed.
fn abandoned(view: &dyn View, told: BlockRef) -> Need<(Vec<VerifiedHeader>, u64)> {
    let (mut gone, mut at) = (Vec::new(), told);
    while !view.is_canonical(at) {
        let Some(header) = view.header_by_hash(at.hash)? else { break };
        at = BlockRef { number: header.number.saturating_sub(1), hash: header.parent_hash };
        let genesis = header.number == 0;
        gone.push(header);
        if genesis {
            break;
        }
    }
    gone.reverse();
    Ok((gone, at.number))
}

fn new_blocks(view: &dyn View, told: Option<BlockRef>, head: BlockRef) -> Need<Vec<B256>> {
    let Some(told) = told else { return Ok(Vec::new()) };
    let (_, kept) = abandoned(view, told)?;
    let mut hashes = Vec::new();
    for number in kept.saturating_add(1)..=head.number {
        if let Some(header) = view.header_by_number(number)? {
            hashes.push(header.hash());
        }
    }
    Ok(hashes)
}

/// Logs taken back, then logs of new blocks, both in order.
fn new_logs(
    view: &dyn View,
    filter: &LogFilter,
    (from, to): (u64, u64),
    told: Option<BlockRef>,
) -> Result<Vec<(FoundLog, bool)>, RangeStop> {
    let Some(told) = told else { return Ok(marked(range_logs(view, from, to, filter)?, false)) };
    let (gone, kept) = abandoned(view, told)?;
    let mut changes = Vec::new();
    for header in gone.iter().filter(|header| (from..=to).contains(&header.number)) {
        changes.extend(marked(block_logs(view, header, filter)?, true));
    }
    let first = kept.saturating_add(1).max(from);
    if first <= to {
        changes.extend(marked(range_logs(view, first, to, filter)?, false));
    }
    Ok(changes)
}
