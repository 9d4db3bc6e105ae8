//! The phase that fetches uncles, from any upstream that has them.

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

/// Most blocks whose uncles one upstream is asked for at a time.
const MOST_BLOCKS: usize = 64;

impl AskUncles {
    /// Fetches for open uncles that this upstream may have. An upstream without the methods gets none.
    pub(super) fn new(exchange: &mut UpstreamExchange<'_>) -> Self {
        let (upstream, source) = (exchange.upstream, &exchange.peer.source);
        let headers_first = exchange.followed.headers_first && !exchange.followed.synced_once;
        // An upstream that lacks blocks which it announced gets none, so that others can fetch them.
        if exchange.peer.search.missed || headers_first {
            return Self::default();
        }
        let shown = newest_shown(exchange.newest(), exchange.followed.chain.as_ref());
        let backlog = &mut exchange.followed.backlog;
        if source.no_uncles {
            backlog.refuse_all(upstream, &shown);
        }
        let blocks = backlog.take(upstream, source.announced.unwrap_or(u64::MAX), MOST_BLOCKS, &shown);
        let target = blocks.into_iter().map(|(block, count)| FetchTarget::One(Fact::Uncles(block, count)));
        Self { fetches: target.map(UpstreamFetch::new).collect() }
    }

    pub(super) fn feed(
        mut self,
        responses: Vec<UpstreamResponse>,
        exchange: &mut UpstreamExchange<'_>,
    ) -> NextPhase {
        self.take(responses.into_iter(), exchange)?;
        Ok(self.or_pause(exchange))
    }

    /// The phase that follows if there are no headers to fetch: these fetches, or those of other open uncles, or a pause.
    pub(super) fn or_pause(self, exchange: &mut UpstreamExchange<'_>) -> Phase {
        let next = if self.fetches.is_empty() { Self::new(exchange) } else { self };
        if !next.fetches.is_empty() {
            return Phase::Uncles(next);
        }
        if exchange.peer.search.at_end
            && let Some(behind) = AskBackfill::behind(exchange)
        {
            return Phase::Backfill(behind);
        }
        let poll = exchange.options.poll;
        let awaits_others = exchange.has_others() && !exchange.followed.synced_once;
        let pause = match exchange.peer.search.at_end {
            // Whether the others were waited for long enough is judged with the next response.
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

    /// Takes the responses to [`Self::requests`], in order. Fetches that have another form left stay.
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
            match exchange.followed.committed(&fetch, &block) {
                Ok(uncles) => exchange.followed.backlog.ready(&block, uncles),
                Err(cause) if is_unknown(&cause) && fetch.last_cause().is_some_and(is_unknown) => {
                    // The upstream has neither method, by hash or by number: the last attempt would only repeat that.
                    refuse(&block, exchange);
                    exchange.peer.source.no_uncles = true;
                }
                Err(cause) => match fetch.next_attempt(cause, &prove::uncle_hashes(&fetch)) {
                    Ok(()) => self.fetches.push(fetch),
                    Err(failure) => {
                        refuse(&block, exchange);
                        check(&failure, &block)?;
                    }
                },
            }
        }
        Ok(())
    }
}

/// Refuses an upstream that showed uncles which are not the block's. One that has none may be honest.
fn check(failure: &FactFailure, block: &BlockRef) -> Result<(), SyncFault> {
    if !failure.attempts.iter().any(|attempt| matches!(attempt.cause, Cause::Refuted(_))) {
        return Ok(());
    }
    Err(SyncFault { number: block.number, cause: SyncCause::Uncles(format!("{failure}")) })
}

/// Whether the upstream has no such method.
fn is_unknown(cause: &Cause) -> bool {
    matches!(cause, Cause::Call(RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. }))
}

/// Leaves uncles that the upstream does not have to others.
fn refuse(block: &BlockRef, exchange: &mut UpstreamExchange<'_>) {
    let shown = newest_shown(exchange.newest(), exchange.followed.chain.as_ref());
    exchange.followed.backlog.refuse(block, exchange.upstream, &shown);
}

impl FollowedChain {
    /// The uncles in a fetch's responses, checked against the block's header.
    fn committed(&self, fetch: &UpstreamFetch, block: &BlockRef) -> Result<Arc<VerifiedUncles>, Cause> {
        let header = self.chain.as_ref().and_then(|chain| chain.by_hash(&block.hash));
        let header = header.ok_or(Cause::Withheld)?;
        prove::uncles(fetch, header, &self.network).map(Arc::new)
    }

    /// Attaches the uncles that have arrived. A block's uncles must not repeat those of its ancestors, so that they wait for these.
    pub(super) fn attach_ready(&mut self, peers: &[SyncPeer], now: Now) {
        let height = |peer: &SyncPeer| peer.source.announced.unwrap_or(u64::MAX);
        let healthy = peers.iter().enumerate().filter(|(_, peer)| !peer.is_resting());
        let healthy: Vec<(usize, u64)> = healthy.map(|(index, peer)| (index, height(peer))).collect();
        self.backlog.tick(now.unix);
        loop {
            let next = {
                let newest = peers.iter().map(|peer| peer.search.at).collect();
                self.backlog.next_ready(&healthy, &newest_shown(newest, self.chain.as_ref()))
            };
            let Some((block, uncles)) = next else { return };
            let Some(chain) = &mut self.chain else { return };
            // Uncles that are too close to the checkpoint, or that break a rule, do not count as work. The upstream is
            // not to blame: it showed the list that the header commits to, and its miner broke the rule.
            match chain.attach_verified(uncles.clone(), Some(now.unix)) {
                Ok(moved) => {
                    self.backlog.attached();
                    self.touch(moved.map_or(block.number, |change| {
                        block.number.min(change.ancestor.number.saturating_add(1))
                    }));
                }
                Err(ChainError::Uncles { error, .. }) => match error {
                    UncleError::EarlierUncles { number, hash } => {
                        self.backlog.wait_for(BlockRef { number, hash }, block, uncles);
                    }
                    // An uncle ahead of our clock waits, as a header would, and so do the lists that depend on it.
                    UncleError::Rule { rule: RuleError::Future { time, bound, .. }, .. } => {
                        self.backlog.postpone(block, uncles, Some(time.saturating_sub(bound)));
                    }
                    _ => {}
                },
                Err(_) => {}
            }
        }
    }
}

/// The newest header that each upstream has shown, in the form that the backlog queries. `at` has its hash, by the number
/// of the upstream.
fn newest_shown(
    at: Vec<Option<B256>>,
    chain: Option<&HeaderChain>,
) -> impl Fn(usize, &BlockRef, u64) -> Option<u64> {
    let view = chain.map(HeaderChain::view);
    let newest = |hash: Option<B256>| view?.by_hash(&hash?).map(|header| (header.hash(), header.number));
    let newest: Vec<_> = at.into_iter().map(newest).collect();
    move |upstream, block, least| {
        let (at, number) = (*newest.get(upstream)?).filter(|(_, number)| *number >= least)?;
        (view?.ancestor(&at, block.number)?.hash() == block.hash).then_some(number)
    }
}
