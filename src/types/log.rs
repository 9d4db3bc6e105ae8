//! Log entries.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes};

use super::error::FieldError;
use super::rlp::{ListBuf, RlpReader, fixed, put_list, put_str};

/// A log entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The contract that wrote the log.
    pub address: Address,
    /// Indexed words.
    pub topics: Vec<B256>,
    /// Data of the log, not indexed.
    pub data: Bytes,
}

impl Log {
    /// Appends the log as an RLP list.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut topics = Vec::with_capacity(self.topics.len().saturating_mul(33));
        for topic in &self.topics {
            put_str(&mut topics, topic.as_slice());
        }
        let mut list =
            ListBuf::with_capacity(topics.len().saturating_add(self.data.len()).saturating_add(40));
        put_str(list.items(), self.address.as_slice());
        put_list(list.items(), &topics);
        put_str(list.items(), &self.data);
        out.extend_from_slice(list.as_list());
    }

    /// Reads a log from the items of its list.
    pub(super) fn read(mut log: RlpReader<'_>) -> Result<Self, FieldError> {
        let address = fixed::<20>(log.next_str("log.address")?, "log.address")?;
        let mut words = log.next_list("log.topics")?;
        let mut topics = Vec::new();
        while !words.is_empty() {
            topics.push(B256::from(fixed::<32>(words.next_str("log.topics")?, "log.topics")?));
        }
        let data = Bytes::copy_from_slice(log.next_str("log.data")?);
        log.finish("log")?;
        Ok(Self { address: Address::from(address), topics, data })
    }
}
