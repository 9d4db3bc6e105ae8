//! The phase in which an upstream proposes a block to start at, and shows the headers above. `elect.rs` explains the election.
//! A window is a header window here (`header_window.rs`).

use alloc::{boxed::Box, format, vec::Vec};
use core::slice;

use super::{
    base::only_header,
    exchange::UpstreamExchange,
    followed::FollowedChain,
    judge::Judge,
    lease_state::{LEASE_POLL, LeaseState},
    options::{SyncOptions, SyncStep},
    peer::SyncPeer,
    phase::{AskHeight, AskProposal, NextPhase, Phase},
    proposal::{ElectionRule, ProposalStage, Trial},
    window_judge::WindowVerdict,
};
use crate::{
    consensus::Checkpoint,
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        header_window::HeaderWindow,
        upstream::{RequestFailure, UpstreamResponse},
    },
    types::SealedHeader,
};

impl AskProposal {
    /// The requests of the proposal's present stage.
    pub(super) fn step(&self, exchange: &mut UpstreamExchange<'_>) -> SyncStep {
        let now = exchange.now;
        match exchange.proposal.as_mut().map(|(_, proposal)| &mut proposal.stage) {
            Some(ProposalStage::Height) => SyncStep::Fetch(AskHeight.requests()),
            Some(ProposalStage::Block(window)) => SyncStep::Fetch(window.requests()),
            Some(ProposalStage::Headers(trial)) => trial.next(now),
            Some(ProposalStage::Judged(_)) | None => SyncStep::Wait(LEASE_POLL),
        }
    }

    /// Takes the responses and moves the proposal to its next stage. After a fault the proposal begins again, unless only a request for
    /// the headers above the proposed block failed.
    pub(super) fn feed(
        self,
        responses: Vec<UpstreamResponse>,
        exchange: &mut UpstreamExchange<'_>,
    ) -> NextPhase {
        let now = exchange.now;
        let Some((rule, proposal)) = &mut exchange.proposal else { return Ok(Phase::Height(AskHeight)) };
        let rule = rule.clone();
        let (undated, bitcoin) = (proposal.undated, exchange.bitcoin);
        let judge = Judge { rule: &rule, undated, restored: false, bitcoin, now };
        proposal.last_progress = now.millis;
        let had_headers = matches!(proposal.stage, ProposalStage::Headers(_));
        // On an error the stage is `Height`, the default, which `take` leaves behind.
        let next = match core::mem::take(&mut proposal.stage) {
            ProposalStage::Height => choose(&responses, &judge, exchange)?,
            ProposalStage::Block(window) => start_trial(window, responses, &rule, exchange)?,
            ProposalStage::Headers(mut trial) => match trial.feed(responses, now) {
                Ok(()) if !trial.followed.synced_once => ProposalStage::Headers(trial),
                Ok(()) => trial.judged(&judge, now)?,
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
            // The verdict on a trial was that its work cannot be dated: it begins again, with more headers.
            proposal.undated |= had_headers && matches!(next, ProposalStage::Height);
            proposal.stage = next;
        }
        Ok(Phase::Propose(self))
    }
}

/// Chooses the block to start at: the required number of headers below the height that the upstream announces.
fn choose(
    responses: &[UpstreamResponse],
    judge: &Judge<'_>,
    exchange: &mut UpstreamExchange<'_>,
) -> Result<ProposalStage, SyncFault> {
    let fault = |followed: &FollowedChain, cause| SyncFault { number: followed.head_number(), cause };
    let height = AskHeight.height(responses).map_err(|cause| fault(exchange.followed, cause))?;
    exchange.peer.source.announced = Some(height);
    let (headers, lowest) = (judge.headers(), judge.rule.work.from);
    let Some(number) = height.checked_sub(headers).filter(|number| *number >= lowest) else {
        let reason = format!(
            "it ends at block {height}; a start needs {headers} headers above block {lowest} or a later one"
        );
        return Err(fault(exchange.followed, SyncCause::TooLittleWork(reason)));
    };
    let window = HeaderWindow::single(number);
    Ok(ProposalStage::Block(window.in_binary(exchange.peer.source.may_give_binary())))
}

/// Starts a chain for the headers above the proposed block, whose checkpoint is this block.
fn start_trial(
    mut window: HeaderWindow,
    responses: Vec<UpstreamResponse>,
    rule: &ElectionRule,
    exchange: &mut UpstreamExchange<'_>,
) -> Result<ProposalStage, SyncFault> {
    let number = window.first();
    if let Some(failure) = responses.iter().find_map(RequestFailure::of_exchange) {
        // The proposal begins again after the pause.
        return Err(SyncFault { number, cause: SyncCause::Call(failure.clone()) });
    }
    if !exchange.fill(&mut window, responses) {
        return Ok(ProposalStage::Block(window));
    }
    let found = only_header(window).map_err(|cause| SyncFault { number, cause })?;
    let mut options = *exchange.options;
    if let Some(mark) = &rule.mark {
        // Ancestors are fetched down to the mark of an earlier run, if that is not too far, so that the judge can compare them.
        let down = number.saturating_sub(mark.number);
        options.backfill = options.backfill.max(if down <= rule.work.headers { down } else { 0 });
    }
    let mut trial = Trial::new(exchange.followed, found, &options)?;
    trial.followed.headers_first = rule.is_window;
    Ok(ProposalStage::Headers(Box::new(trial)))
}

impl Trial {
    /// A trial that starts at the header `base`. The trial also fetches the backfill, whose headers are not fetched again if the
    /// proposal wins.
    fn new(followed: &FollowedChain, base: SealedHeader, options: &SyncOptions) -> Result<Self, SyncFault> {
        let checkpoint = Checkpoint { number: base.number, hash: base.hash(), total_difficulty: None };
        let mut followed = FollowedChain::new(followed.network.clone(), checkpoint, options);
        followed.floor.keep_oldest();
        followed.start_at(base, options)?;
        Ok(Self { followed, peer: SyncPeer::default(), leases: LeaseState::default(), options: *options })
    }

    /// An exchange of the trial's own machine, which has one upstream.
    fn exchange(&mut self, now: Now) -> UpstreamExchange<'_> {
        UpstreamExchange {
            upstream: 0,
            peer: &mut self.peer,
            before: &mut [],
            after: &mut [],
            followed: &mut self.followed,
            leases: &mut self.leases,
            proposal: None,
            bitcoin: None,
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

    /// Ends the rest of the trial's upstream, because the machine around it pauses after a failed request.
    fn poll(&mut self) {
        self.peer.poll();
        self.followed.backfill.forget_refusals();
    }

    /// The stage after the headers, if they show enough work.
    fn judged(mut self: Box<Self>, judge: &Judge<'_>, now: Now) -> Result<ProposalStage, SyncFault> {
        match judge.verdict(&self.followed, self.options.work_floor) {
            WindowVerdict::Enough(_) => Ok(ProposalStage::Judged(self)),
            WindowVerdict::Refused(reason) => {
                let number = self.followed.head_number();
                Err(SyncFault { number, cause: SyncCause::TooLittleWork(reason) })
            }
            WindowVerdict::Wait => {
                self.peer.phase = Phase::Idle(now.plus(LEASE_POLL));
                Ok(ProposalStage::Headers(self))
            }
            WindowVerdict::Unavailable => Ok(ProposalStage::Height),
        }
    }
}
