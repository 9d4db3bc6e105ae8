//! Filters that move from one host to another: several hosts that follow the same chain answer the polls of one filter.

use alloc::vec::Vec;

use alloy_primitives::B256;

use super::{
    kinds::{BlockLogs, Blocks, Kind, Logs, MAX_PENDING, Pending, Told},
    open::Open,
    room::make_room,
    set::Filters,
    trail::{ReportedBlock, Trail},
    watch::Watch,
};
use crate::types::Asker;

/// A filter on its way to another host: what it watches, and up to where its owner was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LentFilter {
    /// Who has made it.
    pub asker: Asker,
    /// The rights that its asker had then ([`Owner::rights`](super::Owner::rights)).
    pub rights: u64,
    /// Whether there was no poll yet.
    pub fresh: bool,
    /// What it watches.
    pub watch: Watch,
    /// The blocks that it has reported last, oldest first.
    pub reported: Vec<ReportedBlock>,
    /// The pending transactions that it is to report, oldest first.
    pub pending: Vec<B256>,
}

impl LentFilter {
    fn of(open: &Open) -> Option<Self> {
        let reported = |told: &Told| match told {
            #[cfg(feature = "local")]
            Told::Events(_) => Vec::new(),
            Told::Blocks(Trail(blocks)) => blocks.clone(),
        };
        let (watch, reported, pending) = match &open.kind {
            Kind::Logs(Logs { filter, from, to, told }) => {
                (Watch::Logs { filter: filter.clone(), from: *from, to: *to }, reported(told), Vec::new())
            }
            Kind::BlockLogs(BlockLogs { filter, block }) => {
                (Watch::BlockLogs { filter: filter.clone(), block: *block }, Vec::new(), Vec::new())
            }
            Kind::Blocks(Blocks { with_headers: false, told }) => (Watch::Blocks, reported(told), Vec::new()),
            Kind::Pending(pending) => (Watch::Pending, Vec::new(), pending.waiting.clone()),
            Kind::Blocks(_) | Kind::Syncing(_) => return None,
        };
        Some(Self { asker: open.asker, rights: open.rights, fresh: open.fresh, watch, reported, pending })
    }

    fn open(mut self, id: u128, now: u64) -> Option<Open> {
        let told = Told::Blocks(Trail(self.reported));
        let kind = match self.watch {
            Watch::Logs { filter, from, to } => Kind::Logs(Logs { filter, from, to, told }),
            Watch::BlockLogs { filter, block } => Kind::BlockLogs(BlockLogs { filter, block }),
            Watch::Blocks => Kind::Blocks(Blocks { with_headers: false, told }),
            Watch::Pending => Kind::Pending(Pending {
                #[cfg(feature = "local")]
                next: None,
                waiting: self.pending.split_off(self.pending.len().saturating_sub(MAX_PENDING)),
            }),
            Watch::Heads | Watch::Syncing => return None,
        };
        let mut open = Open {
            id,
            kind,
            fresh: self.fresh,
            polled: now,
            subscription: None,
            asker: self.asker,
            rights: self.rights,
            bytes: 0,
        };
        open.weigh();
        Some(open)
    }
}

impl Filters {
    /// A filter for another host. It stays here, too, until [`Self::forget`]. `None` if it does not exist, or if it is a
    /// subscription, which stays with its connection.
    pub fn lend(&self, id: u128) -> Option<LentFilter> {
        let open = self.open.iter().find(|open| open.id == id && open.subscription.is_none())?;
        LentFilter::of(open)
    }

    /// Takes over a filter from another host, in place of what was known of it here, as if it had been polled at `now`
    /// (seconds since 1970): the clocks of two hosts may differ. Other filters give way as for a new one. If there is no
    /// room, or if it watches what only subscriptions do, it does not exist here.
    pub fn adopt(&mut self, id: u128, filter: LentFilter, now: u64) {
        self.forget(id);
        let Some(open) = filter.open(id, now) else { return };
        if make_room(&mut self.open, open.asker, 1, open.bytes).is_ok() {
            self.open.push(open);
        }
    }

    /// Removes what this host knows of a filter, because another host may answer its next poll.
    pub fn forget(&mut self, id: u128) {
        self.open.retain(|open| open.id != id || open.subscription.is_some());
    }
}
