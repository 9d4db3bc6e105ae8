//! Traces as JSON in Parity's form, which `trace_block` and other `trace_*` methods return: read from upstreams for the index, and
//! written for callers.

use alloy_primitives::{Address, B256, Bytes, U64, U256};
use rootlight_index::{IndexedTrace, Trace, TraceKind, TraceOutcome};
use serde::{Deserialize, Serialize};

/// A trace. Which members of action and result are present depends on the type.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TraceObject {
    action: ActionObject,
    block_hash: B256,
    block_number: u64,
    transaction_hash: B256,
    transaction_position: u32,
    #[serde(rename = "type")]
    kind: String,
    subtraces: u32,
    trace_address: Vec<u32>,
    result: Option<ResultObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The call, creation or self-destruction. A call has `callType`, `to` and `input`, a creation `init` (the initialisation code), both
/// `from`, `gas` and `value` (wei). A self-destruction has `address`, `refundAddress` and `balance` (wei).
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ActionObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    call_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gas: Option<U64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    init: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<U256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_address: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<U256>,
}

/// The result of a call (`output`) or a creation (`code` and `address`) that did not fail.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultObject {
    gas_used: U64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
}

/// Member `type` of calls.
const CALL: &str = "call";
/// Member `type` of creations, and the method of a creation without the member `creationMethod`.
const CREATE: &str = "create";

impl TraceObject {
    /// The hash of the block that the trace is stated for.
    pub(super) const fn block(&self) -> B256 {
        self.block_hash
    }

    /// The hash of the transaction that the trace is stated for.
    pub(super) const fn transaction(&self) -> B256 {
        self.transaction_hash
    }

    /// The trace; `None` if the object lacks a member of its type, or states gas of 2^63 or more, which no block has.
    pub(super) fn into_trace(self) -> Option<Trace> {
        let Self { action, result, .. } = self;
        let gas = |gas: U64| u64::try_from(gas).ok().filter(|gas| i64::try_from(*gas).is_ok());
        let (kind, from, to, value, input) = match &*self.kind {
            CALL => {
                let kind = TraceKind::of_name(&action.call_type?).filter(|kind| !kind.creates())?;
                (kind, action.from?, Some(action.to?), action.value?, action.input?)
            }
            CREATE => {
                let created = result.as_ref().and_then(|result| result.address);
                let kind = TraceKind::of_name(action.creation_method.as_deref().unwrap_or(CREATE))?;
                let kind = Some(kind).filter(|kind| kind.creates())?;
                (kind, action.from?, created, action.value?, action.init?)
            }
            other => {
                let kind = TraceKind::of_name(other).filter(|kind| *kind == TraceKind::Destruction)?;
                let (from, to) = (action.address?, action.refund_address?);
                (kind, from, Some(to), action.balance?, Bytes::new())
            }
        };
        let destructs = kind == TraceKind::Destruction;
        let call_gas = if destructs { None } else { Some(gas(action.gas?)?) };
        let outcome = match result.filter(|_| !destructs) {
            Some(result) => {
                let output = if kind.creates() { result.code } else { result.output };
                Some(TraceOutcome { gas_used: gas(result.gas_used)?, output: output? })
            }
            None => None,
        };
        Some(Trace {
            transaction: self.transaction_position,
            address: self.trace_address,
            subtraces: self.subtraces,
            kind,
            from,
            to,
            value,
            gas: call_gas,
            input,
            outcome,
            error: self.error,
        })
    }

    /// The object of a trace of the index.
    pub(super) fn of(indexed: IndexedTrace) -> Self {
        let IndexedTrace { trace, transaction, block } = indexed;
        let creates = trace.kind.creates();
        let kind = match trace.kind {
            _ if creates => CREATE,
            TraceKind::Destruction => TraceKind::Destruction.name(),
            _ => CALL,
        };
        let result = trace.outcome.clone().map(|TraceOutcome { gas_used, output }| {
            let (output, code) = if creates { (None, Some(output)) } else { (Some(output), None) };
            let address = trace.to.filter(|_| creates);
            ResultObject { gas_used: U64::from(gas_used), output, code, address }
        });
        Self {
            block_hash: block.hash,
            block_number: block.number,
            transaction_hash: transaction,
            transaction_position: trace.transaction,
            kind: kind.to_owned(),
            subtraces: trace.subtraces,
            trace_address: trace.address.clone(),
            result,
            error: trace.error.clone(),
            action: ActionObject::of(trace),
        }
    }
}

impl ActionObject {
    /// The action of a trace of the index.
    fn of(trace: Trace) -> Self {
        let Trace { kind, from, to, value, gas, input, address, .. } = trace;
        let gas = gas.map(U64::from);
        match kind {
            TraceKind::Destruction => {
                Self { address: Some(from), refund_address: to, balance: Some(value), ..Self::default() }
            }
            // A creation by a contract names its opcode. A creation by a transaction, whose address is empty, does not.
            TraceKind::Create | TraceKind::Create2 => Self {
                from: Some(from),
                gas,
                init: Some(input),
                creation_method: (!address.is_empty()).then(|| kind.name().to_owned()),
                value: Some(value),
                ..Self::default()
            },
            _ => Self {
                call_type: Some(kind.name().to_owned()),
                from: Some(from),
                to,
                gas,
                input: Some(input),
                value: Some(value),
                ..Self::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use rootlight::types::BlockRef;
    use serde_json::{Value, json};

    use super::*;

    fn entry(kind: &str, action: &Value, result: &Value) -> Value {
        json!({
            "action": action, "blockHash": B256::repeat_byte(1), "blockNumber": 7,
            "transactionHash": B256::repeat_byte(2), "transactionPosition": 3, "type": kind, "subtraces": 1,
            "traceAddress": [0, 2], "result": result,
        })
    }

    fn read(value: Value) -> Option<Trace> {
        serde_json::from_value::<TraceObject>(value).ok()?.into_trace()
    }

    #[test]
    fn objects_survive() {
        let a = |byte| Address::repeat_byte(byte);
        let call = json!({ "callType": "delegatecall", "from": a(1), "to": a(2), "gas": "0x5208", "input": "0x01", "value": "0x0" });
        let create = json!({ "from": a(1), "gas": "0x0", "init": "0x60", "creationMethod": "create2", "value": "0x9" });
        let end = json!({ "address": a(1), "refundAddress": a(2), "balance": "0xde0b6b3a7640000" });
        let mut failed = entry("call", &call, &Value::Null);
        failed["error"] = json!("Reverted");
        for object in [
            entry("call", &call, &json!({ "gasUsed": "0x1", "output": "0x" })),
            failed,
            entry("create", &create, &json!({ "gasUsed": "0x1", "code": "0xfe", "address": a(9) })),
            entry("suicide", &end, &Value::Null),
        ] {
            let trace = read(object.clone()).unwrap();
            let block = BlockRef { number: 7, hash: B256::repeat_byte(1) };
            let indexed = IndexedTrace { trace, transaction: B256::repeat_byte(2), block };
            assert_eq!(serde_json::to_value(TraceObject::of(indexed)).unwrap(), object);
        }
        for (kind, action) in [("call", &create), ("create", &end), ("suicide", &call), ("reward", &call)] {
            assert_eq!(read(entry(kind, action, &Value::Null)), None, "{kind}");
        }
        let endless = json!({ "callType": "call", "from": a(1), "to": a(2), "gas": "0xffffffffffffffff", "input": "0x", "value": "0x0" });
        assert_eq!(read(entry("call", &endless, &Value::Null)), None);
    }
}
