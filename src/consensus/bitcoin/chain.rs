//! Bitcoin's header chain above a checkpoint: every header checked, the heaviest chain of all sources in one tree.

use core::iter::successors;
use core::ops::{Bound, RangeBounds};

use super::block::{BitcoinBlock, BitcoinInserted};
use super::branches::Branches;
use super::entry::Entry;
use super::error::{BitcoinChainError, MORE_HELD};
use super::hash::{HEADER_LEN, hash_number, header_hash};
use super::header::{BitcoinHeader, HashedHeader};
use super::main_chain::{MEDIAN_BLOCKS, MainChain};
use super::network::{BitcoinCheckpoint, BitcoinNetwork};
use super::target::{PERIOD, retarget, target_of, work_of_target};
use crate::types::{B256, U256};

/// Headers of the heaviest chain that are held: three periods, so that a branch of a whole period has all that the change of
/// its target needs, and a stored tip the two periods that it consists of. About 1 MB; more are held, up to 6 MB, while
/// these show less work than a reorganisation may remove.
pub const HELD_BITCOIN_HEADERS: u32 = 3 * PERIOD;
/// Headers that a server holds for clients that start at the built-in block: those of two and a half years, 20 MB.
pub const SERVED_BITCOIN_HEADERS: u32 = 64 * PERIOD;
/// Seconds that a header may be ahead of the clock.
const MAX_AHEAD: u64 = 2 * 60 * 60;

/// Fewest blocks of which it is said whether they were slow. At half of Bitcoin's rate, one in a million are.
const SLOW_BLOCKS: usize = 36;
/// Seconds in which slow miners find less than one block: four times those that Bitcoin's take.
const SLOW_BLOCK: u32 = 2_400;

/// Bitcoin's header chain above a checkpoint.
#[derive(Debug, Clone)]
pub struct BitcoinChain {
    network: BitcoinNetwork,
    pub(super) main: MainChain,
    branches: Branches,
    /// Most headers below the tip.
    held: usize,
    period: TargetOfBits,
    /// Most work that a reorganisation may remove: that of a period at the greatest difficulty since the start. Blocks of little
    /// work after a false change of the target do not make a branch deep.
    most_removed: U256,
}

/// A target in compact form, and what follows from it.
#[derive(Debug, Clone, Copy)]
struct TargetOfBits {
    bits: u32,
    target: U256,
    work: U256,
}

impl TargetOfBits {
    /// No hash meets compact forms that are no target.
    fn new(bits: u32) -> Self {
        let target = target_of(bits).unwrap_or_default();
        Self { bits, target, work: work_of_target(target) }
    }

    /// Work of the blocks of a period.
    fn work_of_period(&self) -> U256 {
        self.work.saturating_mul(U256::from(PERIOD))
    }
}

/// The parent of a header to be checked.
#[derive(Clone, Copy)]
struct Parent<'a> {
    entry: &'a Entry,
    /// Height of the highest block on the heaviest chain at or below it.
    fork: u32,
}

impl BitcoinChain {
    /// A chain of the network's checkpoint alone.
    #[must_use]
    pub fn new(network: BitcoinNetwork) -> Self {
        let period = TargetOfBits::new(network.checkpoint.next_bits);
        Self {
            main: MainChain::new(Entry::checkpoint(&network.checkpoint)),
            branches: Branches::default(),
            held: HELD_BITCOIN_HEADERS as usize,
            most_removed: period.work_of_period(),
            period,
            network,
        }
    }

    /// The same chain, which holds more than the default of [`HELD_BITCOIN_HEADERS`]: for servers, whose clients start at older
    /// blocks.
    #[must_use]
    pub fn holding(mut self, headers: u32) -> Self {
        self.held = headers.max(HELD_BITCOIN_HEADERS) as usize;
        self
    }

    /// Whether the chain holds all headers since its start, and more than the default once there are more.
    pub(super) fn holds_all(&self) -> bool {
        self.held > HELD_BITCOIN_HEADERS as usize && self.lowest() == self.start().height.saturating_add(1)
    }

    /// The network.
    pub const fn network(&self) -> &BitcoinNetwork {
        &self.network
    }

    /// The block above which all headers were verified.
    pub const fn start(&self) -> &BitcoinCheckpoint {
        &self.network.checkpoint
    }

    /// Checks a header as the child of one that is held, and inserts it. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// [`BitcoinChainError`]; the chain is unchanged.
    pub fn insert(
        &mut self,
        header: &[u8; HEADER_LEN],
        now: u64,
    ) -> Result<BitcoinInserted, BitcoinChainError> {
        self.insert_as(header, &header_hash(header), now)
    }

    /// Does what [`Self::insert`] does with a header that is hashed already.
    pub fn insert_hashed(
        &mut self,
        header: &HashedHeader,
        now: u64,
    ) -> Result<BitcoinInserted, BitcoinChainError> {
        self.insert_as(header.header(), header.hash(), now)
    }

    fn insert_as(
        &mut self,
        header: &[u8; HEADER_LEN],
        hash: &B256,
        now: u64,
    ) -> Result<BitcoinInserted, BitcoinChainError> {
        let previous = BitcoinHeader::from(header).previous();
        if previous != self.main.tip().hash {
            return self.insert_beside(header, *hash, previous, now);
        }
        self.push(header, hash, now)?;
        self.limit_branches(hash);
        Ok(BitcoinInserted::Extended)
    }

    /// Checks a header as the child of the tip, and puts it on top. This is [`Self::insert_hashed`] for a chain that has no
    /// branches and gets none.
    ///
    /// # Errors
    /// As [`Self::insert`]; [`BitcoinChainError::Unlinked`] if it is not the child of the tip.
    pub fn extend(&mut self, header: &HashedHeader, now: u64) -> Result<(), BitcoinChainError> {
        let previous = BitcoinHeader::from(header.header()).previous();
        if previous != self.main.tip().hash {
            return Err(BitcoinChainError::Unlinked { hash: *header.hash(), previous });
        }
        self.push(header.header(), header.hash(), now)
    }

    /// Checks a header whose parent is the tip, and puts it on top.
    #[inline]
    fn push(&mut self, header: &[u8; HEADER_LEN], hash: &B256, now: u64) -> Result<(), BitcoinChainError> {
        let tip = self.main.tip();
        self.check(header, hash, Parent { entry: tip, fork: tip.height }, now)?;
        let (work, height) = (tip.work, tip.height.saturating_add(1));
        self.begin_period(BitcoinHeader::from(header).bits());
        let work = work.saturating_add(self.period.work);
        self.main.push(Entry::new(*header, *hash, work, height));
        self.drop_lowest();
        Ok(())
    }

    /// Inserts a header that is not on top of the tip.
    fn insert_beside(
        &mut self,
        header: &[u8; HEADER_LEN],
        hash: B256,
        previous: B256,
        now: u64,
    ) -> Result<BitcoinInserted, BitcoinChainError> {
        if self.main.by_hash(&hash).is_some() || self.branches.get(&hash).is_some() {
            return Ok(BitcoinInserted::Known);
        }
        let parent = self.find(&previous).ok_or(BitcoinChainError::Unlinked { hash, previous })?;
        let (fork, tip) = (parent.fork, self.main.tip());
        if fork < self.lowest_fork() {
            return Err(BitcoinChainError::Deep { height: parent.entry.height.saturating_add(1), fork });
        }
        let height = parent.entry.height.saturating_add(1);
        self.check(header, &hash, parent, now)?;
        let block = TargetOfBits::new(BitcoinHeader::from(header).bits()).work;
        let entry = Entry::new(*header, hash, parent.entry.work.saturating_add(block), height);
        let heaviest = entry.weight() > tip.weight();
        self.branches.insert(entry, fork);
        let mut result = BitcoinInserted::Side;
        if heaviest {
            let removed = self.branches.exchange(&hash, fork, &mut self.main);
            result = BitcoinInserted::Reorganised { fork, removed };
        }
        self.limit_branches(&hash);
        self.begin_period(self.main.tip().fields().bits());
        self.drop_lowest();
        Ok(result)
    }

    #[cfg(test)]
    pub(super) const fn branches(&self) -> &Branches {
        &self.branches
    }

    /// Drops branches that are too old or too many, after the header `newest` was inserted.
    #[inline]
    fn limit_branches(&mut self, newest: &B256) {
        if !self.branches.is_empty() {
            let lowest = self.lowest_fork();
            self.branches.limit(lowest, newest);
        }
    }

    /// Follows the target of the tip.
    #[inline]
    fn begin_period(&mut self, bits: u32) {
        if bits != self.period.bits {
            self.period = TargetOfBits::new(bits);
            self.most_removed = self.most_removed.max(self.period.work_of_period());
        }
    }

    /// Drops the lowest headers if there are more than are held.
    #[inline]
    fn drop_lowest(&mut self) {
        while self.main.len() > self.held && self.needs_no_lowest() {
            self.main.drop_lowest();
        }
    }

    /// The lowest height at which a branch may leave the heaviest chain.
    pub(super) fn lowest_fork(&self) -> u32 {
        self.main.height_of_work(self.main.tip().work.saturating_sub(self.most_removed))
    }

    /// Whether branches and a checkpoint of one's own need no block as low as the lowest that is held: no branch leaves below an end
    /// of a period that is more than a period above it.
    fn needs_no_lowest(&self) -> bool {
        let start = self.start().height;
        let above = self.main.lowest().saturating_sub(start).saturating_add(PERIOD);
        let end = above.saturating_sub(above % PERIOD).saturating_add(PERIOD).saturating_add(start);
        let (tip, end) = (self.main.tip(), self.main.at(end));
        end.is_some_and(|end| end.work.saturating_add(self.most_removed) <= tip.work)
    }

    fn find(&self, hash: &B256) -> Option<Parent<'_>> {
        if let Some(entry) = self.main.by_hash(hash) {
            return Some(Parent { entry, fork: entry.height });
        }
        self.branches.get(hash).map(|branched| Parent { entry: &branched.entry, fork: branched.fork })
    }

    /// The entries from one down to the lowest that is held.
    fn down_from<'a>(&'a self, from: Parent<'a>) -> impl Iterator<Item = &'a Entry> {
        let on_branch = (from.entry.height > from.fork).then_some(from.entry);
        let branch = successors(on_branch, |entry| {
            self.branches.get(&entry.fields().previous()).map(|branched| &branched.entry)
        });
        branch.chain(self.main.down_from(from.fork))
    }

    /// Checks a header.
    // Inlined: the call would take as long as the checks.
    #[inline(always)]
    fn check(
        &self,
        header: &[u8; HEADER_LEN],
        hash: &B256,
        parent: Parent<'_>,
        now: u64,
    ) -> Result<(), BitcoinChainError> {
        let fields = BitcoinHeader::from(header);
        let (time, bits) = (fields.time(), fields.bits());
        let height = parent.entry.height.saturating_add(1);
        let most = self.main.lowest().saturating_add(self.held as u32).saturating_add(MORE_HELD);
        if height > most {
            return Err(BitcoinChainError::Light { height });
        }
        let expected = self.next_bits(parent);
        if bits != expected {
            return Err(BitcoinChainError::Bits { height, found: bits, expected });
        }
        let is_met = |target: &U256| hash_number(hash) <= *target;
        let other = || target_of(bits).unwrap_or_default();
        if !(if bits == self.period.bits { is_met(&self.period.target) } else { is_met(&other()) }) {
            return Err(BitcoinChainError::HashAboveTarget { height, hash: *hash, bits });
        }
        if self.is_early(time, parent) {
            return Err(BitcoinChainError::EarlyTime { height, time });
        }
        if u64::from(time) > now.saturating_add(MAX_AHEAD) {
            return Err(BitcoinChainError::FutureTime { height, time, now });
        }
        Ok(())
    }

    /// Whether the time of a child is not above the median of 11 blocks, which means that six of them are not below it. Blocks
    /// below the checkpoint are not known, and count as lower.
    #[inline]
    fn is_early(&self, time: u32, parent: Parent<'_>) -> bool {
        let late = |other: &u32| *other >= time;
        let on_tip = parent.fork == self.main.tip().height && parent.fork == parent.entry.height;
        let count = if on_tip {
            self.main.newest_times().iter().filter(|other| late(other)).count()
        } else {
            let times = self.down_from(parent).map(|entry| entry.fields().time());
            times.take(MEDIAN_BLOCKS).filter(late).count()
        };
        count > MEDIAN_BLOCKS / 2
    }

    /// The target that a child must state, in compact form.
    #[inline]
    fn next_bits(&self, parent: Parent<'_>) -> u32 {
        let above = parent.entry.height.saturating_sub(self.start().height);
        if above == 0 {
            return self.start().next_bits;
        }
        let bits = parent.entry.fields().bits();
        if !self.network.retargets || !above.is_multiple_of(PERIOD) {
            return bits;
        }
        // The first block of the period is held: one period more than branches need.
        let first = self.down_from(parent).nth(PERIOD.saturating_sub(1) as usize);
        let last_time = parent.entry.fields().time();
        let first_time = first.map_or(last_time, |first| first.fields().time());
        retarget(bits, first_time, last_time, self.network.limit)
    }

    /// The tip of the heaviest chain. Before the first header this is the checkpoint, with time and target 0.
    #[must_use]
    pub fn tip(&self) -> BitcoinBlock {
        self.main.tip().block()
    }

    /// Height of a block of the heaviest chain that is held, or of the checkpoint; `hash` is in internal byte order.
    #[must_use]
    pub fn height_of(&self, hash: &B256) -> Option<u32> {
        self.main.by_hash(hash).map(|entry| entry.height)
    }

    /// The block of the heaviest chain at a height. `None` if its header is not held.
    #[must_use]
    pub fn at(&self, height: u32) -> Option<BitcoinBlock> {
        self.entry_at(height).map(Entry::block)
    }

    /// The header of the heaviest chain at a height. `None` if it is not held.
    #[must_use]
    pub fn header_at(&self, height: u32) -> Option<[u8; HEADER_LEN]> {
        self.entry_at(height).map(|entry| entry.header)
    }

    /// The lowest entry, which is the checkpoint at first, is the base that others are counted from.
    fn entry_at(&self, height: u32) -> Option<&Entry> {
        self.main.at(height).filter(|_| height > self.main.lowest())
    }

    /// Height of the lowest block whose header is held; above the tip if there is none.
    #[must_use]
    pub fn lowest(&self) -> u32 {
        self.main.lowest().saturating_add(1)
    }

    /// A block of the heaviest chain as a checkpoint. `None` unless it is held and the last of a period.
    #[must_use]
    pub fn checkpoint_at(&self, height: u32) -> Option<BitcoinCheckpoint> {
        if !height.checked_sub(self.start().height)?.is_multiple_of(PERIOD) {
            return None;
        }
        let entry = self.main.at(height)?;
        Some(BitcoinCheckpoint {
            height,
            hash: entry.hash,
            next_bits: self.next_bits(Parent { entry, fork: height }),
            time: if height == self.start().height { self.start().time } else { 0 },
        })
    }

    /// Expected number of hashes for the blocks of the heaviest chain in a range of heights. Blocks that are not held count
    /// nothing.
    #[must_use]
    pub fn work_of(&self, heights: impl RangeBounds<u32>) -> U256 {
        let first = match heights.start_bound() {
            Bound::Included(height) => *height,
            Bound::Excluded(height) => height.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let last = match heights.end_bound() {
            Bound::Included(height) => Some(*height),
            Bound::Excluded(height) => height.checked_sub(1),
            Bound::Unbounded => Some(u32::MAX),
        };
        let below = first.saturating_sub(1).max(self.main.lowest());
        let work = |height: u32| self.main.at(height).map_or(U256::ZERO, |entry| entry.work);
        let tip = self.main.tip().height;
        last.map_or(U256::ZERO, |last| work(last.min(tip)).saturating_sub(work(below.min(tip))))
    }

    /// Heights to ask sources from, one after the other until the headers above one link to this chain: the tip, then ever
    /// further below it, down to the lowest that a branch may leave at.
    pub fn locator(&self) -> impl Iterator<Item = u32> {
        let tip = self.main.tip().height;
        let lowest = self.lowest_fork();
        let depths = successors(Some(0u32), |depth| depth.checked_mul(2).map(|next| next.max(1)));
        let inner =
            depths.map(move |depth| tip.saturating_sub(depth)).take_while(move |height| *height > lowest);
        inner.chain([lowest])
    }

    /// Whether the newest 36 blocks, or more of them, show less than a quarter of the work that miners do in the time since the block
    /// below, at the difficulty that it left. A false chain may leave Bitcoin's at an old block, of which a few new blocks
    /// would be enough otherwise.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        let (tip, start) = (self.main.tip(), self.start());
        let slow = |time: u32, below: U256, block: U256| {
            let seconds = tip.fields().time().saturating_sub(time);
            let shown = tip.work.saturating_sub(below).saturating_mul(U256::from(SLOW_BLOCK));
            time > 0 && shown < block.saturating_mul(U256::from(seconds))
        };
        let first = work_of_target(target_of(start.next_bits).unwrap_or_default());
        let since_start = tip.height.saturating_sub(start.height) as usize >= SLOW_BLOCKS;
        let mut above = tip.work;
        let suffixes = self.main.down_from(tip.height).map(|entry| {
            let block = core::mem::replace(&mut above, entry.work).saturating_sub(entry.work);
            slow(entry.fields().time(), entry.work, block)
        });
        since_start && slow(start.time, U256::ZERO, first) || suffixes.skip(SLOW_BLOCKS).any(|slow| slow)
    }

    /// The lowest height at which a branch leaves the heaviest chain whose work is at most that of `blocks` blocks behind. The
    /// blocks above this height may still be replaced by known ones.
    #[must_use]
    pub fn rival_fork(&self, blocks: u32) -> Option<u32> {
        let lead = self.period.work.saturating_mul(U256::from(blocks));
        let least = self.main.tip().work.saturating_sub(lead);
        self.branches
            .iter()
            .filter(|branched| branched.entry.work >= least)
            .map(|branched| branched.fork)
            .min()
    }
}
