//! The interface to a Bitcoin chain that a host simulates, on which the blocks of the development chain are merge-mined: the Bitcoin
//! block that proves the work of a block has the chain's newest block as its parent. Tests of light clients need such a chain.

use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::B256;

use crate::consensus::bitcoin::ServedBitcoin;
use crate::consensus::mining::BitcoinWork;

/// Most Bitcoin blocks that one request mines, which is the length of Bitcoin's difficulty period.
pub const MAX_BITCOIN_BLOCKS: u64 = 2_016;

/// A Bitcoin chain that a host simulates for the development chain. A change of the development chain may add Bitcoin blocks, so the
/// Bitcoin chain has the same changes, which can be undone.
pub trait SimulatedBitcoin: ServedBitcoin + core::fmt::Debug + Send + Sync {
    /// Returns a child of the newest Bitcoin block, still without its nonce, whose coinbase commits to this hash. `time` is the
    /// timestamp of the Rootstock block to be mined, in seconds since 1970; the Bitcoin block has a later one if Bitcoin's rules
    /// demand it.
    fn next(&self, commitment: &B256, time: u64) -> BitcoinWork;

    /// Takes a block of [`Self::next`] whose nonce has been found, after a Rootstock block was mined with it. The host decides
    /// which of these blocks join the Bitcoin chain, because on the real networks most have too little work for Bitcoin.
    fn add_merge_mined(&self, work: &BitcoinWork);

    /// Begins a change of the development chain that may fail, perhaps inside of another change. If `is_shown`, readers see each
    /// Bitcoin block of the change at once; otherwise they see them when the change has ended.
    fn begin(&self, is_shown: bool);

    /// Ends the innermost change. Unless the change `stays`, the Bitcoin chain is again as it was at [`Self::begin`].
    fn end(&self, stays: bool);

    /// Mines Bitcoin blocks. Returns the newest one.
    ///
    /// # Errors
    /// A message that says why the blocks cannot become the heaviest chain.
    fn mine(&self, blocks: &BitcoinBlocks) -> Result<BitcoinTip, String>;
}

/// Bitcoin blocks to be mined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitcoinBlocks {
    /// For each block the hash that its coinbase commits to; `None` for a coinbase without a tag.
    pub commitments: Vec<Option<B256>>,
    /// Height of the parent of the first block; `None` for the newest block. Blocks above the parent leave the chain.
    pub parent: Option<u32>,
    /// Least time of the blocks, in seconds since 1970.
    pub time: u64,
}

/// The newest Bitcoin block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitcoinTip {
    /// The height of the block.
    pub height: u32,
    /// The hash of the block in internal byte order.
    pub hash: B256,
}

/// The `RSKBLOCK:` tags in the coinbases of Bitcoin blocks that are mined on request. Clients compare the fork-detection data in the
/// tags (RSKIP-110) with their own chain, to find branches that no upstream shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BitcoinTag {
    /// No tag.
    #[default]
    None,
    /// The tag of the newest Rootstock block.
    Own,
    /// Tags of siblings of the next Rootstock block, which no node has.
    Kin,
    /// Tags of blocks of another branch, which no node has: no byte of their commit-to-parents vector is that of this chain.
    Foreign,
    /// As [`Self::Kin`], but with a block number far above that of the newest block.
    Ahead,
}

impl BitcoinTag {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::None, Self::Own, Self::Kin, Self::Foreign, Self::Ahead];

    /// The name, as parameters of methods state it.
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
