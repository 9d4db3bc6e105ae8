//! Blocks, states and runs of blocks that a peer probably does not have, because it did not respond to requests for them, or
//! responded with other data.
//!
//! The protocol has no response for "I do not have it", so that a request without a response takes its whole time limit. Requests of
//! callers for the same data are not sent again for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use tokio::time::Instant;

/// How long an item is not requested after the first request without the item. The pause doubles with each further one up to
/// [`LONGEST_PAUSE`]. The first pause is short, because a peer may have the newest block a moment later.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Most items that are stored for one peer; bounds memory. Beyond it, the item whose pause ends first is removed.
const MAX_ITEMS: usize = 1_024;

/// Data that a peer may not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MissingItem {
    /// The data of the block with this hash.
    Block(B256),
    /// The state with this root.
    State(B256),
    /// Runs of whole blocks, of any heights.
    Runs,
}

/// The items that one peer probably does not have.
#[derive(Debug, Default)]
pub(super) struct NegativeCache(Mutex<BTreeMap<MissingItem, Silence>>);

/// The pause of an item.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// The end of the pause.
    until: Instant,
    /// The length of the pause, which the next one doubles.
    pause: Duration,
}

impl NegativeCache {
    fn items(&self) -> MutexGuard<'_, BTreeMap<MissingItem, Silence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the pause of an item still lasts.
    pub(super) fn has(&self, item: MissingItem) -> bool {
        self.items().get(&item).is_some_and(|silence| silence.until > Instant::now())
    }

    /// Notes that the peer did not respond to a request for this item, or responded with other data.
    pub(super) fn note(&self, item: MissingItem) {
        let (mut items, now) = (self.items(), Instant::now());
        // A pause that ended long ago does not count any more.
        let before = items.get(&item).filter(|silence| silence.until + LONGEST_PAUSE > now);
        let pause = before.map_or(FIRST_PAUSE, |silence| silence.pause.saturating_mul(2).min(LONGEST_PAUSE));
        if items.len() >= MAX_ITEMS && !items.contains_key(&item) {
            let first = items.iter().min_by_key(|(_, silence)| silence.until).map(|(item, _)| *item);
            first.map(|first| items.remove(&first));
        }
        items.insert(item, Silence { until: now + pause, pause });
    }

    /// Notes that the peer has the item.
    pub(super) fn forget(&self, item: MissingItem) {
        self.items().remove(&item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_missing_item_has_its_own_pause_which_doubles() {
        let (negative_cache, item) = (NegativeCache::default(), MissingItem::State(B256::repeat_byte(1)));
        for pause in [10, 20, 40, 80, 160, 300, 300] {
            negative_cache.note(item);
            assert!(
                negative_cache.has(item) && !negative_cache.has(MissingItem::Block(B256::repeat_byte(1)))
            );
            tokio::time::advance(Duration::from_secs(pause - 1)).await;
            assert!(negative_cache.has(item), "{pause}");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!negative_cache.has(item), "{pause}");
        }
        negative_cache.note(item);
        negative_cache.forget(item);
        assert!(!negative_cache.has(item));
    }

    #[tokio::test(start_paused = true)]
    async fn invented_items_take_bounded_memory() {
        let negative_cache = NegativeCache::default();
        for number in 0..3 * MAX_ITEMS {
            negative_cache.note(MissingItem::Block(B256::left_padding_from(&number.to_be_bytes())));
        }
        assert_eq!(negative_cache.items().len(), MAX_ITEMS);
    }
}
