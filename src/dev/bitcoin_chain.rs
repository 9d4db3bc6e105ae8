//! A Bitcoin chain beside the development chain. A host makes it; blocks here are mined on its newest block.

use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::B256;

use crate::consensus::bitcoin::ServedBitcoin;
use crate::consensus::mining::BitcoinWork;

/// Most Bitcoin blocks in one request.
pub const MAX_BITCOIN_BLOCKS: u64 = 2_016;

/// A Bitcoin chain that a host makes beside the development chain.
pub trait BitcoinSide: ServedBitcoin + core::fmt::Debug + Send + Sync {
    /// Returns a block on the newest one whose coinbase commits to a hash, without its nonce. `time` is that of the block to
    /// be mined, in seconds since 1970; the Bitcoin block's differs if Bitcoin's rules demand a later one.
    fn next(&self, commitment: &B256, time: u64) -> BitcoinWork;

    /// Takes a block of [`Self::next`] by which a block was mined. Some of them become the chain's newest block.
    fn add_merge_mined(&self, work: &BitcoinWork);

    /// Begins a change of the development chain that may fail, perhaps inside of another one. Unless it `is_shown`, readers see its
    /// blocks when it has ended.
    fn begin(&self, is_shown: bool);

    /// Ends the innermost change. Unless it is to stay, the chain is as it was at its [`Self::begin`].
    fn end(&self, stays: bool);

    /// Mines Bitcoin blocks. Returns the newest one.
    ///
    /// # Errors
    /// Why the blocks cannot become the heaviest chain.
    fn mine(&self, blocks: &BitcoinBlocks) -> Result<BitcoinTip, String>;
}

/// Bitcoin blocks to be mined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitcoinBlocks {
    /// For each block the hash that its coinbase commits to; `None` for a coinbase without a tag.
    pub commitments: Vec<Option<B256>>,
    /// Height of the block that the first one follows; `None` for the newest block. The blocks above it leave the chain.
    pub parent: Option<u32>,
    /// Least time of the blocks, in seconds since 1970.
    pub time: u64,
}

/// The newest Bitcoin block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitcoinTip {
    /// The height of the block.
    pub height: u32,
    /// Its hash in internal byte order.
    pub hash: B256,
}

/// The tags of the coinbases of Bitcoin blocks that are mined on request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BitcoinTag {
    /// No tag.
    #[default]
    None,
    /// The tag of the newest block.
    Own,
    /// Tags of siblings of the next block, which no node has.
    Kin,
    /// Tags of blocks of another branch, which no node has: no byte of their commit-to-parents vector is that of this chain.
    Foreign,
    /// Tags as those of siblings, of blocks that are far ahead.
    Ahead,
}

impl BitcoinTag {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::None, Self::Own, Self::Kin, Self::Foreign, Self::Ahead];

    /// The name, as methods take it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Own => "own",
            Self::Kin => "kin",
            Self::Foreign => "foreign",
            Self::Ahead => "ahead",
        }
    }
}
