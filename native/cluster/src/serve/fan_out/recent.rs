//! The newest blocks: whether each was announced, and whether its contents (transactions and receipts) are still expected from
//! another front end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use rootlight::types::BlockRef;

/// How long the contents of a block are expected.
const CONTENTS_WAIT: Duration = Duration::from_millis(300);

/// Most blocks in the list.
const MAX_BLOCKS: usize = 64;

/// A block of the verified chain.
struct RecentBlock {
    hash: B256,
    /// When the block was added to the list.
    since: Instant,
    /// Whether [`RecentBlocks::unannounced`] has returned the block.
    is_announced: bool,
    /// Whether its contents have come, or will not come.
    is_settled: bool,
}

/// The newest blocks, oldest first.
#[derive(Default)]
pub(super) struct RecentBlocks(Mutex<VecDeque<RecentBlock>>);

impl RecentBlocks {
    fn blocks(&self) -> MutexGuard<'_, VecDeque<RecentBlock>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds blocks that are neither announced nor expected, such as those before the start. `blocks` are given newest first.
    pub(super) fn skip(&self, blocks: &[BlockRef]) {
        let mut known = self.blocks();
        for block in blocks.iter().rev() {
            let recent = find_or_add(&mut known, block.hash);
            (recent.is_announced, recent.is_settled) = (true, true);
        }
    }

    /// The blocks that this function has not returned before, oldest first. `blocks` are given newest first.
    pub(super) fn unannounced(&self, blocks: &[BlockRef]) -> Vec<B256> {
        let mut known = self.blocks();
        let hashes = blocks.iter().rev().map(|block| block.hash);
        hashes
            .filter(|hash| !std::mem::replace(&mut find_or_add(&mut known, *hash).is_announced, true))
            .collect()
    }

    /// Whether the contents of a block are still expected.
    pub(super) fn awaits(&self, hash: &B256) -> bool {
        let mut known = self.blocks();
        let block = find_or_add(&mut known, *hash);
        !block.is_settled && block.since.elapsed() < CONTENTS_WAIT
    }

    /// Notes that the contents of a block have come, or will not come.
    pub(super) fn settle(&self, hash: &B256) {
        find_or_add(&mut self.blocks(), *hash).is_settled = true;
    }
}

/// The block with this hash, which is added if it is not in the list.
fn find_or_add(known: &mut VecDeque<RecentBlock>, hash: B256) -> &mut RecentBlock {
    let position = known.iter().position(|block| block.hash == hash);
    let position = position.unwrap_or_else(|| {
        if known.len() >= MAX_BLOCKS {
            known.pop_front();
        }
        known.push_back(RecentBlock { hash, since: Instant::now(), is_announced: false, is_settled: false });
        known.len().saturating_sub(1)
    });
    &mut known[position]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_expected_of_new_blocks_for_a_moment() {
        let recent = RecentBlocks::default();
        let block = |number: u64| BlockRef { number, hash: B256::with_last_byte(number as u8) };
        recent.skip(&[block(2), block(1)]);
        assert!(!recent.awaits(&block(1).hash) && !recent.awaits(&block(2).hash));
        let blocks = [block(4), block(3), block(2)];
        assert_eq!(recent.unannounced(&blocks), [block(3).hash, block(4).hash]);
        assert!(recent.unannounced(&blocks).is_empty());
        assert!(recent.awaits(&block(3).hash) && recent.awaits(&block(4).hash));
        recent.settle(&block(3).hash);
        assert!(!recent.awaits(&block(3).hash) && recent.awaits(&block(4).hash));
        std::thread::sleep(CONTENTS_WAIT);
        assert!(!recent.awaits(&block(4).hash));
    }

    #[test]
    fn only_the_newest_blocks_are_remembered() {
        let recent = RecentBlocks::default();
        (0..=u8::MAX).for_each(|number| recent.settle(&B256::with_last_byte(number)));
        assert_eq!(recent.blocks().len(), MAX_BLOCKS);
        assert!(!recent.awaits(&B256::with_last_byte(u8::MAX)) && recent.awaits(&B256::ZERO));
    }
}
