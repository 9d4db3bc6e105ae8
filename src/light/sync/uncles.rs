//! Uncles: fetched from any upstream that has them, attached oldest block first.

use alloc::{format, sync::Arc, vec::Vec};

use super::{
    peer::{Phase, Work},
    standing::LEASE_POLL,
    state::{HeaderSync, Peer},
};
use crate::{
    consensus::{ChainError, HeaderChain, RuleError, UncleError, VerifiedHeader, VerifiedUncles},
    light::{
        fault::{SyncCause, SyncFault},
        prove,
        record::{LIE, SILENT},
        upstream::{RequestFailure, UpstreamRequest, UpstreamResponse},
        upstream_fetch::{Cause, FactFailure, FetchTarget, METHOD_NOT_FOUND, UpstreamFetch},
    },
    state::Fact,
    types::{BlockRef, Header},
};

/// Most blocks whose uncles one upstream is asked for at a time.
const MOST_BLOCKS: usize = 64;

impl HeaderSync {
    /// Fetches for open uncles that this upstream may have. An upstream without the methods gets none.
    pub(super) fn uncle_fetches(&mut self, upstream: usize) -> Vec<UpstreamFetch> {
        let shown = newest_shown(&self.peers, self.line.chain.as_ref());
        // An upstream that lacks blocks which it announced gets none, so that others can fetch them.
        if self.peers.get(upstream).is_some_and(|peer| peer.search.missed) {
            return Vec::new();
        }
        if self.peers.get(upstream).is_some_and(|peer| peer.source.no_uncles) {
            self.line.backlog.refuse_all(upstream, &shown);
        }
        let height = self.peers.get(upstream).and_then(|peer| peer.source.announced).unwrap_or(u64::MAX);
        let blocks = self.line.backlog.take(upstream, height, MOST_BLOCKS, &shown);
        let target = blocks.into_iter().map(|(block, count)| FetchTarget::One(Fact::Uncles(block, count)));
        target.map(UpstreamFetch::new).collect()
    }

    /// The phase that fetches uncles, or a pause if there are none to fetch.
    pub(super) fn uncle_work(&mut self, upstream: usize) -> Phase {
        self.after(upstream, Vec::new())
    }

    /// The phase that follows if there are no headers to fetch.
    pub(super) fn after(&mut self, upstream: usize, mut uncles: Vec<UpstreamFetch>) -> Phase {
        if uncles.is_empty() {
            uncles = self.uncle_fetches(upstream);
        }
        if !uncles.is_empty() {
            return Phase::Work(Work { window: None, uncles });
        }
        let seen = self.peers.get(upstream).is_some_and(|peer| peer.search.at_end);
        Phase::Idle(self.now.plus(if seen { self.options.poll } else { LEASE_POLL }))
    }

    pub(super) fn feed_uncles(
        &mut self,
        upstream: usize,
        fetches: &mut Vec<UpstreamFetch>,
        mut responses: impl Iterator<Item = UpstreamResponse>,
    ) -> Result<(), SyncFault> {
        for fetch in fetches.iter_mut().filter(|fetch| !fetch.is_complete()) {
            for index in 0..fetch.requests().len() {
                fetch.take_response(
                    index,
                    responses.next().unwrap_or(Err(RequestFailure::Malformed("no response"))),
                );
            }
        }
        for mut fetch in core::mem::take(fetches) {
            let FetchTarget::One(Fact::Uncles(block, _)) = fetch.target else { continue };
            if let Some(failure) = fetch.silence() {
                return Err(SyncFault { number: block.number, cause: SyncCause::Call(failure) });
            }
            let shown = prove::uncle_hashes(&fetch);
            match self.committed(&fetch, &block) {
                Ok(uncles) => self.line.backlog.ready(&block, upstream, uncles),
                Err(cause) if is_unknown(&cause) && fetch.last_cause().is_some_and(is_unknown) => {
                    // The upstream has neither method, by hash or by number: the last attempt would only repeat that.
                    self.line.backlog.refuse(
                        &block,
                        upstream,
                        &newest_shown(&self.peers, self.line.chain.as_ref()),
                    );
                    if let Some(peer) = self.peers.get_mut(upstream) {
                        peer.source.no_uncles = true;
                    }
                }
                Err(cause) => match fetch.next_attempt(cause, &shown) {
                    Ok(()) => fetches.push(fetch),
                    Err(failure) => self.refuse_uncles(upstream, &block, &failure)?,
                },
            }
        }
        Ok(())
    }

    /// Leaves uncles that an upstream does not have to others. Uncles that are not the block's are a fault.
    fn refuse_uncles(
        &mut self,
        upstream: usize,
        block: &BlockRef,
        failure: &FactFailure,
    ) -> Result<(), SyncFault> {
        self.line.backlog.refuse(block, upstream, &newest_shown(&self.peers, self.line.chain.as_ref()));
        if !failure.attempts.iter().any(|attempt| matches!(attempt.cause, Cause::Refuted(_))) {
            return Ok(());
        }
        Err(SyncFault { number: block.number, cause: SyncCause::Uncles(format!("{failure}")) })
    }

    /// The uncles in a fetch's responses, checked against the block's header.
    fn committed(&self, fetch: &UpstreamFetch, block: &BlockRef) -> Result<Arc<VerifiedUncles>, Cause> {
        let header = self.line.chain.as_ref().and_then(|chain| chain.by_hash(&block.hash));
        let header = header.ok_or(Cause::Withheld)?;
        prove::uncles(fetch, header, &self.line.network).map(Arc::new)
    }

    /// Takes uncles that came with the header of a block that has some.
    pub(super) fn offer_uncles(&mut self, upstream: usize, header: &VerifiedHeader, uncles: Vec<Header>) {
        let block = BlockRef { number: header.number, hash: header.hash() };
        let (weight, rule) = if uncles.is_empty() {
            // The upstream may not have them; others do.
            (SILENT, "no uncles came with the header".into())
        } else {
            match VerifiedUncles::check(header, uncles) {
                Ok(uncles) => return self.line.backlog.ready(&block, upstream, Arc::new(uncles)),
                Err(error) => (LIE, format!("uncles of {block}: {error}")),
            }
        };
        let params = format!(r#"["{:#x}","0x1"]"#, block.number);
        self.note(upstream, UpstreamRequest::new("rootlight_getHeaders", params), rule, weight);
    }

    /// Attaches the uncles that have arrived, oldest block first: a block's uncles must not repeat those of the blocks
    /// before it.
    pub(super) fn attach_ready(&mut self) {
        let height = |upstream: usize| self.peers.get(upstream).and_then(|peer| peer.source.announced);
        let healthy = self.healthy().into_iter().map(|peer| (peer, height(peer).unwrap_or(u64::MAX)));
        let healthy: Vec<(usize, u64)> = healthy.collect();
        self.line.backlog.tick(self.now.unix);
        loop {
            let next = {
                let shown = newest_shown(&self.peers, self.line.chain.as_ref());
                self.line.backlog.next_ready(&healthy, &shown)
            };
            let Some((block, upstream, uncles)) = next else { return };
            let Some(chain) = &mut self.line.chain else { return };
            // Uncles that are too close to the checkpoint, or that break a rule, do not count as work. The upstream is
            // not to blame: it showed the list that the header commits to, and its miner broke the rule.
            match chain.attach_verified(uncles.clone(), Some(self.now.unix)) {
                Ok(moved) => {
                    self.line.backlog.attached();
                    self.line.touch(moved.map_or(block.number, |change| {
                        block.number.min(change.ancestor.number.saturating_add(1))
                    }));
                }
                Err(ChainError::Uncles { error, .. }) => match error {
                    UncleError::EarlierUncles { .. } => self.line.backlog.wait(block, upstream, uncles, None),
                    // An uncle ahead of our clock waits, as a header would, and so do the lists that depend on it.
                    UncleError::Rule { rule: RuleError::Future { time, bound, .. }, .. } => {
                        self.line.backlog.wait(block, upstream, uncles, Some(time.saturating_sub(bound)));
                    }
                    _ => {}
                },
                Err(_) => {}
            }
        }
    }
}

/// The newest header that each upstream has shown, in the form that the backlog queries.
fn newest_shown<'a>(
    peers: &[Peer],
    chain: Option<&'a HeaderChain>,
) -> impl Fn(usize, &BlockRef, u64) -> Option<u64> + 'a + use<'a> {
    let view = chain.map(HeaderChain::view);
    let newest = |peer: &Peer| view?.by_hash(&peer.search.at?).map(|newest| (newest.hash(), newest.number));
    let newest: Vec<_> = peers.iter().map(newest).collect();
    move |upstream, block, least| {
        let (at, number) = (*newest.get(upstream)?).filter(|(_, number)| *number >= least)?;
        (view?.ancestor(&at, block.number)?.hash() == block.hash).then_some(number)
    }
}

/// Whether the upstream has no such method.
fn is_unknown(cause: &Cause) -> bool {
    matches!(cause, Cause::Call(RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. }))
}
