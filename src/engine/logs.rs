//! Logs of ranges of blocks. A header's bloom excludes blocks; for a possible match, all receipts of the block are
//! read.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::{
    BlockHeader,
    view::{Need, Stop, View, both},
};
use crate::{
    state::Facts,
    types::{BlockRef, Log, bloom},
};

/// Number of blocks up to which the number of logs is not limited.
pub const FREE_LOG_BLOCKS: u64 = 2_000;
/// Most logs of a longer range.
pub const MAX_LOGS: usize = 10_000;
/// Most bytes of JSON, approximately, of the logs of one range: no answer may be longer. Without this limit, a few
/// blocks of logs without data, or many blocks of logs with much data, would take hundreds of megabytes before the
/// answer is refused.
pub const MAX_LOG_BYTES: usize = 10 * 1024 * 1024;
/// Least bytes of a log object in JSON, without topics and data.
const LOG_OBJECT: usize = 300;
/// Bytes of a topic in JSON.
const TOPIC: usize = 69;

/// A selection of logs by contract and topics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Any of these contracts; an empty list matches any.
    pub addresses: Vec<Address>,
    /// For each position, any of these topics; an empty list matches any log, even one without a topic at that
    /// position.
    pub topics: Vec<Vec<B256>>,
}

impl LogFilter {
    /// Whether the filter selects this log.
    pub fn matches(&self, log: &Log) -> bool {
        let address = self.addresses.is_empty() || self.addresses.contains(&log.address);
        let mut places = self.topics.iter().enumerate();
        address
            && places.all(|(at, any)| any.is_empty() || log.topics.get(at).is_some_and(|t| any.contains(t)))
    }

    /// Whether a block with this bloom may have a matching log; `false` proves that it has none.
    fn may_match(&self, header: &BlockHeader) -> bool {
        let held = &header.logs_bloom;
        let address = self.addresses.is_empty()
            || self.addresses.iter().any(|address| bloom::may_contain(held, address.as_slice()));
        address
            && self.topics.iter().all(|any| {
                any.is_empty() || any.iter().any(|topic| bloom::may_contain(held, topic.as_slice()))
            })
    }
}

/// A log with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLog {
    /// The log.
    pub log: Log,
    /// Its index among all logs of the block.
    pub log_index: u64,
    /// Hash of its transaction.
    pub transaction: B256,
    /// Index of the transaction in the block.
    pub transaction_index: u64,
    /// The block.
    pub block: BlockRef,
}

impl FoundLog {
    /// Least bytes of the log in JSON.
    fn json_bytes(&self) -> usize {
        let topics = self.log.topics.len().saturating_mul(TOPIC);
        self.log.data.len().saturating_mul(2).saturating_add(topics).saturating_add(LOG_OBJECT)
    }
}

/// The logs of one block.
///
/// # Errors
/// As [`View::body`] and [`View::receipts`].
pub fn block_logs(view: &dyn View, header: &BlockHeader, filter: &LogFilter) -> Need<Vec<FoundLog>> {
    if !filter.may_match(header) {
        return Ok(Vec::new());
    }
    let (body, receipts) = both(view.body(header), view.receipts(header))?;
    let block = BlockRef { number: header.number, hash: header.hash() };
    let mut found = Vec::new();
    let mut log_index = 0_u64;
    for (index, (receipt, hash)) in (0_u64..).zip(receipts.receipts().iter().zip(body.hashes())) {
        for log in &receipt.logs {
            if filter.matches(log) {
                found.push(FoundLog {
                    log: log.clone(),
                    log_index,
                    transaction: *hash,
                    transaction_index: index,
                    block,
                });
            }
            log_index = log_index.saturating_add(1);
        }
    }
    Ok(found)
}

/// The logs of the block with this hash; none if there is no such block.
///
/// # Errors
/// As [`View::header_by_hash`] and [`block_logs`].
pub fn logs_by_hash(view: &dyn View, block: B256, filter: &LogFilter) -> Need<Vec<FoundLog>> {
    match view.header_by_hash(block)? {
        Some(header) => block_logs(view, &header, filter),
        None => Ok(Vec::new()),
    }
}

/// Why a range of logs has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeStop {
    /// The view misses facts or refuses.
    Stop(Stop),
    /// More than [`MAX_LOGS`] logs in more than [`FREE_LOG_BLOCKS`] blocks.
    TooMany,
    /// Logs of more than [`MAX_LOG_BYTES`].
    TooLong,
    /// More blocks than one request may cover on this chain.
    TooWide {
        /// The limit.
        max: u64,
    },
}

impl From<Stop> for RangeStop {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// The logs of the canonical blocks from one height to another, both included, up to the head. The missing facts of
/// all blocks that may have matching logs are requested together.
///
/// # Errors
/// [`RangeStop`].
pub fn range_logs(
    view: &dyn View,
    from: u64,
    to: u64,
    filter: &LogFilter,
) -> Result<Vec<FoundLog>, RangeStop> {
    let to = to.min(view.height()?);
    let blocks = to.saturating_sub(from).saturating_add(1);
    if blocks > view.max_log_blocks() && from <= to {
        return Err(RangeStop::TooWide { max: view.max_log_blocks() });
    }
    let (mut found, mut bytes, mut lacking) = (Vec::new(), 0_usize, Facts::new());
    for number in from..=to {
        if view.interrupted() {
            return Err(Stop::Refused(super::Refusal::Interrupted).into());
        }
        let Some(header) = view.header_by_number(number)? else { break };
        match block_logs(view, &header, filter) {
            Ok(logs) if lacking.is_empty() => {
                bytes = logs.iter().map(FoundLog::json_bytes).fold(bytes, usize::saturating_add);
                if bytes > MAX_LOG_BYTES {
                    return Err(RangeStop::TooLong);
                }
                found.extend(logs);
            }
            Ok(_) => {}
            Err(Stop::Lacking(facts)) => lacking.extend(facts),
            Err(refused) => return Err(refused.into()),
        }
        if blocks > FREE_LOG_BLOCKS && found.len() > MAX_LOGS {
            return Err(RangeStop::TooMany);
        }
    }
    if lacking.is_empty() { Ok(found) } else { Err(Stop::Lacking(lacking).into()) }
}
