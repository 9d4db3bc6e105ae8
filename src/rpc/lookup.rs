//! Finds the proven block that a parameter selects, with the reference node's errors if there is none.

use super::{error::RpcError, method::Failure, params::BlockParam};
use crate::{
    engine::{BlockHeader, BlockId, Refusal, Resolved, Stop, View, resolve},
    state::{Fact, StateError},
    types::BlockRef,
};

/// The header of the block that a parameter names, or `None` if there is no such block.
///
/// # Errors
/// Missing facts or a refusal; [`RpcError::NotCanonical`].
pub(super) fn find(view: &dyn View, param: &BlockParam) -> Result<Option<BlockHeader>, Failure> {
    if *param == BlockParam::Pending
        && let Some(header) = view.pending()?
    {
        return Ok(Some(header));
    }
    let id = match param {
        BlockParam::Latest | BlockParam::Pending => BlockId::Latest,
        BlockParam::Earliest => BlockId::Earliest,
        BlockParam::Safe => BlockId::Safe,
        BlockParam::Finalized => BlockId::Finalized,
        BlockParam::Number(Some(number), _) => BlockId::Number(*number),
        // No block has a number above 64 bits. `height` fails if the client has no head yet.
        BlockParam::Number(None, _) => return view.height().map(|_| None).map_err(Failure::Stop),
        BlockParam::Hash { hash, require_canonical, .. } => {
            BlockId::Hash { hash: *hash, require_canonical: *require_canonical }
        }
    };
    match (resolve(view, id)?, param) {
        (Resolved::Header(header), _) => Ok(Some(header)),
        (Resolved::NotCanonical, BlockParam::Hash { hash, .. }) => Err(RpcError::NotCanonical(*hash).into()),
        // There is no such block. Only a block that was named by its hash can be `NotCanonical`.
        _ => Ok(None),
    }
}

/// As [`find`], but a missing block is an error, as in the state methods.
///
/// # Errors
/// [`RpcError::BlockNotFound`], [`RpcError::BlockHashNotFound`] and those of [`find`].
pub(super) fn require(view: &dyn View, param: &BlockParam) -> Result<BlockHeader, Failure> {
    if let Some(header) = find(view, param)? {
        return Ok(header);
    }
    Err(Failure::Error(match param {
        BlockParam::Hash { hash, in_map: true, .. } => RpcError::BlockHashNotFound(*hash),
        BlockParam::Hash { hash, .. } => RpcError::BlockNotFound(alloc::format!("{hash}")),
        BlockParam::Number(_, text) => RpcError::BlockNotFound(text.clone()),
        // The names of the variants in lower case are the tags as callers write them.
        tag => RpcError::BlockNotFound(alloc::format!("{tag:?}").to_ascii_lowercase()),
    }))
}

/// Turns a failed state read into missing facts of the block or into a refusal.
pub(super) fn state_failure(header: &BlockHeader, error: StateError) -> Failure {
    match error {
        StateError::Missing(key) => {
            let block = BlockRef { number: header.number, hash: header.hash() };
            Failure::Stop(Stop::missing(Fact::State(block, key)))
        }
        corrupt => Failure::Stop(Stop::Refused(Refusal::CorruptState(corrupt))),
    }
}
