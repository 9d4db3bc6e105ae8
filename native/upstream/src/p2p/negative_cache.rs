//! Blocks, states and runs of blocks that a peer lacks, because the peer said nothing about them.
//!
//! The protocol has no response for "I do not have it", so each such question takes its whole time limit. Callers do not
//! ask the same again for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use tokio::time::Instant;

/// How long a thing is not asked for after one silence; it doubles with each further one up to [`LONGEST`]. A peer lacks
/// the newest block for a moment only.
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);

/// Most things that are remembered of one peer. Beyond it, the one whose time ends first is forgotten.
const MAX_THINGS: usize = 1_024;

/// What a peer may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MissingItem {
    /// What belongs to the block with this hash.
    Block(B256),
    State(B256),
    /// Runs of whole blocks.
    Runs,
}

/// The things that a peer lacks.
#[derive(Debug, Default)]
pub(super) struct NegativeCache(Mutex<BTreeMap<MissingItem, Silence>>);

#[derive(Debug, Clone, Copy)]
struct Silence {
    until: Instant,
    pause: Duration,
}

impl NegativeCache {
    fn things(&self) -> MutexGuard<'_, BTreeMap<MissingItem, Silence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the peer said nothing about this lately.
    pub(super) fn has(&self, thing: MissingItem) -> bool {
        self.things().get(&thing).is_some_and(|silence| silence.until > Instant::now())
    }

    /// Notes that the peer said nothing about this.
    pub(super) fn note(&self, thing: MissingItem) {
        let (mut things, now) = (self.things(), Instant::now());
        let before = things.get(&thing).filter(|silence| silence.until + LONGEST > now);
        let pause = before.map_or(FIRST, |silence| silence.pause.saturating_mul(2).min(LONGEST));
        if things.len() >= MAX_THINGS && !things.contains_key(&thing) {
            let first = things.iter().min_by_key(|(_, silence)| silence.until).map(|(thing, _)| *thing);
            first.map(|first| things.remove(&first));
        }
        things.insert(thing, Silence { until: now + pause, pause });
    }

    pub(super) fn forget(&self, thing: MissingItem) {
        self.things().remove(&thing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thing_is_left_alone_for_longer_each_time_and_other_things_are_not() {
        let (negative_cache, thing) = (NegativeCache::default(), MissingItem::State(B256::repeat_byte(1)));
        for pause in [10, 20, 40, 80, 160, 300, 300] {
            negative_cache.note(thing);
            assert!(
                negative_cache.has(thing) && !negative_cache.has(MissingItem::Block(B256::repeat_byte(1)))
            );
            tokio::time::advance(Duration::from_secs(pause - 1)).await;
            assert!(negative_cache.has(thing), "{pause}");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!negative_cache.has(thing), "{pause}");
        }
        negative_cache.note(thing);
        negative_cache.forget(thing);
        assert!(!negative_cache.has(thing));
    }

    #[tokio::test(start_paused = true)]
    async fn made_up_things_take_bounded_memory() {
        let negative_cache = NegativeCache::default();
        for number in 0..3 * MAX_THINGS {
            negative_cache.note(MissingItem::Block(B256::left_padding_from(&number.to_be_bytes())));
        }
        assert_eq!(negative_cache.things().len(), MAX_THINGS);
    }
}
