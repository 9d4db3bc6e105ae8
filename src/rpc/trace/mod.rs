//! `trace_*`: traces of the calls of transactions, in the format of the reference node (Parity's).

mod filter;
mod shape;

use alloc::{string::String, vec::Vec};

use super::{
    error::ParamError,
    lookup::find,
    method::{Done, Failure, Handler, Method, Pages, Subject, THE_BLOCK, absent, required, told, verified},
    params::{BlockParam, Params, tag_in_any_case},
};
use crate::{
    engine::{BlockHeader, Level, Refusal, Stop, TransactionPlace, View},
    exec::trace::{BlockTracer, MAX_TRACE_BYTES, Tracer, TransactionTrace},
};

#[cfg(feature = "node-methods")]
pub(super) use filter::Filter;
#[cfg(feature = "hosted")]
pub(super) use filter::hosted as hosted_filter;
pub(super) use shape::halt_text;

pub(super) const METHODS: &[Method] = &[
    Method {
        name: "trace_transaction",
        aliases: &[],
        params: &[required("transactionHash", "HASH")],
        result: told("array of trace objects or null"),
        level: Level::Verified,
        cost: 100,
        pages: Pages::Any,
        doc: told("The calls, contract creations and self-destructions of a transaction."),
        handler: Handler::Read(transaction),
    },
    Method {
        name: "trace_block",
        aliases: &[],
        params: &[THE_BLOCK],
        result: told("array of trace objects or null"),
        level: Level::Verified,
        cost: 200,
        pages: Pages::Any,
        doc: told("The traces of all transactions of a block, REMASC's included."),
        handler: Handler::Read(block),
    },
    FILTER,
    Method {
        name: "trace_get",
        aliases: &[],
        params: &[required("transactionHash", "HASH"), required("positions", "array of one QUANTITY")],
        result: told("trace object or null"),
        level: Level::Verified,
        cost: 100,
        pages: Pages::Any,
        doc: told("One trace of a transaction, by its index."),
        handler: Handler::Read(get),
    },
];

pub(super) const FILTER: Method = Method {
    name: "trace_filter",
    aliases: &[],
    params: &[required("filter", "TRACE_FILTER").of(Subject::Traces)],
    result: told("array of trace objects"),
    level: Level::Verified,
    cost: 1_000,
    pages: Pages::Any,
    doc: told("The traces of the transactions in a range of blocks, selected by sender and receiver."),
    handler: Handler::Read(filter::filter),
};

/// Executes a block again and returns the traces of all its transactions, or of one.
///
/// # Errors
/// As [`View::replay`]; also if the traces need more memory than [`MAX_TRACE_BYTES`].
pub(super) fn traces(
    view: &dyn View,
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

fn too_large() -> Failure {
    Failure::Stop(Stop::Refused(Refusal::TraceTooLarge { max: MAX_TRACE_BYTES }))
}

const CALLS: Tracer = Tracer::Calls { with_logs: false };

/// The traces of the transaction in the first parameter, with its block's header; `None` if it is not mined.
fn of_transaction(
    view: &dyn View,
    params: Params<'_>,
) -> Result<Option<(BlockHeader, Vec<TransactionTrace>)>, Failure> {
    match view.locate(params.hash(0, "transaction hash")?, None)? {
        TransactionPlace::Mined(header, index) => {
            let traces = traces(view, &header, CALLS, Some(index))?;
            Ok(Some((header, traces)))
        }
        TransactionPlace::Pending(_) | TransactionPlace::Unknown => Ok(None),
    }
}

fn transaction(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    let Some((header, traces)) = of_transaction(view, params)? else { return absent() };
    verified(&shape::traces(&header, &traces))
}

fn get(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    let positions: Vec<String> = params.value(1, "an array of positions")?.unwrap_or_default();
    let position = match positions.as_slice() {
        [] => return Err(ParamError::NoPosition.into()),
        [position] => position_index(position)?,
        _ => return Err(ParamError::Positions.into()),
    };
    let Some((header, traces)) = of_transaction(view, params)? else { return absent() };
    verified(&shape::traces(&header, &traces).get(position))
}

fn position_index(text: &str) -> Result<usize, ParamError> {
    let digits = text.strip_prefix("0x").ok_or_else(|| ParamError::Index(text.into()))?;
    match u32::from_str_radix(digits, 16) {
        Ok(index) if !digits.starts_with('+') => usize::try_from(index).map_err(|_| ParamError::IndexRange),
        _ => Err(ParamError::Index(text.into())),
    }
}

fn block(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    let param = traced_block(params.block(0))?;
    let Some(header) = find(view, &param)? else { return absent() };
    verified(&shape::traces(&header, &traces(view, &header, CALLS, None)?))
}

/// Replaces the error for an invalid block parameter by the one of the reference node's tracing methods.
pub(super) fn traced_block(param: Result<BlockParam, ParamError>) -> Result<BlockParam, ParamError> {
    tag_in_any_case(param).map_err(|error| match error {
        ParamError::BlockId(text) => ParamError::BlockNumber(text),
        other => other,
    })
}
