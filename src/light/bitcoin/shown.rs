//! The Rootstock chain that upstreams show, in the form in which the tags of Bitcoin's coinbases are compared with it.

use alloc::vec::Vec;

use crate::consensus::bitcoin::{BitcoinHeader, Tag};
use crate::consensus::network::{FORK_DETECTION_FIRST, UNCLE_GENERATIONS};
use crate::consensus::{ChainView, VerifiedHeader};
use crate::types::Header;

/// A Rootstock chain that tags are compared with.
pub trait ShownChain {
    /// Number of the newest block.
    fn head(&self) -> u64;
    /// Whether the tag's 20 bytes are those of a block of the chain, or of a proven uncle of one.
    fn is_own(&self, tag: &Tag) -> bool;
    /// The byte to which a tag commits for the block of this number (RSKIP-110): the last displayed byte of the hash of the Bitcoin
    /// header in the block's proof. `None` if the chain does not have the header.
    fn bitcoin_byte(&self, number: u64) -> Option<u8>;
}

/// The heaviest chain of a view.
#[derive(Debug)]
pub struct ShownView<'a> {
    view: &'a ChainView,
    /// First 20 bytes of the hashes for merged mining of the blocks up to [`FORK_DETECTION_FIRST`], whose tags have no number.
    unnumbered: Vec<[u8; 20]>,
}

impl<'a> ShownView<'a> {
    /// The heaviest chain of a view. If the view has the first blocks of the network, their hashes are computed here.
    #[must_use]
    pub fn new(view: &'a ChainView) -> Self {
        let last = view.head().number.min(FORK_DETECTION_FIRST);
        let early = (view.lowest()..=last).filter_map(|number| view.by_number(number));
        let unnumbered = early.filter_map(|header| hash20(header)).collect();
        Self { view, unnumbered }
    }

    /// The proven uncles of this number. An uncle is listed in one of the next six blocks.
    fn uncles(&self, number: u64) -> impl Iterator<Item = &Header> {
        let above = number.saturating_add(1)..number.saturating_add(UNCLE_GENERATIONS);
        let blocks = above.filter_map(|block| self.view.hash_at(block));
        let proven = blocks.filter_map(|hash| self.view.uncles(&hash));
        proven
            .flat_map(|uncles| uncles.headers())
            .map(|uncle| uncle.header())
            .filter(move |uncle| uncle.number == number)
    }
}

/// The part of a header's hash for merged mining that a tag has.
fn hash20(header: &Header) -> Option<[u8; 20]> {
    header.mining_base_hash().first_chunk().copied()
}

impl ShownChain for ShownView<'_> {
    fn head(&self) -> u64 {
        self.view.head().number
    }

    fn is_own(&self, tag: &Tag) -> bool {
        let number = u64::from(tag.number);
        let canonical = self.view.by_number(number).map(VerifiedHeader::sealed).map(|header| header.header());
        canonical.into_iter().chain(self.uncles(number)).any(|header| hash20(header) == Some(tag.hash20))
            || self.unnumbered.contains(&tag.hash20)
    }

    fn bitcoin_byte(&self, number: u64) -> Option<u8> {
        let header = self.view.by_number(number)?;
        // The first byte in internal order is the last one displayed.
        BitcoinHeader::first_of(&header.bitcoin_header)?.hash().first().copied()
    }
}
