//! Receipts: the form that the receipts trie stores.

use alloc::vec::Vec;

use alloy_primitives::Bloom;

use super::bloom;
use super::error::{FieldError, FieldRule};
use super::log::Log;
use super::rlp::{ListBuf, RlpReader, fixed, put_list, put_str, put_u64, uint63};

/// A transaction receipt as the receipts trie stores it.
///
/// The encoding states the outcome twice, as post-transaction state and as status. Both are written from
/// [`Self::success`] at every height, as the byte 01 or the empty string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Whether the transaction succeeded.
    pub success: bool,
    /// Gas used up to and including this transaction, counted per sublist from RSKIP-144 on.
    pub cumulative_gas_used: u64,
    /// Bloom of the logs.
    pub logs_bloom: Bloom,
    /// Logs in order.
    pub logs: Vec<Log>,
    /// Gas used by this transaction.
    pub gas_used: u64,
}

impl Receipt {
    /// Creates a receipt; the bloom is computed from the logs.
    pub fn new(success: bool, cumulative_gas_used: u64, gas_used: u64, logs: Vec<Log>) -> Self {
        let logs_bloom = bloom::logs_bloom(&logs);
        Self { success, cumulative_gas_used, logs_bloom, logs, gas_used }
    }

    /// Encodes the receipt as the receipts trie commits to it.
    pub fn encode(&self) -> Vec<u8> {
        let status: &[u8] = if self.success { &[1] } else { &[] };
        let mut logs = Vec::new();
        for log in &self.logs {
            log.put(&mut logs);
        }
        let mut list = ListBuf::with_capacity(logs.len().saturating_add(300));
        let out = list.items();
        put_str(out, status);
        put_u64(out, self.cumulative_gas_used);
        put_str(out, self.logs_bloom.as_slice());
        put_list(out, &logs);
        put_u64(out, self.gas_used);
        put_str(out, status);
        list.into_list()
    }

    /// Decodes a receipt. Encoding the result returns the input.
    pub fn decode(rlp: &[u8]) -> Result<Self, FieldError> {
        let mut reader = RlpReader::list(rlp, "receipt")?;
        let post_state = outcome(reader.next_str("receipt.root")?, "receipt.root")?;
        let cumulative_gas_used =
            uint63(reader.next_str("receipt.cumulativeGasUsed")?, "receipt.cumulativeGasUsed")?;
        let bloom = fixed::<256>(reader.next_str("receipt.logsBloom")?, "receipt.logsBloom")?;
        let mut entries = reader.next_list("receipt.logs")?;
        let mut logs = Vec::new();
        while !entries.is_empty() {
            logs.push(Log::read(entries.next_list("receipt.logs")?)?);
        }
        let gas_used = uint63(reader.next_str("receipt.gasUsed")?, "receipt.gasUsed")?;
        let success = outcome(reader.next_str("receipt.status")?, "receipt.status")?;
        if success != post_state {
            return Err(FieldError::new("receipt.status", FieldRule::Disagrees("receipt.root")));
        }
        reader.finish("receipt")?;
        Ok(Self { success, cumulative_gas_used, logs_bloom: Bloom::from(bloom), logs, gas_used })
    }

    /// Whether the bloom equals the bloom of the logs.
    pub fn bloom_matches(&self) -> bool {
        self.logs_bloom == bloom::logs_bloom(&self.logs)
    }
}

/// Reads an outcome: the byte 01 is success, the empty string failure.
fn outcome(bytes: &[u8], field: &'static str) -> Result<bool, FieldError> {
    match bytes {
        [] => Ok(false),
        [1] => Ok(true),
        [other] => Err(FieldError::new(field, FieldRule::Value { expected: 1, found: u64::from(*other) })),
        long => Err(FieldError::new(field, FieldRule::TooLong { limit: 1, found: long.len() })),
    }
}
