//! Reports of a filter of an executed chain: the chain's own events since the last poll. A block that joins and leaves the chain
//! between two polls is reported too.
//!
//! Each function returns as much as one answer can carry, and sets `next` to the number of the first event that is left for the
//! next poll. `None` means that the chain has already dropped events that were not reported.

use alloc::vec::Vec;

use alloy_primitives::B256;

use super::spec::marked;
use crate::{
    engine::{
        BlockHeader,
        log_filter::LogFilter,
        logs::{FoundLog, MAX_LOG_BYTES, MAX_LOGS, body_logs, json_bytes},
        pool::Pool,
    },
    local::{ChainEvent, EventBlock, Events},
    types::BlockRef,
};

/// Most headers of one poll: a header takes a few kilobytes of JSON, and an answer is limited to 10 MiB.
const MAX_HEADS: usize = 1_000;
/// Most hashes of one poll: 69 bytes of JSON each, 7 MB together.
const MAX_HASHES: usize = 100_000;

/// Passes the events from `*next` on to `take`, until `take` returns `false` because the answer is full. The next poll begins with that event.
fn pass(next: &mut u64, events: &Events, mut take: impl FnMut(&ChainEvent) -> bool) -> Option<()> {
    for (number, event) in events.since(*next)? {
        *next = number;
        if !take(event) {
            return Some(());
        }
    }
    *next = events.next();
    Some(())
}

/// The headers of blocks that joined the chain.
pub(super) fn heads(next: &mut u64, events: &Events) -> Option<Vec<BlockHeader>> {
    let mut heads = Vec::new();
    pass(next, events, |event| {
        let fits = heads.len() < MAX_HEADS;
        if let (true, ChainEvent::Connected(block)) = (fits, event) {
            heads.push((&block.header).into());
        }
        fits
    })?;
    Some(heads)
}

/// The hashes of blocks that joined the chain.
pub(super) fn blocks(next: &mut u64, events: &Events) -> Option<Vec<B256>> {
    hashes(next, events, |event| match event {
        ChainEvent::Connected(block) => Some(block.header.hash()),
        _ => None,
    })
}

/// The hashes of the transactions that have entered the pool and that the caller may see.
pub(super) fn pending(next: &mut u64, events: &Events, pool: &dyn Pool) -> Option<Vec<B256>> {
    hashes(next, events, |event| match event {
        ChainEvent::Pending { hash, asker } => pool.shows_pool_of(*asker).then_some(*hash),
        _ => None,
    })
}

/// The hashes that `of` gives for events.
fn hashes(next: &mut u64, events: &Events, of: impl Fn(&ChainEvent) -> Option<B256>) -> Option<Vec<B256>> {
    let mut hashes = Vec::new();
    pass(next, events, |event| {
        let fits = hashes.len() < MAX_HASHES;
        hashes.extend(of(event).filter(|_| fits));
        fits
    })?;
    Some(hashes)
}

/// The logs that `select` gives of blocks that joined or left the chain, each with whether its block has left. The logs of one
/// block are reported together, so that those of the first block may exceed the limits.
pub(super) fn logs(
    next: &mut u64,
    events: &Events,
    select: impl Fn(&EventBlock) -> Vec<FoundLog>,
) -> Option<Vec<(FoundLog, bool)>> {
    let mut logs = Vec::new();
    let mut bytes = 0_usize;
    pass(next, events, |event| {
        let (ChainEvent::Connected(block) | ChainEvent::Removed(block)) = event else { return true };
        let found = select(block);
        bytes = found.iter().map(|found| json_bytes(&found.log)).fold(bytes, usize::saturating_add);
        // `json_bytes` is a lower bound, so half of the limit leaves space for what it does not count.
        let full = bytes > MAX_LOG_BYTES / 2 || logs.len().saturating_add(found.len()) > MAX_LOGS;
        if full && !logs.is_empty() {
            return false;
        }
        logs.extend(marked(found, matches!(event, ChainEvent::Removed(_))));
        true
    })?;
    Some(logs)
}

/// The logs of a block that a filter selects.
pub(super) fn logs_of(filter: &LogFilter, block: &EventBlock) -> Vec<FoundLog> {
    if !filter.may_match(&(&block.header).into()) {
        return Vec::new();
    }
    let of = BlockRef { number: block.header.number, hash: block.header.hash() };
    body_logs(of, &block.block.body, &block.block.receipts, filter)
}
