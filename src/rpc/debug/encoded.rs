//! The first parameter of `debug_traceBlock`, which is a block as RLP. Only its hash is used: the block is traced as the chain
//! has it.

use crate::{
    engine::{BlockHeader, View},
    rpc::{
        error::{ParamError, RpcError},
        method::Failure,
        params::Params,
    },
    types::{Block, Header},
};

/// The header of the block in the first parameter, as the chain has it.
pub(super) fn header(view: &dyn View, params: Params<'_>) -> Result<BlockHeader, Failure> {
    let network = view.policy().network;
    let given = Block::decode(&params.data(0)?, &|number| network.header_shape(number));
    let Block { header, body, .. } =
        given.map_err(|_| ParamError::Type { position: 0, expected: "the RLP of a block" })?;
    let hash = Header::seal(header).hash();
    let header = view.header_by_hash(hash)?.ok_or(RpcError::BlockHashNotFound(hash))?;
    // The hash is that of the header alone. If the caller's transactions were not compared, other ones than the caller's would be
    // traced without an error.
    if *view.body(&header)?.transactions() != *body.transactions {
        let expected = "a block with the transactions of its header";
        return Err(ParamError::Type { position: 0, expected }.into());
    }
    Ok(header)
}
