//! Receipts and logs from `eth_getTransactionReceipt` and `eth_getLogs`.

use alloc::vec::Vec;

use alloy_primitives::{Bloom, Bytes};

use super::error::JsonError;
use super::field::JsonField;
use super::slots::slots;
use crate::types::bloom::logs_bloom;
use crate::types::error::{FieldError, FieldRule};
use crate::types::log::Log;
use crate::types::receipt::Receipt;

slots! {
    struct RawReceipt {
        cumulative_gas_used: "cumulativeGasUsed",
        gas_used: "gasUsed",
        logs: "logs",
        status: "status",
        logs_bloom: "logsBloom",
    }
}

slots! {
    struct RawLog {
        address: "address",
        data: "data",
        topics: "topics",
    }
}

/// Rebuilds a receipt from its JSON. The JSON states no hash of the receipt, so only a comparison with the receipts root
/// shows whether the receipt is right. If the JSON has no bloom, the bloom is computed from the logs.
///
/// Older nodes show empty log data as `0x00`, as they show a single zero byte; see
/// [`Receipt::read_zero_byte_data_as_empty`].
pub fn receipt_from_json(json: &str) -> Result<Receipt, JsonError> {
    let raw = RawReceipt::from_json(json).map_err(|error| JsonError::of("receipt", &error))?;
    let logs: Vec<Log> = JsonField::new("receipt.logs", raw.logs)
        .required_elements()?
        .iter()
        .map(|log| log_from_json(log.json()?))
        .collect::<Result<_, _>>()?;
    let bloom = JsonField::new("receipt.logsBloom", raw.logs_bloom);
    let logs_bloom = if bloom.is_present() { Bloom::from(bloom.fixed::<256>()?) } else { logs_bloom(&logs) };
    let gas = JsonField::new("receipt.cumulativeGasUsed", raw.cumulative_gas_used);
    Ok(Receipt {
        success: success(JsonField::new("receipt.status", raw.status))?,
        cumulative_gas_used: gas.uint63()?,
        logs_bloom,
        logs,
        gas_used: JsonField::new("receipt.gasUsed", raw.gas_used).uint63()?,
    })
}

/// Rebuilds a log from its JSON. The caller reads the log's location.
pub fn log_from_json(json: &str) -> Result<Log, JsonError> {
    let raw = RawLog::from_json(json).map_err(|error| JsonError::of("log", &error))?;
    let topics: Result<Vec<_>, FieldError> =
        JsonField::new("log.topics", raw.topics).required_elements()?.iter().map(JsonField::hash).collect();
    Ok(Log {
        address: JsonField::new("log.address", raw.address).address()?,
        topics: topics?,
        data: JsonField::new("log.data", raw.data).data(usize::MAX)?,
    })
}

/// Reads a status: 1 is success, 0 failure.
fn success(field: JsonField<'_>) -> Result<bool, FieldError> {
    match u64::try_from(field.uint()?) {
        Ok(0) => Ok(false),
        Ok(1) => Ok(true),
        other => {
            let found = other.unwrap_or(u64::MAX);
            Err(field.error(FieldRule::Value { expected: 1, found }))
        }
    }
}

impl Receipt {
    /// Replaces log data of one zero byte by empty data, and returns whether any log changed. Callers try
    /// this if a receipt from an older node does not match the receipts root.
    pub fn read_zero_byte_data_as_empty(&mut self) -> bool {
        let mut changed = false;
        for log in &mut self.logs {
            if log.data.as_ref() == [0] {
                log.data = Bytes::new();
                changed = true;
            }
        }
        changed
    }
}
