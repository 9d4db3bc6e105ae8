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

/// Executes a block again and returns the traces of all its transactions, or of one.
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

pub(in crate::rpc) fn too_large() -> Failure {
    Failure::Stop(Stop::Refused(Refusal::TraceTooLarge { max: MAX_TRACE_BYTES }))
}

/// Replaces the error for an invalid block parameter by the one of the reference node's tracing methods.
pub fn traced_block(param: Result<BlockParam, ParamError>) -> Result<BlockParam, ParamError> {
    tag_in_any_case(param).map_err(|error| match error {
        ParamError::BlockId(text) => ParamError::BlockNumber(text),
        other => other,
    })
}
