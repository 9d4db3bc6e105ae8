//! `debug_traceCall` and `debug_traceCallMany`: traces of calls that are no transactions.

use alloc::{boxed::Box, vec::Vec};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::options::Tracing;
#[cfg(feature = "catalogue")]
use super::scripts;
#[cfg(feature = "catalogue")]
use crate::rpc::traced_run::traced_by_script;
use crate::{
    engine::{BlockHeader, View},
    exec::{CallMessage, trace::Tracer},
    rpc::{
        block_override::{BlockOverride, BlockOverrideObject, block_override},
        call::block,
        call_object::{CallObject, MAX_OVERRIDES, OverrideObjects, call_list, message, state_override},
        error::ParamError,
        method::{
            AT_BLOCK, Failure, HandlerResult, Method, Param, ParamSubject, Runs, optional, required,
            verified, verified_json,
        },
        params::{Params, block_param},
        traced_run::{TracedCall, traced_run},
    },
    state::StateOverride,
    types::json::Object,
};

const OPTIONS: Param = optional("options", "TRACE_CALL_OPTIONS").of(ParamSubject::CallOptions);

pub(super) const TRACE_CALL: Method = Method::read(
    "debug_traceCall",
    &[required("call", "CALL").of(ParamSubject::Call), AT_BLOCK, OPTIONS],
    "trace object",
    "A trace of a call on the state after a block, by the tracers of debug_traceTransaction, with overrides of state and block.",
    trace_call,
)
.runs(Runs::Calls)
.costs(500);

pub(super) const TRACE_CALL_MANY: Method = Method::read(
    "debug_traceCallMany",
    &[
        required("bundles", "BUNDLES").of(ParamSubject::Bundles),
        optional("stateContext", "STATE_CONTEXT"),
        OPTIONS,
    ],
    "array of arrays of trace objects",
    "As debug_traceCall, for bundles of calls, each on the state that the earlier ones left.",
    trace_call_many,
)
.runs(Runs::Calls)
.costs(1_000);

/// The options of a traced call, besides those that [`Tracing`] reads.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct OptionsObject<'a> {
    #[serde(default)]
    state_overrides: Option<OverrideObjects>,
    #[serde(default)]
    block_overrides: Option<Object<BlockOverrideObject>>,
    /// The transaction of the block before which the call would run. Not supported.
    #[serde(borrow, default)]
    tx_index: Option<&'a RawValue>,
}

/// The changes that the options of a traced call make.
struct CallOptions {
    state: StateOverride,
    block: BlockOverride,
}

impl CallOptions {
    fn read(params: Params<'_>, position: usize) -> Result<Self, ParamError> {
        if params.length(position) > MAX_OVERRIDES {
            return Err(ParamError::OverridesTooLong(MAX_OVERRIDES));
        }
        let given: OptionsObject<'_> = params.object(position, "trace options")?.unwrap_or_default();
        if given.tx_index.is_some() {
            return Err(ParamError::CallIndex);
        }
        Ok(Self {
            state: state_override(given.state_overrides.as_ref())?,
            block: block_override(given.block_overrides.as_ref())?,
        })
    }
}

/// Whether the options of a traced call override state.
#[cfg(all(feature = "dev", feature = "light"))]
pub(in crate::rpc) fn overrides(params: Params<'_>, position: usize) -> bool {
    CallOptions::read(params, position).is_ok_and(|options| !options.state.accounts.is_empty())
}

fn trace_call(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let tracing = Tracing::read(params, 2)?;
    let CallOptions { state, block: block_override } = CallOptions::read(params, 2)?;
    let message = CallMessage::clone(&*message(params)?);
    let base = block(view, &params.call_block(1)?)?;
    let call = TracedCall { message, tracer: tracing.tracer(), block: block_override };
    match traces(view, &base, &state, &[call], &tracing)?.pop() {
        Some(trace) => Ok(verified_json(trace)),
        // One call has one trace, so that the answer `null` does not occur.
        None => verified(&()),
    }
}

/// A bundle of calls as a caller writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BundleObject {
    transactions: Vec<Object<CallObject>>,
    #[serde(default, alias = "blockOverrides")]
    block_override: Option<Object<BlockOverrideObject>>,
}

/// Calls that run one after the other in one block.
struct Bundle {
    messages: Vec<CallMessage>,
    /// The overrides of the block of these calls; `None`: those of the options.
    block: Option<BlockOverride>,
}

/// The bundles in the first parameter.
fn bundles(params: Params<'_>) -> Result<Vec<Bundle>, ParamError> {
    let given: Vec<Object<BundleObject>> = call_list(params, "an array of bundles")?;
    let bundle = |Object(bundle): &Object<BundleObject>| {
        let messages = bundle.transactions.iter().map(|Object(call)| call.message());
        Ok(Bundle {
            messages: messages.collect::<Result<_, ParamError>>()?,
            block: bundle.block_override.as_ref().map(|Object(block)| block.parse()).transpose()?,
        })
    };
    given.iter().map(bundle).collect()
}

/// The contracts that the calls of bundles are sent to; `None` if one creates a contract, or if the handler refuses them.
#[cfg(all(feature = "dev", feature = "light"))]
pub(in crate::rpc) fn contracts(params: Params<'_>) -> Option<Vec<alloy_primitives::Address>> {
    bundles(params).ok()?.into_iter().flat_map(|bundle| bundle.messages).map(|message| message.to).collect()
}

/// The state on which bundles run, as a caller writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StateContext<'a> {
    #[serde(borrow, default)]
    block_number: Option<&'a RawValue>,
    /// The transaction of the block before which the bundles would run. Only -1, which stands for all transactions, is
    /// supported.
    #[serde(borrow, default)]
    transaction_index: Option<&'a RawValue>,
}

/// The block in the second parameter, which is a state context or a block parameter.
fn context_block(view: &dyn View, params: Params<'_>) -> Result<BlockHeader, Failure> {
    // What is no object is a block parameter. An object without these members is one too, a map with the block's hash.
    let context = params.object::<StateContext<'_>>(1, "a state context").ok().flatten();
    let Some(StateContext { block_number, transaction_index }) = context else {
        return block(view, &params.call_block(1)?);
    };
    if transaction_index.is_some_and(|index| !matches!(index.get(), "-1" | "\"-1\"")) {
        return Err(ParamError::CallIndex.into());
    }
    match block_number {
        // Decimal numbers are accepted too (`true`), as in the parameter itself.
        Some(number) => block(view, &block_param(number, true)?),
        None => block(view, &params.call_block(1)?),
    }
}

fn trace_call_many(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let tracing = Tracing::read(params, 2)?;
    let (bundles, base, state, calls) = bundled_calls(view, params, tracing.tracer())?;
    verified(&by_bundle(&bundles, traces(view, &base, &state, &calls, &tracing)?))
}

/// The calls of bundles, with the block and the overrides on which they run.
fn bundled_calls(
    view: &dyn View,
    params: Params<'_>,
    tracer: Tracer,
) -> Result<(Vec<Bundle>, BlockHeader, StateOverride, Vec<TracedCall>), Failure> {
    let options = CallOptions::read(params, 2)?;
    let bundles = bundles(params)?;
    let base = context_block(view, params)?;
    let mut calls = Vec::new();
    for Bundle { messages, block } in &bundles {
        let block = block.as_ref().unwrap_or(&options.block);
        calls.extend(messages.iter().map(|message| TracedCall {
            message: message.clone(),
            tracer,
            block: block.clone(),
        }));
    }
    Ok((bundles, base, options.state, calls))
}

/// The traces of each bundle, given those of all calls in order.
fn by_bundle(bundles: &[Bundle], traces: Vec<Box<RawValue>>) -> Vec<Vec<Box<RawValue>>> {
    let mut traces = traces.into_iter();
    bundles.iter().map(|bundle| traces.by_ref().take(bundle.messages.len()).collect()).collect()
}

/// Runs calls and returns their traces.
fn traces(
    view: &dyn View,
    base: &BlockHeader,
    overrides: &StateOverride,
    calls: &[TracedCall],
    tracing: &Tracing,
) -> Result<Vec<Box<RawValue>>, Failure> {
    match tracing {
        Tracing::Named(form) => {
            let traces = traced_run(view, base, overrides, calls)?;
            Ok(traces.iter().map(|trace| form.to_json(None, trace)).collect::<Result<_, _>>()?)
        }
        #[cfg(feature = "catalogue")]
        Tracing::Script(script) => {
            // Calls are in no block (`false`), and all of them are traced (`None`).
            let mut tracer = scripts::begin(view, script, (base, false), None)?;
            traced_by_script(view, base, overrides, calls, &mut tracer)?;
            Ok(scripts::finish(tracer)?.into_iter().map(|(_, trace)| trace).collect())
        }
    }
}
