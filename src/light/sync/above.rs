//! The phase that fetches the headers above the checkpoint, and with the same exchange uncles of earlier blocks. The headers are
//! verified and added to the one chain that all upstreams extend. A window is a header window here (`header_window.rs`).

use alloc::{format, sync::Arc, vec::Vec};

use super::{
    exchange::UpstreamExchange,
    peer::FIRST_REWIND,
    phase::{AskAbove, AskHeight, AskUncles, NextPhase, Phase},
};
use crate::{
    consensus::{ChainError, HeadChange, VerifiedHeader, VerifiedUncles},
    light::{
        fault::{SyncCause, SyncFault},
        header_batch::MAX_BATCH_HEADERS,
        header_window::{FetchedHeader, HeaderWindow},
        record::{LIE, SILENT},
        uncle_backlog::MAX_GIVEN_UP,
        upstream::{UpstreamRequest, UpstreamResponse},
    },
    types::{B256, BlockRef, EMPTY_UNCLES_HASH, Header},
};

impl AskAbove {
    /// The next window of this upstream, and fetches of uncles that are still missing.
    pub(super) fn new(exchange: &mut UpstreamExchange<'_>) -> Self {
        let uncles = AskUncles::new(exchange);
        let peer = &*exchange.peer;
        let announced = peer.source.announced.unwrap_or(0);
        let first = peer.search.cursor.saturating_add(1);
        let window = peer.search.window_size(exchange.is_alone());
        let size = window.min(exchange.options.batch).min(MAX_BATCH_HEADERS as usize) as u64;
        let most = first.saturating_add(size.saturating_sub(1));
        // One block more than announced, in case the upstream has more blocks than it announced.
        let last = announced.saturating_add(1).clamp(first, most);
        let window = HeaderWindow::new(first, last, announced).in_binary(peer.source.may_give_binary());
        Self { window, uncles }
    }

    /// Takes the responses for the window and then those for the uncles.
    pub(super) fn feed(
        mut self,
        responses: Vec<UpstreamResponse>,
        exchange: &mut UpstreamExchange<'_>,
    ) -> NextPhase {
        let mut responses = responses.into_iter();
        let window_responses = exchange.window_responses(&self.window, &mut responses);
        // Uncles that have arrived are kept even if the window failed.
        self.uncles.take(responses, exchange)?;
        if !exchange.fill(&mut self.window, window_responses?) {
            return Ok(Phase::Above(self));
        }
        self.add(exchange)
    }

    /// Adds the headers that have arrived to the chain, and chooses what to fetch next.
    fn add(self, exchange: &mut UpstreamExchange<'_>) -> NextPhase {
        let Self { window, uncles } = self;
        let (first, wanted, before) = (window.first(), window.len(), exchange.followed.head_number());
        let (headers, missing) = window.into_headers();
        let is_short = headers.len() < wanted;
        let shown = exchange.peer.search.newest_hash;
        let parent = headers.first().map(|found| found.header.header().parent_hash);
        let has_early_header = match insert_all(headers, exchange) {
            Ok(has_early_header) => has_early_header,
            Err(SyncFault { number, cause: SyncCause::Unlinked }) => {
                return Self::below(first, number, uncles, exchange).map(Phase::Above);
            }
            Err(fault) => return Err(fault),
        };
        exchange.count(before);
        // Headers above one that is ahead of the clock were not inserted, so it does not matter which of them are missing.
        let missing = missing.filter(|_| !has_early_header);
        let announced = exchange.peer.source.announced.unwrap_or(0);
        if exchange.peer.search.newly_lacks_block(announced, missing.as_ref()) {
            return Ok(start_over(exchange));
        }
        if let Some((number, cause)) = missing {
            return Err(SyncFault { number, cause });
        }
        let ended = is_short || has_early_header;
        exchange.peer.search.rewind = FIRST_REWIND;
        exchange.peer.search.at_end |= ended;
        if let Some(window) = window_for_uncles(exchange, shown, parent) {
            return Ok(Phase::Above(Self { window, uncles }));
        }
        if ended {
            exchange.drop_lease();
            return Ok(uncles.or_pause(exchange));
        }
        if exchange.lease_is_over() {
            // Another upstream may take the lease now. This upstream takes it again if it was the fastest.
            return Ok(start_over(exchange));
        }
        if exchange.side_branch().is_none() {
            // Other upstreams may have extended the chain meanwhile, and these headers are not requested again.
            let head = exchange.followed.head_number();
            exchange.peer.search.cursor = exchange.peer.search.cursor.max(head);
        }
        let mut next = Self::new(exchange);
        next.uncles.join(uncles);
        Ok(Phase::Above(next))
    }

    /// Looks further back for the common ancestor, because the upstream's chain does not continue ours.
    fn below(
        first: u64,
        number: u64,
        uncles: AskUncles,
        exchange: &mut UpstreamExchange<'_>,
    ) -> Result<Self, SyncFault> {
        let lowest = exchange.followed.checkpoint.number.saturating_add(1);
        if first <= lowest {
            return Err(SyncFault { number, cause: SyncCause::Unlinked });
        }
        let search = &mut exchange.peer.search;
        let start = first.saturating_sub(search.rewind).max(lowest);
        search.rewind = search.rewind.saturating_mul(2);
        search.cursor = start.saturating_sub(1);
        // One window up to the header without a known parent, or as much of it as one response has. The next windows follow on top.
        let last = number.min(start.saturating_add(MAX_BATCH_HEADERS).saturating_sub(1));
        let window = HeaderWindow::new(start, last, number);
        Ok(Self { window: window.in_binary(exchange.peer.source.may_give_binary()), uncles })
    }
}

/// Asks an upstream for its height again. Other upstreams may fetch the uncles that it was fetching.
fn start_over(exchange: &mut UpstreamExchange<'_>) -> Phase {
    exchange.followed.backlog.release(exchange.upstream);
    Phase::Height(AskHeight)
}

/// Adds headers to the chain, in order. Returns whether one was ahead of our clock: it is not added, nor are the headers that
/// follow it, and they are requested again later.
fn insert_all(headers: Vec<FetchedHeader>, exchange: &mut UpstreamExchange<'_>) -> Result<bool, SyncFault> {
    for FetchedHeader { header, uncles } in headers {
        let (number, hash) = (header.header().number, header.header().hash());
        let fault = |cause| SyncFault { number, cause };
        let added = exchange.followed.add_to_chain(header, exchange.now);
        // There is a chain in this phase, so there is a result.
        match added.ok_or_else(|| fault(SyncCause::Missing))? {
            Ok(inserted) if inserted.header.uncles_hash == EMPTY_UNCLES_HASH => {}
            Ok(inserted) => {
                let is_known = inserted.change == HeadChange::Known;
                expect_uncles(exchange, &inserted.header, uncles, is_known);
            }
            Err(ChainError::UnknownParent { .. }) => return Err(fault(SyncCause::Unlinked)),
            Err(error) if error.is_early() => return Ok(true),
            Err(error) => return Err(fault(SyncCause::Header(error))),
        }
        (exchange.peer.search.cursor, exchange.peer.search.newest_hash) = (number, Some(hash));
    }
    Ok(false)
}

/// Takes the uncles that came with a header, or queues a request for them. `is_known` says that the chain had the header already:
/// its uncles are taken if no upstream has shown them yet.
fn expect_uncles(
    exchange: &mut UpstreamExchange<'_>,
    header: &VerifiedHeader,
    uncles: Option<Vec<Header>>,
    is_known: bool,
) {
    let backlog = &mut exchange.followed.backlog;
    if !is_known {
        backlog.add(header);
    }
    let block = BlockRef { number: header.number, hash: header.hash() };
    let are_wanted = |uncles: &Vec<Header>| !is_known || !uncles.is_empty() && backlog.wants(&block);
    if let Some(uncles) = uncles.filter(are_wanted) {
        offer_uncles(exchange, header, uncles);
    }
}

/// Checks the uncles that came with the header of a block that has some. If they are wrong, records it against the upstream.
fn offer_uncles(exchange: &mut UpstreamExchange<'_>, header: &VerifiedHeader, uncles: Vec<Header>) {
    let block = BlockRef { number: header.number, hash: header.hash() };
    let (weight, rule) = if uncles.is_empty() {
        // An honest upstream may lack them, and others have them.
        (SILENT, "no uncles came with the header".into())
    } else {
        match VerifiedUncles::check(header, uncles) {
            Ok(uncles) => return exchange.followed.backlog.ready(&block, Arc::new(uncles)),
            Err(error) => (LIE, format!("uncles of {block}: {error}")),
        }
    };
    let params = format!(r#"["{:#x}","0x1"]"#, block.number);
    exchange.note(UpstreamRequest::new("rootlight_getHeaders", params), rule, weight);
}

/// A window of headers that the chain has, fetched for their uncles: some upstreams supply uncles only together with headers, and
/// this upstream did not have to show these headers, because others had, or because it followed another branch. The window starts at
/// the lowest block, among `parent` and its ancestors, whose header this upstream has not shown and whose uncles no upstream has
/// shown. `shown` is the newest header that this upstream showed before. `None` if there is no such block.
fn window_for_uncles(
    exchange: &UpstreamExchange<'_>,
    shown: Option<B256>,
    parent: Option<B256>,
) -> Option<HeaderWindow> {
    let (followed, peer) = (&*exchange.followed, &*exchange.peer);
    let view = followed.chain.as_ref()?.view();
    // After a restart, the first upstream that responds is not asked again for all restored headers whose uncles are missing.
    let may_ask = shown.is_some() || followed.synced_once;
    let was_shown = |header: &VerifiedHeader| {
        let same = shown.and_then(|shown| view.ancestor(&shown, header.number));
        same.is_some_and(|same| same.hash() == header.hash())
    };
    let (mut next, mut first) = (view.by_hash(&parent?), None);
    // The backlog keeps no more blocks without uncles than this.
    for _ in 0..MAX_GIVEN_UP {
        let Some(header) = next.filter(|header| !was_shown(header)) else { break };
        let block = BlockRef { number: header.number, hash: header.hash() };
        first = if followed.backlog.wants(&block) { Some(header.number) } else { first };
        next = view.by_hash(&header.parent_hash);
    }
    let first = first.filter(|_| may_ask && peer.source.may_give_binary())?;
    // A window of usual size, even if this upstream alone is asked for headers.
    let is_alone = false;
    let size = peer.search.window_size(is_alone) as u64;
    let last = peer.search.cursor.min(first.saturating_add(size)).max(first);
    Some(HeaderWindow::new(first, last, last).in_binary(true))
}
