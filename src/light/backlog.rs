//! Blocks whose uncles are still to be fetched, by anyone, and attached oldest first.
//!
//! A list that nobody shows now is given up, so that it holds up no other, and asked for again of whoever comes later or
//! reaches that height later: clients that have seen the same lists are to have the same head. "There is none" of an
//! upstream that has not shown the block, as it is behind or on another branch, counts until it shows it. Of one that has
//! shown it, until it shows twice as many blocks on top: behind one address there may be several nodes.

use alloc::{collections::BTreeMap, vec::Vec};

use super::fact::BlockRef;
use crate::{consensus::VerifiedHeader, types::Header};

/// Most blocks that are remembered without their uncles, or with a list that waits for an older one: those of some two
/// hours. Older ones decide no fork choice any more.
pub(super) const MAX_GIVEN_UP: usize = 256;

/// Uncles on their way.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    blocks: BTreeMap<BlockRef, Entry>,
    given_up: BTreeMap<BlockRef, Entry>,
}

#[derive(Debug)]
struct Entry {
    count: u32,
    state: State,
    /// Nobody had it at first: whoever waits for total difficulties does not wait while it is asked for again.
    given_up: bool,
    /// When a list that is there is judged again, in seconds since 1970; without it, once another list counts.
    due: Option<u64>,
    /// Upstreams that had none to give, and the height of the block or of a descendant of it with which each is asked
    /// again.
    tried: Vec<(usize, u64)>,
}

#[derive(Debug)]
enum State {
    Wanted,
    Taken(usize),
    /// They match the header's commitment; from this upstream.
    Ready(usize, Vec<Header>),
}

/// The height of the newest header that an upstream has shown, where that is a block or a descendant of it, and at least
/// this high. Heights are compared first: that is quick, and mostly decides.
pub(super) type Shown<'a> = &'a dyn Fn(usize, &BlockRef, u64) -> Option<u64>;

impl Entry {
    fn new(count: u32, state: State) -> Self {
        Self { count, state, given_up: false, due: None, tried: Vec::new() }
    }

    fn try_in_vain(&mut self, block: &BlockRef, upstream: usize, shown: Shown<'_>) {
        let again = shown(upstream, block, 0)
            .map_or(block.number, |height| height.saturating_add(height.saturating_sub(block.number).max(1)));
        self.tried.retain(|(peer, _)| *peer != upstream);
        self.tried.push((upstream, again));
    }

    /// Whether the upstream can be expected to have the block. `height` is the highest block that it announces.
    fn may_have(&self, block: &BlockRef, upstream: usize, height: u64, shown: Shown<'_>) -> bool {
        match self.tried.iter().find(|(peer, _)| *peer == upstream) {
            Some((_, again)) => shown(upstream, block, *again).is_some(),
            None => block.number <= height || shown(upstream, block, block.number).is_some(),
        }
    }
}

impl Backlog {
    /// Whether no list is on its way, apart from those that were given up once.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.values().all(|entry| entry.given_up)
    }

    pub(super) fn add(&mut self, header: &VerifiedHeader) {
        let block = BlockRef { number: header.number, hash: header.hash() };
        self.blocks.entry(block).or_insert(Entry::new(header.uncle_count, State::Wanted));
    }

    /// Hands up to `most` blocks to an upstream that may have their uncles and announces blocks up to `height`; with the
    /// header's uncle count.
    pub(super) fn take(
        &mut self,
        upstream: usize,
        height: u64,
        most: usize,
        shown: Shown<'_>,
    ) -> Vec<(BlockRef, u32)> {
        let is_open = |block: &BlockRef, entry: &Entry| {
            matches!(entry.state, State::Wanted) && entry.may_have(block, upstream, height, shown)
        };
        self.revive(is_open);
        let open = self.blocks.iter_mut().filter(|(block, entry)| is_open(block, entry));
        open.take(most)
            .map(|(block, entry)| {
                entry.state = State::Taken(upstream);
                (*block, entry.count)
            })
            .collect()
    }

    /// The blocks whose uncles this upstream was to fetch may be given to any upstream again.
    pub(super) fn release(&mut self, upstream: usize) {
        for entry in self.blocks.values_mut() {
            if matches!(entry.state, State::Taken(by) if by == upstream) {
                entry.state = State::Wanted;
            }
        }
    }

    /// Whether a block's uncles are wanted and not there.
    pub(super) fn wants(&self, block: &BlockRef) -> bool {
        let entry = self.blocks.get(block).or_else(|| self.given_up.get(block));
        entry.is_some_and(|entry| !matches!(entry.state, State::Ready(..)))
    }

    /// The uncles are there.
    pub(super) fn ready(&mut self, block: &BlockRef, upstream: usize, uncles: Vec<Header>) {
        self.revive(|other, entry| other == block && matches!(entry.state, State::Wanted));
        if let Some(entry) = self.blocks.get_mut(block) {
            entry.state = State::Ready(upstream, uncles);
        }
    }

    /// This upstream has none to give, or not the right ones.
    pub(super) fn refuse(&mut self, block: &BlockRef, upstream: usize, shown: Shown<'_>) {
        let taken = |entry: &&mut Entry| matches!(entry.state, State::Taken(by) if by == upstream);
        if let Some(entry) = self.blocks.get_mut(block).filter(taken) {
            entry.state = State::Wanted;
            entry.try_in_vain(block, upstream, shown);
        }
    }

    /// This upstream has none to give of any block that is open.
    pub(super) fn refuse_all(&mut self, upstream: usize, shown: Shown<'_>) {
        let all = self.blocks.iter_mut().chain(self.given_up.iter_mut());
        let open = all.filter(|(block, entry)| {
            matches!(entry.state, State::Wanted) && entry.may_have(block, upstream, u64::MAX, shown)
        });
        open.for_each(|(block, entry)| entry.try_in_vain(block, upstream, shown));
    }

    /// The next block in order whose uncles are there; blocks whose uncles nobody may have who is well are given up on
    /// the way. `healthy` are those that are well, with their heights.
    pub(super) fn next_ready(
        &mut self,
        healthy: &[(usize, u64)],
        shown: Shown<'_>,
    ) -> Option<(BlockRef, usize, Vec<Header>)> {
        loop {
            let (block, entry) = self.blocks.first_key_value()?;
            let may_have = |(peer, height): &(usize, u64)| entry.may_have(block, *peer, *height, shown);
            let in_vain = !healthy.is_empty() && !healthy.iter().any(may_have);
            match &entry.state {
                State::Ready(..) => {}
                State::Wanted if in_vain => {
                    if let Some((block, entry)) = self.blocks.pop_first() {
                        self.give_up(block, entry);
                    }
                    continue;
                }
                State::Wanted | State::Taken(_) => return None,
            }
            let (block, entry) = self.blocks.pop_first()?;
            if let State::Ready(upstream, uncles) = entry.state {
                return Some((block, upstream, uncles));
            }
        }
    }

    /// These uncles cannot be judged before the clock says `due`; without it, before those of an older block are there.
    pub(super) fn wait(&mut self, block: BlockRef, upstream: usize, uncles: Vec<Header>, due: Option<u64>) {
        self.give_up(block, Entry { due, ..Entry::new(0, State::Ready(upstream, uncles)) });
    }

    /// The uncles of a block count now: those that have waited for it are judged again.
    pub(super) fn attached(&mut self) {
        self.revive(|_, entry| matches!(entry.state, State::Ready(..)) && entry.due.is_none());
    }

    /// Those that have waited for the clock are judged again.
    pub(super) fn tick(&mut self, now: u64) {
        self.revive(|_, entry| entry.due.is_some_and(|due| due <= now));
    }

    fn revive(&mut self, which: impl Fn(&BlockRef, &Entry) -> bool) {
        let again = self.given_up.iter().filter(|(block, entry)| which(block, entry));
        let again: Vec<BlockRef> = again.map(|(block, _)| *block).collect();
        for block in again {
            if let Some(entry) = self.given_up.remove(&block) {
                self.blocks.insert(block, entry);
            }
        }
    }

    fn give_up(&mut self, block: BlockRef, entry: Entry) {
        self.given_up.insert(block, Entry { given_up: true, ..entry });
        if self.given_up.len() > MAX_GIVEN_UP {
            self.given_up.pop_first();
        }
    }
}
