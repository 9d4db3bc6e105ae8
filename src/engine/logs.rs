//! Logs of ranges of blocks: a header's bloom excludes a block, and a possible hit is settled by all
//! receipts of the block.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::view::{Need, Stop, View, both};
use crate::{
    consensus::VerifiedHeader,
    light::{BlockRef, Facts},
    types::{Log, bloom},
};

/// Blocks up to which the number of logs is not limited.
pub const FREE_LOG_BLOCKS: u64 = 2_000;
/// Logs from a longer range at most.
pub const MAX_LOGS: usize = 10_000;
/// Bytes of JSON that the logs of one range take at most, about: no answer may be longer. Without this limit a few blocks
/// of logs without data, or many blocks of logs with much, would take hundreds of megabytes before the answer is refused.
pub const MAX_LOG_BYTES: usize = 10 * 1024 * 1024;
/// Bytes of a log object in JSON beside topics and data, at least.
const LOG_OBJECT: usize = 300;
/// Bytes of a topic in JSON.
const TOPIC: usize = 69;

/// Which logs are meant, apart from where they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Any of these contracts; none named means any.
    pub addresses: Vec<Address>,
    /// For each place any of these topics; none named means any, even none at that place.
    pub topics: Vec<Vec<B256>>,
}

impl LogFilter {
    /// Whether it means this log.
    pub fn matches(&self, log: &Log) -> bool {
        let address = self.addresses.is_empty() || self.addresses.contains(&log.address);
        let mut places = self.topics.iter().enumerate();
        address
            && places.all(|(at, any)| any.is_empty() || log.topics.get(at).is_some_and(|t| any.contains(t)))
    }

    /// Whether a block with this bloom may have such a log; `false` is a proof that it has none.
    fn may_match(&self, header: &VerifiedHeader) -> bool {
        let held = &header.logs_bloom;
        let address = self.addresses.is_empty()
            || self.addresses.iter().any(|address| bloom::may_contain(held, address.as_slice()));
        address
            && self.topics.iter().all(|any| {
                any.is_empty() || any.iter().any(|topic| bloom::may_contain(held, topic.as_slice()))
            })
    }
}

/// A log and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLog {
    /// The log.
    pub log: Log,
    /// Its place among all logs of the block.
    pub log_index: u64,
    /// Its transaction.
    pub transaction: B256,
    /// Place of the transaction in the block.
    pub transaction_index: u64,
    /// The block.
    pub block: BlockRef,
}

impl FoundLog {
    /// Bytes that it takes in JSON, at least.
    fn json_bytes(&self) -> usize {
        let topics = self.log.topics.len().saturating_mul(TOPIC);
        self.log.data.len().saturating_mul(2).saturating_add(topics).saturating_add(LOG_OBJECT)
    }
}

/// The logs of one block.
///
/// # Errors
/// As [`View::body`] and [`View::receipts`].
pub fn block_logs(view: &dyn View, header: &VerifiedHeader, filter: &LogFilter) -> Need<Vec<FoundLog>> {
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

/// The logs of the block with this hash; none where there is no such block.
///
/// # Errors
/// As [`View::header_by_hash`] and [`block_logs`].
pub fn logs_by_hash(view: &dyn View, block: B256, filter: &LogFilter) -> Need<Vec<FoundLog>> {
    match view.header_by_hash(block)? {
        Some(header) => block_logs(view, &header, filter),
        None => Ok(Vec::new()),
    }
}

/// Why a range has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeStop {
    /// The view lacks facts or refuses.
    Stop(Stop),
    /// More than [`MAX_LOGS`] logs in more than [`FREE_LOG_BLOCKS`] blocks.
    TooMany,
    /// Logs of more than [`MAX_LOG_BYTES`].
    TooLong,
    /// More blocks than one question may look at here.
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

/// The logs of the canonical blocks from one height to another, both included, as far as there are
/// blocks. Facts of all blocks that may have some are asked for together.
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
