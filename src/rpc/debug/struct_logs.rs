//! The object of geth's default tracer, which has no name in geth. Rootlight's name for it is `structLogger`.

use alloc::{borrow::Cow, boxed::Box, collections::BTreeMap, format, string::String, vec::Vec};

use alloy_primitives::{B256, U256};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::opcodes;
use crate::{
    exec::trace::{StepLog, StepOptions, TransactionTrace},
    types::json::{Data, Quantity},
};

/// The trace object of a transaction or call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution<'a> {
    gas: u64,
    failed: bool,
    return_value: Data,
    struct_logs: Entries<'a>,
}

/// The shown instructions, with the options that say what is left out. Each is formatted when it is serialized,
/// because all formatted instructions together would take several times the memory of the answer.
struct Entries<'a>(&'a [StepLog], StepOptions);

impl Serialize for Entries<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|step| entry(step, self.1)))
    }
}

/// One instruction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    pc: usize,
    op: Cow<'static, str>,
    gas: u64,
    gas_cost: u64,
    depth: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<Quantity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_data: Option<Data>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<B256>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    storage: BTreeMap<B256, B256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund: Option<u64>,
}

/// The trace object of a transaction.
pub(super) fn to_json(
    trace: &TransactionTrace,
    options: StepOptions,
) -> Result<Box<RawValue>, serde_json::Error> {
    let steps = trace.steps.as_ref();
    let all = steps.map_or(&[][..], |steps| &steps.steps);
    let shown = all.get(..shown_count(all, options)?).unwrap_or(all);
    to_raw_value(&Execution {
        gas: trace.gas_used,
        failed: !trace.success,
        return_value: Data(steps.map(|steps| steps.output.clone()).unwrap_or_default()),
        struct_logs: Entries(shown, options),
    })
}

/// The number of instructions up to the one with which their JSON exceeds the limit of the options; a limit of 0 shows all.
fn shown_count(steps: &[StepLog], options: StepOptions) -> Result<usize, serde_json::Error> {
    if options.limit == 0 {
        return Ok(steps.len());
    }
    let (mut bytes, mut count) = (0_usize, 0_usize);
    for step in steps {
        if bytes > options.limit {
            break;
        }
        bytes = bytes.saturating_add(serde_json::to_string(&entry(step, options))?.len());
        count = count.saturating_add(1);
    }
    Ok(count)
}

fn entry(step: &StepLog, options: StepOptions) -> Entry {
    let word = |word: &U256| B256::from(*word);
    Entry {
        pc: step.pc,
        op: opcodes::ethereum_name(step.opcode),
        gas: step.gas,
        gas_cost: step.gas_cost,
        // Geth counts the depth from 1.
        depth: step.depth.saturating_add(1),
        error: step.failure.map(|reason| format!("{reason}")),
        stack: (!options.disable_stack).then(|| step.stack.iter().copied().map(Quantity).collect()),
        return_data: Some(&step.return_data).filter(|data| !data.is_empty()).cloned().map(Data),
        memory: step.memory.chunks(32).map(B256::right_padding_from).collect(),
        storage: step.storage.iter().map(|(slot, value)| (word(slot), word(value))).collect(),
        refund: Some(step.refund).filter(|refund| *refund != 0),
    }
}
