//! A start by work alone: no block is trusted.
//!
//! Each upstream proposes a block to start at, some thousand below its head, and shows the headers above. These headers
//! are checked by every header rule in a chain of their own ([`Trial`]), as above a checkpoint. The proposed block's own work is
//! not counted.
//!
//! The difficulty of the proposed block must be at least the network's built-in minimum. In every stretch of 2, 6 and 24 hours up to
//! the host's present time, the headers above the block must show the configured percentage of the work expected at that minimum
//! difficulty, without long gaps. Proposals are compared by the proven work of these headers. To make up a chain from
//! the proposed block on, an attacker must spend the work of all its headers; to win against an honest upstream, more
//! than honest miners spent on their newest headers.
//!
//! The proposal of an upstream passes through these stages ([`ProposalStage`]): height -> block -> headers -> judged -> elected.
//!
//! The winner's block becomes the checkpoint. An upstream whose headers do not link to this block proposes its own
//! block again, which is compared in the same way. So an honest upstream that was late or cut off at the start can
//! still win.

use super::{
    lease_state::PATIENCE,
    peer::SyncPeer,
    phase::{AskHeight, Phase},
    proposal::{ChainStart, Proposal, ProposalStage, Trial},
    state::HeaderSync,
};
use crate::{
    consensus::{ChainView, HeaderChain},
    light::{
        fault::{SyncCause, SyncFault},
        meter::Progress,
    },
};

/// Longest wait for further proposals once one is judged, in milliseconds: without it, an upstream that makes progress very slowly could
/// delay the start forever.
const LONGEST_WAIT: u64 = 300_000;

impl HeaderSync {
    /// The progress of the upstream that has shown the most headers of its proposal; `None` without proposals.
    pub(super) fn progress_of_proposals(&self) -> Option<Progress> {
        let ChainStart::Elected { proposals, .. } = &self.start else { return None };
        if self.followed.chain.is_some() {
            return None;
        }
        let shown = proposals.iter().filter_map(|proposal| match &proposal.stage {
            ProposalStage::Headers(trial) | ProposalStage::Judged(trial) => Some(trial.progress()),
            ProposalStage::Height | ProposalStage::Block(_) => None,
        });
        shown.max_by_key(|progress| progress.head.saturating_sub(progress.start))
    }

    /// Starts from the heaviest proposal, once all have arrived or the others have taken too long.
    pub(super) fn elect(&mut self) {
        let ChainStart::Elected { rule, proposals } = &self.start else { return };
        if self.followed.chain.is_some() {
            return;
        }
        if !proposals.iter().any(|proposal| matches!(proposal.stage, ProposalStage::Judged(_))) {
            return;
        }
        // `since` is when the first proposal was judged.
        let (now, since) = (self.now.millis, *self.leases.first_end.get_or_insert(self.now.millis));
        let awaits = |(peer, proposal): (&SyncPeer, &Proposal)| match &proposal.stage {
            ProposalStage::Judged(_) => false,
            // An upstream that failed before it proposed a block is not awaited.
            ProposalStage::Height if peer.is_resting() => false,
            _ => {
                let deadline = since.max(proposal.last_progress).saturating_add(PATIENCE);
                now <= deadline && now <= since.saturating_add(LONGEST_WAIT)
            }
        };
        let is_awaited = self.peers.iter().zip(proposals).any(awaits);
        self.leases.note_shown(self.now);
        // A proposal that Bitcoin supports is elected without waiting for the others.
        let may_judge = is_awaited && self.leases.may_judge(self.now);
        let is_supported = |proposal: &Proposal| match &proposal.stage {
            ProposalStage::Judged(trial) => trial.view().is_some_and(|view| self.is_supported(view)),
            _ => false,
        };
        if is_awaited && !(may_judge && proposals.iter().any(is_supported)) {
            return;
        }
        let mut heaviest: Option<(&ChainView, usize)> = None;
        for (index, proposal) in proposals.iter().enumerate() {
            let ProposalStage::Judged(trial) = &proposal.stage else { continue };
            let Some(own) = trial.view() else { continue };
            if heaviest.is_none_or(|(most, _)| rule.prefers(own, most, self.bitcoin.as_deref(), self.now)) {
                heaviest = Some((own, index));
            }
        }
        let winner = heaviest.map(|(_, winner)| winner);
        if let Some(trial) = winner.and_then(|winner| self.take_judged(winner)) {
            self.adopt(trial);
        }
    }

    /// Takes an upstream's proposal, if it was judged.
    fn take_judged(&mut self, upstream: usize) -> Option<Trial> {
        let (_, proposal) = self.start.proposal(upstream)?;
        match core::mem::take(&mut proposal.stage) {
            ProposalStage::Judged(trial) => Some(*trial),
            other => {
                proposal.stage = other;
                None
            }
        }
    }

    /// Compares an upstream's proposal with the present chain, if there is one. If one of them contains the other's
    /// base, they are the same chain; otherwise the heavier one is adopted.
    pub(super) fn compare(&mut self, upstream: usize) {
        if self.followed.chain.is_none() {
            return;
        }
        let Some(trial) = self.take_judged(upstream) else { return };
        let number = trial.followed.checkpoint.number;
        if self.is_same_chain(&trial) {
            if let Some((_, proposal)) = self.start.proposal(upstream) {
                proposal.apart = false;
            }
        } else if self.is_heavier(&trial) {
            self.adopt(trial);
        } else if let Some(mut exchange) = self.exchange(upstream) {
            // The upstream follows a lighter chain, so it is of no use for the present one.
            return exchange.rest(SyncFault { number, cause: SyncCause::Unlinked });
        }
        if let Some(peer) = self.peers.get_mut(upstream) {
            peer.phase = Phase::Height(AskHeight);
        }
    }

    /// Whether one chain contains the other's base at or above its own base. Ancestors below a base show nothing: a false chain may
    /// have those of the true one.
    fn is_same_chain(&self, trial: &Trial) -> bool {
        let (Some(ours), Some(other)) = (&self.followed.chain, &trial.followed.chain) else { return false };
        let contains = |a: &ChainView, b: &ChainView| {
            b.base().number >= a.base().number && a.is_canonical(b.base().number, &b.base().hash)
        };
        contains(ours.view(), other.view()) || contains(other.view(), ours.view())
    }

    /// Whether a proposal shows more work than the present chain.
    fn is_heavier(&self, trial: &Trial) -> bool {
        let ours = self.followed.chain.as_ref().map(HeaderChain::view);
        let chains = self.start.rule().zip(trial.view().zip(ours));
        chains
            .is_some_and(|(rule, (other, ours))| rule.prefers(other, ours, self.bitcoin.as_deref(), self.now))
    }

    /// Continues from a proposal's chain. Requests in progress belong to the old chain and are dropped.
    fn adopt(&mut self, trial: Trial) {
        // A short window has fewer headers than the network's numbers ask for; the others are fetched in the background.
        // A start that is elected has a rule.
        let headers = self.start.rule().map_or(0, |rule| rule.work.headers);
        let lowest = trial.followed.head_number().saturating_sub(headers);
        self.followed.adopt(trial.followed, &self.options, lowest);
        self.store.on_probation = false;
        self.leases.follow_other_chain();
        if let ChainStart::Elected { proposals, .. } = &mut self.start {
            for proposal in proposals {
                (proposal.stage, proposal.apart) = (ProposalStage::Height, false);
            }
        }
        for peer in &mut self.peers {
            peer.search.follow_other_chain();
            if !peer.is_resting() {
                peer.phase = Phase::Idle(0);
            }
        }
    }
}

impl Trial {
    /// The progress from the proposed block to the height that the upstream announces.
    fn progress(&self) -> Progress {
        self.followed.progress(self.followed.checkpoint.number, core::slice::from_ref(&self.peer))
    }

    /// The headers above the proposed block.
    fn view(&self) -> Option<&ChainView> {
        self.followed.chain.as_ref().map(HeaderChain::view)
    }
}
