//! The work floor: the least work that an attacker must spend to deceive a client that is cut off from all honest upstreams.
//!
//! Difficulty falls by 1/400 per slow block, so an attacker with enough time can build a chain whose later blocks cost
//! little. The floor therefore looks at time: each stretch of two, six and twenty-four hours of the chain's own time
//! must show a share of the work that the checkpoint's difficulty promises. Surplus work in one stretch does not count
//! for another.

use alloc::collections::VecDeque;

use crate::{
    consensus::{ChainView, Network, Rule, VerifiedHeader},
    types::{B256, U256},
};

/// Lengths of the stretches that are judged, in seconds: two, six and twenty-four hours.
const STRETCHES: [u64; 3] = [7_200, 21_600, LONGEST_STRETCH];

/// The longest stretch that is judged, in seconds: a day.
pub(super) const LONGEST_STRETCH: u64 = 86_400;

/// Seconds per block on which the promised work is based; mainnet showed 25 to 33.
const SPACING: u64 = 30;

/// A stretch of the chain with too little work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowWork {
    /// The block at the end of the stretch.
    pub number: u64,
    /// Length in seconds.
    pub seconds: u64,
    /// Proven work in percent of the promised work, which follows from the checkpoint's difficulty or, in a start by work, from the
    /// network's minimum difficulty.
    pub percent: u64,
    /// Hash of the block at the end.
    hash: B256,
    /// Time of the end, in seconds since 1970.
    time: u64,
}

/// A block of the canonical chain. `work` is the work that headers state up to this block; `time` is the latest time of
/// any block up to this one, because times may fall along a chain.
#[derive(Debug, Clone, Copy)]
struct WorkPoint {
    number: u64,
    hash: B256,
    time: u64,
    work: U256,
}

/// Follows the chain's head and judges the stretches that end at each new block.
#[derive(Debug)]
pub(super) struct WorkFloor {
    /// The required percentage of the promised work; 0 requires none.
    percent: u64,
    /// The newest blocks of the canonical chain, oldest first.
    points: VecDeque<WorkPoint>,
    /// Number of the block at which the whole chain starts, if the headers in memory reach down to it.
    start: Option<u64>,
    /// The checkpoint's difficulty, or the value that replaces it; `None` until the checkpoint's header is known.
    promised: Option<U256>,
    /// The stretch that [`Self::low`] returns.
    low: Option<LowWork>,
    /// Whether the oldest low stretch is kept forever, instead of the newest one of the last day.
    keeps_oldest: bool,
    /// The highest header whose work was not proven at the last look, and the work that headers state up to it.
    unproven: Option<(u64, U256)>,
}

impl WorkFloor {
    pub(super) fn new(percent: u64, promised: Option<U256>) -> Self {
        Self {
            percent,
            points: VecDeque::new(),
            start: None,
            promised,
            low: None,
            keeps_oldest: false,
            unproven: None,
        }
    }

    /// Keeps the oldest low stretch of the chain forever. A start by work is refused for any low stretch, however old. If the newest
    /// one were kept, a branch that replaces its headers would hide the older ones.
    pub(super) fn keep_oldest(&mut self) {
        self.keeps_oldest = true;
    }

    /// The newest stretch below the floor, until a day of sufficient work has followed. After
    /// [`Self::keep_oldest`], the oldest stretch below the floor.
    pub(super) fn low(&self) -> Option<&LowWork> {
        self.low.as_ref()
    }

    /// Sets the checkpoint's difficulty, for a chain whose headers in memory do not begin at the checkpoint.
    pub(super) fn promise(&mut self, difficulty: U256) {
        self.promised = Some(difficulty);
    }

    /// Judges the blocks that are new on the canonical chain.
    pub(super) fn follow(&mut self, chain: &ChainView, network: &Network) {
        let head = chain.head();
        if self.percent == 0 || !has_floor(network, head) {
            return;
        }
        let unproven = chain.unproven().zip(chain.stated_work(&head.hash()).map(|(_, unproven)| unproven));
        if unproven.is_none() && self.unproven.is_some() {
            // All work is proven now, so all stretches are judged again.
            self.low = None;
            self.points.clear();
        }
        self.unproven = unproven;
        let base = chain.base();
        self.start = (base.work == Some(U256::ZERO)).then_some(base.number);
        while self.points.back().is_some_and(|last| !chain.is_canonical(last.number, &last.hash)) {
            self.points.pop_back();
        }
        self.low = self.low.filter(|low| chain.is_canonical(low.number, &low.hash));
        let lowest = chain.base().number.max(chain.lowest());
        let from = self.points.back().map_or(lowest, |last| last.number.saturating_add(1));
        for header in (from..=head.number).filter_map(|number| chain.by_number(number)) {
            self.add(chain, header);
        }
        if unproven.is_some() {
            // More headers may be proven than at the last call, so the stretches that end at the head are judged again.
            self.low = self.points.back().and_then(|end| self.first_low_stretch(*end, head.number));
        }
        let recent = |low: &LowWork| low.time.saturating_add(LONGEST_STRETCH) >= head.timestamp;
        self.low = self.low.filter(|low| self.keeps_oldest || recent(low));
    }

    /// Adds the next block and judges the stretches that end at it.
    fn add(&mut self, chain: &ChainView, header: &VerifiedHeader) {
        let time = self.points.back().map_or(header.timestamp, |last| last.time.max(header.timestamp));
        // The header comes from this chain, so the chain has its work.
        let work = chain.stated_work(&header.hash()).map_or(U256::ZERO, |(work, _)| work);
        self.points.push_back(WorkPoint { number: header.number, hash: header.hash(), time, work });
        if self.points.len() > MAX_POINTS {
            self.points.pop_front();
        }
        // The difficulty is stored, because the checkpoint's header may leave memory.
        if self.promised.is_none() {
            self.promised = chain.by_number(chain.base().number).map(|base| base.difficulty.value());
        }
        let judged = self.points.back().and_then(|end| self.first_low_stretch(*end, chain.head().number));
        self.low = if self.keeps_oldest { self.low.or(judged) } else { judged.or(self.low) };
    }

    /// The first stretch below the floor among those that end at `now`, in seconds since 1970, instead of at a block: a chain without
    /// recent blocks shows too little work.
    pub(super) fn low_work_at(&self, now: u64) -> Option<LowWork> {
        let newest = self.points.back()?;
        let end = WorkPoint { time: newest.time.max(now), ..*newest };
        self.first_low_stretch(end, newest.number)
    }

    /// The first stretch below the floor among those that end at `end`: at the newest block, or at a later time. `head` is the number
    /// of the newest block. Two kinds of stretches are judged only at the head, by the headers that are present: a stretch that begins
    /// among headers whose work is not proven yet, and one that begins before the oldest header in memory. An honest chain does not
    /// have so many headers in a day that its oldest ones leave memory.
    fn first_low_stretch(&self, end: WorkPoint, head: u64) -> Option<LowWork> {
        let (promised, at_head) = (self.promised?, end.number == head);
        let oldest = self.points.front().filter(|point| at_head && Some(point.number) != self.start);
        STRETCHES.into_iter().find_map(|seconds| {
            let begin = end.time.checked_sub(seconds)?;
            let after = self.points.partition_point(|point| point.time <= begin);
            let before = after.checked_sub(1).and_then(|index| self.points.get(index)).or(oldest)?;
            let unproven = self.unproven.filter(|(number, _)| before.number < *number);
            if !at_head && unproven.is_some() {
                return None;
            }
            let from = unproven.map_or(before.work, |(_, work)| before.work.max(work));
            let work = end.work.saturating_sub(from);
            let promised = promised.saturating_mul(U256::from(seconds / SPACING));
            // A difficulty of 0 promises no work, so any work is enough.
            let percent = work.saturating_mul(U256::from(100)).checked_div(promised).unwrap_or(U256::MAX);
            (percent < U256::from(self.percent)).then(|| LowWork {
                number: end.number,
                seconds,
                percent: percent.saturating_to(),
                hash: end.hash,
                time: end.time,
            })
        })
    }
}

/// Most blocks that are kept for judging, 80 bytes each: more than a day of blocks at the highest rate ever seen.
const MAX_POINTS: usize = 16_384;

/// Whether the network's rules give work a meaning: difficulty moves slowly (RSKIP-97: no drop to the minimum after ten
/// minutes) and rules bound block times.
fn has_floor(network: &Network, head: &VerifiedHeader) -> bool {
    network.params.future_bound > 0 && network.active(Rule::Rskip97, head.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::{
        HeaderCandidate, HeaderChain,
        testing::{chain, child, easy_network, mine},
    };
    use crate::types::SealedHeader;

    /// Adds blocks with this many seconds between them.
    fn extend(chain: &mut HeaderChain, blocks: usize, seconds: u64) {
        let network = chain.view().network().clone();
        for _ in 0..blocks {
            let parent = chain.head().sealed().clone();
            let mut header = child(&network, &parent);
            header.timestamp = parent.timestamp + seconds;
            chain.insert(HeaderCandidate::from(mine(header)), None).unwrap();
        }
    }

    /// Two blocks above `fork`, the parent of the head, become the chain.
    fn reorganize(chain: &mut HeaderChain, fork: SealedHeader) {
        let network = chain.view().network().clone();
        let mut parent = fork;
        for _ in 0..2 {
            let mut header = child(&network, &parent);
            header.timestamp = parent.timestamp + 30;
            parent = mine(header);
            chain.insert(HeaderCandidate::from(parent.clone()), None).unwrap();
        }
        assert_eq!(chain.head().hash(), parent.hash());
    }

    fn judged(chain: &HeaderChain) -> Option<LowWork> {
        let mut floor = WorkFloor::new(50, None);
        floor.follow(chain.view(), chain.view().network());
        floor.low().copied()
    }

    #[test]
    fn an_old_chain_with_one_fresh_block_shows_too_little_work() {
        let mut chain = chain(easy_network(&[], &[]), 10);
        extend(&mut chain, 300, 30);
        assert_eq!(judged(&chain), None);
        extend(&mut chain, 1, 7_200);
        let low = judged(&chain).unwrap();
        assert_eq!((low.number, low.seconds, low.percent), (311, 7_200, 0));
    }

    #[test]
    fn surplus_work_does_not_count_for_later_stretches() {
        let mut chain = chain(easy_network(&[], &[]), 10);
        extend(&mut chain, 250, 1);
        extend(&mut chain, 80, 100);
        assert!(judged(&chain).is_some_and(|low| low.percent < 50));
    }

    #[test]
    fn falling_block_times_do_not_evade_the_floor() {
        let mut chain = chain(easy_network(&[], &[]), 10);
        extend(&mut chain, 300, 30);
        let network = chain.view().network().clone();
        for step in 0..40u64 {
            let parent = chain.head().sealed().clone();
            let mut header = child(&network, &parent);
            // Two hours ahead, and back again.
            header.timestamp = 1_600_009_300 + if step % 2 == 0 { 7_200 } else { 0 };
            chain.insert(HeaderCandidate::from(mine(header)), None).unwrap();
        }
        assert!(judged(&chain).is_some());
    }

    /// A stretch below the floor is reported for a day of the chain's time, even if newer stretches show enough work.
    #[test]
    fn too_little_work_is_forgotten_after_a_day() {
        let mut chain = chain(easy_network(&[], &[(Rule::Rskip110, u64::MAX)]), 10);
        extend(&mut chain, 250, 30);
        extend(&mut chain, 1, 7_200);
        let mut floor = WorkFloor::new(50, None);
        let mut low = |chain: &HeaderChain| {
            floor.follow(chain.view(), chain.view().network());
            floor.low().map(|low| low.number)
        };
        assert_eq!(low(&chain), Some(261));
        extend(&mut chain, 300, 30);
        let last = low(&chain).unwrap();
        assert!(last < 520, "the newest stretches are good: {last}");
        let at = chain.by_number(last).unwrap().timestamp;
        while chain.head().timestamp + 59 <= at + 86_400 {
            extend(&mut chain, 1, 59);
        }
        assert_eq!(low(&chain), Some(last));
        extend(&mut chain, 1, 59);
        assert_eq!(low(&chain), None);
    }

    /// Blocks that left the chain do not count for or against it.
    #[test]
    fn a_branch_that_left_the_chain_is_not_judged() {
        let mut chain = chain(easy_network(&[], &[]), 10);
        extend(&mut chain, 300, 30);
        let (network, fork) = (chain.view().network().clone(), chain.head().sealed().clone());
        let mut floor = WorkFloor::new(50, None);
        extend(&mut chain, 1, 7_200);
        floor.follow(chain.view(), &network);
        assert!(floor.low().is_some());
        reorganize(&mut chain, fork);
        floor.follow(chain.view(), &network);
        assert_eq!(floor.low(), None);
        assert_eq!(floor.points.len(), 303, "each block of the chain once");
    }

    #[test]
    fn networks_with_cheap_work_or_free_times_have_no_floor() {
        let mut untimed = easy_network(&[], &[]);
        untimed.params.future_bound = 0;
        for network in [easy_network(&[], &[(Rule::Rskip97, u64::MAX)]), untimed] {
            let mut chain = chain(network, 10);
            extend(&mut chain, 300, 30);
            extend(&mut chain, 1, 7_200);
            assert_eq!(judged(&chain), None);
        }
    }

    /// A reorganisation that removes a newer low stretch does not hide an older one.
    #[test]
    fn the_oldest_low_stretch_can_be_kept_for_good() {
        let mut chain = chain(easy_network(&[], &[(Rule::Rskip110, u64::MAX)]), 10);
        let network = chain.view().network().clone();
        let mut floor = WorkFloor::new(50, None);
        floor.keep_oldest();
        extend(&mut chain, 250, 30);
        extend(&mut chain, 1, 7_200);
        floor.follow(chain.view(), &network);
        extend(&mut chain, 300, 30);
        let fork = chain.head().sealed().clone();
        extend(&mut chain, 1, 7_200);
        floor.follow(chain.view(), &network);
        assert_eq!(floor.low().map(|low| low.number), Some(261));
        reorganize(&mut chain, fork);
        extend(&mut chain, 1_600, 59);
        floor.follow(chain.view(), &network);
        assert_eq!(floor.low().map(|low| low.number), Some(261));
    }

    #[test]
    fn the_number_of_kept_blocks_is_limited() {
        let mut chain = chain(easy_network(&[], &[]), 10);
        let mut floor = WorkFloor::new(50, None);
        floor.follow(chain.view(), chain.view().network());
        let first = floor.points[0];
        floor.points = (0..MAX_POINTS).map(|_| first).collect();
        extend(&mut chain, 3, 30);
        floor.follow(chain.view(), chain.view().network());
        assert_eq!((floor.points.len(), floor.points.back().unwrap().number), (16_384, 13));
    }

    #[test]
    fn a_floor_of_zero_percent_requires_no_work() {
        let mut chain = chain(easy_network(&[], &[]), 10);
        extend(&mut chain, 3, 7_200);
        let mut floor = WorkFloor::new(0, None);
        floor.follow(chain.view(), chain.view().network());
        assert_eq!(floor.low(), None);
    }
}
