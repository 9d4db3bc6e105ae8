//! Inserts checked headers into the chain, moves the head to the heaviest branch, and drops headers beyond the limits.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entry::{ChainEntry, ProvenUncleWork, no_uncles};
use super::{ChainError, CheckedHeader, HeadChange, HeaderChain, Inserted, Reorganisation};
use crate::consensus::candidate::HeaderCandidate;
use crate::consensus::fork_choice::{BranchTip, replaces};
use crate::consensus::fork_detection::{ForkContext, ForkDetection};
use crate::consensus::rules::{RuleError, RuleInput};
use crate::consensus::uncles::VerifiedUncles;
use crate::consensus::verified::{Origin, VerifiedHeader};
use crate::types::{B256, Header, U256};

impl HeaderChain {
    /// Checks a header by every header rule as the child of a header of this chain, and inserts it.
    ///
    /// `now` is the wall clock in seconds since 1970; without it headers ahead of the clock are accepted. Fork detection data (RSKIP-110)
    /// are compared as far as the chain has the ancestors; the evidence of the result states how far.
    pub fn insert(&mut self, candidate: HeaderCandidate, now: Option<u64>) -> Result<Inserted, ChainError> {
        let (number, hash) = (candidate.header().number, candidate.header().hash());
        if let Some(known) = self.view.by_hash(&hash) {
            return Ok(Inserted { header: known.clone(), change: HeadChange::Known });
        }
        if self.stale_contexts {
            self.refresh_contexts();
        }
        let entry = self.check(candidate, number, now)?;
        Ok(self.insert_checked(entry))
    }

    /// Checks a header with its uncles, as [`Self::insert`] and [`Self::attach_uncles`] do, without inserting it: for
    /// callers that have more to check before the head may move. Fork detection data are compared with the ancestors that
    /// the chain had at the last [`Self::insert`], so a caller must not have used [`Self::prepend`] since.
    pub fn check_block(
        &self,
        candidate: HeaderCandidate,
        uncles: Vec<Header>,
        now: Option<u64>,
    ) -> Result<CheckedHeader, ChainError> {
        let number = candidate.header().number;
        let mut entry = self.check(candidate, number, now)?;
        let uncles = VerifiedUncles::check(&entry.header, uncles)
            .and_then(|uncles| self.view.check_uncles(&entry, &uncles, now).map(|()| uncles))
            .map_err(|error| ChainError::Uncles { number, error })?;
        entry.uncles = Some(Arc::new(uncles));
        if let Some(parent) = self.view.entries.get(&entry.parent()) {
            entry.proven = entry.proven_after(&parent.proven);
        }
        Ok(CheckedHeader(entry))
    }

    /// Inserts a block that [`Self::check_block`] has checked on this chain. No other header may have been inserted since the check.
    pub fn accept(&mut self, block: CheckedHeader) -> Inserted {
        match self.view.by_hash(&block.0.hash()) {
            Some(known) => Inserted { header: known.clone(), change: HeadChange::Known },
            None => self.insert_checked(block.0),
        }
    }

    /// Inserts the entry of a checked header, moves the head if its branch is the heaviest now, and drops what is beyond the
    /// limits.
    pub(super) fn insert_checked(&mut self, entry: ChainEntry) -> Inserted {
        let (hash, header) = (entry.hash(), entry.header.clone());
        let entry = Arc::new(entry);
        self.view.entries.insert(hash, entry.clone());
        self.add_child(&entry.parent(), hash);
        // The usual case needs no search for the common ancestor. A child without work of its own goes through fork choice.
        let change = if entry.parent() == self.view.head.hash() && entry.work > self.view.head.work {
            self.view.canonical.insert(entry.number(), hash);
            self.view.head = entry;
            HeadChange::Extended
        } else {
            self.side.insert(entry.work, hash);
            self.reconsider(&entry).map_or(HeadChange::Side, |reorganisation| {
                if reorganisation.removed.is_empty() {
                    HeadChange::Extended
                } else {
                    HeadChange::Reorganised(reorganisation)
                }
            })
        };
        self.prune();
        Inserted { header, change }
    }

    /// Checks a header by every header rule; returns its new entry. `number` is that of the header.
    pub(super) fn check(
        &self,
        candidate: HeaderCandidate,
        number: u64,
        now: Option<u64>,
    ) -> Result<ChainEntry, ChainError> {
        self.check_by(candidate, number, now, |input| {
            input.block().map(|(seal, fork_detection)| (Origin::Mined(seal), fork_detection))
        })
    }

    /// Checks a header by the rules that `judge` runs, which returns why the header is accepted. Returns the header's new entry.
    pub(super) fn check_by(
        &self,
        candidate: HeaderCandidate,
        number: u64,
        now: Option<u64>,
        judge: impl FnOnce(&RuleInput<'_>) -> Result<(Origin, ForkDetection), RuleError>,
    ) -> Result<ChainEntry, ChainError> {
        let network = &self.view.network;
        if let Some(known_until) = network.known_until.filter(|_| network.needs_update_for(number)) {
            return Err(ChainError::UpdateNeeded { number, known_until });
        }
        let parent_hash = candidate.header().parent_hash;
        let parent = self.view.entries.get(&parent_hash);
        let parent = parent.ok_or(ChainError::UnknownParent { number, parent: parent_hash })?;
        if parent.number() < self.view.base.number {
            return Err(ChainError::BelowBase { number, base: self.view.base.number });
        }
        let uncles = self.stated_uncles(parent);
        let mut input = RuleInput::new(&candidate, network, now);
        input.parent = Some((parent.header.header(), parent.hash()));
        input.fork = Some((&parent.context, uncles));
        let hash = candidate.header().hash();
        let (origin, fork_detection) =
            judge(&input).map_err(|rule| ChainError::Rule { number, hash, rule })?;
        let header = VerifiedHeader::shared(candidate.into_shared(), origin, fork_detection);
        Ok(self.child_entry(parent, header))
    }

    /// The entry of a checked header above `parent`.
    fn child_entry(&self, parent: &Arc<ChainEntry>, header: VerifiedHeader) -> ChainEntry {
        let mut entry = ChainEntry {
            context: parent.context.extended(&header),
            skip: self.skip_link(parent),
            work: parent.work.saturating_add(header.difficulty.value()),
            uncles: no_uncles(&header),
            header,
            // Computed below, from the other fields.
            proven: ProvenUncleWork { above: 0, work: U256::ZERO },
        };
        entry.proven = entry.proven_after(&parent.proven);
        entry
    }

    /// Sum of the uncle counts that the 32 headers ending at `parent` state; `None` if the chain lacks some of them.
    pub(super) fn stated_uncles(&self, parent: &Arc<ChainEntry>) -> Option<i32> {
        self.view.stated_uncles(parent)
    }

    /// Moves the head to `tip` if its branch is heavier.
    pub(super) fn reconsider(&mut self, tip: &Arc<ChainEntry>) -> Option<Reorganisation> {
        let head = self.view.head.clone();
        let ancestor = self.view.common_ancestor(tip, &head)?.clone();
        // Restored headers count for the head only as far as they are proven.
        let from = self.view.proven_from(&ancestor).clone();
        let branch_tip = |from: &ChainEntry, entry: &ChainEntry| BranchTip {
            work: self.view.work_between(from, entry),
            paid_fees: entry.header.paid_fees,
            hash: entry.hash(),
        };
        replaces(&branch_tip(&ancestor, tip), &branch_tip(&from, &head)).then(|| self.switch(&ancestor, tip))
    }

    /// Makes the branch from `ancestor` up to `tip` canonical, in place of the one up to the present head.
    fn switch(&mut self, ancestor: &Arc<ChainEntry>, tip: &Arc<ChainEntry>) -> Reorganisation {
        let removed = self.view.path(ancestor, &self.view.head);
        let added = self.view.path(ancestor, tip);
        for entry in &removed {
            self.view.canonical.remove(&entry.number());
            self.side.insert(entry.work, entry.hash());
        }
        for entry in &added {
            self.view.canonical.insert(entry.number(), entry.hash());
            self.side.remove(entry.work, entry.hash());
        }
        self.view.head = tip.clone();
        self.abandon_unproven(ancestor, &removed);
        let headers = |entries: Vec<Arc<ChainEntry>>| entries.into_iter().map(|e| e.header.clone()).collect();
        Reorganisation { ancestor: ancestor.header.clone(), removed: headers(removed), added: headers(added) }
    }

    /// Drops headers below the window, and side branches beyond their limit.
    fn prune(&mut self) {
        // Restored headers stay until they are proven, up to twice the window.
        let window = self.window.saturating_mul(if self.view.unproven.is_some() { 2 } else { 1 });
        while self.view.head.number().saturating_sub(self.view.lowest) >= window {
            let lowest = self.view.lowest;
            self.view.lowest = lowest.saturating_add(1);
            let Some(hash) = self.view.canonical.get(&lowest).copied() else { continue };
            let canonical_child = self.view.canonical.get(&self.view.lowest).copied();
            // Side branches go together with the canonical header below them.
            for child in self.take_children(&hash) {
                if Some(child) != canonical_child {
                    self.drop_branch(child);
                }
            }
            self.view.entries.remove(&hash);
        }
        while self.side.len() > self.side_limit {
            self.drop_lightest_branch();
        }
    }

    /// Drops the header off the canonical chain that has the least work, and all headers above it. Returns their
    /// hashes.
    pub fn drop_lightest_branch(&mut self) -> Vec<B256> {
        let Some(lightest) = self.side.lightest() else { return Vec::new() };
        self.unlink(&lightest);
        self.drop_branch(lightest)
    }

    /// Removes a header from its parent's list of children.
    pub(super) fn unlink(&mut self, hash: &B256) {
        let parent = self.view.entries.get(hash).map(|entry| entry.parent());
        let Some(parent) = parent else { return };
        if let Some(mut siblings) = self.children.get(&parent).cloned() {
            Arc::make_mut(&mut siblings).retain(|child| child != hash);
            self.children.insert(parent, siblings);
        }
    }

    /// Drops a header off the canonical chain and everything above it. Returns their hashes.
    pub(super) fn drop_branch(&mut self, root: B256) -> Vec<B256> {
        let mut waiting = alloc::vec![root];
        let mut dropped = Vec::new();
        while let Some(hash) = waiting.pop() {
            dropped.push(hash);
            waiting.extend(self.take_children(&hash));
            if let Some(work) = self.view.entries.get(&hash).map(|entry| entry.work) {
                self.side.remove(work, hash);
            }
            self.view.entries.remove(&hash);
        }
        dropped
    }

    /// Compares fork detection data again that could be compared only in part, after [`Self::prepend`] added ancestors. Returns the
    /// number of headers whose data are completely compared by this call.
    ///
    /// A header that fails is reported as an error and stays in the chain: its branch has proof of work, so the caller decides about it.
    pub fn recheck_fork_detection(&mut self) -> Result<usize, ChainError> {
        let mut completed = 0usize;
        for hash in self.refresh_contexts() {
            let entry = self.entry(&hash)?;
            let Some(parent) = self.view.entries.get(&entry.parent()) else { continue };
            if entry.number() <= self.view.base.number || entry.header.evidence().fork_detection.is_complete()
            {
                continue;
            }
            let compared = self.compare_again(&entry.header, parent)?;
            let header = entry.header.with_fork_detection(compared);
            completed = completed.saturating_add(usize::from(compared.is_complete()));
            self.replace(ChainEntry { header, ..ChainEntry::clone(self.entry(&hash)?) });
        }
        Ok(completed)
    }

    /// Computes every fork context again from the lowest header up. Returns the hashes of the headers, parents before
    /// children.
    pub(super) fn refresh_contexts(&mut self) -> Vec<B256> {
        self.stale_contexts = false;
        let mut order = Vec::new();
        let lowest = self.view.canonical.get(&self.view.lowest).copied();
        let mut waiting: Vec<(B256, ForkContext)> =
            lowest.map(|hash| (hash, ForkContext::default())).into_iter().collect();
        while let Some((hash, below)) = waiting.pop() {
            let Some(entry) = self.view.entries.get(&hash) else { continue };
            let context = below.extended(&entry.header);
            self.replace(ChainEntry { context, ..ChainEntry::clone(entry) });
            order.push(hash);
            waiting.extend(self.children_of(&hash).iter().map(|child| (*child, context)));
        }
        order
    }

    /// Compares the fork detection data of a header with the present context of its parent.
    fn compare_again(
        &self,
        header: &VerifiedHeader,
        parent: &Arc<ChainEntry>,
    ) -> Result<ForkDetection, ChainError> {
        let (number, hash) = (header.number, header.hash());
        let Some(data) = header.fork_detection_data() else { return Ok(ForkDetection::NotRequired) };
        let compared = parent.context.check(number, &data, self.stated_uncles(parent));
        compared.map_err(|error| ChainError::Rule { number, hash, rule: error.into() })
    }
}
