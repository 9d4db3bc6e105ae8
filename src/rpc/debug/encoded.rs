//! `debug_traceBlock`: the traces of a block that is given as RLP.

use super::block;
use crate::{
    engine::View,
    rpc::{
        error::{ParamError, RpcError},
        method::{HandlerResult, Method, Runs, optional, required},
        params::Params,
    },
    types::{Block, Header},
};

pub(super) const TRACE_BLOCK: Method = Method::read(
    "debug_traceBlock",
    &[required("block", "DATA"), optional("options", "TRACE_OPTIONS")],
    "array of trace objects",
    "As debug_traceBlockByHash, for a block of the chain as debug_getRawBlock gives it.",
    trace_block,
)
.runs(Runs::Block)
.costs(1_000);

fn trace_block(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let network = view.policy().network;
    let given = Block::decode(&params.data(0)?, &|number| network.header_shape(number));
    let Block { header, body, .. } =
        given.map_err(|_| ParamError::Type { position: 0, expected: "the RLP of a block" })?;
    let hash = Header::seal(header).hash();
    let header = view.header_by_hash(hash)?.ok_or(RpcError::BlockHashNotFound(hash))?;
    if *view.body(&header)?.transactions() != *body.transactions {
        let expected = "a block with the transactions of its header";
        return Err(ParamError::Type { position: 0, expected }.into());
    }
    block(view, Some(header), params)
}
