//! Filters on their way from one host to another: several hosts that follow the same chain answer the polls of one filter.
//!
//! The bytes are for hosts of one version that trust each other, because what a filter has reported decides what a later
//! poll reports as taken back. A host must therefore make sure that nobody else wrote them.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    Filters, Open, Watch,
    seen::{ReportedBlock, Seen},
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
    trail: Vec<Told>,
    pending: Vec<B256>,
}

/// The encoding of a [`Watch`]. Subscriptions are not carried.
#[derive(Serialize, Deserialize)]
enum Watched {
    Logs { addresses: Vec<Address>, topics: Vec<Vec<B256>>, from: u64, to: Option<u64> },
    BlockLogs { addresses: Vec<Address>, topics: Vec<Vec<B256>>, block: B256 },
    Blocks,
    Pending,
}

#[derive(Serialize, Deserialize)]
struct Told {
    number: u64,
    hash: B256,
    logs: Vec<ToldLog>,
}

#[derive(Serialize, Deserialize)]
struct ToldLog {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
    log_index: u64,
    transaction: B256,
    transaction_index: u64,
}

impl Watched {
    fn of(watch: &Watch) -> Option<Self> {
        Some(match watch {
            Watch::Logs { filter: LogFilter { addresses, topics }, from, to } => {
                Self::Logs { addresses: addresses.clone(), topics: topics.clone(), from: *from, to: *to }
            }
            Watch::BlockLogs { filter: LogFilter { addresses, topics }, block } => {
                Self::BlockLogs { addresses: addresses.clone(), topics: topics.clone(), block: *block }
            }
            Watch::Blocks => Self::Blocks,
            Watch::Pending => Self::Pending,
            Watch::Heads | Watch::Syncing => return None,
        })
    }

    fn watch(self) -> Watch {
        match self {
            Self::Logs { addresses, topics, from, to } => {
                Watch::Logs { filter: LogFilter { addresses, topics }, from, to }
            }
            Self::BlockLogs { addresses, topics, block } => {
                Watch::BlockLogs { filter: LogFilter { addresses, topics }, block }
            }
            Self::Blocks => Watch::Blocks,
            Self::Pending => Watch::Pending,
        }
    }
}

impl From<&ReportedBlock> for Told {
    fn from(told: &ReportedBlock) -> Self {
        let log = |found: &FoundLog| ToldLog {
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

impl From<Told> for ReportedBlock {
    fn from(told: Told) -> Self {
        let block = BlockRef { number: told.number, hash: told.hash };
        let log = |log: ToldLog| FoundLog {
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
        let watch = Watched::of(&open.watch).filter(|_| open.subscription.is_none())?;
        let carried = Carried {
            version: VERSION,
            asker: open.asker.number,
            page: open.asker.page,
            rights: open.rights,
            fresh: open.fresh,
            watch,
            trail: open.seen.trail.iter().map(Told::from).collect(),
            pending: open.seen.pending.clone(),
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
        let seen = Seen {
            trail: carried.trail.into_iter().map(ReportedBlock::from).collect(),
            pending: carried.pending,
        };
        let mut open = Open {
            id,
            watch: carried.watch.watch(),
            fresh: carried.fresh,
            seen,
            #[cfg(feature = "local")]
            next: 0,
            polled: now,
            subscription: None,
            syncing: false,
            asker: Asker { number: carried.asker, page: carried.page },
            rights: carried.rights,
            bytes: 0,
        };
        if open.watch == Watch::Pending {
            let own = sent.iter().filter(|(_, told)| *told == open.asker.told());
            own.for_each(|(hash, _)| open.seen.add_pending(*hash));
        }
        open.weigh();
        self.forget(id);
        if self.make_room(open.asker, 1, open.bytes).is_ok() {
            self.open.push(open);
        }
        Ok(())
    }

    /// Removes what this host knows of a filter, because another host may answer its next poll.
    pub fn forget(&mut self, id: u128) {
        self.open.retain(|open| open.id != id || open.subscription.is_some());
    }
}
