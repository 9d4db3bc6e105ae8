//! `debug_trace*`: traces of the instructions of a transaction, of its calls, or of the state that it uses. `options` reads which
//! tracer a caller names; `steps`, `struct_logs`, `calls`, `validation` and `prestate` write its result.

mod call;
mod calls;
#[cfg(feature = "catalogue")]
mod encoded;
mod opcodes;
mod options;
mod prestate;
#[cfg(feature = "catalogue")]
mod scripts;
mod steps;
mod struct_logs;
mod validation;

use alloc::{boxed::Box, vec::Vec};

use alloy_primitives::B256;
use serde::Serialize;
use serde_json::value::RawValue;

use options::Tracing;

use super::{
    lookup::find,
    method::{
        BLOCK_HASH, Failure, HandlerResult, Method, Runs, THE_BLOCK, absent, account_of, optional, required,
        verified, verified_json,
    },
    params::Params,
    trace::{traced_block, traces},
};
use crate::{
    engine::{BlockHeader, Level, TransactionLocation, View},
    exec::trace::TransactionTrace,
};

#[cfg(all(feature = "dev", feature = "light"))]
pub(super) use call::{contracts, overrides};

#[cfg(all(feature = "dev", feature = "catalogue"))]
pub(super) use scripts::is_in as has_script;

pub(super) const METHODS: &[Method] = &[
    call::TRACE_CALL,
    call::TRACE_CALL_MANY,
    Method::read(
        "debug_traceTransaction",
        &[required("transactionHash", "HASH"), optional("options", "TRACE_OPTIONS")],
        "trace object or null",
        "A trace of a transaction, by default of its instructions (rskTracer); docs/tracers.md lists the tracers.",
        transaction,
    )
    .runs(Runs::Block)
    .relayed()
    .costs(500),
    Method::read(
        "debug_traceBlockByHash",
        &[BLOCK_HASH, optional("options", "TRACE_OPTIONS")],
        "array of trace objects or null",
        "As debug_traceTransaction, for all transactions of a block.",
        |view, params| {
            let hash = params.hash(0, "block hash")?;
            block(view, view.header_by_hash(hash)?, params)
        },
    )
    .runs(Runs::Block)
    .relayed()
    .costs(1_000),
    Method::read(
        "debug_traceBlockByNumber",
        &[THE_BLOCK, optional("options", "TRACE_OPTIONS")],
        "array of trace objects or null",
        "As debug_traceTransaction, for all transactions of a block.",
        |view, params| {
            let param = traced_block(params.block(0))?;
            block(view, find(view, &param)?, params)
        },
    )
    .runs(Runs::Block)
    .relayed()
    .costs(1_000),
    #[cfg(feature = "catalogue")]
    Method::read(
        "debug_traceBlock",
        &[required("block", "DATA"), optional("options", "TRACE_OPTIONS")],
        "array of trace objects",
        "As debug_traceBlockByHash, for a block of the chain as debug_getRawBlock gives it.",
        |view, params| block(view, Some(encoded::header(view, params)?), params),
    )
    .runs(Runs::Block)
    .costs(1_000),
    Method::local(
        "debug_wireProtocolQueueSize",
        &[],
        "QUANTITY",
        "The number of messages queued for peers: always 0, as there is no peer-to-peer network.",
        |_, _| super::method::done(&"0x0", Level::Local),
    ),
    Method::local(
        "debug_accountTransactionQuota",
        &[account_of("address")],
        "null",
        "The transaction quota of an account: always null, because there are no quotas.",
        |_, params| {
            params.address(0)?;
            super::method::done(&(), Level::Local)
        },
    ),
];

/// `debug_traceTransaction`.
fn transaction(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let hash = params.hash(0, "transaction hash")?;
    let tracing = Tracing::read(params, 1)?;
    // `None`: the caller gives the hash only, not the transaction.
    let TransactionLocation::Mined(header, index) = view.locate(hash, None)? else { return absent() };
    match replayed(view, &header, &tracing, Some(index))?.pop() {
        Some(TraceInBlock { result, .. }) => Ok(verified_json(result)),
        None => absent(),
    }
}

/// The traces of all transactions of a block, by the options in the second parameter.
fn block(view: &dyn View, header: Option<BlockHeader>, params: Params<'_>) -> HandlerResult {
    let tracing = Tracing::read(params, 1)?;
    let Some(header) = header else { return absent() };
    let traces = replayed(view, &header, &tracing, None)?;
    if matches!(&tracing, Tracing::Named(form) if form.is_bare()) {
        return verified(&traces.into_iter().map(|trace| trace.result).collect::<Vec<_>>());
    }
    verified(&traces)
}

/// The trace of a transaction, as an element of the list of a block. For the reference node's own tracer, the list has the bare traces instead
/// (`TraceForm::is_bare`).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TraceInBlock {
    tx_hash: B256,
    result: Box<RawValue>,
}

/// Executes a block again and returns the traces of its transactions, or only of the one at the index `only`.
fn replayed(
    view: &dyn View,
    header: &BlockHeader,
    tracing: &Tracing,
    only: Option<usize>,
) -> Result<Vec<TraceInBlock>, Failure> {
    match tracing {
        Tracing::Named(form) => {
            let traces = traces(view, header, form.tracer(), only)?;
            let shown = |trace: &TransactionTrace| {
                Ok(TraceInBlock { tx_hash: trace.hash(), result: form.to_json(Some(header), trace)? })
            };
            traces.iter().map(shown).collect()
        }
        #[cfg(feature = "catalogue")]
        Tracing::Script(script) => {
            let traces = scripts::traces(view, header, script, only)?.into_iter();
            Ok(traces.map(|(tx_hash, result)| TraceInBlock { tx_hash, result }).collect())
        }
    }
}
