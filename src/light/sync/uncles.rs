//! The phase that fetches uncles from any upstream that has them, and the attachment of uncles to the chain. `uncle_backlog` lists the
//! blocks whose uncles are missing.

use alloc::{format, sync::Arc, vec::Vec};

use super::{
    exchange::UpstreamExchange,
    followed::FollowedChain,
    lease_state::{LEASE_POLL, SILENCE},
    peer::SyncPeer,
    phase::{AskBackfill, AskUncles, NextPhase, Phase},
};
use crate::{
    consensus::{ChainError, HeaderChain, RuleError, UncleError, VerifiedUncles},
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        prove,
        upstream::{RequestFailure, UpstreamResponse},
        upstream_fetch::{Cause, FactFailure, FetchTarget, METHOD_NOT_FOUND, UpstreamFetch},
    },
    state::Fact,
    types::{B256, BlockRef},
};

/// Most blocks whose uncles are requested from one upstream at a time. A block takes a request for each of its uncles.
const MOST_BLOCKS: usize = 64;

impl AskUncles {
    /// Fetches for missing uncles that this upstream may have; none for an upstream without the methods.
    pub(super) fn new(exchange: &mut UpstreamExchange<'_>) -> Self {
        let (upstream, source) = (exchange.upstream, &exchange.peer.source);
        let headers_first = exchange.followed.headers_first && !exchange.followed.synced_once;
        // An upstream that lacks blocks which it announced fetches no uncles, so that others can fetch them.
        if exchange.peer.search.missed || headers_first {
            return Self::default();
        }
        let shown = newest_shown(exchange.newest_hashes(), exchange.followed.chain.as_ref());
        let backlog = &mut exchange.followed.backlog;
        if source.no_uncles {
            backlog.refuse_all(upstream, &shown);
        }
        let blocks = backlog.take(upstream, source.announced.unwrap_or(u64::MAX), MOST_BLOCKS, &shown);
        let target = blocks.into_iter().map(|(block, count)| FetchTarget::One(Fact::Uncles(block, count)));
        Self { fetches: target.map(UpstreamFetch::new).collect() }
    }

    /// Takes the responses and chooses the next phase.
    pub(super) fn feed(
        mut self,
        responses: Vec<UpstreamResponse>,
        exchange: &mut UpstreamExchange<'_>,
    ) -> NextPhase {
        self.take(responses.into_iter(), exchange)?;
        Ok(self.or_pause(exchange))
    }

    /// The phase that follows if there are no headers to fetch: these fetches, those of other missing uncles, ancestors in the
    /// background, or a pause.
    pub(super) fn or_pause(self, exchange: &mut UpstreamExchange<'_>) -> Phase {
        let next = if self.fetches.is_empty() { Self::new(exchange) } else { self };
        if !next.fetches.is_empty() {
            return Phase::Uncles(next);
        }
        if exchange.peer.search.at_end
            && let Some(background) = AskBackfill::in_background(exchange)
        {
            return Phase::Backfill(background);
        }
        let poll = exchange.options.poll;
        let awaits_others = exchange.has_others() && !exchange.followed.synced_once;
        let pause = match exchange.peer.search.at_end {
            // Whether the client has waited long enough for the others is decided after the next response, so the pause is short.
            true if awaits_others => exchange.peer.next_pause(poll.min(SILENCE)),
            true => exchange.peer.next_pause(poll),
            false => LEASE_POLL,
        };
        Phase::Idle(exchange.now.plus(pause))
    }

    /// Adds other fetches to these.
    pub(super) fn join(&mut self, others: Self) {
        self.fetches.extend(others.fetches);
    }

    /// Takes the responses to [`Self::requests`], in order. Fetches that failed and can be tried in another form stay.
    pub(super) fn take(
        &mut self,
        mut responses: impl Iterator<Item = UpstreamResponse>,
        exchange: &mut UpstreamExchange<'_>,
    ) -> Result<(), SyncFault> {
        for fetch in self.fetches.iter_mut().filter(|fetch| !fetch.is_complete()) {
            for index in 0..fetch.requests().len() {
                fetch.take_response(
                    index,
                    responses.next().unwrap_or(Err(RequestFailure::Malformed("no response"))),
                );
            }
        }
        for mut fetch in core::mem::take(&mut self.fetches) {
            let FetchTarget::One(Fact::Uncles(block, _)) = fetch.target else { continue };
            if let Some(failure) = fetch.silence() {
                return Err(SyncFault { number: block.number, cause: SyncCause::Call(failure) });
            }
            match exchange.followed.proven_uncles(&fetch, &block) {
                Ok(uncles) => exchange.followed.backlog.ready(&block, uncles),
                Err(cause)
                    if is_unknown_method(&cause) && fetch.last_cause().is_some_and(is_unknown_method) =>
                {
                    // The upstream has neither method, by hash or by number, and the last attempts would use the same methods.
                    refuse(&block, exchange);
                    exchange.peer.source.no_uncles = true;
                }
                Err(cause) => match fetch.next_attempt(cause, &prove::uncle_hashes(&fetch)) {
                    Ok(()) => self.fetches.push(fetch),
                    Err(failure) => {
                        refuse(&block, exchange);
                        check_honesty(&failure, &block)?;
                    }
                },
            }
        }
        Ok(())
    }
}

/// Returns a fault if the upstream showed uncles which are not the block's. An upstream that has none may be honest.
fn check_honesty(failure: &FactFailure, block: &BlockRef) -> Result<(), SyncFault> {
    if !failure.attempts.iter().any(|attempt| matches!(attempt.cause, Cause::Refuted(_))) {
        return Ok(());
    }
    Err(SyncFault { number: block.number, cause: SyncCause::Uncles(format!("{failure}")) })
}

/// Whether the upstream does not have the method.
fn is_unknown_method(cause: &Cause) -> bool {
    matches!(cause, Cause::Call(RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. }))
}

/// Lets others fetch uncles that this upstream does not have.
fn refuse(block: &BlockRef, exchange: &mut UpstreamExchange<'_>) {
    let shown = newest_shown(exchange.newest_hashes(), exchange.followed.chain.as_ref());
    exchange.followed.backlog.refuse(block, exchange.upstream, &shown);
}

impl FollowedChain {
    /// The uncles in a fetch's responses, checked against the block's header.
    fn proven_uncles(&self, fetch: &UpstreamFetch, block: &BlockRef) -> Result<Arc<VerifiedUncles>, Cause> {
        let header = self.chain.as_ref().and_then(|chain| chain.by_hash(&block.hash));
        // Without the header, which may have left memory meanwhile, the list counts as one that the upstream does not have.
        let header = header.ok_or(Cause::Withheld)?;
        prove::uncles(fetch, header, &self.network).map(Arc::new)
    }

    /// Attaches the uncles that have arrived. A block's uncles must not repeat those of its ancestors, so a list waits until the
    /// lists of the ancestors are attached.
    pub(super) fn attach_ready(&mut self, peers: &[SyncPeer], now: Now) {
        let height = |peer: &SyncPeer| peer.source.announced.unwrap_or(u64::MAX);
        let healthy = peers.iter().enumerate().filter(|(_, peer)| !peer.is_resting());
        let healthy: Vec<(usize, u64)> = healthy.map(|(index, peer)| (index, height(peer))).collect();
        self.backlog.tick(now.unix);
        loop {
            let next = {
                let newest = peers.iter().map(|peer| peer.search.newest_hash).collect();
                self.backlog.next_ready(&healthy, &newest_shown(newest, self.chain.as_ref()))
            };
            let Some((block, uncles)) = next else { return };
            let Some(chain) = &mut self.chain else { return };
            // Uncles that are too close to the checkpoint, or that break a rule, do not count as work. The upstream is
            // not to blame: it showed the list that the header commits to, and its miner broke the rule.
            match chain.attach_verified(uncles.clone(), Some(now.unix)) {
                Ok(head_change) => {
                    self.backlog.attached();
                    self.touch(head_change.map_or(block.number, |change| {
                        block.number.min(change.ancestor.number.saturating_add(1))
                    }));
                }
                Err(ChainError::Uncles { error, .. }) => match error {
                    UncleError::EarlierUncles { number, hash } => {
                        self.backlog.wait_for(BlockRef { number, hash }, block, uncles);
                    }
                    // A list with an uncle ahead of our clock waits, as a header would, and so do the lists that depend on it.
                    UncleError::Rule { rule: RuleError::Future { time, bound, .. }, .. } => {
                        self.backlog.postpone(block, uncles, Some(time.saturating_sub(bound)));
                    }
                    // The uncles do not count, and the list is not tried again.
                    _ => {}
                },
                // The block has left the chain's memory.
                Err(_) => {}
            }
        }
    }
}

/// The newest header that each upstream has shown, in the form that the backlog queries (`ShownHeight`). `newest_hashes` has its
/// hash, by the number of the upstream.
fn newest_shown(
    newest_hashes: Vec<Option<B256>>,
    chain: Option<&HeaderChain>,
) -> impl Fn(usize, &BlockRef, u64) -> Option<u64> {
    let view = chain.map(HeaderChain::view);
    let newest = |hash: Option<B256>| view?.by_hash(&hash?).map(|header| (header.hash(), header.number));
    let newest: Vec<_> = newest_hashes.into_iter().map(newest).collect();
    move |upstream, block, least| {
        let (hash, number) = (*newest.get(upstream)?).filter(|(_, number)| *number >= least)?;
        (view?.ancestor(&hash, block.number)?.hash() == block.hash).then_some(number)
    }
}
