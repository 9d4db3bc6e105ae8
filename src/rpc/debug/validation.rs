//! The fields of each call that geth's `erc7562Tracer` shows besides those of the call tracer. ERC-7562 limits the state and
//! opcodes that the validation of an operation may use in account abstraction; bundlers check these fields against it.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use alloy_primitives::{Address, B256, U256};
use serde::Serialize;

use crate::{
    exec::trace::{CallAccess, ValidationTrace},
    types::json::Data,
};

/// The state, code and opcodes that one call uses: [`CallAccess`] with geth's names.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallAccessFields {
    accessed_slots: AccessedSlots,
    ext_code_access_info: Vec<Address>,
    used_opcodes: BTreeMap<String, u64>,
    contract_size: BTreeMap<Address, CodeSize>,
    out_of_gas: bool,
    /// The inputs of all Keccak-256 hashes of the transaction. Only the outermost call has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keccak: Vec<Data>,
}

/// The slots that a call has used: the value of each slot that it reads, in a list as geth writes it, and how often it writes slots or uses transient ones.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessedSlots {
    reads: BTreeMap<B256, [B256; 1]>,
    writes: BTreeMap<B256, u64>,
    transient_reads: BTreeMap<B256, u64>,
    transient_writes: BTreeMap<B256, u64>,
}

/// The size of an account's code that a call has used, with the opcode that used it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CodeSize {
    contract_size: usize,
    opcode: u8,
}

/// The fields of the call at this index of the trace.
pub(super) fn access(validation: &ValidationTrace, index: usize) -> CallAccessFields {
    let mut access = validation.calls.get(&index).map(fields).unwrap_or_default();
    if index == 0 {
        access.keccak = validation.hashed.iter().cloned().map(Data).collect();
    }
    access
}

/// The fields of a call, without the hashed data.
fn fields(access: &CallAccess) -> CallAccessFields {
    let counts = |counts: &BTreeMap<U256, u64>| {
        counts.iter().map(|(slot, count)| (B256::from(*slot), *count)).collect()
    };
    CallAccessFields {
        accessed_slots: AccessedSlots {
            reads: access
                .reads
                .iter()
                .map(|(slot, value)| (B256::from(*slot), [B256::from(*value)]))
                .collect(),
            writes: counts(&access.writes),
            transient_reads: counts(&access.transient_reads),
            transient_writes: counts(&access.transient_writes),
        },
        ext_code_access_info: access.code_reads.clone(),
        used_opcodes: access.opcodes.iter().map(|(opcode, count)| (format!("{opcode:#x}"), *count)).collect(),
        contract_size: access
            .code_sizes
            .iter()
            .map(|(address, (size, opcode))| (*address, CodeSize { contract_size: *size, opcode: *opcode }))
            .collect(),
        out_of_gas: access.out_of_gas,
        keccak: Vec::new(),
    }
}
