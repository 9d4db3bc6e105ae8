//! The blocks whose lists of uncles are still to be fetched, from any upstream (`sync/uncles.rs`). A list that has arrived waits only
//! for lists of its block's own ancestors: a list that an upstream withholds, or is slow to supply, delays no other branch.
//!
//! The backlog gives up a list that no upstream can supply now, so that younger blocks do not wait for the list. Such a list is
//! requested again from each upstream that joins later or later reaches the block's height, because clients that have
//! seen the same lists must have the same head. An upstream that has no list and has not shown the block may be behind
//! or on another branch, and is asked again once it shows the block. An upstream that has shown the block is asked again
//! once it shows twice as many blocks on top, because several nodes, of which some have the list, may share one address.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use crate::{
    consensus::{VerifiedHeader, VerifiedUncles},
    types::BlockRef,
};

/// Most blocks that are remembered after their list was given up, or while it waits for an older one: about two hours of blocks. The
/// uncles of older blocks no longer decide fork choice.
pub(super) const MAX_GIVEN_UP: usize = 256;

/// The blocks whose uncles are pending.
#[derive(Debug, Default)]
pub(super) struct UncleBacklog {
    /// Lists that are fetched or have arrived, by block, lowest first.
    blocks: BTreeMap<BlockRef, PendingUncles>,
    /// Lists that were given up or wait, until they are tried again; at most [`MAX_GIVEN_UP`].
    given_up: BTreeMap<BlockRef, PendingUncles>,
}

/// The list of uncles of one block.
#[derive(Debug)]
struct PendingUncles {
    /// The uncle count that the header states.
    count: u32,
    state: FetchState,
    /// Whether the list was given up once, because no upstream had it. Callers that wait for total difficulties do not wait while it is
    /// requested again.
    given_up: bool,
    /// When a list that has arrived is tried again, in seconds since 1970; `None` if it waits until another list is attached.
    due: Option<u64>,
    /// The ancestor whose list must be attached before this one is tried again, if the ancestor's list is still expected.
    earlier: Option<BlockRef>,
    /// Upstreams that had no list, each with the height from which it is asked again: it must first show the block, or a descendant of
    /// the block, of at least this height.
    tried: Vec<(usize, u64)>,
}

/// Whether a list has arrived.
#[derive(Debug)]
enum FetchState {
    /// No upstream is fetching the list.
    Wanted,
    /// The upstream of this number is fetching the list.
    Assigned(usize),
    /// The list has arrived and matches the header's commitment.
    Ready(Arc<VerifiedUncles>),
}

/// Returns the height of the newest header that an upstream has shown, if that header is the given block or a
/// descendant of it and has at least the given height. Heights are compared first: this is quick and usually decides.
pub(super) type ShownHeight<'a> = &'a dyn Fn(usize, &BlockRef, u64) -> Option<u64>;

impl PendingUncles {
    fn new(count: u32, state: FetchState) -> Self {
        Self { count, state, given_up: false, due: None, earlier: None, tried: Vec::new() }
    }

    /// Notes that an upstream did not have the list.
    fn record_miss(&mut self, block: &BlockRef, upstream: usize, shown: ShownHeight<'_>) {
        // The height of the block, or the one with twice as many blocks on top as the upstream has shown.
        let again = shown(upstream, block, 0)
            .map_or(block.number, |height| height.saturating_add(height.saturating_sub(block.number).max(1)));
        self.tried.retain(|(peer, _)| *peer != upstream);
        self.tried.push((upstream, again));
    }

    /// Whether this upstream, which announces blocks up to `height`, may have the list now.
    fn may_have(&self, block: &BlockRef, upstream: usize, height: u64, shown: ShownHeight<'_>) -> bool {
        match self.tried.iter().find(|(peer, _)| *peer == upstream) {
            Some((_, again)) => shown(upstream, block, *again).is_some(),
            None => block.number <= height || shown(upstream, block, block.number).is_some(),
        }
    }
}

impl UncleBacklog {
    /// Whether no list is pending, apart from lists that were given up once.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.values().all(|entry| entry.given_up)
    }

    /// Adds a block that has uncles.
    pub(super) fn add(&mut self, header: &VerifiedHeader) {
        let block = BlockRef { number: header.number, hash: header.hash() };
        self.blocks.entry(block).or_insert(PendingUncles::new(header.uncle_count, FetchState::Wanted));
    }

    /// Assigns up to `most` blocks to an upstream that may have their uncles and announces blocks up to `height`.
    /// Returns them with the uncle counts of their headers.
    pub(super) fn take(
        &mut self,
        upstream: usize,
        height: u64,
        most: usize,
        shown: ShownHeight<'_>,
    ) -> Vec<(BlockRef, u32)> {
        let is_open = |block: &BlockRef, entry: &PendingUncles| {
            matches!(entry.state, FetchState::Wanted) && entry.may_have(block, upstream, height, shown)
        };
        self.retry_where(is_open);
        let open_blocks = self.blocks.iter_mut().filter(|(block, entry)| is_open(block, entry));
        open_blocks
            .take(most)
            .map(|(block, entry)| {
                entry.state = FetchState::Assigned(upstream);
                (*block, entry.count)
            })
            .collect()
    }

    /// Lets others fetch the lists that were assigned to an upstream.
    pub(super) fn release(&mut self, upstream: usize) {
        for entry in self.blocks.values_mut() {
            if matches!(entry.state, FetchState::Assigned(by) if by == upstream) {
                entry.state = FetchState::Wanted;
            }
        }
    }

    /// Whether a block's uncles are wanted and have not arrived.
    pub(super) fn wants(&self, block: &BlockRef) -> bool {
        let entry = self.blocks.get(block).or_else(|| self.given_up.get(block));
        entry.is_some_and(|entry| !matches!(entry.state, FetchState::Ready(..)))
    }

    /// Takes a list that has arrived, if it is still missing.
    pub(super) fn ready(&mut self, block: &BlockRef, uncles: Arc<VerifiedUncles>) {
        self.retry_where(|other, entry| other == block && matches!(entry.state, FetchState::Wanted));
        if let Some(entry) = self.blocks.get_mut(block) {
            entry.state = FetchState::Ready(uncles);
        }
    }

    /// Records that this upstream has no uncles for the block, or wrong ones.
    pub(super) fn refuse(&mut self, block: &BlockRef, upstream: usize, shown: ShownHeight<'_>) {
        let is_assigned =
            |entry: &&mut PendingUncles| matches!(entry.state, FetchState::Assigned(by) if by == upstream);
        if let Some(entry) = self.blocks.get_mut(block).filter(is_assigned) {
            entry.state = FetchState::Wanted;
            entry.record_miss(block, upstream, shown);
        }
    }

    /// Records that this upstream has no uncles for any block whose list is wanted.
    pub(super) fn refuse_all(&mut self, upstream: usize, shown: ShownHeight<'_>) {
        let all = self.blocks.iter_mut().chain(self.given_up.iter_mut());
        let wanted = all.filter(|(block, entry)| {
            matches!(entry.state, FetchState::Wanted) && entry.may_have(block, upstream, u64::MAX, shown)
        });
        wanted.for_each(|(block, entry)| entry.record_miss(block, upstream, shown));
    }

    /// Gives up the oldest blocks, as long as no healthy upstream may have their uncles. `healthy` lists the healthy
    /// upstreams with their heights.
    fn give_up_oldest(&mut self, healthy: &[(usize, u64)], shown: ShownHeight<'_>) {
        while let Some((block, entry)) = self.blocks.first_key_value() {
            let may_have = |(peer, height): &(usize, u64)| entry.may_have(block, *peer, *height, shown);
            let is_unavailable = !healthy.is_empty() && !healthy.iter().any(may_have);
            if !is_unavailable || !matches!(entry.state, FetchState::Wanted) {
                return;
            }
            if let Some((block, entry)) = self.blocks.pop_first() {
                self.give_up(block, entry);
            }
        }
    }

    /// Removes and returns the oldest block whose list has arrived and waits for no list of an ancestor. Before that, the oldest
    /// blocks whose lists no healthy upstream may have are given up. `healthy` has the upstreams that do not rest, with their heights.
    pub(super) fn next_ready(
        &mut self,
        healthy: &[(usize, u64)],
        shown: ShownHeight<'_>,
    ) -> Option<(BlockRef, Arc<VerifiedUncles>)> {
        self.give_up_oldest(healthy, shown);
        let waits =
            |entry: &PendingUncles| entry.earlier.is_some_and(|block| self.blocks.contains_key(&block));
        let (block, uncles) = self.blocks.iter().find_map(|(block, entry)| match &entry.state {
            FetchState::Ready(uncles) if !waits(entry) => Some((*block, uncles.clone())),
            _ => None,
        })?;
        self.blocks.remove(&block);
        Some((block, uncles))
    }

    /// Puts a list back that was removed by [`Self::next_ready`], until the list of the ancestor `earlier` is attached. If the ancestor's
    /// list was given up, this list is tried again when any other list is attached.
    pub(super) fn wait_for(&mut self, earlier: BlockRef, block: BlockRef, uncles: Arc<VerifiedUncles>) {
        if !self.blocks.contains_key(&earlier) {
            return self.postpone(block, uncles, None);
        }
        // The count serves requests alone, and a list that has arrived is not requested.
        let entry =
            PendingUncles { earlier: Some(earlier), ..PendingUncles::new(0, FetchState::Ready(uncles)) };
        self.blocks.insert(block, entry);
    }

    /// Puts a list back that cannot be attached before the clock reaches `due` (seconds since 1970) or, without `due`, before the list
    /// of an older block is attached.
    pub(super) fn postpone(&mut self, block: BlockRef, uncles: Arc<VerifiedUncles>, due: Option<u64>) {
        self.give_up(block, PendingUncles { due, ..PendingUncles::new(0, FetchState::Ready(uncles)) });
    }

    /// Notes that a list was attached: lists that waited for older ones are tried again.
    pub(super) fn attached(&mut self) {
        self.retry_where(|_, entry| matches!(entry.state, FetchState::Ready(..)) && entry.due.is_none());
    }

    /// Tries lists again that waited for the clock to reach `now` (seconds since 1970).
    pub(super) fn tick(&mut self, now: u64) {
        self.retry_where(|_, entry| entry.due.is_some_and(|due| due <= now));
    }

    /// Moves the lists that `which` selects from the given-up ones back to the others.
    fn retry_where(&mut self, which: impl Fn(&BlockRef, &PendingUncles) -> bool) {
        let again = self.given_up.iter().filter(|(block, entry)| which(block, entry));
        let again: Vec<BlockRef> = again.map(|(block, _)| *block).collect();
        for block in again {
            if let Some(entry) = self.given_up.remove(&block) {
                self.blocks.insert(block, entry);
            }
        }
    }

    /// Gives up a list. If too many were given up, the one of the oldest block is forgotten.
    fn give_up(&mut self, block: BlockRef, entry: PendingUncles) {
        self.given_up.insert(block, PendingUncles { given_up: true, ..entry });
        if self.given_up.len() > MAX_GIVEN_UP {
            self.given_up.pop_first();
        }
    }
}
