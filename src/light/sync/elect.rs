//! A start by work alone: no block is trusted.
//!
//! Each upstream proposes a block to start at, some thousand below its head. It shows the headers above, which a
//! separate machine checks by every header rule, as above a checkpoint. The proposed block's own work is not counted.
//! Its difficulty must be at least the network's built-in minimum. In every stretch of 2, 6 and 24 hours up to the
//! host's present time, the headers above it must show the configured percentage of the work expected at that minimum
//! difficulty, without long gaps. Proposals are compared by the proven work of these headers. To make up a chain from
//! the proposed block on, an attacker must spend the work of all its headers; to win against an honest upstream, more
//! than honest miners spent on their newest headers.
//!
//! The proposal of an upstream ([`StartProposal`]) passes through these states: height -> block -> headers -> judged ->
//! elected.
//!
//! The winner's block takes the place of a checkpoint. An upstream whose headers do not link to it proposes its own
//! block again, which is compared in the same way. So an honest upstream that was late or cut off at the start can
//! still win.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use super::{
    peer::Phase,
    standing::{LEASE_POLL, PATIENCE},
    state::{HeaderSync, Peer, StartProposal, SyncStep, Turns},
};
use crate::{
    consensus::{ChainView, Checkpoint, WorkStart},
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        floor::LONGEST_STRETCH,
        header_window::HeaderWindow,
        meter::Progress,
        prove,
        upstream::{RequestFailure, UpstreamRequest, UpstreamResponse},
    },
    types::U256,
};

/// Longest time without a block, in seconds, up to the host's present time. At a block every 30 s, honest miners leave
/// such a gap about once in 10^26 blocks.
const LONGEST_GAP: u64 = 1_800;

/// Longest wait for further proposals once there is one, in milliseconds.
const LONGEST_WAIT: u64 = 300_000;

impl StartProposal {
    fn next(&mut self, now: Now) -> SyncStep {
        match self {
            Self::Height => {
                SyncStep::Fetch(alloc::vec![UpstreamRequest::new("eth_blockNumber", "[]".into())])
            }
            Self::Block(window) => SyncStep::Fetch(window.requests()),
            Self::Headers(sync) => sync.next(0, now),
            Self::Judged(_) => SyncStep::Wait(LEASE_POLL),
        }
    }
}

impl HeaderSync {
    /// The rule that judges the start, if no block is trusted.
    pub(super) fn rule(&self) -> Option<WorkStart> {
        self.work
    }

    /// Whether an upstream is to propose a start, rather than to continue from the present one.
    pub(super) fn proposes(&self, upstream: usize) -> bool {
        let apart = || self.peers.get(upstream).is_some_and(|peer| peer.apart);
        self.is_by_work() && (self.line.chain.is_none() || apart())
    }

    /// The progress of the upstream that has shown the most headers of its proposal; `None` without proposals.
    pub(super) fn progress_of_proposals(&self) -> Option<Progress> {
        self.rule().filter(|_| self.line.chain.is_none())?;
        let shown = self.peers.iter().filter_map(|peer| match &peer.proposal {
            StartProposal::Headers(sync) | StartProposal::Judged(sync) => Some(sync.progress()),
            StartProposal::Height | StartProposal::Block(_) => None,
        });
        shown.max_by_key(|progress| progress.head.saturating_sub(progress.start))
    }

    pub(super) fn next_of_proposal(&mut self, upstream: usize) -> SyncStep {
        let (now, is_by_work) = (self.now, self.is_by_work());
        let peer = self.peers.get_mut(upstream).filter(|_| is_by_work);
        peer.map_or(SyncStep::Wait(LEASE_POLL), |peer| peer.proposal.next(now))
    }

    pub(super) fn feed_proposal(
        &mut self,
        upstream: usize,
        responses: Vec<UpstreamResponse>,
    ) -> Result<Phase, SyncFault> {
        let (Some(rule), now) = (self.rule(), self.now.millis) else { return Ok(Phase::Height) };
        let Some(peer) = self.peers.get_mut(upstream) else { return Ok(Phase::Height) };
        peer.moved = now;
        let next = match core::mem::take(&mut peer.proposal) {
            StartProposal::Height => self.propose(upstream, &responses, &rule)?,
            StartProposal::Block(window) => self.start_proposal(upstream, window, responses)?,
            StartProposal::Headers(sync) => self.feed_above_proposal(upstream, sync, responses, &rule)?,
            judged @ StartProposal::Judged(_) => judged,
        };
        match next {
            StartProposal::Judged(sync) if self.line.chain.is_some() => self.compare(upstream, *sync, &rule),
            next => {
                if let Some(peer) = self.peers.get_mut(upstream) {
                    peer.proposal = next;
                }
                Ok(Phase::Propose)
            }
        }
    }

    /// Chooses the block to start at from the height that the upstream announces.
    fn propose(
        &mut self,
        upstream: usize,
        responses: &[UpstreamResponse],
        rule: &WorkStart,
    ) -> Result<StartProposal, SyncFault> {
        let cause = match responses.first() {
            Some(Ok(raw)) => match prove::quantity(raw) {
                Some(height) => {
                    if let Some(peer) = self.peers.get_mut(upstream) {
                        peer.source.announced = Some(height);
                    }
                    if let Some(number) = height.checked_sub(rule.headers).filter(|n| *n >= rule.from) {
                        let window = HeaderWindow::single(number).in_binary(self.binary(upstream));
                        return Ok(StartProposal::Block(window));
                    }
                    SyncCause::TooLittleWork(format!(
                        "it ends at block {height}; a start needs {} headers above block {} or a later one",
                        rule.headers, rule.from
                    ))
                }
                None => SyncCause::BadHeight,
            },
            Some(Err(failure)) => SyncCause::Call(failure.clone()),
            None => SyncCause::Missing,
        };
        Err(SyncFault { number: self.line.head_number(), cause })
    }

    /// Makes a machine for the headers above a proposal, which takes the proposal for its checkpoint.
    fn start_proposal(
        &mut self,
        upstream: usize,
        mut window: HeaderWindow,
        responses: Vec<UpstreamResponse>,
    ) -> Result<StartProposal, SyncFault> {
        let (number, binary) = (window.first(), window.is_binary());
        if let Some(failure) = responses.iter().find_map(RequestFailure::of_exchange) {
            // The proposal starts again after the pause.
            return Err(SyncFault { number, cause: SyncCause::Call(failure.clone()) });
        }
        let complete = window.take(responses, &self.line.network);
        if binary {
            self.learn_binary(upstream, window.was_binary());
        }
        if !complete {
            return Ok(StartProposal::Block(window));
        }
        let (found, missing) = window.into_headers();
        let cause = missing.map_or(SyncCause::Missing, |(_, cause)| cause);
        let found = found.into_iter().next().ok_or(SyncFault { number, cause })?.header.into_header();
        let checkpoint = Checkpoint { number, hash: found.hash(), total_difficulty: None };
        // The ancestors that this machine fetches as backfill stay in its chain, so the winner's are not fetched again.
        let mut sync = Self::with_upstreams(self.line.network.clone(), checkpoint, 1, self.options);
        sync.line.floor.keep_oldest();
        sync.line.start_at(found, &sync.options)?;
        Ok(StartProposal::Headers(Box::new(sync)))
    }

    fn feed_above_proposal(
        &mut self,
        upstream: usize,
        mut sync: Box<HeaderSync>,
        responses: Vec<UpstreamResponse>,
        rule: &WorkStart,
    ) -> Result<StartProposal, SyncFault> {
        sync.feed(0, responses, self.now);
        if let Some(fault) = sync.fault().cloned() {
            if let (SyncCause::Call(_), Some(peer)) = (&fault.cause, self.peers.get_mut(upstream)) {
                // A failed request says nothing about the headers: keep the proposal and resume after the pause.
                sync.poll();
                peer.proposal = StartProposal::Headers(sync);
            }
            return Err(fault);
        }
        if !sync.is_synced() {
            return Ok(StartProposal::Headers(sync));
        }
        match judge(&sync, rule, self.now.unix) {
            Ok(()) => Ok(StartProposal::Judged(sync)),
            Err(reason) => {
                Err(SyncFault { number: sync.line.head_number(), cause: SyncCause::TooLittleWork(reason) })
            }
        }
    }

    /// Starts from the heaviest proposal, once all have arrived or the others have taken too long.
    pub(super) fn elect(&mut self) {
        let Some(rule) = self.rule().filter(|_| self.line.chain.is_none()) else { return };
        let work = |peer: &Peer| match &peer.proposal {
            StartProposal::Judged(sync) => recent_work(sync.chain()?.view(), rule.headers),
            _ => None,
        };
        let mut heaviest: Option<(U256, usize)> = None;
        for (index, peer) in self.peers.iter().enumerate() {
            let Some(own) = work(peer) else { continue };
            if heaviest.is_none_or(|(most, _)| own > most) {
                heaviest = Some((own, index));
            }
        }
        let Some((_, winner)) = heaviest else { return };
        let (now, since) = (self.now.millis, *self.turns.first_end.get_or_insert(self.now.millis));
        let wanted = |peer: &Peer| match &peer.proposal {
            StartProposal::Judged(_) => false,
            StartProposal::Height if peer.is_resting() => false,
            _ => {
                let patience = since.max(peer.moved).saturating_add(PATIENCE);
                now <= patience && now <= since.saturating_add(LONGEST_WAIT)
            }
        };
        if self.peers.iter().any(wanted) {
            return;
        }
        let proposal = self.peers.get_mut(winner).map(|peer| core::mem::take(&mut peer.proposal));
        if let Some(StartProposal::Judged(sync)) = proposal {
            self.adopt(*sync);
        }
    }

    /// Compares a proposal with the present chain. If one of them contains the other's base, they are the same chain;
    /// otherwise the heavier one is adopted.
    fn compare(&mut self, upstream: usize, sync: HeaderSync, rule: &WorkStart) -> Result<Phase, SyncFault> {
        let number = sync.line.checkpoint.number;
        let apart = SyncFault { number, cause: SyncCause::Unlinked };
        let (Some(ours), Some(other)) = (&self.line.chain, &sync.line.chain) else { return Err(apart) };
        let (ours, other) = (ours.view(), other.view());
        let holds = |a: &ChainView, b: &ChainView| a.is_canonical(b.base().number, &b.base().hash);
        if holds(ours, other) || holds(other, ours) {
            if let Some(peer) = self.peers.get_mut(upstream) {
                peer.apart = false;
            }
            return Ok(Phase::Height);
        }
        match (recent_work(other, rule.headers), recent_work(ours, rule.headers)) {
            (Some(other), Some(ours)) if other > ours => {}
            _ => return Err(apart),
        }
        self.adopt(sync);
        Ok(Phase::Height)
    }

    /// Continues from a proposal's chain. Requests in progress belong to the old chain and are dropped.
    fn adopt(&mut self, sync: HeaderSync) {
        self.line.adopt(sync.line, &self.options);
        self.turns = Turns::default();
        for peer in &mut self.peers {
            (peer.proposal, peer.apart) = (StartProposal::Height, false);
            peer.search.on_other_chain();
            if !peer.is_resting() {
                peer.phase = Phase::Idle(0);
            }
        }
    }
}

/// The proven work of the newest `headers` headers of a chain. `None` if not all of them are in memory.
fn recent_work(view: &ChainView, headers: u64) -> Option<U256> {
    let work = |number: u64| view.header_work(&view.hash_at(number)?);
    let head = view.head().number;
    let below = head.saturating_sub(headers).max(view.base().number);
    Some(work(head)?.saturating_sub(work(below)?))
}

/// Whether the client may start at the block that this machine takes for a checkpoint. The error is the reason, in
/// words.
fn judge(sync: &HeaderSync, rule: &WorkStart, now: u64) -> Result<(), String> {
    let Some(chain) = sync.chain() else { return Err("it has no headers".into()) };
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
    match sync.line.floor.until(now).or(sync.line.floor.low().copied()) {
        Some(low) => Err(format!(
            "the {} s up to block {} show {} % of the expected work; {} % is required",
            low.seconds, low.number, low.percent, sync.options.work_floor
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::recent_work;
    use crate::consensus::{
        HeaderCandidate,
        testing::{chain, child, easy_network, mine},
    };

    /// A header that is no longer in memory does not count as a header without work below it.
    #[test]
    fn recent_work_is_unknown_if_its_first_header_is_not_in_memory() {
        let mut chain = chain(easy_network(&[], &[]), 10).with_window(5);
        for _ in 0..20 {
            let header = child(chain.view().network(), chain.head().sealed());
            chain.insert(HeaderCandidate::from(mine(header)), None).unwrap();
        }
        let newest = [30, 29].map(|number| chain.by_number(number).unwrap().difficulty.value());
        assert_eq!(recent_work(chain.view(), 2), Some(newest[0] + newest[1]));
        assert_eq!(recent_work(chain.view(), 10), None);
    }
}
