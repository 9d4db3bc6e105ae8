//! [`ChainEntry`]: a header as the chain keeps it, with the data that the chain computes of it.

use alloc::sync::Arc;

use crate::consensus::fork_detection::ForkContext;
use crate::consensus::uncles::VerifiedUncles;
use crate::consensus::verified::VerifiedHeader;
use crate::types::{B256, U256};

/// The proven uncle work of consecutive blocks: of every block above the number `above`, up to and including the entry's own block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProvenUncleWork {
    /// Number of the highest block at or below the entry whose uncles are not proven, or of the chain's base.
    pub(super) above: u64,
    /// Sum of the difficulties of these uncles.
    pub(super) work: U256,
}

/// A header in the chain.
#[derive(Debug, Clone)]
pub(super) struct ChainEntry {
    pub(super) header: VerifiedHeader,
    /// Sum of header difficulties above the base.
    pub(super) work: U256,
    /// Hash of the ancestor at [`skip_height`], or of the parent if that height is below the base. Skip links find
    /// ancestors in logarithmic time.
    pub(super) skip: B256,
    /// The data of this header and its ancestors from which its children's fork detection data (RSKIP-110) are computed.
    pub(super) context: ForkContext,
    /// The block's uncles, once proven.
    pub(super) uncles: Option<Arc<VerifiedUncles>>,
    /// Proven uncle work that ends at this block.
    pub(super) proven: ProvenUncleWork,
}

impl ChainEntry {
    /// The entry of the base or of a header below it, which is accepted without its own proof and counts as no work.
    pub(super) fn unchecked(header: VerifiedHeader) -> Self {
        Self {
            work: U256::ZERO,
            skip: header.parent_hash,
            context: ForkContext::default().extended(&header),
            uncles: no_uncles(&header),
            proven: ProvenUncleWork { above: header.number, work: U256::ZERO },
            header,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.header.number
    }

    pub(super) fn hash(&self) -> B256 {
        self.header.hash()
    }

    pub(super) fn parent(&self) -> B256 {
        self.header.parent_hash
    }

    /// The work of the block's uncles, if they are proven.
    pub(super) fn uncle_work(&self) -> Option<U256> {
        self.uncles.as_ref().map(|uncles| uncles.work())
    }

    /// Proven uncle work that ends at this entry, given that of its parent. An entry without proven uncles starts a new sum at zero.
    pub(super) fn proven_after(&self, parent: &ProvenUncleWork) -> ProvenUncleWork {
        match self.uncle_work() {
            Some(own) => ProvenUncleWork { above: parent.above, work: parent.work.saturating_add(own) },
            None => ProvenUncleWork { above: self.number(), work: U256::ZERO },
        }
    }
}

/// The uncles of a header that commits to an empty list, which needs no further proof.
pub(super) fn no_uncles(header: &VerifiedHeader) -> Option<Arc<VerifiedUncles>> {
    VerifiedUncles::if_empty(header).map(Arc::new)
}

/// The height that a header's skip link points to. An ancestor is found in a number of skips and steps to parents that is logarithmic
/// in its distance. For an even height, the lowest set bit is cleared; for an odd one, the two lowest set bits above bit 0.
pub(super) const fn skip_height(number: u64) -> u64 {
    const fn clear_lowest(n: u64) -> u64 {
        n & n.wrapping_sub(1)
    }
    if number < 2 {
        0
    } else if number & 1 == 1 {
        clear_lowest(clear_lowest(number & !1)) | 1
    } else {
        clear_lowest(number)
    }
}
