//! `trace_call*`, `trace_rawTransaction` and `trace_replay*`: output, calls, changes of state and instructions of a run, in the
//! format of the former client Parity.

use alloc::{string::String, vec::Vec};

use alloy_primitives::B256;
use serde::Serialize;

use super::{
    diff::StateDiff,
    shape::{RpcTrace, run},
    traced_block, traces,
    vm::VmCode,
};
use crate::{
    engine::{TransactionLocation, View},
    exec::{
        CallMessage,
        trace::{HAS_VM_TRACES, Tracer, TransactionTrace},
    },
    rpc::{
        block_override::BlockOverride,
        call::block,
        call_object::{CallObject, call_list, message, overrides},
        error::ParamError,
        lookup::find,
        method::{
            AT_BLOCK, HandlerResult, Method, Param, ParamSubject, Runs, THE_BLOCK, absent, optional,
            required, verified,
        },
        params::{BlockParam, Params},
        signed,
        traced_run::{TracedCall, traced_run},
    },
    state::StateOverride,
    types::json::{Data, Object},
};

/// Most characters of an unknown trace type that its error repeats.
const MAX_NAME: usize = 64;

const TYPES: Param = required("traceTypes", "array of TRACE_TYPE");
const RESULT: &str = "{output, trace, stateDiff, vmTrace}";

pub(super) const CALL: Method = Method::read(
    "trace_call",
    &[
        required("call", "CALL").of(ParamSubject::Call),
        TYPES,
        AT_BLOCK,
        optional("stateOverride", "OVERRIDE").of(ParamSubject::Overrides),
    ],
    RESULT,
    "The calls (trace), changes of state (stateDiff) and instructions (vmTrace) of a call on the state after a block.",
    |view, params| {
        let types = TraceTypes::read(params, 1)?;
        let state = overrides(params, 3)?;
        let message = CallMessage::clone(&*message(params)?);
        trace_one(view, &params.call_block(2)?, &state, message, types)
    },
)
.runs(Runs::Calls)
.costs(100);

pub(super) const CALL_MANY: Method = Method::read(
    "trace_callMany",
    &[required("calls", "TRACED_CALLS").of(ParamSubject::TracedCalls), AT_BLOCK],
    "array of {output, trace, stateDiff, vmTrace}",
    "As trace_call, for several calls, each on the state that the earlier ones left.",
    call_many,
)
.runs(Runs::Calls)
.costs(500);

pub(super) const RAW_TRANSACTION: Method = Method::read(
    "trace_rawTransaction",
    &[required("rawTransaction", "DATA").of(ParamSubject::Signed), TYPES],
    RESULT,
    "As trace_call, for a signed transaction that is not sent, on the state after the newest block.",
    |view, params| {
        let types = TraceTypes::read(params, 1)?;
        let (transaction, sender) = signed::decode(&params.data(0)?, view.policy().network.chain_id)?;
        let message = CallMessage {
            from: Some(sender),
            to: transaction.to,
            gas: Some(u64::try_from(transaction.gas_limit.value()).unwrap_or(u64::MAX)),
            gas_price: transaction.gas_price.value(),
            value: transaction.value,
            data: transaction.data,
        };
        trace_one(view, &BlockParam::Latest, &StateOverride::default(), message, types)
    },
)
.runs(Runs::Calls)
.costs(100);

pub(super) const REPLAY_TRANSACTION: Method = Method::read(
    "trace_replayTransaction",
    &[required("transactionHash", "HASH"), TYPES],
    "{output, trace, stateDiff, vmTrace} or null",
    "As trace_call, for a transaction of the chain.",
    |view, params| {
        let types = TraceTypes::read(params, 1)?;
        let hash = params.hash(0, "transaction hash")?;
        // `None`: the caller gives the hash only, not the transaction.
        let TransactionLocation::Mined(header, index) = view.locate(hash, None)? else { return absent() };
        match traces(view, &header, types.tracer(), Some(index))?.first() {
            Some(trace) => Ok(verified(&types.run_trace(trace))?.about(&header)),
            None => absent(),
        }
    },
)
.runs(Runs::Block)
.costs(200);

pub(super) const REPLAY_BLOCK: Method = Method::read(
    "trace_replayBlockTransactions",
    &[THE_BLOCK, TYPES],
    "array of {output, trace, stateDiff, vmTrace, transactionHash} or null",
    "As trace_replayTransaction, for all transactions of a block, REMASC's included.",
    |view, params| {
        let types = TraceTypes::read(params, 1)?;
        let param = traced_block(params.block(0))?;
        let Some(header) = find(view, &param)? else { return absent() };
        // `None`: of all transactions of the block.
        let traces = traces(view, &header, types.tracer(), None)?;
        verified(&traces.iter().map(|trace| types.shown_in_block(trace)).collect::<Vec<_>>())
    },
)
.runs(Runs::Block)
.costs(500);

/// The parts of a run that the caller selects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TraceTypes {
    trace: bool,
    state_diff: bool,
    vm_trace: bool,
}

/// A run in Parity's format.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunTrace<'a> {
    output: Data,
    state_diff: Option<StateDiff>,
    trace: Vec<RpcTrace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_hash: Option<B256>,
    vm_trace: Option<VmCode<'a>>,
}

impl TraceTypes {
    fn read(params: Params<'_>, position: usize) -> Result<Self, ParamError> {
        let names: Vec<String> = params.value(position, "an array of trace types")?.unwrap_or_default();
        Self::of(&names)
    }

    fn of(names: &[String]) -> Result<Self, ParamError> {
        let mut types = Self::default();
        for name in names {
            match name.as_str() {
                "trace" => types.trace = true,
                "stateDiff" => types.state_diff = true,
                "vmTrace" if HAS_VM_TRACES => types.vm_trace = true,
                "vmTrace" => return Err(ParamError::VmTrace),
                other => return Err(ParamError::TraceType(other.chars().take(MAX_NAME).collect())),
            }
        }
        Ok(types)
    }

    /// The tracer that collects these parts. Calls are always collected, because the output is that of the outermost call.
    fn tracer(self) -> Tracer {
        Tracer { state: self.state_diff, vm: self.vm_trace, ..Tracer::CALLS }
    }

    /// The selected parts of a trace.
    fn run_trace(self, trace: &TransactionTrace) -> RunTrace<'_> {
        let root = trace.calls.as_ref().and_then(|calls| calls.nodes.first());
        let output = root.and_then(|root| root.close.as_ref()).map(|close| close.output.clone());
        RunTrace {
            output: Data(output.unwrap_or_default()),
            state_diff: trace.state.as_ref().filter(|_| self.state_diff).map(StateDiff::of),
            trace: if self.trace { run(trace) } else { Vec::new() },
            transaction_hash: None,
            // Without the feature, `read` refuses `vmTrace`. The condition removes the code that writes it from browser modules.
            vm_trace: trace.vm.as_ref().filter(|_| HAS_VM_TRACES).map(VmCode::first),
        }
    }

    /// As [`Self::run_trace`], with the hash of the transaction.
    fn shown_in_block(self, trace: &TransactionTrace) -> RunTrace<'_> {
        RunTrace { transaction_hash: Some(trace.hash()), ..self.run_trace(trace) }
    }
}

/// Runs one call on the state after a block and answers with its trace.
fn trace_one(
    view: &dyn View,
    param: &BlockParam,
    state: &StateOverride,
    message: CallMessage,
    types: TraceTypes,
) -> HandlerResult {
    let base = block(view, param)?;
    let call = TracedCall { message, tracer: types.tracer(), block: BlockOverride::default() };
    let traces = traced_run(view, &base, state, &[call])?;
    verified(&traces.first().map(|trace| types.run_trace(trace)))
}

/// The calls in the first parameter, each with its trace types.
fn calls(params: Params<'_>) -> Result<Vec<(CallMessage, TraceTypes)>, ParamError> {
    let given: Vec<(Object<CallObject>, Vec<String>)> =
        call_list(params, "an array of calls, each with its trace types")?;
    given.iter().map(|(Object(call), types)| Ok((call.message()?, TraceTypes::of(types)?))).collect()
}

/// The contracts that calls are sent to; `None` if one creates a contract, or if the handler refuses them.
#[cfg(all(feature = "dev", feature = "light"))]
pub(in crate::rpc) fn contracts(params: Params<'_>) -> Option<Vec<alloy_primitives::Address>> {
    calls(params).ok()?.into_iter().map(|(message, _)| message.to).collect()
}

fn call_many(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let calls = calls(params)?;
    let base = block(view, &params.call_block(1)?)?;
    let traced = |(message, types): &(CallMessage, TraceTypes)| TracedCall {
        message: message.clone(),
        tracer: types.tracer(),
        block: BlockOverride::default(),
    };
    let traced: Vec<TracedCall> = calls.iter().map(traced).collect();
    let traces = traced_run(view, &base, &StateOverride::default(), &traced)?;
    let shown = traces.iter().zip(&calls).map(|(trace, (_, types))| types.run_trace(trace));
    verified(&shown.collect::<Vec<_>>())
}
