//! Counts the Bitcoin blocks that commit to shown Rootstock headers or to their proven uncles.
//!
//! A Bitcoin block commits to a Rootstock header if it is the Bitcoin header in that header's merged-mining proof. Only blocks of
//! the Bitcoin chain count. The target that a Bitcoin header states proves nothing: of 1,200 recorded Rootstock headers, four have
//! a proof that is a block of another SHA-256 chain.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::consensus::bitcoin::{BitcoinChain, BitcoinHeader, hash_number};
use crate::consensus::{ChainView, Origin, VerifiedHeader, VerifiedUncles};
use crate::types::{B256, Header, U256, insert_sorted};

/// Newest Bitcoin blocks that are counted: those of two days.
pub const COUNTED_BLOCKS: u32 = 288;
/// Fewest of these [`COUNTED_BLOCKS`] that must commit to the chain. With [`LEAST_RECENT`], an honest chain with an eighth of Bitcoin's work
/// shows fewer less than once a year.
pub const LEAST_COUNTED: u32 = 15;
/// Newest Bitcoin blocks that are also counted by themselves: those of half a day.
pub const RECENT_BLOCKS: u32 = 72;
/// Fewest of these [`RECENT_BLOCKS`] that must commit to the chain.
pub const LEAST_RECENT: u32 = 1;

/// Most commitments that are kept. On mainnet each costs at least a quarter of a Bitcoin block, so there are about as many as
/// Bitcoin blocks; test networks reach the limit, where the oldest is dropped.
const MAX_COMMITMENTS: usize = 4_096;
/// Most blocks that wait for their uncles to be proven, 40 bytes each: almost twice the three days of blocks that are judged. The
/// uncles of further blocks are not counted.
const MAX_AWAITED: usize = 16_384;
/// Most waiting blocks that one call looks at, so that a new header does not cost a look at all of them.
const AWAITED_AT_ONCE: usize = 64;

/// Newest headers that are remembered, to find where a branch left: after a deeper reorganisation all headers are looked at again.
const REMEMBERED: usize = 512;

/// A Bitcoin block that commits to a shown header or uncle.
#[derive(Debug, Clone, Copy)]
struct Commitment {
    /// Hash of the Bitcoin block.
    bitcoin: B256,
    /// The highest Rootstock block of the chain that the Bitcoin block supports: the header that it commits to, or the parent of
    /// the uncle that it commits to.
    supported: u64,
    /// The canonical block that shows the header or lists the uncle, by number and hash.
    shown: (u64, B256),
}

/// How many of the newest Bitcoin blocks commit to the chain. Only blocks with another Bitcoin block on top count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Of the newest 72 ([`RECENT_BLOCKS`]).
    pub recent: u32,
    /// Of the newest 288 ([`COUNTED_BLOCKS`]).
    pub all: u32,
}

impl Counts {
    /// Whether there are fewer than an honest chain shows. `reach` is the number of Bitcoin blocks that the shown headers reach
    /// back; a count over more blocks is not judged.
    #[must_use]
    pub const fn is_low(&self, reach: u32) -> bool {
        (reach >= RECENT_BLOCKS && self.recent < LEAST_RECENT)
            || (reach >= COUNTED_BLOCKS && self.all < LEAST_COUNTED)
    }
}

/// The commitments of the canonical headers from a block number on. Headers whose proof of work is not checked are left out.
#[derive(Debug, Clone, Default)]
pub struct Commitments {
    /// Number of the first Rootstock block that is looked at.
    from: u64,
    /// The highest header whose proof of work was not checked at the last look.
    unproven: Option<u64>,
    /// The commitments, in the order in which the headers were looked at.
    found: VecDeque<Commitment>,
    /// The newest headers that were looked at, by number and hash, oldest first.
    looked_at: VecDeque<(u64, B256)>,
    /// Blocks whose uncles are not proven yet, by number and hash. Each call takes from the back.
    awaited: VecDeque<(u64, B256)>,
}

impl Commitments {
    /// Looks at the canonical headers from this block number on.
    #[must_use]
    pub fn new(from: u64) -> Self {
        Self { from, ..Self::default() }
    }

    /// Follows the Rootstock chain. Call this after that chain has changed or uncles were proven.
    pub fn follow(&mut self, view: &ChainView, bitcoin: &BitcoinChain) {
        self.drop_removed(view);
        let filter = BitcoinWorkFilter::of(bitcoin);
        let first_proven = self.unproven.map_or(0, |number| number.saturating_add(1));
        let lowest = self.from.max(view.lowest()).max(first_proven);
        let from = self.looked_at.back().map_or(lowest, |(number, _)| number.saturating_add(1));
        let awaited = self.awaited.len().min(AWAITED_AT_ONCE);
        let mined = |header: &&VerifiedHeader| matches!(header.evidence().origin, Origin::Mined(_));
        let headers = (from..=view.head().number).filter_map(|number| view.by_number(number));
        for header in headers.filter(mined) {
            let shown = (header.number, header.hash());
            self.add(filter.commitment(header, header.number, shown));
            self.looked_at.push_back(shown);
            if self.looked_at.len() > REMEMBERED {
                self.looked_at.pop_front();
            }
            self.look_at_uncles(view, shown, &filter);
        }
        // Blocks that waited before this call are looked at in turn: a block whose uncles are still not proven goes to the front.
        for _ in 0..awaited {
            let Some(shown) = self.awaited.pop_back() else { break };
            self.look_at_uncles(view, shown, &filter);
        }
    }

    /// Adds the commitments to the uncles of a block, if they are proven. Otherwise they are awaited.
    fn look_at_uncles(&mut self, view: &ChainView, shown: (u64, B256), filter: &BitcoinWorkFilter) {
        match view.uncles(&shown.1) {
            Some(uncles) => self.add_uncles(uncles, shown, filter),
            None if self.awaited.len() < MAX_AWAITED => self.awaited.push_front(shown),
            None => {}
        }
    }

    /// Removes the commitments that blocks show which are no longer canonical.
    fn drop_removed(&mut self, view: &ChainView) {
        let canonical = |(number, hash): &(u64, B256)| view.is_canonical(*number, hash);
        if self.unproven != view.unproven() {
            // The proofs of work of more restored headers are checked now, below those that were looked at, so everything is
            // looked at again.
            *self = Self { from: self.from, unproven: view.unproven(), ..Self::default() };
        }
        if self.looked_at.back().is_none_or(canonical) {
            return;
        }
        while self.looked_at.back().is_some_and(|newest| !canonical(newest)) {
            self.looked_at.pop_back();
        }
        self.awaited.retain(canonical);
        self.found.retain(|commitment| canonical(&commitment.shown));
        if self.looked_at.is_empty() {
            // The fork is below the remembered headers: everything is looked at again.
            self.awaited.clear();
            self.found.clear();
        }
    }

    /// Number of blocks whose uncles are not proven yet.
    #[must_use]
    pub fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Adds the commitments to uncles. One supports the uncle's parent, which is on the chain.
    fn add_uncles(&mut self, uncles: &VerifiedUncles, shown: (u64, B256), filter: &BitcoinWorkFilter) {
        for uncle in uncles.headers() {
            self.add(filter.commitment(uncle, uncle.number.saturating_sub(1), shown));
        }
    }

    /// Adds a commitment, if there is one, and drops the oldest beyond the limit.
    fn add(&mut self, commitment: Option<Commitment>) {
        self.found.extend(commitment);
        while self.found.len() > MAX_COMMITMENTS {
            self.found.pop_front();
        }
    }

    /// Heights of the Bitcoin blocks up to `top` that commit to the Rootstock block `number` or to one above it, each with the
    /// highest Rootstock block that it supports. One Bitcoin block counts once, however many headers show it.
    #[must_use]
    pub fn heights(&self, bitcoin: &BitcoinChain, top: u32, number: u64) -> BTreeMap<u32, u64> {
        let mut heights = BTreeMap::new();
        for commitment in self.found.iter().filter(|commitment| commitment.supported >= number) {
            if let Some(height) = bitcoin.height_of(&commitment.bitcoin).filter(|height| *height <= top) {
                let supported = heights.entry(height).or_insert(commitment.supported);
                *supported = commitment.supported.max(*supported);
            }
        }
        heights
    }

    /// For each of the Bitcoin blocks up to `top` that commit to the chain, the number of the highest Rootstock block that it
    /// supports; the lowest number first.
    #[must_use]
    pub fn supported_blocks(&self, bitcoin: &BitcoinChain, top: u32) -> Vec<u64> {
        let mut supported = Vec::new();
        self.heights(bitcoin, top, 0).into_values().for_each(|number| insert_sorted(&mut supported, number));
        supported
    }

    /// Counts the newest Bitcoin blocks below the height `tip`, whose block does not count because it has no block on top.
    #[must_use]
    pub fn counts(&self, bitcoin: &BitcoinChain, tip: u32) -> Counts {
        let heights = self.heights(bitcoin, tip.saturating_sub(1), 0);
        let newest = |blocks: u32| heights.range(tip.saturating_sub(blocks)..).count() as u32;
        Counts { recent: newest(RECENT_BLOCKS), all: newest(COUNTED_BLOCKS) }
    }
}

/// Excludes Bitcoin headers whose hash shows too little work for a block of the Bitcoin chain. Most merged-mining proofs are such
/// headers, so that only few commitments are kept.
struct BitcoinWorkFilter {
    /// A quarter of the work of Bitcoin's tip: the target changes by a factor of at most 4 from one period of 2,016 blocks to the
    /// next.
    least_work: U256,
}

impl BitcoinWorkFilter {
    fn of(bitcoin: &BitcoinChain) -> Self {
        let tip = bitcoin.tip().height;
        Self { least_work: bitcoin.work_of(tip..=tip).wrapping_shr(2) }
    }

    /// The commitment of the Bitcoin header in a Rootstock header's proof, if that can be a block of the Bitcoin chain.
    fn commitment(&self, header: &Header, supported: u64, shown: (u64, B256)) -> Option<Commitment> {
        let bitcoin = BitcoinHeader::first_of(&header.bitcoin_header)?.hash();
        // A hash shows the work 2^256 / hash, which is too little exactly if the product does not fit into 256 bits.
        let (_, too_large) = hash_number(&bitcoin).overflowing_mul(self.least_work);
        (!too_large).then_some(Commitment { bitcoin, supported, shown })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LOWEST, bitcoin, hash, hash_on};
    use super::*;

    fn with(found: &[(B256, u64)]) -> Commitments {
        let found = found.iter().map(|(bitcoin, supported)| Commitment {
            bitcoin: *bitcoin,
            supported: *supported,
            shown: (*supported, B256::ZERO),
        });
        Commitments { found: found.collect(), ..Commitments::default() }
    }

    /// A header and its sibling with one content, or a header and an uncle, may show the same Bitcoin block.
    #[test]
    fn a_bitcoin_block_counts_once_for_the_highest_block() {
        let chain = bitcoin(LOWEST + 100);
        let commitments = with(&[(hash(LOWEST + 50), 7), (hash(LOWEST + 50), 8), (hash(LOWEST + 50), 6)]);
        assert_eq!(commitments.counts(&chain, LOWEST + 100), Counts { recent: 1, all: 1 });
        assert_eq!(commitments.heights(&chain, u32::MAX, 0), BTreeMap::from([(LOWEST + 50, 8)]));
        assert_eq!(commitments.heights(&chain, u32::MAX, 8).len(), 1);
        assert_eq!(commitments.heights(&chain, u32::MAX, 9).len(), 0);
    }

    #[test]
    fn blocks_are_found_by_how_often_they_are_committed_to() {
        let chain = bitcoin(LOWEST + 100);
        // An uncle's parent may be below the Rootstock block that an earlier Bitcoin block supports.
        let found = [
            (hash(LOWEST + 50), 7),
            (hash(LOWEST + 51), 20),
            (hash(LOWEST + 52), 18),
            (hash(LOWEST + 99), 30),
        ];
        let commitments = with(&found);
        let supported = commitments.supported_blocks(&chain, LOWEST + 60);
        assert_eq!(supported, [7, 18, 20]);
        for (number, least) in supported.into_iter().zip([3, 2, 1]) {
            let above = |number| commitments.heights(&chain, LOWEST + 60, number).len();
            assert!(above(number) >= least && above(number + 1) < least, "{least}");
        }
    }

    #[test]
    fn stale_blocks_and_the_tip_do_not_count() {
        let tip = LOWEST + 400;
        let chain = bitcoin(tip);
        let commitments = with(&[(hash_on(1, tip - 5), 1), (hash(tip), 2)]);
        assert_eq!(commitments.counts(&chain, tip), Counts::default());
        let at = |below: u32| with(&[(hash(tip - below), 1)]).counts(&chain, tip);
        assert_eq!((at(1), at(72)), (Counts { recent: 1, all: 1 }, Counts { recent: 1, all: 1 }));
        assert_eq!(
            (at(73), at(288), at(289)),
            (Counts { recent: 0, all: 1 }, Counts { recent: 0, all: 1 }, Counts::default())
        );
    }

    #[test]
    fn few_commitments_are_low_as_far_as_headers_reach() {
        let counts = |recent, all| Counts { recent, all };
        assert!(counts(0, 15).is_low(72) && !counts(0, 15).is_low(71));
        assert!(counts(1, 14).is_low(288) && !counts(1, 14).is_low(287) && !counts(1, 15).is_low(288));
    }
}
