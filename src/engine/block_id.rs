//! Finds the header that a block id names: handlers turn the block parameter of a request into a block id.

use alloy_primitives::B256;

use super::{BlockHeader, ViewResult, chain::Chain};
use crate::types::BlockRef;

/// How many blocks below the head the block of the tag `safe` is: about six minutes at a block every 30 seconds.
pub const SAFE_DEPTH: u64 = 12;

/// How many blocks below the head the block of the tag `finalized` is: about one hour at a block every 30 seconds.
pub const FINALIZED_DEPTH: u64 = 120;

/// Which block a handler reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockId {
    /// The head; also used for the tag `pending` where no pending block is built, as on a light client.
    Latest,
    /// Block 0.
    Earliest,
    /// [`SAFE_DEPTH`] blocks below the head.
    Safe,
    /// [`FINALIZED_DEPTH`] blocks below the head.
    Finalized,
    /// The canonical block of this height.
    Number(u64),
    /// The block with this hash, canonical or not.
    Hash {
        /// The block hash.
        hash: B256,
        /// Whether a block off the canonical chain is refused (EIP-1898).
        require_canonical: bool,
    },
}

/// The outcome of a look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// The block.
    Header(BlockHeader),
    /// No such block.
    NotFound,
    /// The block exists and is not on the canonical chain, which was required.
    NotCanonical,
}

/// Finds the header that an id names.
///
/// # Errors
/// As the look-ups of the view.
pub fn resolve(view: &dyn Chain, id: BlockId) -> ViewResult<Resolved> {
    let header = match id {
        BlockId::Latest => Some(view.head()?),
        BlockId::Earliest => view.header_by_number(0)?,
        BlockId::Safe => below_head(view, SAFE_DEPTH)?,
        BlockId::Finalized => below_head(view, FINALIZED_DEPTH)?,
        BlockId::Number(number) => view.header_by_number(number)?,
        BlockId::Hash { hash, require_canonical } => {
            let found = view.header_by_hash(hash)?;
            if let Some(header) = &found
                && require_canonical
                && !view.is_canonical(BlockRef { number: header.number, hash })
            {
                return Ok(Resolved::NotCanonical);
            }
            found
        }
    };
    Ok(header.map_or(Resolved::NotFound, Resolved::Header))
}

/// The block `depth` below the head, or block 0 on a shorter chain.
fn below_head(view: &dyn Chain, depth: u64) -> ViewResult<Option<BlockHeader>> {
    view.header_by_number(view.height()?.saturating_sub(depth))
}

/// Height of the newest block that is as deep as the host requires; 0 if none is.
///
/// # Errors
/// Refused while synchronizing.
pub fn newest_answerable_height(view: &dyn Chain) -> ViewResult<u64> {
    Ok(view.height()?.saturating_sub(view.policy().min_depth))
}
