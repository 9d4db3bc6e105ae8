//! `debug_trace*`: traces of the instructions of a transaction, of its calls, or of the state that it uses.

mod call;
mod calls;
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
use serde_json::value::{RawValue, to_raw_value};

use options::TraceForm;

use super::{
    error::RpcError,
    lookup::find,
    method::{
        BLOCK_HASH, Failure, HandlerOutput, Method, Runs, THE_BLOCK, absent, account_of, optional, required,
        verified,
    },
    params::Params,
    trace::{traced_block, traces},
};
use crate::{
    engine::{BlockHeader, Level, TransactionPlace, View},
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

fn transaction(view: &dyn View, params: Params<'_>) -> Result<HandlerOutput, Failure> {
    let hash = params.hash(0, "transaction hash")?;
    #[cfg(feature = "catalogue")]
    if let Some(script) = scripts::read(params, 1)? {
        let TransactionPlace::Mined(header, index) = view.locate(hash, None)? else { return absent() };
        return match scripts::traces(view, &header, &script, Some(index))?.first() {
            Some((_, trace)) => verified(trace),
            None => absent(),
        };
    }
    let form = TraceForm::read(params, 1)?;
    let TransactionPlace::Mined(header, index) = view.locate(hash, None)? else { return absent() };
    let traces = traces(view, &header, form.tracer(), Some(index))?;
    match traces.first() {
        Some(trace) => verified(&form.shown(&header, trace)?),
        None => absent(),
    }
}

fn block(view: &dyn View, header: Option<BlockHeader>, params: Params<'_>) -> Result<HandlerOutput, Failure> {
    #[cfg(feature = "catalogue")]
    if let Some(script) = scripts::read(params, 1)? {
        let Some(header) = header else { return absent() };
        let traces = scripts::traces(view, &header, &script, None)?.into_iter();
        return verified(&traces.map(|(tx_hash, result)| InBlock { tx_hash, result }).collect::<Vec<_>>());
    }
    let form = TraceForm::read(params, 1)?;
    let Some(header) = header else { return absent() };
    let traces = traces(view, &header, form.tracer(), None)?;
    let shown: Result<Vec<_>, RpcError> =
        traces.iter().map(|trace| in_block(&header, trace, &form)).collect();
    verified(&shown?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InBlock {
    tx_hash: B256,
    result: Box<RawValue>,
}

/// A trace as an element of a block's list, with the transaction's hash unless the reference node leaves it out.
fn in_block(
    header: &BlockHeader,
    trace: &TransactionTrace,
    form: &TraceForm,
) -> Result<Box<RawValue>, RpcError> {
    let result = form.shown(header, trace)?;
    if form.is_bare() { Ok(result) } else { Ok(to_raw_value(&InBlock { tx_hash: trace.hash(), result })?) }
}
