//! `debug_trace*`: traces of all instructions of a transaction, or of its calls as a tree.

mod calls;
mod opcodes;
mod steps;

use alloc::{borrow::ToOwned, boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use alloy_primitives::B256;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    error::{ParamError, RpcError},
    lookup::find,
    method::{
        BLOCK_HASH, Failure, HandlerOutput, Method, Runs, THE_BLOCK, absent, account_of, optional, required,
        verified,
    },
    params::{Params, object},
    trace::{traced_block, traces},
};
use crate::{
    engine::{BlockHeader, Level, TransactionPlace, View},
    exec::trace::{StepOptions, Tracer, TransactionTrace},
};

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "debug_traceTransaction",
        &[required("transactionHash", "HASH"), optional("options", "TRACE_OPTIONS")],
        "trace object or null",
        "A trace of a transaction's instructions (rskTracer), or of its calls as a tree (callTracer).",
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

/// The tracer that the request names, with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Options {
    Steps(StepOptions),
    Calls { only_top: bool, with_log: bool },
}

impl Options {
    /// Reads the options in the second parameter. Unknown ones are ignored, as in the reference node.
    fn read(params: Params<'_>) -> Result<Self, ParamError> {
        let given: BTreeMap<String, Box<RawValue>> = params.object(1, "trace options")?.unwrap_or_default();
        let config: BTreeMap<String, Box<RawValue>> = match given.get("tracerConfig") {
            Some(config) if config.get() != "null" => {
                object(config).map_err(|_| ParamError::Type { position: 1, expected: "trace options" })?
            }
            _ => BTreeMap::new(),
        };
        let set =
            |name: &str| [&config, &given].iter().any(|map| map.get(name).is_some_and(|raw| is_true(raw)));
        match tracer(given.get("tracer").map(|raw| &**raw))?.as_str() {
            "rsktracer" => Ok(Self::Steps(StepOptions {
                disable_storage: set("disableStorage"),
                disable_memory: set("disableMemory"),
                disable_stack: set("disableStack"),
            })),
            "calltracer" => Ok(Self::Calls { only_top: set("onlyTopCall"), with_log: set("withLog") }),
            other => Err(ParamError::Tracer(other.to_owned())),
        }
    }

    fn tracer(self) -> Tracer {
        match self {
            Self::Steps(options) => Tracer::Steps(options),
            Self::Calls { with_log, .. } => Tracer::Calls { with_logs: with_log },
        }
    }
}

fn is_true(raw: &RawValue) -> bool {
    matches!(raw.get(), "true" | "\"true\"")
}

/// The tracer's name in lower case.
fn tracer(given: Option<&RawValue>) -> Result<String, ParamError> {
    match given.map(RawValue::get) {
        None | Some("null") => Ok("rsktracer".into()),
        Some(text) => {
            let name: String = serde_json::from_str(text).map_err(|_| ParamError::Tracer(text.to_owned()))?;
            let known = ["rskTracer", "callTracer"].iter().find(|known| known.eq_ignore_ascii_case(&name));
            known.map(|known| known.to_lowercase()).ok_or(ParamError::Tracer(name))
        }
    }
}

fn transaction(view: &dyn View, params: Params<'_>) -> Result<HandlerOutput, Failure> {
    let hash = params.hash(0, "transaction hash")?;
    let options = Options::read(params)?;
    let TransactionPlace::Mined(header, index) = view.locate(hash, None)? else { return absent() };
    let traces = traces(view, &header, options.tracer(), Some(index))?;
    match traces.first() {
        Some(trace) => verified(&shown(trace, options)?),
        None => absent(),
    }
}

fn block(view: &dyn View, header: Option<BlockHeader>, params: Params<'_>) -> Result<HandlerOutput, Failure> {
    let options = Options::read(params)?;
    let Some(header) = header else { return absent() };
    let traces = traces(view, &header, options.tracer(), None)?;
    let shown: Result<Vec<_>, RpcError> = traces.iter().map(|trace| in_block(trace, options)).collect();
    verified(&shown?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InBlock {
    tx_hash: B256,
    result: Box<RawValue>,
}

/// A trace as an element of a block's list. Those of the call tracer include the transaction hash.
fn in_block(trace: &TransactionTrace, options: Options) -> Result<Box<RawValue>, RpcError> {
    let result = shown(trace, options)?;
    match options {
        Options::Steps(_) => Ok(result),
        Options::Calls { .. } => Ok(to_raw_value(&InBlock { tx_hash: trace.hash, result })?),
    }
}

fn shown(trace: &TransactionTrace, options: Options) -> Result<Box<RawValue>, RpcError> {
    Ok(match options {
        Options::Steps(hidden) => steps::shown(trace, hidden)?,
        Options::Calls { only_top, .. } => to_raw_value(&calls::tree(trace, only_top))?,
    })
}
