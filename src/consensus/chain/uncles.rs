//! Attaches uncles to blocks of the chain: every uncle is checked by every rule before its work counts in fork choice.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entry::ChainEntry;
use super::{ChainError, ChainView, HeaderChain, Reorganisation};
use crate::consensus::candidate::HeaderCandidate;
use crate::consensus::network::{MAX_UNCLES, UNCLE_GENERATIONS};
use crate::consensus::rules::RuleInput;
use crate::consensus::uncles::{UncleError, VerifiedUncles};
use crate::consensus::verified::Origin;
use crate::types::{B256, Header, SealedHeader, U256};

/// A block's relatives by which its uncles are checked.
struct Family<'a> {
    /// Number of the block.
    block: u64,
    /// The ancestors of the block, newest first. An uncle's parent must be one of them; an uncle must not be one of them, nor one of
    /// their uncles.
    ancestors: Vec<&'a Arc<ChainEntry>>,
}

impl ChainView {
    /// Work of a block's uncles, if they obey every uncle rule and the block itself was checked by every rule. The commitment in the
    /// header is not enough: a header may commit to a list that names one header twice, or the block's own ancestors. `now` is the wall
    /// clock in seconds since 1970.
    pub fn uncle_work(&self, block: &B256, uncles: &VerifiedUncles, now: u64) -> Option<U256> {
        let entry = self.entries.get(block).filter(|_| uncles.block() == *block)?;
        let is_mined = matches!(entry.header.evidence().origin, Origin::Mined(_));
        (is_mined && self.check_uncles(entry, uncles, Some(now)).is_ok()).then(|| uncles.work())
    }

    /// Checks by every uncle rule the uncles that a block's header commits to. Uncles of the base and of blocks below it are not checked,
    /// because they do not count as work.
    pub(super) fn check_uncles(
        &self,
        entry: &ChainEntry,
        uncles: &VerifiedUncles,
        now: Option<u64>,
    ) -> Result<(), UncleError> {
        if entry.number() <= self.base.number {
            return Ok(());
        }
        let list = uncles.headers();
        if list.len() > MAX_UNCLES {
            return Err(UncleError::TooMany { found: list.len() });
        }
        let family = self.family(entry);
        for (index, uncle) in list.iter().enumerate() {
            let earlier = list.get(..index).unwrap_or_default();
            if earlier.iter().any(|other| other.hash() == uncle.hash()) {
                return Err(UncleError::Repeated { index, hash: uncle.hash() });
            }
            self.check_uncle(&family, index, uncle, now)?;
        }
        Ok(())
    }

    /// The ancestors from the parent down to seven blocks below the block, as far as the chain has them in memory.
    fn family(&self, entry: &ChainEntry) -> Family<'_> {
        let block = entry.number();
        let oldest = block.saturating_sub(UNCLE_GENERATIONS);
        let mut ancestors = Vec::new();
        let mut at = self.entries.get(&entry.parent());
        while let Some(ancestor) = at.filter(|ancestor| ancestor.number() >= oldest) {
            ancestors.push(ancestor);
            at = self.entries.get(&ancestor.parent());
        }
        Family { block, ancestors }
    }

    /// Checks the uncle at `index` of a block's list by every uncle rule.
    fn check_uncle(
        &self,
        family: &Family<'_>,
        index: usize,
        uncle: &SealedHeader,
        now: Option<u64>,
    ) -> Result<(), UncleError> {
        let (number, hash, block) = (uncle.number, uncle.hash(), family.block);
        // The uncle's parent is at most `UNCLE_GENERATIONS` blocks below the block, so the uncle is below the block by one less at most.
        let in_range = number < block && number.saturating_add(UNCLE_GENERATIONS) > block;
        if !in_range {
            return Err(UncleError::Generation { index, number, block });
        }
        if family.ancestors.iter().any(|ancestor| ancestor.hash() == hash) {
            return Err(UncleError::Ancestor { index, hash });
        }
        let parent = family.parent_of(index, uncle)?;
        family.check_unused(index, uncle)?;
        let candidate = HeaderCandidate::from(uncle.clone());
        let mut input = RuleInput::new(&candidate, &self.network, now);
        input.parent = Some((parent.header.header(), parent.hash()));
        let stated = self.stated_uncles(parent);
        input.fork = Some((&parent.context, stated));
        input.uncle().map(|_| ()).map_err(|rule| UncleError::Rule { index, rule })
    }
}

impl HeaderChain {
    /// Attaches uncles that were stored with a header, which must commit to them. [`Self::prove`] later checks them by
    /// every rule.
    ///
    /// # Errors
    /// The header commits to another list.
    pub fn attach_linked(&mut self, block: &B256, uncles: Vec<Header>) -> Result<(), ChainError> {
        let entry = self.entry(block)?.clone();
        let uncles = committed(&entry, uncles)?;
        self.count_uncles(&entry, uncles);
        Ok(())
    }

    /// Attaches a block's uncles. Checks that the header commits to them and, above the base, every uncle rule, then
    /// counts their work. The uncles of the ancestors above each uncle must be attached before, because a block may not repeat an uncle
    /// of theirs.
    ///
    /// At the base and below, only the commitment is checked; these lists show that no uncle is used twice. `now` is
    /// the clock, as in [`Self::insert`]. The added work may move the head.
    pub fn attach_uncles(
        &mut self,
        block: &B256,
        uncles: Vec<Header>,
        now: Option<u64>,
    ) -> Result<Option<Reorganisation>, ChainError> {
        let entry = self.entry(block)?;
        if entry.uncles.is_some() && uncles.is_empty() {
            return Ok(None);
        }
        let uncles = committed(entry, uncles)?;
        self.attach_verified(uncles, now)
    }

    /// As [`Self::attach_uncles`], for uncles that were already compared with the commitment in the header of their block.
    pub fn attach_verified(
        &mut self,
        uncles: Arc<VerifiedUncles>,
        now: Option<u64>,
    ) -> Result<Option<Reorganisation>, ChainError> {
        let entry = self.entry(&uncles.block())?.clone();
        let number = entry.number();
        let checked = self.view.check_uncles(&entry, &uncles, now);
        checked.map_err(|error| ChainError::Uncles { number, error })?;
        if entry.uncles.is_none() {
            self.count_uncles(&entry, uncles);
        }
        Ok(self.reconsider_all())
    }

    /// Records proven uncles of a block, and updates the sums of proven uncle work of the blocks above it.
    fn count_uncles(&mut self, entry: &ChainEntry, uncles: Arc<VerifiedUncles>) {
        let mut changed = ChainEntry { uncles: Some(uncles), ..entry.clone() };
        // The block was a gap in the sums of the blocks above it, which began anew there.
        let (hash, gap) = (entry.hash(), entry.number());
        let parent = self.view.entries.get(&entry.parent()).map(|parent| parent.proven);
        let Some(parent) = parent.filter(|_| gap > self.view.base.number) else {
            // At the base and below, uncles do not count as work.
            return self.replace(changed);
        };
        changed.proven = changed.proven_after(&parent);
        self.replace(changed);
        let mut waiting = alloc::vec![hash];
        while let Some(hash) = waiting.pop() {
            let Some(parent) = self.view.entries.get(&hash).map(|parent| parent.proven) else { continue };
            for child in self.children_of(&hash).to_vec() {
                // Only sums that start at this block change: those of blocks up to the next one without proven uncles.
                let entry = self.view.entries.get(&child).filter(|entry| entry.proven.above == gap);
                if let Some(mut entry) = entry.map(|entry| ChainEntry::clone(entry)) {
                    entry.proven = entry.proven_after(&parent);
                    self.replace(entry);
                    waiting.push(child);
                }
            }
        }
    }

    /// Compares every side branch with the head again. The head may move several times; the result is the change from the first head to
    /// the last one, `None` if these are equal.
    fn reconsider_all(&mut self) -> Option<Reorganisation> {
        // The chain drops an unproven branch that the head leaves, but this view keeps the branch.
        let before = self.view.clone();
        let tips: Vec<B256> = self.side.hashes().filter(|hash| self.is_tip(hash)).collect();
        let mut moved = false;
        for hash in tips {
            let Some(tip) = self.view.entries.get(&hash).cloned() else { continue };
            moved |= self.reconsider(&tip).is_some();
        }
        if !moved {
            return None;
        }
        let head = &self.view.head;
        let ancestor = before.common_ancestor(&before.head, head)?;
        let headers = |tip| before.path(ancestor, tip).iter().map(|entry| entry.header.clone()).collect();
        Some(Reorganisation {
            ancestor: ancestor.header.clone(),
            removed: headers(&before.head),
            added: headers(head),
        })
        .filter(|change: &Reorganisation| !change.added.is_empty())
    }

    /// Whether a header has no children.
    fn is_tip(&self, hash: &B256) -> bool {
        self.children_of(hash).is_empty()
    }
}

/// The uncles, if the block's header commits to them.
fn committed(entry: &ChainEntry, uncles: Vec<Header>) -> Result<Arc<VerifiedUncles>, ChainError> {
    let uncles = VerifiedUncles::check(&entry.header, uncles).map(Arc::new);
    uncles.map_err(|error| ChainError::Uncles { number: entry.number(), error })
}

impl Family<'_> {
    /// The ancestor that is the uncle's parent.
    fn parent_of(&self, index: usize, uncle: &SealedHeader) -> Result<&Arc<ChainEntry>, UncleError> {
        let below = uncle.number.saturating_sub(1);
        let at_height = self.ancestors.iter().find(|ancestor| ancestor.number() == below);
        let ancestor = at_height.ok_or(UncleError::UnknownAncestor { number: below })?;
        if ancestor.hash() != uncle.parent_hash {
            return Err(UncleError::Parent { index, parent: uncle.parent_hash });
        }
        Ok(ancestor)
    }

    /// Checks that no ancestor above the uncle has used it. Lower blocks cannot have used it: an uncle is below the block that includes
    /// it.
    fn check_unused(&self, index: usize, uncle: &SealedHeader) -> Result<(), UncleError> {
        for ancestor in self.ancestors.iter().filter(|ancestor| ancestor.number() > uncle.number) {
            let (number, hash) = (ancestor.number(), ancestor.hash());
            let used = ancestor.uncles.as_ref().ok_or(UncleError::EarlierUncles { number, hash })?;
            if used.headers().iter().any(|other| other.hash() == uncle.hash()) {
                return Err(UncleError::Used { index, hash: uncle.hash(), block: number });
            }
        }
        Ok(())
    }
}
