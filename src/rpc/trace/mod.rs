//! `trace_*`: traces of the calls of transactions, in the format of the reference node, which is that of the former client
//! Parity. `replay` executes blocks again, `shape` writes the entries, and `call` and `filter` have methods of their own.

mod call;
mod diff;
mod filter;
mod flat;
mod replay;
mod shape;
mod vm;

use alloc::{string::String, vec::Vec};

use super::{
    error::ParamError,
    lookup::find,
    method::{
        Failure, HandlerResult, Indexed, Method, ParamSubject, Runs, THE_BLOCK, absent, required, verified,
    },
    params::Params,
};
use crate::{
    engine::{BlockHeader, TransactionLocation, View},
    exec::trace::{Tracer, TransactionTrace},
};

#[cfg(all(feature = "dev", feature = "light"))]
pub(super) use call::contracts;
pub use filter::TraceFilter;
pub use filter::hosted as hosted_filter;
pub(super) use flat::{FlatForm, flat};
pub use replay::traced_block;
pub(super) use replay::{too_large, traces};
pub(super) use shape::halt_text;

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "trace_transaction",
        &[required("transactionHash", "HASH")],
        "array of trace objects or null",
        "The calls, contract creations and self-destructions of a transaction.",
        transaction,
    )
    .runs(Runs::Block)
    .relayed()
    .indexed(Indexed::TransactionTraces)
    .costs(100),
    Method::read(
        "trace_block",
        &[THE_BLOCK],
        "array of trace objects or null",
        "The traces of all transactions of a block, REMASC's included.",
        block,
    )
    .runs(Runs::Block)
    .relayed()
    .indexed(Indexed::BlockTraces)
    .costs(200),
    FILTER,
    call::CALL,
    call::CALL_MANY,
    call::RAW_TRANSACTION,
    call::REPLAY_TRANSACTION,
    call::REPLAY_BLOCK,
    Method::read(
        "trace_get",
        &[required("transactionHash", "HASH"), required("positions", "array of one QUANTITY")],
        "trace object or null",
        "One trace of a transaction, by its index.",
        get,
    )
    .runs(Runs::Block)
    .relayed()
    .costs(100),
];

const FILTER: Method = Method::read(
    "trace_filter",
    &[required("filter", "TRACE_FILTER").of(ParamSubject::Traces)],
    "array of trace objects",
    "The traces of the transactions in a range of blocks, selected by sender and receiver.",
    filter::filter,
)
.runs(Runs::Block)
.indexed(Indexed::Traces)
.costs(1_000);

/// The traces of the transaction whose hash is the first parameter, with its block's header; `None` if it is not mined.
fn of_transaction(
    view: &dyn View,
    params: Params<'_>,
) -> Result<Option<(BlockHeader, Vec<TransactionTrace>)>, Failure> {
    // `None`: the caller gives the hash only, not the transaction.
    match view.locate(params.hash(0, "transaction hash")?, None)? {
        TransactionLocation::Mined(header, index) => {
            let traces = traces(view, &header, Tracer::CALLS, Some(index))?;
            Ok(Some((header, traces)))
        }
        TransactionLocation::Pending(_) | TransactionLocation::Unknown => Ok(None),
    }
}

fn transaction(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let Some((header, traces)) = of_transaction(view, params)? else { return absent() };
    Ok(verified(&shape::traces(&header, &traces))?.about(&header))
}

fn get(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let positions: Vec<String> = params.value(1, "an array of positions")?.unwrap_or_default();
    let position = match positions.as_slice() {
        [] => return Err(ParamError::NoPosition.into()),
        [position] => position_index(position)?,
        _ => return Err(ParamError::Positions.into()),
    };
    let Some((header, traces)) = of_transaction(view, params)? else { return absent() };
    Ok(verified(&shape::traces(&header, &traces).get(position))?.about(&header))
}

/// The index of a trace, in hex with `0x`.
fn position_index(text: &str) -> Result<usize, ParamError> {
    let digits = text.strip_prefix("0x").ok_or_else(|| ParamError::Index(text.into()))?;
    match u32::from_str_radix(digits, 16) {
        // `from_str_radix` accepts a sign.
        Ok(index) if !digits.starts_with('+') => usize::try_from(index).map_err(|_| ParamError::IndexRange),
        _ => Err(ParamError::Index(text.into())),
    }
}

fn block(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let param = traced_block(params.block(0))?;
    let Some(header) = find(view, &param)? else { return absent() };
    verified(&shape::traces(&header, &traces(view, &header, Tracer::CALLS, None)?))
}
