//! Executes blocks again and collects their traces.

use alloc::vec::Vec;

use crate::{
    engine::{BlockHeader, Refusal, State, Stop},
    exec::trace::{BlockTracer, MAX_TRACE_BYTES, Tracer, TransactionTrace},
    rpc::{
        error::ParamError,
        method::Failure,
        params::{BlockParam, tag_in_any_case},
    },
};

/// Executes a block again and returns the traces of all its transactions, or only of the one at the index `only`. Block 0 has no
/// transactions.
pub(in crate::rpc) fn traces(
    view: &dyn State,
    header: &BlockHeader,
    tracer: Tracer,
    only: Option<usize>,
) -> Result<Vec<TransactionTrace>, Failure> {
    if header.number == 0 {
        return Ok(Vec::new());
    }
    let mut observer = BlockTracer::new(tracer, only);
    view.replay(header, &mut observer)?;
    observer.finish().ok_or_else(too_large)
}

/// The refusal of traces that are longer than an answer may be.
pub(in crate::rpc) fn too_large() -> Failure {
    Failure::Stop(Stop::Refused(Refusal::TraceTooLarge { max: MAX_TRACE_BYTES }))
}

/// Treats a parsed block parameter as the reference node's tracing methods do: accepts tags with capital letters, and replaces
/// the error for an invalid one.
pub fn traced_block(param: Result<BlockParam, ParamError>) -> Result<BlockParam, ParamError> {
    tag_in_any_case(param).map_err(|error| match error {
        ParamError::BlockId(text) => ParamError::BlockNumber(text),
        other => other,
    })
}
