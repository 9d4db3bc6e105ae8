//! Blocks whose uncles are still to be fetched, by anyone, and attached oldest first.
//!
//! A list that nobody shows now is given up, so that it holds up no other, and asked for again of whoever comes later or
//! reaches that height later: clients that have seen the same lists are to have the same head.

use alloc::{collections::BTreeMap, vec::Vec};

use super::fact::BlockRef;
use crate::{consensus::VerifiedHeader, types::Header};

/// Most blocks that are remembered without their uncles, or with a list that waits for an older one: those of some two
/// hours. Older ones decide no fork choice any more.
const MAX_GIVEN_UP: usize = 256;

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
    /// Upstreams that had none to give.
    tried: Vec<usize>,
}

#[derive(Debug)]
enum State {
    Wanted,
    Taken(usize),
    /// They match the header's commitment; from this upstream.
    Ready(usize, Vec<Header>),
}

impl Entry {
    fn try_in_vain(&mut self, upstream: usize) {
        if !self.tried.contains(&upstream) {
            self.tried.push(upstream);
        }
    }
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn add(&mut self, header: &VerifiedHeader) {
        let block = BlockRef { number: header.number, hash: header.hash() };
        let entry = Entry { count: header.uncle_count, state: State::Wanted, tried: Vec::new() };
        self.blocks.entry(block).or_insert(entry);
    }

    /// Hands up to `most` blocks to an upstream that has not been asked about them and has blocks up to `height`; with
    /// the header's uncle count.
    pub(super) fn take(&mut self, upstream: usize, height: u64, most: usize) -> Vec<(BlockRef, u32)> {
        let is_open = |block: &BlockRef, entry: &Entry| {
            matches!(entry.state, State::Wanted)
                && !entry.tried.contains(&upstream)
                && block.number <= height.saturating_add(1)
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

    /// What an upstream was to fetch is open again.
    pub(super) fn release(&mut self, upstream: usize) {
        for entry in self.blocks.values_mut() {
            if matches!(entry.state, State::Taken(by) if by == upstream) {
                entry.state = State::Wanted;
            }
        }
    }

    /// The uncles are there.
    pub(super) fn ready(&mut self, block: &BlockRef, upstream: usize, uncles: Vec<Header>) {
        if let Some(entry) = self.blocks.get_mut(block) {
            entry.state = State::Ready(upstream, uncles);
        }
    }

    /// This upstream has none to give, or not the right ones.
    pub(super) fn refuse(&mut self, block: &BlockRef, upstream: usize) {
        if let Some(entry) = self.blocks.get_mut(block) {
            entry.state = State::Wanted;
            entry.try_in_vain(upstream);
        }
    }

    /// This upstream has none to give of any block that is open.
    pub(super) fn refuse_all(&mut self, upstream: usize) {
        let all = self.blocks.values_mut().chain(self.given_up.values_mut());
        let open = all.filter(|entry| matches!(entry.state, State::Wanted));
        open.for_each(|entry| entry.try_in_vain(upstream));
    }

    /// The next block in order whose uncles are there; blocks that every upstream was asked about in vain which is well
    /// and has blocks so high are given up on the way. `healthy` are those that are well, with their heights.
    pub(super) fn next_ready(&mut self, healthy: &[(usize, u64)]) -> Option<(BlockRef, usize, Vec<Header>)> {
        loop {
            let (block, entry) = self.blocks.first_key_value()?;
            let asked = |(peer, height): &(usize, u64)| {
                entry.tried.contains(peer) || height.saturating_add(1) < block.number
            };
            let in_vain = !healthy.is_empty() && healthy.iter().all(asked);
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

    /// These uncles cannot be judged before those of an older block are there.
    pub(super) fn wait(&mut self, block: BlockRef, upstream: usize, uncles: Vec<Header>) {
        let entry = Entry { count: 0, state: State::Ready(upstream, uncles), tried: Vec::new() };
        self.give_up(block, entry);
    }

    /// The uncles of a block count now: those that have waited are judged again.
    pub(super) fn attached(&mut self) {
        self.revive(|_, entry| matches!(entry.state, State::Ready(..)));
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
        self.given_up.insert(block, entry);
        if self.given_up.len() > MAX_GIVEN_UP {
            self.given_up.pop_first();
        }
    }
}
