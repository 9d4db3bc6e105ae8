//! Filters on their way from one host to another: several hosts that follow the same chain answer the polls of one filter.
//!
//! The bytes are for hosts of one version that trust each other, because what a filter has reported decides what a later
//! poll reports as taken back. A host must therefore make sure that nobody else wrote them.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    kinds::{BlockLogs, Blocks, Kind, Logs, Pending, Told},
    open::Open,
    room::make_room,
    set::Filters,
    trail::{ReportedBlock, Trail},
};
use crate::{
    engine::{log_filter::LogFilter, logs::FoundLog},
    types::{Asker, BlockRef, Log},
};

/// Version of the encoding.
const VERSION: u8 = 3;

/// The bytes are not those of a filter of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a filter, or one of another version")]
pub struct CarriedError;

#[derive(Serialize, Deserialize)]
struct Carried {
    version: u8,
    asker: u64,
    page: u128,
    rights: u64,
    fresh: bool,
    watch: Watched,
    trail: Vec<CarriedBlock>,
    pending: Vec<B256>,
}

/// What a filter watches. Subscriptions are not carried.
#[derive(Serialize, Deserialize)]
enum Watched {
    Logs { addresses: Vec<Address>, topics: Vec<Vec<B256>>, from: u64, to: Option<u64> },
    BlockLogs { addresses: Vec<Address>, topics: Vec<Vec<B256>>, block: B256 },
    Blocks,
    Pending,
}

#[derive(Serialize, Deserialize)]
struct CarriedBlock {
    number: u64,
    hash: B256,
    logs: Vec<CarriedLog>,
}

#[derive(Serialize, Deserialize)]
struct CarriedLog {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
    log_index: u64,
    transaction: B256,
    transaction_index: u64,
}

impl Watched {
    /// What a filter watches, and what it has reported and is to report; `None` if it is not carried.
    fn of(kind: &Kind) -> Option<(Self, Vec<CarriedBlock>, Vec<B256>)> {
        let trail = |told: &Told| match told {
            Told::Blocks(Trail(blocks)) => blocks.iter().map(CarriedBlock::from).collect(),
            Told::Events(_) => Vec::new(),
        };
        Some(match kind {
            Kind::Logs(Logs { filter: LogFilter { addresses, topics }, from, to, told }) => {
                let (addresses, topics) = (addresses.clone(), topics.clone());
                (Self::Logs { addresses, topics, from: *from, to: *to }, trail(told), Vec::new())
            }
            Kind::BlockLogs(BlockLogs { filter: LogFilter { addresses, topics }, block }) => {
                let (addresses, topics) = (addresses.clone(), topics.clone());
                (Self::BlockLogs { addresses, topics, block: *block }, Vec::new(), Vec::new())
            }
            Kind::Blocks(Blocks { with_headers: false, told }) => (Self::Blocks, trail(told), Vec::new()),
            Kind::Pending(pending) => (Self::Pending, Vec::new(), pending.waiting.clone()),
            Kind::Blocks(_) | Kind::Syncing(_) => return None,
        })
    }

    fn kind(self, trail: Vec<CarriedBlock>, waiting: Vec<B256>) -> Kind {
        let told = Told::Blocks(Trail(trail.into_iter().map(ReportedBlock::from).collect()));
        match self {
            Self::Logs { addresses, topics, from, to } => {
                Kind::Logs(Logs { filter: LogFilter { addresses, topics }, from, to, told })
            }
            Self::BlockLogs { addresses, topics, block } => {
                Kind::BlockLogs(BlockLogs { filter: LogFilter { addresses, topics }, block })
            }
            Self::Blocks => Kind::Blocks(Blocks { with_headers: false, told }),
            Self::Pending => Kind::Pending(Pending { next: None, waiting }),
        }
    }
}

impl From<&ReportedBlock> for CarriedBlock {
    fn from(told: &ReportedBlock) -> Self {
        let log = |found: &FoundLog| CarriedLog {
            address: found.log.address,
            topics: found.log.topics.clone(),
            data: found.log.data.clone(),
            log_index: found.log_index,
            transaction: found.transaction,
            transaction_index: found.transaction_index,
        };
        let BlockRef { number, hash } = told.block;
        Self { number, hash, logs: told.logs.iter().map(log).collect() }
    }
}

impl From<CarriedBlock> for ReportedBlock {
    fn from(told: CarriedBlock) -> Self {
        let block = BlockRef { number: told.number, hash: told.hash };
        let log = |log: CarriedLog| FoundLog {
            log: Log { address: log.address, topics: log.topics, data: log.data },
            log_index: log.log_index,
            transaction: log.transaction,
            transaction_index: log.transaction_index,
            block,
        };
        Self { block, logs: told.logs.into_iter().map(log).collect() }
    }
}

impl Filters {
    /// The bytes of a filter for another host; `None` if it does not exist. The filter stays.
    pub fn carry(&self, id: u128) -> Option<Vec<u8>> {
        let open = self.open.iter().find(|open| open.id == id)?;
        let (watch, trail, pending) = Watched::of(&open.kind).filter(|_| open.subscription.is_none())?;
        let carried = Carried {
            version: VERSION,
            asker: open.asker.number,
            page: open.asker.page,
            rights: open.rights,
            fresh: open.fresh,
            watch,
            trail,
            pending,
        };
        postcard::to_allocvec(&carried).ok()
    }

    /// Takes over a filter from another host, in place of what was known of it here, as if it had been polled at `now`
    /// (seconds since 1970): the clocks of two hosts may differ. A filter of pending transactions is to report those that
    /// were `sent` by its asker ([`Asker::told`]) since. Other filters give way as for a new one; if there is no
    /// room, it does not exist here.
    ///
    /// # Errors
    /// The bytes are no filter of this version. Nothing is changed.
    pub fn take_over(
        &mut self,
        id: u128,
        bytes: &[u8],
        sent: &[(B256, u64)],
        now: u64,
    ) -> Result<(), CarriedError> {
        let carried: Carried = postcard::from_bytes(bytes).map_err(|_| CarriedError)?;
        if carried.version != VERSION {
            return Err(CarriedError);
        }
        let mut open = Open {
            id,
            kind: carried.watch.kind(carried.trail, carried.pending),
            fresh: carried.fresh,
            polled: now,
            subscription: None,
            asker: Asker { number: carried.asker, page: carried.page },
            rights: carried.rights,
            bytes: 0,
        };
        let own = sent.iter().filter(|(_, told)| *told == open.asker.told());
        let own: Vec<_> = own.map(|(hash, _)| *hash).collect();
        own.into_iter().for_each(|hash| open.add_pending(hash));
        open.weigh();
        self.forget(id);
        if make_room(&mut self.open, open.asker, 1, open.bytes).is_ok() {
            self.open.push(open);
        }
        Ok(())
    }

    /// Removes what this host knows of a filter, because another host may answer its next poll.
    pub fn forget(&mut self, id: u128) {
        self.open.retain(|open| open.id != id || open.subscription.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(byte: u8) -> B256 {
        B256::repeat_byte(byte)
    }

    /// One filter of each kind that is carried, as another host may have made it.
    fn filters() -> Filters {
        let block = |number, byte| BlockRef { number, hash: hash(byte) };
        let log = |index| FoundLog {
            log: Log {
                address: Address::repeat_byte(0xa1),
                topics: alloc::vec![hash(0xb1), hash(0xb2)],
                data: Bytes::from_static(b"data of a log"),
            },
            log_index: index,
            transaction: hash(0xc1),
            transaction_index: 200,
            block: block(70_000, 0xd2),
        };
        let told = || {
            let first = ReportedBlock { block: block(69_999, 0xd1), logs: Vec::new() };
            let second = ReportedBlock { block: block(70_000, 0xd2), logs: alloc::vec![log(0), log(300)] };
            Told::Blocks(Trail(alloc::vec![first, second]))
        };
        let filter = || LogFilter {
            addresses: alloc::vec![Address::repeat_byte(0xa1), Address::repeat_byte(0xa2)],
            topics: alloc::vec![alloc::vec![hash(0xb1)], Vec::new(), alloc::vec![hash(0xb2), hash(0xb3)]],
        };
        let kinds = [
            Kind::Logs(Logs { filter: filter(), from: 300, to: Some(1 << 40), told: told() }),
            Kind::Logs(Logs { filter: LogFilter::default(), from: 0, to: None, told: told() }),
            Kind::BlockLogs(BlockLogs { filter: filter(), block: hash(0xd3) }),
            Kind::Blocks(Blocks { with_headers: false, told: told() }),
            Kind::Pending(Pending { next: None, waiting: alloc::vec![hash(0xe1), hash(0xe2)] }),
        ];
        let mut filters = Filters::new(B256::ZERO);
        for (id, kind) in (1_u64..).zip(kinds) {
            filters.open.push(Open {
                id: id.into(),
                kind,
                fresh: id % 2 == 0,
                polled: 9,
                subscription: None,
                asker: Asker { number: (1 << 32) + id, page: u128::from(id % 3) << 100 },
                rights: id * 1_000_000_007,
                bytes: 0,
            });
        }
        filters
    }

    /// Front ends of different ages exchange filters while a service is renewed.
    #[test]
    fn the_bytes_of_a_filter_stay_as_they_are() {
        let filters = filters();
        let mut again = Filters::new(B256::ZERO);
        let known =
            include_str!("carried.hex").lines().map(|line| alloy_primitives::hex::decode(line).unwrap());
        for (id, known) in (1..).zip(known) {
            assert_eq!(filters.carry(id).unwrap(), known, "filter {id}");
            again.take_over(id, &known, &[], 9).unwrap();
            assert_eq!(again.carry(id).unwrap(), known, "filter {id}");
        }
        assert_eq!((again.len(), filters.len()), (5, 5));
    }
}
