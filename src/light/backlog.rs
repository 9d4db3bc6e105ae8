//! Blocks whose uncles are still to be fetched, by anyone, and attached oldest first.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use super::fact::BlockRef;
use crate::{consensus::VerifiedHeader, types::Header};

/// Uncles on their way.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    blocks: BTreeMap<BlockRef, Entry>,
}

#[derive(Debug)]
struct Entry {
    count: u32,
    state: State,
    /// Upstreams that had none to give.
    tried: BTreeSet<usize>,
}

#[derive(Debug)]
enum State {
    Wanted,
    Taken(usize),
    /// They match the header's commitment; from this upstream.
    Ready(usize, Vec<Header>),
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn add(&mut self, header: &VerifiedHeader) {
        let block = BlockRef { number: header.number, hash: header.hash() };
        let entry = Entry { count: header.uncle_count, state: State::Wanted, tried: BTreeSet::new() };
        self.blocks.entry(block).or_insert(entry);
    }

    /// Hands up to `most` blocks to an upstream that has not been asked about them; with the header's uncle count.
    pub(super) fn take(&mut self, upstream: usize, most: usize) -> Vec<(BlockRef, u32)> {
        let open = self
            .blocks
            .iter_mut()
            .filter(|(_, entry)| matches!(entry.state, State::Wanted) && !entry.tried.contains(&upstream));
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
            entry.tried.insert(upstream);
        }
    }

    /// This upstream has none to give of any block that is open.
    pub(super) fn refuse_all(&mut self, upstream: usize) {
        let open = self.blocks.values_mut().filter(|entry| matches!(entry.state, State::Wanted));
        open.for_each(|entry| {
            entry.tried.insert(upstream);
        });
    }

    /// The next block in order whose uncles are there; blocks that every upstream in `healthy` was asked about in vain
    /// are given up on the way.
    pub(super) fn next_ready(&mut self, healthy: &[usize]) -> Option<(BlockRef, usize, Vec<Header>)> {
        loop {
            let first = self.blocks.first_entry()?;
            let entry = first.get();
            let in_vain = !healthy.is_empty() && healthy.iter().all(|peer| entry.tried.contains(peer));
            match &entry.state {
                State::Ready(..) => {}
                State::Wanted if in_vain => {
                    first.remove();
                    continue;
                }
                State::Wanted | State::Taken(_) => return None,
            }
            let (block, entry) = first.remove_entry();
            if let State::Ready(upstream, uncles) = entry.state {
                return Some((block, upstream, uncles));
            }
        }
    }
}
