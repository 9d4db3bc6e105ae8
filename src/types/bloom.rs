//! The 2048-bit bloom of logs: three bits for each log's address and for each topic.
//!
//! The 256 bytes are one big-endian number, whose bits are counted from the least significant one.

use alloy_primitives::{Bloom, BloomInput};

use super::log::Log;

/// Adds a log's address and topics.
pub fn accrue_log(bloom: &mut Bloom, log: &Log) {
    bloom.accrue(BloomInput::Raw(log.address.as_slice()));
    for topic in &log.topics {
        bloom.accrue(BloomInput::Raw(topic.as_slice()));
    }
}

/// The bloom of a receipt's logs.
pub fn logs_bloom<'a>(logs: impl IntoIterator<Item = &'a Log>) -> Bloom {
    let mut bloom = Bloom::ZERO;
    for log in logs {
        accrue_log(&mut bloom, log);
    }
    bloom
}

/// Whether logs with this bloom may have an address or topic; `false` proves that no log has it.
pub fn may_contain(bloom: &Bloom, item: &[u8]) -> bool {
    bloom.contains_input(BloomInput::Raw(item))
}
