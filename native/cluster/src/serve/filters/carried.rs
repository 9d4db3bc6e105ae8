//! The bytes of a filter on its way from one front end to another.
//!
//! The bytes must come from a front end, which `seal.rs` ensures: the blocks that a filter has reported decide which logs a later
//! poll reports as removed by a reorganisation.

use alloy_primitives::{Address, B256, Bytes};
use rootlight::engine::{ExportedFilter, FilterSpec, FoundLog, LogFilter, ReportedBlock};
use rootlight::types::{Asker, BlockRef, Log};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of the encoding; bytes of another version are no filter.
const VERSION: u8 = 3;

/// The bytes are not those of a filter of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a filter, or one of another version")]
pub(super) struct CarriedError;

/// An [`ExportedFilter`], whose fields explain these, as it is encoded (postcard). The order of the fields is the encoding.
#[derive(Serialize, Deserialize)]
struct Carried {
    version: u8,
    /// The two parts of the asker: its number, and its page.
    asker: u64,
    page: u128,
    rights: u64,
    fresh: bool,
    spec: CarriedSpec,
    /// The blocks that were reported.
    trail: Vec<CarriedBlock>,
    pending: Vec<B256>,
}

/// The selection of a filter. Subscriptions are not carried.
#[derive(Serialize, Deserialize)]
enum CarriedSpec {
    Logs { addresses: Vec<Address>, topics: Vec<Vec<B256>>, from: u64, to: Option<u64> },
    BlockLogs { addresses: Vec<Address>, topics: Vec<Vec<B256>>, block: B256 },
    Blocks,
    Pending,
}

/// A block that a filter has reported, with the logs that it reported of it.
#[derive(Serialize, Deserialize)]
struct CarriedBlock {
    number: u64,
    hash: B256,
    logs: Vec<CarriedLog>,
}

/// A log that a filter has reported.
#[derive(Serialize, Deserialize)]
struct CarriedLog {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
    log_index: u64,
    /// Hash of the transaction.
    transaction: B256,
    transaction_index: u64,
}

/// The bytes of a filter; `None` if it is a subscription's, such as that of new heads. Encoding itself does not fail.
pub(super) fn to_bytes(filter: ExportedFilter) -> Option<Vec<u8>> {
    let carried = Carried {
        version: VERSION,
        asker: filter.asker.number,
        page: filter.asker.page,
        rights: filter.rights,
        fresh: filter.fresh,
        spec: CarriedSpec::of(filter.spec)?,
        trail: filter.reported.into_iter().map(CarriedBlock::from).collect(),
        pending: filter.pending,
    };
    postcard::to_allocvec(&carried).ok()
}

/// Reads a filter.
///
/// # Errors
/// The bytes are no filter of this version.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<ExportedFilter, CarriedError> {
    let carried: Carried = postcard::from_bytes(bytes).map_err(|_| CarriedError)?;
    if carried.version != VERSION {
        return Err(CarriedError);
    }
    Ok(ExportedFilter {
        asker: Asker { number: carried.asker, page: carried.page },
        rights: carried.rights,
        fresh: carried.fresh,
        spec: carried.spec.into(),
        reported: carried.trail.into_iter().map(ReportedBlock::from).collect(),
        pending: carried.pending,
    })
}

impl CarriedSpec {
    fn of(spec: FilterSpec) -> Option<Self> {
        Some(match spec {
            FilterSpec::Logs { filter: LogFilter { addresses, topics }, from, to } => {
                Self::Logs { addresses, topics, from, to }
            }
            FilterSpec::BlockLogs { filter: LogFilter { addresses, topics }, block } => {
                Self::BlockLogs { addresses, topics, block }
            }
            FilterSpec::Blocks => Self::Blocks,
            FilterSpec::Pending => Self::Pending,
            FilterSpec::Heads | FilterSpec::Syncing => return None,
        })
    }
}

impl From<CarriedSpec> for FilterSpec {
    fn from(spec: CarriedSpec) -> Self {
        match spec {
            CarriedSpec::Logs { addresses, topics, from, to } => {
                Self::Logs { filter: LogFilter { addresses, topics }, from, to }
            }
            CarriedSpec::BlockLogs { addresses, topics, block } => {
                Self::BlockLogs { filter: LogFilter { addresses, topics }, block }
            }
            CarriedSpec::Blocks => Self::Blocks,
            CarriedSpec::Pending => Self::Pending,
        }
    }
}

impl From<ReportedBlock> for CarriedBlock {
    fn from(ReportedBlock { block: BlockRef { number, hash }, logs }: ReportedBlock) -> Self {
        let log = |found: FoundLog| CarriedLog {
            address: found.log.address,
            topics: found.log.topics,
            data: found.log.data,
            log_index: found.log_index,
            transaction: found.transaction,
            transaction_index: found.transaction_index,
        };
        Self { number, hash, logs: logs.into_iter().map(log).collect() }
    }
}

impl From<CarriedBlock> for ReportedBlock {
    fn from(CarriedBlock { number, hash, logs }: CarriedBlock) -> Self {
        let block = BlockRef { number, hash };
        let log = |log: CarriedLog| FoundLog {
            log: Log { address: log.address, topics: log.topics, data: log.data },
            log_index: log.log_index,
            transaction: log.transaction,
            transaction_index: log.transaction_index,
            block,
        };
        Self { block, logs: logs.into_iter().map(log).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(byte: u8) -> B256 {
        B256::repeat_byte(byte)
    }

    /// One filter of each kind that is carried, as another front end may have made it.
    fn filters() -> [ExportedFilter; 5] {
        let block = |number, byte| BlockRef { number, hash: hash(byte) };
        let log = |index| FoundLog {
            log: Log {
                address: Address::repeat_byte(0xa1),
                topics: vec![hash(0xb1), hash(0xb2)],
                data: Bytes::from_static(b"data of a log"),
            },
            log_index: index,
            transaction: hash(0xc1),
            transaction_index: 200,
            block: block(70_000, 0xd2),
        };
        let reported_blocks = || {
            let first = ReportedBlock { block: block(69_999, 0xd1), logs: Vec::new() };
            vec![first, ReportedBlock { block: block(70_000, 0xd2), logs: vec![log(0), log(300)] }]
        };
        let filter = || LogFilter {
            addresses: vec![Address::repeat_byte(0xa1), Address::repeat_byte(0xa2)],
            topics: vec![vec![hash(0xb1)], Vec::new(), vec![hash(0xb2), hash(0xb3)]],
        };
        let mut id = 0;
        [
            (
                FilterSpec::Logs { filter: filter(), from: 300, to: Some(1 << 40) },
                reported_blocks(),
                Vec::new(),
            ),
            (
                FilterSpec::Logs { filter: LogFilter::default(), from: 0, to: None },
                reported_blocks(),
                Vec::new(),
            ),
            (FilterSpec::BlockLogs { filter: filter(), block: hash(0xd3) }, Vec::new(), Vec::new()),
            (FilterSpec::Blocks, reported_blocks(), Vec::new()),
            (FilterSpec::Pending, Vec::new(), vec![hash(0xe1), hash(0xe2)]),
        ]
        .map(|(spec, reported, pending)| {
            id += 1;
            ExportedFilter {
                asker: Asker { number: (1 << 32) + id, page: u128::from(id % 3) << 100 },
                rights: id * 1_000_000_007,
                fresh: id % 2 == 0,
                spec,
                reported,
                pending,
            }
        })
    }

    /// Front ends of different ages exchange filters while a service is renewed.
    #[test]
    fn the_bytes_of_a_filter_stay_as_they_are() {
        let known =
            include_str!("carried.hex").lines().map(|line| alloy_primitives::hex::decode(line).unwrap());
        let known: Vec<_> = known.collect();
        assert_eq!(known.len(), filters().len());
        for (filter, known) in filters().into_iter().zip(known) {
            assert_eq!(from_bytes(&known), Ok(filter.clone()));
            assert_eq!(to_bytes(filter), Some(known));
        }
    }

    #[test]
    fn bytes_of_another_version_or_damaged_ones_are_no_filter() {
        for filter in filters() {
            let bytes = to_bytes(filter).unwrap();
            for bad in [&bytes[..bytes.len() - 1], &[][..], &[&[9], &bytes[1..]].concat()] {
                assert_eq!(from_bytes(bad), Err(CarriedError));
            }
        }
    }
}
