//! Logs of ranges of blocks. A header's bloom excludes blocks; for a possible match, all receipts of the block are
//! read.

use alloc::vec::Vec;

use alloy_primitives::B256;

use super::{
    BlockHeader,
    chain::Chain,
    log_filter::LogFilter,
    stop::{Stop, ViewResult, both},
};
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts},
    state::Facts,
    types::{BlockRef, Log},
};

/// Most blocks of a range whose number of logs is not limited. [`MAX_LOG_BYTES`] limits such a range too.
pub const FREE_LOG_BLOCKS: u64 = 2_000;
/// Most logs of a longer range: it bounds the blocks whose receipts one request has read.
pub const MAX_LOGS: usize = 10_000;
/// Most bytes of JSON, approximately, of the logs of one range: no answer may be longer. Without this limit, a few
/// blocks of logs without data, or many blocks of logs with much data, would take hundreds of megabytes before the
/// answer is refused.
pub const MAX_LOG_BYTES: usize = 10 * 1024 * 1024;
/// Least bytes of a log object in JSON, without topics and data.
const LOG_OBJECT: usize = 300;
/// Bytes of a topic in JSON: 64 digits, `0x`, quotes and a comma.
const TOPIC: usize = 69;

/// A log with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLog {
    /// The log.
    pub log: Log,
    /// Index of the log among all logs of the block.
    pub log_index: u64,
    /// Hash of the transaction that emitted the log.
    pub transaction: B256,
    /// Index of the transaction in the block.
    pub transaction_index: u64,
    /// The block.
    pub block: BlockRef,
}

/// Least bytes of a log in JSON.
pub(super) fn json_bytes(log: &Log) -> usize {
    let topics = log.topics.len().saturating_mul(TOPIC);
    log.data.len().saturating_mul(2).saturating_add(topics).saturating_add(LOG_OBJECT)
}

/// The logs of one block that a filter selects.
///
/// # Errors
/// As [`Chain::body`] and [`Chain::receipts`].
pub fn block_logs(view: &dyn Chain, header: &BlockHeader, filter: &LogFilter) -> ViewResult<Vec<FoundLog>> {
    if !filter.may_match(header) {
        return Ok(Vec::new());
    }
    let (body, receipts) = both(view.body(header), view.receipts(header))?;
    Ok(body_logs(BlockRef { number: header.number, hash: header.hash() }, &body, &receipts, filter))
}

/// The logs in the receipts of a block that a filter selects.
pub(super) fn body_logs(
    block: BlockRef,
    body: &VerifiedBody,
    receipts: &VerifiedReceipts,
    filter: &LogFilter,
) -> Vec<FoundLog> {
    let mut found = Vec::new();
    each_log(body, receipts, filter, |log| {
        found.push(log.found(block));
        true
    });
    found
}

/// A log in the receipts of a block, with its position; [`FoundLog`] is the same without a borrow.
pub(super) struct PlacedLog<'a> {
    pub(super) log: &'a Log,
    log_index: u64,
    transaction: &'a B256,
    transaction_index: u64,
}

impl PlacedLog<'_> {
    pub(super) fn found(&self, block: BlockRef) -> FoundLog {
        FoundLog {
            log: self.log.clone(),
            log_index: self.log_index,
            transaction: *self.transaction,
            transaction_index: self.transaction_index,
            block,
        }
    }
}

/// Passes the logs that a filter selects in the receipts of a block to `take`, until it returns `false`.
pub(super) fn each_log(
    body: &VerifiedBody,
    receipts: &VerifiedReceipts,
    filter: &LogFilter,
    mut take: impl FnMut(PlacedLog<'_>) -> bool,
) {
    let mut log_index = 0_u64;
    for (transaction_index, (receipt, transaction)) in
        (0_u64..).zip(receipts.receipts().iter().zip(body.hashes()))
    {
        for log in &receipt.logs {
            if filter.matches(log) && !take(PlacedLog { log, log_index, transaction, transaction_index }) {
                return;
            }
            log_index = log_index.saturating_add(1);
        }
    }
}

/// Number and size of the logs that a filter selects of a block, for `log_blocks`.
#[cfg(feature = "local")]
#[derive(Clone, Copy, Default)]
pub(super) struct LogWeight {
    /// Number of logs.
    pub(super) logs: usize,
    /// Least bytes in JSON of all logs.
    pub(super) bytes: usize,
    /// Least bytes in JSON of the longest log.
    pub(super) longest: usize,
}

/// Counts the logs that a filter selects of a block, and their bytes.
#[cfg(feature = "local")]
pub(super) fn weight(receipts: &VerifiedReceipts, filter: &LogFilter) -> LogWeight {
    let logs = receipts.receipts().iter().flat_map(|receipt| &receipt.logs);
    logs.filter(|log| filter.matches(log)).map(json_bytes).fold(LogWeight::default(), |sum, bytes| {
        LogWeight {
            logs: sum.logs.saturating_add(1),
            bytes: sum.bytes.saturating_add(bytes),
            longest: sum.longest.max(bytes),
        }
    })
}

/// The logs of the block with this hash; none if there is no such block.
///
/// # Errors
/// As [`Chain::header_by_hash`] and [`block_logs`].
pub fn logs_by_hash(view: &dyn Chain, block: B256, filter: &LogFilter) -> ViewResult<Vec<FoundLog>> {
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
    TooMany {
        /// A shorter range, from the same first block, that is within the limit.
        fits: (u64, u64),
    },
    /// Logs of more than [`MAX_LOG_BYTES`].
    TooLong {
        /// A shorter range, from the same first block, that is within the limit. `None` if the logs of the first block
        /// exceed it.
        fits: Option<(u64, u64)>,
    },
    /// More blocks than one request may cover on this chain.
    TooWide {
        /// The limit.
        max: u64,
        /// The longest range that starts at the same block.
        fits: (u64, u64),
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
/// [`RangeStop`]: the range exceeds a limit, or a look-up in the view fails.
pub fn range_logs(
    view: &dyn Chain,
    from: u64,
    to: u64,
    filter: &LogFilter,
) -> Result<Vec<FoundLog>, RangeStop> {
    let to = to.min(view.height()?);
    let blocks = to.saturating_sub(from).saturating_add(1);
    let max = view.policy().max_log_blocks;
    if blocks > max && from <= to {
        return Err(RangeStop::TooWide { max, fits: (from, from.saturating_add(max.saturating_sub(1))) });
    }
    let (mut found, mut bytes, mut missing) = (Vec::new(), 0_usize, Facts::new());
    for number in view.log_blocks(filter, from, to) {
        if view.policy().interrupted() {
            return Err(Stop::Refused(super::Refusal::Interrupted).into());
        }
        let Some(header) = view.header_by_number(number)? else { break };
        match block_logs(view, &header, filter) {
            Ok(logs) if missing.is_empty() => {
                bytes = logs.iter().map(|found| json_bytes(&found.log)).fold(bytes, usize::saturating_add);
                if bytes > MAX_LOG_BYTES {
                    let fits = (number > from).then(|| (from, number.saturating_sub(1)));
                    return Err(RangeStop::TooLong { fits });
                }
                found.extend(logs);
            }
            Ok(_) => {}
            Err(Stop::Missing(facts)) => missing.extend(facts),
            Err(refused) => return Err(refused.into()),
        }
        check_count(found.len(), from, to, number)?;
    }
    if missing.is_empty() { Ok(found) } else { Err(Stop::Missing(missing).into()) }
}

/// Refuses more than [`MAX_LOGS`] logs up to block `at`, unless the range has at most [`FREE_LOG_BLOCKS`] blocks.
///
/// # Errors
/// [`RangeStop::TooMany`].
pub fn check_count(count: usize, from: u64, to: u64, at: u64) -> Result<(), RangeStop> {
    let free = from.saturating_add(FREE_LOG_BLOCKS.saturating_sub(1));
    // A range may always be as long as `free`, however many logs it has.
    match count > MAX_LOGS && to > free {
        true => Err(RangeStop::TooMany { fits: (from, free.max(at.saturating_sub(1))) }),
        false => Ok(()),
    }
}
