//! What a filter of an executed chain reports: the chain's own events since the last poll. What comes and goes between
//! two polls is reported too.

use alloc::vec::Vec;

#[cfg(feature = "node-methods")]
use super::Filters;
use super::{Changes, View, Watch, marked};
use crate::{
    engine::logs::{FoundLog, MAX_LOG_BYTES, MAX_LOGS, body_logs, json_bytes},
    local::{ChainEvent, EventBlock, Events},
    types::BlockRef,
};

/// Most headers of one poll: a header takes a few kilobytes of JSON, and an answer is limited to 10 MiB.
const MAX_HEADS: usize = 1_000;
/// Most hashes of one poll.
const MAX_HASHES: usize = 100_000;

/// Most events of a poll that counts as short.
#[cfg(feature = "node-methods")]
const FEW_EVENTS: u64 = 64;

/// The events from `*next` on that a filter watches, as far as one answer can hold them; `next` becomes the number of
/// the first event that is left. `None` if events that were not reported yet are not kept any more.
pub(super) fn news(watch: &Watch, next: &mut u64, events: &Events, view: &dyn View) -> Option<Changes> {
    let mut changes = match watch {
        Watch::Heads => Changes::Heads(Vec::new()),
        Watch::Logs { .. } => Changes::Logs(Vec::new()),
        _ => Changes::Hashes(Vec::new()),
    };
    let mut bytes = 0_usize;
    for (number, event) in events.since(*next)? {
        *next = number;
        match (&mut changes, event) {
            (Changes::Heads(heads), _) if heads.len() >= MAX_HEADS => return Some(changes),
            (Changes::Hashes(hashes), _) if hashes.len() >= MAX_HASHES => return Some(changes),
            (Changes::Heads(heads), ChainEvent::Connected(block)) => heads.push((&block.header).into()),
            (Changes::Hashes(hashes), ChainEvent::Connected(block)) if matches!(watch, Watch::Blocks) => {
                hashes.push(block.header.hash());
            }
            (Changes::Hashes(hashes), ChainEvent::Pending { hash, asker })
                if matches!(watch, Watch::Pending) && view.shows_waiting_of(*asker) =>
            {
                hashes.push(*hash);
            }
            (Changes::Logs(logs), ChainEvent::Connected(block) | ChainEvent::Removed(block)) => {
                let found = logs_of(watch, block);
                bytes = found.iter().map(|found| json_bytes(&found.log)).fold(bytes, usize::saturating_add);
                // The logs of one block are reported together. At least one block is.
                let full = bytes > MAX_LOG_BYTES / 2 || logs.len().saturating_add(found.len()) > MAX_LOGS;
                if full && !logs.is_empty() {
                    return Some(changes);
                }
                logs.extend(marked(found, matches!(event, ChainEvent::Removed(_))));
            }
            _ => {}
        }
    }
    *next = events.next();
    Some(changes)
}

#[cfg(feature = "node-methods")]
impl Filters {
    /// Whether the next poll of a filter of an executed chain takes microseconds: it reports no logs, and at most
    /// 64 events are new. A filter that does not exist counts as such.
    pub fn poll_is_short(&mut self, id: u128, view: &dyn View, now: u64) -> bool {
        let Some(open) = self.alive(id, now) else { return true };
        let has_logs = matches!(open.watch, Watch::Logs { .. } | Watch::BlockLogs { .. });
        let new = view.events().map(|events| events.next().saturating_sub(open.next));
        !has_logs && new.is_some_and(|new| new <= FEW_EVENTS)
    }
}

/// The logs of a block that a filter selects.
fn logs_of(watch: &Watch, block: &EventBlock) -> Vec<FoundLog> {
    let Watch::Logs { filter, from, to } = watch else { return Vec::new() };
    let number = block.header.number;
    let selected = number >= *from && to.is_none_or(|to| number <= to);
    if !selected || !filter.may_match(&(&block.header).into()) {
        return Vec::new();
    }
    let of = BlockRef { number, hash: block.header.hash() };
    body_logs(of, &block.block.body, &block.block.receipts, filter)
}
