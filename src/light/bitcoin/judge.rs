//! The judge of one Rootstock chain: from its dated work, its commitments and the tags of Bitcoin's coinbases it makes the report
//! with the verdict.

use super::coinbases::Coinbases;
use super::commitments::{Commitments, Counts};
use super::dated::{DatedReport, DatedWork, MIN_SUFFIX};
use super::evidence::BlockEvidence;
use super::hidden::{HiddenBranch, contested};
use super::shown::ShownView;
use super::tags::{TagCounts, TagFault, TagReport, judge_tags};
use super::verdict::{BitcoinVerdict, CLOSE_RIVAL, DEEP_REORGANISATION, MAX_TIP_AGE, WeakReason};
use crate::consensus::ChainView;
use crate::consensus::bitcoin::BitcoinChain;

/// The verdict on a Rootstock chain, with the findings of each rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitcoinReport {
    /// The verdict, which follows from the other fields.
    pub verdict: BitcoinVerdict,
    /// The Rootstock work that was done on Bitcoin's newest blocks.
    pub dated: DatedReport,
    /// Bitcoin blocks that commit to the chain.
    pub counts: Counts,
    /// Tags of the newest 72 Bitcoin blocks, by class.
    pub tags: TagCounts,
    /// A branch that no upstream shows, to warn of whatever the verdict is.
    pub hidden: Option<HiddenBranch>,
    /// Seconds since Bitcoin's tip was mined, by its own time.
    pub tip_age: u64,
}

/// Follows one Rootstock chain and the Bitcoin chain.
#[derive(Debug, Clone, Default)]
pub struct BitcoinJudge {
    dated: DatedWork,
    commitments: Commitments,
}

impl BitcoinJudge {
    /// Judges the canonical headers from this block number on.
    #[must_use]
    pub fn new(from: u64) -> Self {
        Self { dated: DatedWork::new(from), commitments: Commitments::new(from) }
    }

    /// Begins again with the canonical headers from this block number on, and keeps the seen Bitcoin blocks.
    pub(super) fn begin_at(&mut self, from: u64) {
        let seen = core::mem::take(self.dated.seen_mut());
        *self = Self { dated: DatedWork::after(from, seen), commitments: Commitments::new(from) };
    }

    /// The dated work, mutable.
    pub(super) const fn dated_mut(&mut self) -> &mut DatedWork {
        &mut self.dated
    }

    /// Follows both chains. Call this after either chain has changed or uncles were proven. A new header costs a few steps.
    pub fn follow(&mut self, view: &ChainView, bitcoin: &BitcoinChain) {
        self.dated.follow(view, bitcoin);
        self.commitments.follow(view, bitcoin);
    }

    /// The dated headers.
    pub const fn dated(&self) -> &DatedWork {
        &self.dated
    }

    /// The Bitcoin blocks that commit to the chain.
    pub const fn commitments(&self) -> &Commitments {
        &self.commitments
    }

    /// Judges the chain that was followed so far, at the tip of the Bitcoin chain or, if another Bitcoin branch has at most two
    /// blocks of work less, at the block where that branch leaves. `now` is the clock in seconds since 1970. A report takes
    /// about as long as hashing a thousand headers.
    #[must_use]
    pub fn report(
        &self,
        view: &ChainView,
        bitcoin: &BitcoinChain,
        coinbases: &Coinbases,
        now: u64,
    ) -> BitcoinReport {
        let newest = bitcoin.tip();
        // Blocks that a known branch may still replace do not count.
        let tip = bitcoin.rival_fork(CLOSE_RIVAL).map_or(newest.height, |fork| fork.min(newest.height));
        let shown = ShownView::new(view);
        let tags = judge_tags(&shown, bitcoin, coinbases, &self.dated, tip.saturating_sub(1));
        let hidden = HiddenBranch::of(&tags.foreign, &shown);
        let dated = self.dated.report(bitcoin, tip);
        let counts = self.commitments.counts(bitcoin, tip);
        let tip_age = now.saturating_sub(u64::from(newest.time));
        let verdict = if newest.height <= bitcoin.start().height {
            BitcoinVerdict::Unavailable
        } else if let Some(range) = contested(&tags, &shown) {
            BitcoinVerdict::Contested(range)
        } else {
            let weak = self.weakness(&dated, counts, &tags, bitcoin, tip_age);
            weak.map_or(BitcoinVerdict::Held, BitcoinVerdict::Weak)
        };
        BitcoinReport { verdict, dated, counts, tags: tags.all(), hidden, tip_age }
    }

    /// The first rule that does not hold. Faults of the Bitcoin chain come first, because the other rules are not reliable on a
    /// faulty one.
    fn weakness(
        &self,
        dated: &DatedReport,
        counts: Counts,
        tags: &TagReport,
        bitcoin: &BitcoinChain,
        tip_age: u64,
    ) -> Option<WeakReason> {
        let tip = bitcoin.tip().height;
        // A reorganisation that was seen, or one that a close rival may still bring.
        let rival = tip.saturating_sub(dated.tip);
        let depth = self.dated.reorganisation(tip).unwrap_or_default().max(rival);
        if depth >= DEEP_REORGANISATION {
            return Some(WeakReason::Reorganised(depth));
        }
        if tip_age > MAX_TIP_AGE {
            return Some(WeakReason::OldTip(tip_age));
        }
        if bitcoin.is_slow() {
            return Some(WeakReason::SlowBitcoin);
        }
        if dated.lags() {
            return Some(WeakReason::Lags(dated.lag));
        }
        if dated.judged < MIN_SUFFIX {
            return Some(WeakReason::FewBlocks(dated.judged));
        }
        if let Some(low) = dated.low() {
            return Some(WeakReason::LowWork(low));
        }
        match (tags.verdict, self.commitments.awaited()) {
            // Tags of uncles that are not proven yet count as kin, and would be own.
            (Err(TagFault::Own | TagFault::Kin), awaited) if awaited > 0 => {
                return Some(WeakReason::AwaitsUncles(awaited));
            }
            (Err(fault), _) => return Some(WeakReason::Tags(fault)),
            (Ok(()), _) => {}
        }
        counts.is_low(dated.judged).then_some(WeakReason::FewCommitments(counts))
    }

    /// The Bitcoin blocks that commit to the canonical Rootstock block `number` or to one above it. `report` is the newest report,
    /// `now` the clock in seconds since 1970.
    #[must_use]
    pub fn evidence(
        &self,
        number: u64,
        bitcoin: &BitcoinChain,
        report: &BitcoinReport,
        now: u64,
    ) -> BlockEvidence {
        let top = report.dated.tip.saturating_sub(1);
        let heights = self.commitments.heights(bitcoin, top, number);
        let newest = heights.last_key_value().and_then(|(height, _)| bitcoin.at(*height));
        BlockEvidence {
            bitcoin_blocks: heights.len() as u32,
            newest_height: newest.map(|block| block.height),
            newest_age: newest.map(|block| now.saturating_sub(u64::from(block.time))),
            tags: report.tags,
        }
    }
}
