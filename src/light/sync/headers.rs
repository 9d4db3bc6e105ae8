//! Heights and headers of one upstream, which are verified and added to the chain that all upstreams share.

use alloc::vec::Vec;

use super::{
    peer::{FIRST_REWIND, Goal, Phase, Work},
    state::HeaderSync,
};
use crate::{
    consensus::{ChainError, Change, VerifiedHeader},
    light::{
        backlog::MAX_GIVEN_UP,
        fault::{SyncCause, SyncFault},
        header_batch::MAX_BATCH_HEADERS,
        header_window::{Found, HeaderWindow},
        prove,
        upstream::{RequestFailure, UpstreamResponse},
        upstream_fetch::UpstreamFetch,
    },
    types::{B256, BlockRef, EMPTY_UNCLES_HASH, Header},
};

/// Windows that arrive faster than this, in milliseconds, grow; those that take more than twice as long shrink.
const FAST: u64 = 2_000;

/// Smallest window after shrinking, in headers.
const SMALLEST: usize = 8;

impl HeaderSync {
    pub(super) fn feed_height(
        &mut self,
        upstream: usize,
        responses: &[UpstreamResponse],
    ) -> Result<Phase, SyncFault> {
        let head = self.line.head_number();
        let fault = |cause| SyncFault { number: head, cause };
        let height = match responses.first() {
            Some(Ok(raw)) => prove::quantity(raw).ok_or(fault(SyncCause::BadHeight))?,
            Some(Err(failure)) => return Err(fault(SyncCause::Call(failure.clone()))),
            None => return Err(fault(SyncCause::Missing)),
        };
        let (base, branch) = (self.start(), self.side_branch(upstream));
        let Some(peer) = self.peers.get_mut(upstream) else { return Ok(Phase::Height) };
        peer.source.announced = Some(height);
        peer.search.at_end = false;
        peer.search.cursor = match branch {
            // The upstream continues along its own branch.
            Some(number) if number <= height => number,
            // An upstream that is no higher than our head is asked for its block at that height: it may be on another
            // branch.
            _ => head.min(height).saturating_sub(1).max(base),
        };
        if let Some(work) = self.backfill_work(upstream) {
            return Ok(work);
        }
        if self.is_bulk(height) && !self.take_lease(upstream) {
            return Ok(self.uncle_work(upstream));
        }
        Ok(self.next_work(upstream))
    }

    /// The height of the newest header accepted from an upstream, if that header is not on the heaviest chain.
    pub(super) fn side_branch(&self, upstream: usize) -> Option<u64> {
        self.line.side_branch(self.peers.get(upstream)?.search.at)
    }

    /// The next window, and open uncles.
    pub(super) fn next_work(&mut self, upstream: usize) -> Phase {
        let binary = self.binary(upstream);
        let uncles = self.uncle_fetches(upstream);
        let Some(peer) = self.peers.get_mut(upstream) else { return Phase::Height };
        let announced = peer.source.announced.unwrap_or(0);
        let first = peer.search.cursor.saturating_add(1);
        let size = peer.search.window.min(self.options.batch).min(MAX_BATCH_HEADERS as usize) as u64;
        let most = first.saturating_add(size.saturating_sub(1));
        // One block more than announced, so that a height announced too low hides nothing.
        let last = announced.saturating_add(1).clamp(first, most);
        let window = HeaderWindow::new(first, last, announced).in_binary(binary);
        Phase::Work(Work { window: Some((Goal::Above, window)), uncles })
    }

    pub(super) fn feed_work(
        &mut self,
        upstream: usize,
        work: Work,
        responses: Vec<UpstreamResponse>,
        elapsed: u64,
    ) -> Result<Phase, SyncFault> {
        let Work { window, mut uncles } = work;
        let mut responses = responses.into_iter();
        let Some((goal, mut window)) = window else {
            self.feed_uncles(upstream, &mut uncles, responses)?;
            return Ok(self.after(upstream, uncles));
        };
        let (asked_binary, count) = (window.is_binary(), window.requests().len());
        let mine: Vec<UpstreamResponse> = responses.by_ref().take(count).collect();
        let failed = mine.iter().find_map(RequestFailure::of_exchange).cloned();
        self.resize(upstream, failed.is_some(), elapsed);
        self.feed_uncles(upstream, &mut uncles, responses)?;
        if let Some(failure) = failed {
            // An upstream that was silent is not wrong, and pauses before the next request.
            return Err(SyncFault { number: window.first(), cause: SyncCause::Call(failure) });
        }
        let complete = window.take(mine, &self.line.network);
        if asked_binary {
            self.learn_binary(upstream, window.was_binary());
        }
        if !complete {
            return Ok(Phase::Work(Work { window: Some((goal, window)), uncles }));
        }
        match goal {
            Goal::Base => self.feed_base(window),
            Goal::Backfill => self.feed_backfill(upstream, window),
            Goal::Above => self.feed_above(upstream, window, uncles),
        }
    }

    pub(super) fn resize(&mut self, upstream: usize, failed: bool, elapsed: u64) {
        let most = self.options.batch;
        let Some(peer) = self.peers.get_mut(upstream) else { return };
        let shrink = failed || elapsed > FAST.saturating_mul(2);
        peer.search.window = match (shrink, elapsed < FAST) {
            (true, _) => (peer.search.window / 2).max(SMALLEST),
            (false, true) => peer.search.window.saturating_add(peer.search.window / 2).min(most),
            _ => peer.search.window,
        };
    }

    fn feed_base(&mut self, window: HeaderWindow) -> Result<Phase, SyncFault> {
        let number = self.line.checkpoint.number;
        let (found, missing) = window.into_headers();
        let cause = missing.map_or(SyncCause::Missing, |(_, cause)| cause);
        let found = found.into_iter().next().ok_or(SyncFault { number, cause })?.header.into_header();
        self.line.start_at(found, &self.options)?;
        Ok(Phase::Height)
    }

    fn feed_above(
        &mut self,
        upstream: usize,
        window: HeaderWindow,
        uncles: Vec<UpstreamFetch>,
    ) -> Result<Phase, SyncFault> {
        let (first, wanted, before) = (window.first(), window.len(), self.line.head_number());
        let (headers, missing) = window.into_headers();
        let short = headers.len() < wanted;
        let shown = self.peers.get(upstream).and_then(|peer| peer.search.at);
        let parent = headers.first().map(|found| found.header.header().parent_hash);
        let early = match self.insert_all(upstream, headers) {
            Ok(early) => early,
            Err(SyncFault { number, cause: SyncCause::Unlinked }) => {
                return self.rewind_below(upstream, first, number, uncles);
            }
            Err(fault) => return Err(fault),
        };
        self.count(upstream, before);
        let missing = missing.filter(|_| !early);
        if self.misses_at_first(upstream, missing.as_ref()) {
            return Ok(self.start_over(upstream));
        }
        if let Some((number, cause)) = missing {
            return Err(SyncFault { number, cause });
        }
        let ended = short || early;
        if let Some(peer) = self.peers.get_mut(upstream) {
            peer.search.rewind = FIRST_REWIND;
            peer.search.at_end |= ended;
        }
        if let Some(window) = self.skipped(upstream, shown, parent) {
            return Ok(Phase::Work(Work { window: Some((Goal::Above, window)), uncles }));
        }
        if ended {
            self.drop_lease(upstream);
            return Ok(self.after(upstream, uncles));
        }
        if self.lease_is_over(upstream) {
            // Other upstreams get their turn. This one gets another if it was the fastest.
            return Ok(self.start_over(upstream));
        }
        Ok(self.go_on_above(upstream, uncles))
    }

    /// Adds headers to the chain, in order. Returns whether one was ahead of our clock: it waits, and so do the headers
    /// that follow it.
    fn insert_all(&mut self, upstream: usize, headers: Vec<Found>) -> Result<bool, SyncFault> {
        for found in headers {
            let (number, hash) = (found.header.header().number, found.header.header().hash());
            match self.insert(upstream, found) {
                Ok(()) => self.advance(upstream, number, hash),
                Err(SyncCause::Header(error)) if error.is_early() => return Ok(true),
                Err(cause) => return Err(SyncFault { number, cause }),
            }
        }
        Ok(false)
    }

    /// The next window above, with the uncles that are still needed.
    fn go_on_above(&mut self, upstream: usize, uncles: Vec<UpstreamFetch>) -> Phase {
        let (head, aside) = (self.line.head_number(), self.side_branch(upstream).is_some());
        if let Some(peer) = self.peers.get_mut(upstream).filter(|_| !aside) {
            // Other upstreams may have extended the chain meanwhile.
            peer.search.cursor = peer.search.cursor.max(head);
        }
        let mut next = self.next_work(upstream);
        if let Phase::Work(work) = &mut next {
            work.uncles.extend(uncles);
        }
        next
    }

    /// Whether an upstream lacks one of the last blocks that it announced, and lacked none before. It may have moved to
    /// a heavier branch of fewer blocks since it announced its height, so it is asked for its height again.
    fn misses_at_first(&mut self, upstream: usize, missing: Option<&(u64, SyncCause)>) -> bool {
        let Some(peer) = self.peers.get_mut(upstream) else { return false };
        let announced = peer.source.announced.unwrap_or(0);
        let near = |number: &u64| announced.saturating_sub(*number) < FIRST_REWIND;
        let missed = matches!(missing, Some((number, SyncCause::Missing)) if near(number));
        !core::mem::replace(&mut peer.search.missed, missed) && missed
    }

    /// A window that starts at the lowest block, among `parent` and its ancestors, whose header this upstream has not
    /// shown and whose uncles no upstream has shown. Other upstreams had shown these headers, or this one followed
    /// another branch; and some upstreams supply uncles only together with headers. `shown` is the newest header that
    /// this upstream showed before.
    fn skipped(&self, upstream: usize, shown: Option<B256>, parent: Option<B256>) -> Option<HeaderWindow> {
        // Uncles that a store left open are not requested from the first upstream that responds.
        let (view, peer) = (self.line.chain.as_ref()?.view(), self.peers.get(upstream)?);
        let known = shown.is_some() || self.line.synced_once;
        let was_shown = |header: &VerifiedHeader| {
            let same = shown.and_then(|shown| view.ancestor(&shown, header.number));
            same.is_some_and(|same| same.hash() == header.hash())
        };
        let (mut next, mut first) = (view.by_hash(&parent?), None);
        // Older blocks are not requested again.
        for _ in 0..MAX_GIVEN_UP {
            let Some(header) = next.filter(|header| !was_shown(header)) else { break };
            let block = BlockRef { number: header.number, hash: header.hash() };
            first = if self.line.backlog.wants(&block) { Some(header.number) } else { first };
            next = view.by_hash(&header.parent_hash);
        }
        let first = first.filter(|_| known && self.binary(upstream))?;
        let last = peer.search.cursor.min(first.saturating_add(peer.search.window as u64)).max(first);
        Some(HeaderWindow::new(first, last, last).in_binary(true))
    }

    /// Asks an upstream for its height again. Uncles that it was fetching are open to all upstreams.
    fn start_over(&mut self, upstream: usize) -> Phase {
        self.line.backlog.release(upstream);
        Phase::Height
    }

    fn advance(&mut self, upstream: usize, number: u64, hash: B256) {
        if let Some(peer) = self.peers.get_mut(upstream) {
            (peer.search.cursor, peer.search.at) = (number, Some(hash));
        }
    }

    fn insert(&mut self, upstream: usize, found: Found) -> Result<(), SyncCause> {
        match self.line.add_to_chain(found.header, self.now).ok_or(SyncCause::Missing)? {
            Ok(inserted) => {
                if inserted.header.uncles_hash != EMPTY_UNCLES_HASH {
                    let known = inserted.change == Change::Known;
                    self.expect_uncles(upstream, &inserted.header, found.uncles, known);
                }
                Ok(())
            }
            Err(ChainError::UnknownParent { .. }) => Err(SyncCause::Unlinked),
            Err(error) => Err(SyncCause::Header(error)),
        }
    }

    /// Takes the uncles that came with a header, or queues a request for them. Uncles of a known header may be those
    /// that other upstreams left out.
    fn expect_uncles(
        &mut self,
        upstream: usize,
        header: &VerifiedHeader,
        uncles: Option<Vec<Header>>,
        known: bool,
    ) {
        if !known {
            self.line.backlog.add(header);
        }
        let block = BlockRef { number: header.number, hash: header.hash() };
        let wanted = |uncles: &Vec<Header>| !known || !uncles.is_empty() && self.line.backlog.wants(&block);
        if let Some(uncles) = uncles.filter(wanted) {
            self.offer_uncles(upstream, header, uncles);
        }
    }

    /// Looks further back for the common ancestor, because the upstream's chain does not continue ours.
    fn rewind_below(
        &mut self,
        upstream: usize,
        first: u64,
        number: u64,
        uncles: Vec<UpstreamFetch>,
    ) -> Result<Phase, SyncFault> {
        let floor = self.start().saturating_add(1);
        if first <= floor {
            return Err(SyncFault { number, cause: SyncCause::Unlinked });
        }
        let Some(peer) = self.peers.get_mut(upstream) else { return Ok(Phase::Height) };
        let start = first.saturating_sub(peer.search.rewind).max(floor);
        peer.search.rewind = peer.search.rewind.saturating_mul(2);
        peer.search.cursor = start.saturating_sub(1);
        // One response at a time; the headers above follow from there.
        let last = number.min(start.saturating_add(MAX_BATCH_HEADERS).saturating_sub(1));
        let window = HeaderWindow::new(start, last, number).in_binary(self.binary(upstream));
        Ok(Phase::Work(Work { window: Some((Goal::Above, window)), uncles }))
    }
}
