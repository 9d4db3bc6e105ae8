//! The phase in which an upstream proposes a block to start at, and shows the headers above.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::slice;

use super::{
    base::only_header,
    exchange::UpstreamExchange,
    followed::FollowedChain,
    lease_state::{LEASE_POLL, LeaseState},
    options::{SyncOptions, SyncStep},
    peer::SyncPeer,
    phase::{AskHeight, AskProposal, NextPhase, Phase},
    proposal::{ProposalStage, Trial},
};
use crate::{
    consensus::{Checkpoint, WorkStart},
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        header_window::HeaderWindow,
        upstream::{RequestFailure, UpstreamResponse},
        work_floor::LONGEST_STRETCH,
    },
    types::SealedHeader,
};

/// Longest time without a block, in seconds, up to the host's present time. At a block every 30 s, honest miners leave
/// such a gap about once in 10^26 blocks.
const LONGEST_GAP: u64 = 1_800;

impl AskProposal {
    pub(super) fn step(&self, exchange: &mut UpstreamExchange<'_>) -> SyncStep {
        let now = exchange.now;
        match exchange.proposal.as_mut().map(|(_, proposal)| &mut proposal.stage) {
            Some(ProposalStage::Height) => SyncStep::Fetch(AskHeight.requests()),
            Some(ProposalStage::Block(window)) => SyncStep::Fetch(window.requests()),
            Some(ProposalStage::Headers(trial)) => trial.next(now),
            Some(ProposalStage::Judged(_)) | None => SyncStep::Wait(LEASE_POLL),
        }
    }

    /// Takes the proposal further. After a fault it begins again, unless a request above the proposed block failed.
    pub(super) fn feed(
        self,
        responses: Vec<UpstreamResponse>,
        exchange: &mut UpstreamExchange<'_>,
    ) -> NextPhase {
        let now = exchange.now;
        let Some((rule, proposal)) = &mut exchange.proposal else { return Ok(Phase::Height(AskHeight)) };
        let rule = *rule;
        proposal.moved = now.millis;
        let next = match core::mem::take(&mut proposal.stage) {
            ProposalStage::Height => choose(&responses, &rule, exchange)?,
            ProposalStage::Block(window) => start_trial(window, responses, exchange)?,
            ProposalStage::Headers(mut trial) => match trial.feed(responses, now) {
                Ok(()) if !trial.followed.synced_once => ProposalStage::Headers(trial),
                Ok(()) => trial.judged(&rule, now.unix)?,
                Err(fault) => {
                    if let SyncCause::Call(_) = fault.cause {
                        // A failed request says nothing about the headers: keep the proposal and resume after the pause.
                        trial.poll();
                        proposal.stage = ProposalStage::Headers(trial);
                    }
                    return Err(fault);
                }
            },
            judged @ ProposalStage::Judged(_) => judged,
        };
        if let Some((_, proposal)) = &mut exchange.proposal {
            proposal.stage = next;
        }
        Ok(Phase::Propose(self))
    }
}

/// Chooses the block to start at from the height that the upstream announces.
fn choose(
    responses: &[UpstreamResponse],
    rule: &WorkStart,
    exchange: &mut UpstreamExchange<'_>,
) -> Result<ProposalStage, SyncFault> {
    let fault = |followed: &FollowedChain, cause| SyncFault { number: followed.head_number(), cause };
    let height = AskHeight.height(responses).map_err(|cause| fault(exchange.followed, cause))?;
    exchange.peer.source.announced = Some(height);
    let Some(number) = height.checked_sub(rule.headers).filter(|number| *number >= rule.from) else {
        let reason = format!(
            "it ends at block {height}; a start needs {} headers above block {} or a later one",
            rule.headers, rule.from
        );
        return Err(fault(exchange.followed, SyncCause::TooLittleWork(reason)));
    };
    let window = HeaderWindow::single(number);
    Ok(ProposalStage::Block(window.in_binary(exchange.peer.source.may_give_binary())))
}

/// Starts a chain for the headers above a proposal, which takes the proposal for its checkpoint.
fn start_trial(
    mut window: HeaderWindow,
    responses: Vec<UpstreamResponse>,
    exchange: &mut UpstreamExchange<'_>,
) -> Result<ProposalStage, SyncFault> {
    let number = window.first();
    if let Some(failure) = responses.iter().find_map(RequestFailure::of_exchange) {
        // The proposal starts again after the pause.
        return Err(SyncFault { number, cause: SyncCause::Call(failure.clone()) });
    }
    if !exchange.fill(&mut window, responses) {
        return Ok(ProposalStage::Block(window));
    }
    let found = only_header(window).map_err(|cause| SyncFault { number, cause })?;
    Ok(ProposalStage::Headers(Box::new(Trial::new(exchange.followed, found, exchange.options)?)))
}

impl Trial {
    /// The ancestors that it fetches as backfill stay in its chain, so the winner's are not fetched again.
    fn new(followed: &FollowedChain, base: SealedHeader, options: &SyncOptions) -> Result<Self, SyncFault> {
        let checkpoint = Checkpoint { number: base.number, hash: base.hash(), total_difficulty: None };
        let mut followed = FollowedChain::new(followed.network.clone(), checkpoint, options);
        followed.floor.keep_oldest();
        followed.start_at(base, options)?;
        Ok(Self { followed, peer: SyncPeer::default(), leases: LeaseState::default(), options: *options })
    }

    fn exchange(&mut self, now: Now) -> UpstreamExchange<'_> {
        UpstreamExchange {
            upstream: 0,
            peer: &mut self.peer,
            before: &mut [],
            after: &mut [],
            followed: &mut self.followed,
            leases: &mut self.leases,
            proposal: None,
            options: &self.options,
            now,
        }
    }

    fn next(&mut self, now: Now) -> SyncStep {
        let mut exchange = self.exchange(now);
        exchange.begin().unwrap_or_else(|| exchange.step())
    }

    fn feed(&mut self, responses: Vec<UpstreamResponse>, now: Now) -> Result<(), SyncFault> {
        self.exchange(now).feed(responses);
        self.followed.settle(slice::from_ref(&self.peer), &mut self.leases, now);
        match &self.peer.phase {
            Phase::Resting(_, fault) => Err(fault.clone()),
            _ => Ok(()),
        }
    }

    fn poll(&mut self) {
        self.peer.poll();
        self.followed.backfill.forget_refusals();
    }

    /// The stage after the headers, if they show enough work.
    fn judged(self: Box<Self>, rule: &WorkStart, now: u64) -> Result<ProposalStage, SyncFault> {
        match judge(&self.followed, rule, self.options.work_floor, now) {
            Ok(()) => Ok(ProposalStage::Judged(self)),
            Err(reason) => {
                let number = self.followed.head_number();
                Err(SyncFault { number, cause: SyncCause::TooLittleWork(reason) })
            }
        }
    }
}

/// Whether the client may start at the block that a proposal takes for a checkpoint. The error is the reason, in
/// words.
fn judge(followed: &FollowedChain, rule: &WorkStart, floor: u64, now: u64) -> Result<(), String> {
    let Some(chain) = &followed.chain else { return Err("it has no headers".into()) };
    let (view, base) = (chain.view(), chain.view().base().number);
    let Some(first) = view.by_number(base).filter(|_| view.lowest() <= base) else {
        return Err(format!("more headers are above block {base} than fit into memory"));
    };
    let difficulty = first.difficulty.value();
    if difficulty < rule.difficulty {
        let least = rule.difficulty;
        return Err(format!("block {base} has difficulty {difficulty}; at least {least} is required"));
    }
    // Otherwise the work floor could not judge its longest stretch.
    if now.saturating_sub(first.timestamp) < LONGEST_STRETCH {
        return Err(format!("the blocks from {base} on span less than a day"));
    }
    let mut time = first.timestamp;
    for header in (base..=view.head().number).filter_map(|number| view.by_number(number)) {
        let gap = header.timestamp.saturating_sub(time);
        if gap > LONGEST_GAP {
            return Err(format!("there is no block for {gap} s before block {}", header.number));
        }
        time = time.max(header.timestamp);
    }
    let age = now.saturating_sub(time);
    if age > LONGEST_GAP {
        return Err(format!("its newest block {} is {age} s old", view.head().number));
    }
    match followed.floor.low_work_at(now).or(followed.floor.low().copied()) {
        Some(low) => Err(format!(
            "the {} s up to block {} show {} % of the expected work; {} % is required",
            low.seconds, low.number, low.percent, floor
        )),
        None => Ok(()),
    }
}
