//! Stretches of 192 headers that end at the hashes of a peer's skeleton. A skeleton is a message with the hashes of every 192nd
//! block, up to twenty of them.
//!
//! A peer reads a thousand messages a minute. A range of headers by its height takes one message for a hash and two for the
//! headers. With the hashes of a skeleton, each further message brings 192 headers.

use std::collections::VecDeque;

use alloy_primitives::B256;
use rootlight::types::BlockRef;
use rootlight_p2p::header::RawHeader;
use rootlight_p2p::message::limits::{MAX_UNCLES, SKELETON_STEP};

use super::error::PeerError;

/// Most stretches in the cache. Two are enough, because each request continues where the request before ended.
const MAX_CACHED: usize = 2;

/// Longest stretch that is cached, in bytes. The rules allow some 2 kB for a header.
const LONGEST_CACHED: usize = 1024 * 1024;

/// Longest header that is accepted, in bytes. The rules allow some 2 kB.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// A header in full form, as a peer sent it. Nothing in it is verified.
#[derive(Clone)]
pub(super) struct FullHeader {
    pub(super) rlp: Vec<u8>,
    /// The list of uncles in RLP, without the list's own prefix, if the body was fetched.
    pub(super) uncles: Option<Vec<u8>>,
}

impl FullHeader {
    /// Checks the length of the header and of its uncles.
    pub(super) fn new(rlp: Vec<u8>, uncles: Option<Vec<u8>>) -> Result<Self, PeerError> {
        let long = |uncles: &Vec<u8>| uncles.len() > MAX_UNCLES.saturating_mul(MAX_HEADER_BYTES);
        if rlp.len() > MAX_HEADER_BYTES || uncles.as_ref().is_some_and(long) {
            return Err(PeerError::Wrong("a header is longer than the rules allow"));
        }
        Ok(Self { rlp, uncles })
    }

    pub(super) fn bytes(&self) -> usize {
        self.rlp.len().saturating_add(self.uncles.as_ref().map_or(0, Vec::len))
    }
}

/// Consecutive headers, ascending.
#[derive(Default, Clone)]
pub(super) struct Stretch {
    pub(super) first: u64,
    pub(super) headers: Vec<FullHeader>,
}

impl Stretch {
    /// The headers from `next` up to `last` that the stretch has.
    pub(super) fn from(&self, next: u64, last: u64) -> Vec<FullHeader> {
        let skipped = next.checked_sub(self.first).and_then(|skipped| usize::try_from(skipped).ok());
        let Some(skipped) = skipped else { return Vec::new() };
        let wanted = usize::try_from(last.saturating_sub(next)).unwrap_or(usize::MAX).saturating_add(1);
        self.headers.iter().skip(skipped).take(wanted).cloned().collect()
    }

    /// The stretch of the heights from `first` to `top`, from headers in descending order. `None` if they are of other heights.
    pub(super) fn of(first: u64, top: u64, mut headers: Vec<FullHeader>) -> Option<Self> {
        let number = |header: Option<&FullHeader>| RawHeader::split(&header?.rlp).ok().map(|it| it.number());
        let ends = (number(headers.last()), number(headers.first()));
        let stretch = Self {
            first,
            headers: {
                headers.reverse();
                headers
            },
        };
        (ends == (Some(first), Some(top)) && stretch.top() == top).then_some(stretch)
    }

    /// The height of the last header.
    fn top(&self) -> u64 {
        self.first.saturating_add(self.headers.len() as u64).saturating_sub(1)
    }

    /// Whether the stretch is short enough to be cached.
    pub(super) fn is_short(&self) -> bool {
        self.bytes() <= LONGEST_CACHED
    }

    fn bytes(&self) -> usize {
        self.headers.iter().map(FullHeader::bytes).sum()
    }
}

/// The stretches that cover a range of heights above 0: the first and the last height of each. The first stretch begins with
/// the range, because the peer may have no headers below; the last one may end above the range, at a height of the skeleton.
pub(super) fn cover(first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> {
    let step = |height: u64| height.div_ceil(SKELETON_STEP);
    (step(first)..=step(last)).map(move |step| {
        let top = step.saturating_mul(SKELETON_STEP);
        (top.saturating_sub(SKELETON_STEP - 1).max(first), top)
    })
}

/// A cache of what a peer has sent: the hashes of a skeleton, and the newest stretches.
#[derive(Default)]
pub(super) struct Stretches {
    skeleton: Vec<BlockRef>,
    cached: VecDeque<Stretch>,
}

impl Stretches {
    /// The hash of the block at this height, if the skeleton has it.
    pub(super) fn hash_at(&self, height: u64) -> Option<B256> {
        self.skeleton.iter().find(|block| block.number == height).map(|block| block.hash)
    }

    /// Replaces the skeleton.
    pub(super) fn set_skeleton(&mut self, skeleton: Vec<BlockRef>) {
        self.skeleton = skeleton;
    }

    /// Forgets everything: the peer may be on another branch.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The cached stretch that ends at the height `top`, if it has the headers from `first` on.
    pub(super) fn cached(&self, first: u64, top: u64) -> Option<Stretch> {
        self.cached.iter().find(|stretch| stretch.first <= first && stretch.top() == top).cloned()
    }

    /// Adds a stretch, unless it is long. The oldest stretch is removed if there are too many.
    pub(super) fn cache(&mut self, stretch: &Stretch) {
        if !stretch.is_short() {
            return;
        }
        if self.cached.len() >= MAX_CACHED {
            self.cached.pop_front();
        }
        self.cached.push_back(stretch.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_covered_by_stretches() {
        let all = |first, last| cover(first, last).collect::<Vec<(u64, u64)>>();
        assert_eq!(all(1, 1), [(1, 192)]);
        assert_eq!(all(7, 192), [(7, 192)]);
        assert_eq!(all(192, 193), [(192, 192), (193, 384)]);
        assert_eq!(all(193, 448), [(193, 384), (385, 576)]);
    }
}
