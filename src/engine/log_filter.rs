//! The selection of logs by contract and topics, which `eth_getLogs`, filters and subscriptions share.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::BlockHeader;
use crate::types::{Log, bloom};

/// A selection of logs by contract and topics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Any of these contracts; an empty list matches any.
    pub addresses: Vec<Address>,
    /// For each position of a log's topics, any of these topics; an empty list matches any log, even one without a topic at that
    /// position.
    pub topics: Vec<Vec<B256>>,
}

impl LogFilter {
    /// Whether the filter selects this log.
    pub fn matches(&self, log: &Log) -> bool {
        let address = self.addresses.is_empty() || self.addresses.contains(&log.address);
        let mut topics = self.topics.iter().enumerate();
        address
            && topics.all(|(position, any)| {
                any.is_empty() || log.topics.get(position).is_some_and(|topic| any.contains(topic))
            })
    }

    /// Whether a block with this header's bloom may have a matching log; `false` proves that it has none.
    pub(super) fn may_match(&self, header: &BlockHeader) -> bool {
        let logs_bloom = &header.logs_bloom;
        let address = self.addresses.is_empty()
            || self.addresses.iter().any(|address| bloom::may_contain(logs_bloom, address.as_slice()));
        address
            && self.topics.iter().all(|any| {
                any.is_empty() || any.iter().any(|topic| bloom::may_contain(logs_bloom, topic.as_slice()))
            })
    }
}
