//! Bitcoin's header chain above a checkpoint. Every header is checked; headers of all sources are in one tree, whose heaviest branch
//! is the main chain. The newest headers are kept in memory, older ones are dropped.

use core::iter::successors;
use core::ops::{Bound, RangeBounds};

use super::block::{BitcoinBlock, BitcoinInserted};
use super::branches::Branches;
use super::entry::Entry;
use super::error::{BitcoinChainError, MAX_EXTRA_HEADERS};
use super::hash::{HEADER_LEN, hash_number, header_hash};
use super::header::{BitcoinHeader, HashedHeader};
use super::main_chain::{MEDIAN_BLOCKS, MainChain};
use super::network::{BitcoinCheckpoint, BitcoinNetwork};
use super::target::{PERIOD, retarget, target_of, work_of_target};
use crate::types::{B256, U256};

/// Headers of the heaviest chain that are kept: three retarget periods. The change of target of a branch that is a period long needs
/// the period below it, and a stored chain consists of up to two periods. About 1 MB; more headers are kept, up to 6 MB, while these
/// show less work than a reorganisation may remove.
pub const KEPT_BITCOIN_HEADERS: u32 = 3 * PERIOD;
/// Headers that a server keeps for clients that start at the built-in block: those of two and a half years, 20 MB.
pub const SERVED_BITCOIN_HEADERS: u32 = 64 * PERIOD;
/// Seconds that a header may be ahead of the clock: two hours, as Bitcoin's nodes allow.
const MAX_AHEAD: u64 = 2 * 60 * 60;

/// Fewest blocks whose rate [`BitcoinChain::is_slow`] judges. If miners find blocks at half of Bitcoin's rate, 36 blocks in a row
/// look slow by chance about once in a million times.
const MIN_RATED_BLOCKS: usize = 36;
/// Average time of a block, in seconds, above which blocks are slow: four times Bitcoin's ten minutes.
const SLOW_BLOCK_SECONDS: u32 = 2_400;

/// Bitcoin's header chain above a checkpoint.
#[derive(Debug, Clone)]
pub struct BitcoinChain {
    network: BitcoinNetwork,
    pub(super) main: MainChain,
    branches: Branches,
    /// Most headers to keep, unless a reorganisation may need more ([`Self::can_drop_lowest`]).
    kept: usize,
    /// The target of the tip's period, or of the first period while there is no header.
    period: TargetOfBits,
    /// Most work that a reorganisation may remove: that of a period at the greatest difficulty since the start. The number never falls, so
    /// that blocks of little work after a false change of the target do not make a branch too deep.
    most_removed: U256,
}

/// A target in compact form, decoded, and the work of a block with this target.
#[derive(Debug, Clone, Copy)]
struct TargetOfBits {
    bits: u32,
    target: U256,
    work: U256,
}

impl TargetOfBits {
    /// A compact form that is no target counts as the target zero, which no hash meets.
    fn new(bits: u32) -> Self {
        let target = target_of(bits).unwrap_or_default();
        Self { bits, target, work: work_of_target(target) }
    }

    /// Work of the blocks of a period.
    fn work_of_period(&self) -> U256 {
        self.work.saturating_mul(U256::from(PERIOD))
    }
}

/// The parent of a header that is to be checked.
#[derive(Clone, Copy)]
struct Parent<'a> {
    entry: &'a Entry,
    /// Height of the highest block on the heaviest chain at or below `entry`.
    fork: u32,
}

impl BitcoinChain {
    /// A chain without headers above the network's checkpoint.
    #[must_use]
    pub fn new(network: BitcoinNetwork) -> Self {
        let period = TargetOfBits::new(network.checkpoint.next_bits);
        Self {
            main: MainChain::new(Entry::checkpoint(&network.checkpoint)),
            branches: Branches::default(),
            kept: KEPT_BITCOIN_HEADERS as usize,
            most_removed: period.work_of_period(),
            period,
            network,
        }
    }

    /// The same chain, with another number of headers to keep, at least the default of [`KEPT_BITCOIN_HEADERS`]: servers keep more,
    /// because their clients start at older blocks.
    #[must_use]
    pub fn keeping(mut self, headers: u32) -> Self {
        self.kept = headers.max(KEPT_BITCOIN_HEADERS) as usize;
        self
    }

    /// Whether the chain may keep more headers than the default, and keeps all since its start.
    pub(super) fn keeps_all(&self) -> bool {
        self.kept > KEPT_BITCOIN_HEADERS as usize && self.lowest() == self.start().height.saturating_add(1)
    }

    /// The network.
    pub const fn network(&self) -> &BitcoinNetwork {
        &self.network
    }

    /// The block above which all headers were verified.
    pub const fn start(&self) -> &BitcoinCheckpoint {
        &self.network.checkpoint
    }

    /// Checks a header as the child of a kept one, and inserts it. `now` is in seconds since 1970.
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

    /// Does what [`Self::insert`] does with a header of this hash.
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

    /// Checks a header as the child of the tip, and puts it on top: [`Self::insert_hashed`] for a chain without branches, whose headers
    /// come in order.
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

    /// Inserts a header whose parent is not the tip.
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
        let work = TargetOfBits::new(BitcoinHeader::from(header).bits()).work;
        let entry = Entry::new(*header, hash, parent.entry.work.saturating_add(work), height);
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

    /// Sets `period` to the target that the tip states. Called after each new tip, because a reorganisation may change it too.
    #[inline]
    fn begin_period(&mut self, bits: u32) {
        if bits != self.period.bits {
            self.period = TargetOfBits::new(bits);
            self.most_removed = self.most_removed.max(self.period.work_of_period());
        }
    }

    /// Drops the lowest headers if there are more than the chain should keep.
    #[inline]
    fn drop_lowest(&mut self) {
        while self.main.len() > self.kept && self.can_drop_lowest() {
            self.main.drop_lowest();
        }
    }

    /// The lowest height at which a branch may leave the heaviest chain.
    pub(super) fn lowest_fork(&self) -> u32 {
        self.main.height_of_work(self.main.tip().work.saturating_sub(self.most_removed))
    }

    /// Whether neither branches nor a personal checkpoint need the lowest entry. The entry is not needed if no branch may leave the
    /// heaviest chain below `end`, the lowest end of a period that is more than a period above the lowest entry.
    fn can_drop_lowest(&self) -> bool {
        let start = self.start().height;
        let above = self.main.lowest_height().saturating_sub(start).saturating_add(PERIOD);
        let end = above.saturating_sub(above % PERIOD).saturating_add(PERIOD).saturating_add(start);
        let (tip, end) = (self.main.tip(), self.main.at(end));
        end.is_some_and(|end| end.work.saturating_add(self.most_removed) <= tip.work)
    }

    /// Finds a header that is kept, on the heaviest chain or on a branch.
    fn find(&self, hash: &B256) -> Option<Parent<'_>> {
        if let Some(entry) = self.main.by_hash(hash) {
            return Some(Parent { entry, fork: entry.height });
        }
        self.branches.get(hash).map(|branched| Parent { entry: &branched.entry, fork: branched.fork })
    }

    /// The entry `from`, its parent, and so on down to the lowest entry that is kept.
    fn down_from<'a>(&'a self, from: Parent<'a>) -> impl Iterator<Item = &'a Entry> {
        let on_branch = (from.entry.height > from.fork).then_some(from.entry);
        let branch = successors(on_branch, |entry| {
            self.branches.get(&entry.fields().previous()).map(|branched| &branched.entry)
        });
        branch.chain(self.main.down_from(from.fork))
    }

    /// Checks a header as the child of `parent`, apart from the link itself: target, hash and time.
    // Inlined, because the call would take as long as the checks.
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
        let kept = self.kept as u32;
        let highest = self.main.lowest_height().saturating_add(kept).saturating_add(MAX_EXTRA_HEADERS);
        if height > highest {
            return Err(BitcoinChainError::Light { height });
        }
        let expected = self.next_bits(parent);
        if bits != expected {
            return Err(BitcoinChainError::Bits { height, found: bits, expected });
        }
        let is_met = |target: &U256| hash_number(hash) <= *target;
        // Most headers state the target of `period`, which is decoded already; the first of a period and those on branches may not.
        let decoded = || target_of(bits).unwrap_or_default();
        if !(if bits == self.period.bits { is_met(&self.period.target) } else { is_met(&decoded()) }) {
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

    /// Whether the time of a child is not above the median time of the 11 blocks from `parent` down: six of them have this time or a
    /// later one. The times of the checkpoint and of the blocks below it are not available, and count as earlier.
    #[inline]
    fn is_early(&self, time: u32, parent: Parent<'_>) -> bool {
        let not_before = |other: &u32| *other >= time;
        let on_tip = parent.fork == self.main.tip().height && parent.fork == parent.entry.height;
        let count = if on_tip {
            self.main.newest_times().iter().filter(|other| not_before(other)).count()
        } else {
            let times = self.down_from(parent).map(|entry| entry.fields().time());
            times.take(MEDIAN_BLOCKS).filter(not_before).count()
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
        // The first block of the period is kept: a chain keeps a period more than branches reach down (`can_drop_lowest`).
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

    /// Height of a block of the heaviest chain that is kept, or of the checkpoint; `hash` is in internal byte order.
    #[must_use]
    pub fn height_of(&self, hash: &B256) -> Option<u32> {
        self.main.by_hash(hash).map(|entry| entry.height)
    }

    /// The block of the heaviest chain at a height. `None` if its header is not kept.
    #[must_use]
    pub fn at(&self, height: u32) -> Option<BitcoinBlock> {
        self.entry_at(height).map(Entry::block)
    }

    /// The header of the heaviest chain at a height. `None` if it is not kept.
    #[must_use]
    pub fn header_at(&self, height: u32) -> Option<[u8; HEADER_LEN]> {
        self.entry_at(height).map(|entry| entry.header)
    }

    /// The entry at a height, without the lowest one: at first that is the checkpoint, whose header is not available.
    fn entry_at(&self, height: u32) -> Option<&Entry> {
        self.main.at(height).filter(|_| height > self.main.lowest_height())
    }

    /// Height of the lowest block whose header is kept; above the tip if there is none.
    #[must_use]
    pub fn lowest(&self) -> u32 {
        self.main.lowest_height().saturating_add(1)
    }

    /// A block of the heaviest chain as a checkpoint. `None` unless it is kept and the last of a period.
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
            // As in a chain that is read back: the stored form has no time.
            time: if height == self.start().height { self.start().time } else { 0 },
        })
    }

    /// Expected number of hashes for the blocks of the heaviest chain in a range of heights. Blocks that are not kept count
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
        let below = first.saturating_sub(1).max(self.main.lowest_height());
        let work = |height: u32| self.main.at(height).map_or(U256::ZERO, |entry| entry.work);
        let tip = self.main.tip().height;
        last.map_or(U256::ZERO, |last| work(last.min(tip)).saturating_sub(work(below.min(tip))))
    }

    /// Heights from which to request headers, one after the other until the headers above one link to this chain: the tip, then 1, 2,
    /// 4 and so on blocks below it, at last the lowest height at which a branch may leave.
    pub fn locator(&self) -> impl Iterator<Item = u32> {
        let tip = self.main.tip().height;
        let lowest = self.lowest_fork();
        let depths = successors(Some(0u32), |depth| depth.checked_mul(2).map(|next| next.max(1)));
        let inner =
            depths.map(move |depth| tip.saturating_sub(depth)).take_while(move |height| *height > lowest);
        inner.chain([lowest])
    }

    /// Whether the newest 36 or more blocks are slow: since the block below them, miners at the difficulty of the lowest of these blocks
    /// would have shown more than four times their work. A false chain that leaves Bitcoin's at an old block is slow; without this test, a
    /// few new blocks on that old block would be enough.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        let (tip, start) = (self.main.tip(), self.start());
        // Whether the blocks above one are slow, given the time of that block (0 if not available), the work of the chain up to it, and
        // the work of the next block.
        let is_slow_above = |time: u32, work: U256, next_work: U256| {
            let seconds = tip.fields().time().saturating_sub(time);
            let shown = tip.work.saturating_sub(work).saturating_mul(U256::from(SLOW_BLOCK_SECONDS));
            time > 0 && shown < next_work.saturating_mul(U256::from(seconds))
        };
        let first_work = work_of_target(target_of(start.next_bits).unwrap_or_default());
        let rates_start = tip.height.saturating_sub(start.height) as usize >= MIN_RATED_BLOCKS;
        let mut work_above = tip.work;
        let suffixes = self.main.down_from(tip.height).map(|entry| {
            let next_work = core::mem::replace(&mut work_above, entry.work).saturating_sub(entry.work);
            is_slow_above(entry.fields().time(), entry.work, next_work)
        });
        rates_start && is_slow_above(start.time, U256::ZERO, first_work)
            || suffixes.skip(MIN_RATED_BLOCKS).any(|is_slow| is_slow)
    }

    /// The lowest height at which a rival leaves the heaviest chain: a branch that is behind by at most the work of `blocks` blocks of
    /// the tip's difficulty. The rival may still replace the blocks above this height.
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
