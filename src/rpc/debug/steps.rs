//! The objects of the default tracer (`rskTracer`), with the fields of the reference node. Hex strings have no `0x` prefix.

use alloc::{boxed::Box, collections::BTreeMap, format, string::String};

use alloy_primitives::{Address, B256, U256, hex};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::opcodes;
use crate::{
    exec::trace::{StepLog, StepOptions, StepTrace, TransactionTrace},
    rpc::trace::halt_text,
};

/// The object of a transaction or call that ran code.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecutionObject<'a> {
    contract_address: String,
    init_storage: BTreeMap<String, String>,
    struct_logs: Ops<'a>,
    result: String,
    error: &'static str,
    reverted: bool,
    storage_size: usize,
    current_storage: BTreeMap<String, String>,
}

/// One instruction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Op<'a> {
    op: Option<&'static str>,
    depth: usize,
    pc: usize,
    gas: u64,
    gas_cost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Chunks<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<StackWords<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<Slots<'a>>,
}

/// The instructions of a trace, with the options that say what is left out. Instructions, and their memory, stack and storage, are
/// formatted one by one during serialization. Formatting all of them first would take several times the memory of the answer.
struct Ops<'a>(&'a [StepLog], StepOptions);

/// Memory, in chunks of 32 bytes.
struct Chunks<'a>(&'a [u8]);

/// The stack, bottom first.
struct StackWords<'a>(&'a [U256]);

/// Storage, as an object of words by slot.
struct Slots<'a>(&'a BTreeMap<U256, U256>);

impl Serialize for Ops<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|step| op(step, self.1)))
    }
}

impl Serialize for Chunks<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.chunks(32).map(hex::encode))
    }
}

impl Serialize for StackWords<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(word))
    }
}

impl Serialize for Slots<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(slot, value)| (word(slot), word(value))))
    }
}

/// The object that the reference node returns for a transaction that ran no code.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainTransfer {
    program_invoke: (),
    transfer_invoke: Transfer,
    subtraces: [(); 0],
    result: (),
    error: (),
    reverted: bool,
}

/// The transaction of a [`PlainTransfer`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Transfer {
    owner_address: String,
    caller_address: String,
    gas: u64,
    call_value: String,
    msg_data: Option<String>,
}

/// A word as 64 hex digits.
fn word(value: &U256) -> String {
    hex::encode(value.to_be_bytes::<32>())
}

/// An address as 64 hex digits.
fn address_word(address: &Address) -> String {
    hex::encode(B256::left_padding_from(address.as_slice()))
}

/// Storage as an object of words by slot.
fn slots(storage: &BTreeMap<U256, U256>) -> BTreeMap<String, String> {
    storage.iter().map(|(slot, value)| (word(slot), word(value))).collect()
}

/// The trace object of a transaction or call.
pub(super) fn to_json(trace: &TransactionTrace, options: StepOptions) -> serde_json::Result<Box<RawValue>> {
    match trace.steps.as_ref().and_then(|steps| Some((steps, steps.contract?))) {
        Some((steps, contract)) => to_raw_value(&execution(steps, contract, options)),
        None => to_raw_value(&plain_transfer(trace)),
    }
}

fn execution(trace: &StepTrace, contract: Address, options: StepOptions) -> ExecutionObject<'_> {
    let failure = trace.failure;
    ExecutionObject {
        contract_address: hex::encode(contract),
        init_storage: slots(&trace.first_storage),
        struct_logs: Ops(&trace.steps, options),
        result: hex::encode(&trace.output),
        // A failure without a reason to halt is a revert.
        error: failure.flatten().map_or("", halt_text),
        reverted: failure == Some(None),
        storage_size: trace.last_storage.len(),
        current_storage: slots(&trace.last_storage),
    }
}

fn op(step: &StepLog, options: StepOptions) -> Op<'_> {
    Op {
        op: opcodes::name(step.opcode),
        depth: step.depth,
        pc: step.pc,
        gas: step.gas,
        gas_cost: step.gas_cost,
        memory: (!options.disable_memory).then(|| Chunks(&step.memory)),
        stack: (!options.disable_stack).then(|| StackWords(&step.stack)),
        storage: (!options.disable_storage).then(|| Slots(&step.storage)),
    }
}

fn plain_transfer(trace: &TransactionTrace) -> PlainTransfer {
    let data = &trace.transaction.data;
    PlainTransfer {
        program_invoke: (),
        transfer_invoke: Transfer {
            // Zero for a contract creation without code, as in the reference node.
            owner_address: address_word(&trace.transaction.to.unwrap_or_default()),
            caller_address: address_word(&trace.sender),
            // The reference node shows 0, whatever the transaction's gas limit is.
            gas: 0,
            call_value: format!("{:064x}", trace.transaction.value),
            msg_data: (!data.is_empty()).then(|| hex::encode(data)),
        },
        subtraces: [],
        result: (),
        error: (),
        reverted: false,
    }
}
