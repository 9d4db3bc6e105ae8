//! Tracers that callers write in JavaScript. The host's script engine (`exec::trace::ScriptEngine`) runs them while a block or
//! call executes; a host without an engine refuses them.

use alloc::{borrow::ToOwned, boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use serde_json::value::RawValue;

use super::opcodes;
#[cfg(feature = "dev")]
use crate::rpc::{
    method::{Method, Param},
    params::Params,
};
use crate::{
    engine::{BlockHeader, Refusal, Stop, View},
    exec::trace::{Script, ScriptBlock, ScriptError, ScriptTrace, ScriptTracer},
    rpc::{error::ParamError, method::Failure, trace::too_large},
};

/// Most bytes of a script, and of its options: several times the length of the scripts that bundlers of account abstraction
/// (ERC-4337) use.
const MAX_SCRIPT: usize = 128 << 10;

/// The script in the options of a trace; `None` if they name a tracer. Names have neither braces nor parentheses, and every
/// script has some.
pub(super) fn read(given: &BTreeMap<String, &RawValue>) -> Result<Option<Script>, ParamError> {
    let source = given.get("tracer").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let Some(source) = source.filter(|source| source.contains(['{', '('])) else { return Ok(None) };
    let config = given.get("tracerConfig").map(|config| config.get()).filter(|config| *config != "null");
    let config = config.unwrap_or("{}").to_owned();
    if source.len().max(config.len()) > MAX_SCRIPT {
        return Err(ParamError::Script(alloc::format!(
            "a script and its options have at most {MAX_SCRIPT} bytes each"
        )));
    }
    Ok(Some(Script { source, config }))
}

/// Whether the options of a trace in the parameters of a call have a script.
#[cfg(feature = "dev")]
pub(in crate::rpc) fn is_in(row: &Method, values: &[Box<RawValue>]) -> bool {
    let is_of_trace = |param: &Param| matches!(param.kind, "TRACE_OPTIONS" | "TRACE_CALL_OPTIONS");
    let Some(position) = row.params.iter().position(is_of_trace) else { return false };
    // From 0 to all: the number of parameters is checked later.
    let Ok(params) = Params::new(values, 0, values.len()) else { return false };
    let given: Option<BTreeMap<String, &RawValue>> = params.object(position, "trace options").ok().flatten();
    // The handler refuses a script that is too long, so this call runs none, but still counts as one with a script.
    given.is_some_and(|given| matches!(read(&given), Ok(Some(_)) | Err(ParamError::Script(_))))
}

/// Begins a trace of all transactions, or only of the one at the index `only`. `in_block` tells whether they are transactions
/// of the block with this header, or calls on the state after it.
pub(super) fn begin(
    view: &dyn View,
    script: &Script,
    (header, in_block): (&BlockHeader, bool),
    only: Option<usize>,
) -> Result<ScriptTracer, Failure> {
    let policy = view.policy();
    if policy.is_inline {
        // A script takes longer than an inline run may.
        return Err(Failure::Stop(Stop::Refused(Refusal::Interrupted)));
    }
    let run = policy.scripts.ok_or(ParamError::TracerCode)?.begin(script).map_err(failed)?;
    let block = ScriptBlock {
        number: header.number,
        hash: in_block.then(|| header.hash()),
        rules: policy.network.rules(header.number),
    };
    Ok(ScriptTracer::new(run, block, only, opcodes::ethereum_name))
}

/// Executes a block again and returns the traces of all its transactions, or only of the one at the index `only`, each with
/// the transaction's hash.
pub(super) fn traces(
    view: &dyn View,
    header: &BlockHeader,
    script: &Script,
    only: Option<usize>,
) -> Result<Vec<ScriptTrace>, Failure> {
    // Block 0 has no transactions, and no parent on whose state it could be executed.
    if header.number == 0 {
        return Ok(Vec::new());
    }
    let mut tracer = begin(view, script, (header, true), only)?;
    view.replay(header, &mut tracer)?;
    finish(tracer)
}

/// The traces of a script after its runs; an error if they are too large.
pub(super) fn finish(tracer: ScriptTracer) -> Result<Vec<ScriptTrace>, Failure> {
    tracer.finish().map_err(failed)?.ok_or_else(too_large)
}

/// The error of a script.
fn failed(ScriptError(text): ScriptError) -> ParamError {
    ParamError::Script(text)
}
