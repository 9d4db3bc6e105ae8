//! Filters that one host exports to another: several hosts that follow the same chain answer the polls of one filter.

use alloc::vec::Vec;

use alloy_primitives::B256;

use super::{
    installed::InstalledFilter,
    kinds::{BlockLogs, Blocks, FilterKind, Logs, MAX_PENDING, Pending, ReportedUpTo},
    quota::make_room,
    reported_blocks::{ReportedBlock, ReportedBlocks},
    set::Filters,
    spec::FilterSpec,
};
use crate::types::Asker;

/// A filter on its way to another host: what it selects, and what it has reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFilter {
    /// The asker that has made the filter.
    pub asker: Asker,
    /// The asker's rights when it made the filter ([`FilterOwner::rights`](super::FilterOwner::rights)).
    pub rights: u64,
    /// Whether the filter was never polled.
    pub fresh: bool,
    /// What the filter selects.
    pub spec: FilterSpec,
    /// The blocks that the filter has reported last, oldest first.
    pub reported: Vec<ReportedBlock>,
    /// Hashes of the pending transactions that the next poll reports, oldest first.
    pub pending: Vec<B256>,
}

impl ExportedFilter {
    /// `None` for the kinds that only subscriptions have, which stay with their connection.
    fn of(filter: &InstalledFilter) -> Option<Self> {
        let reported = |reported_to: &ReportedUpTo| match reported_to {
            #[cfg(feature = "local")]
            // Only light clients export filters, and theirs have no events.
            ReportedUpTo::Events(_) => Vec::new(),
            ReportedUpTo::Blocks(ReportedBlocks(blocks)) => blocks.clone(),
        };
        let (spec, reported, pending) = match &filter.kind {
            FilterKind::Logs(Logs { filter, from, to, reported_to }) => (
                FilterSpec::Logs { filter: filter.clone(), from: *from, to: *to },
                reported(reported_to),
                Vec::new(),
            ),
            FilterKind::BlockLogs(BlockLogs { filter, block }) => {
                (FilterSpec::BlockLogs { filter: filter.clone(), block: *block }, Vec::new(), Vec::new())
            }
            FilterKind::Blocks(Blocks { with_headers: false, reported_to }) => {
                (FilterSpec::Blocks, reported(reported_to), Vec::new())
            }
            FilterKind::Pending(pending) => (FilterSpec::Pending, Vec::new(), pending.waiting.clone()),
            FilterKind::Blocks(_) | FilterKind::Syncing(_) => return None,
        };
        Some(Self {
            asker: filter.asker,
            rights: filter.rights,
            fresh: filter.fresh,
            spec,
            reported,
            pending,
        })
    }

    /// The filter as this host installs it. `None` for the kinds that only subscriptions have.
    fn install(mut self, id: u128, now: u64) -> Option<InstalledFilter> {
        let reported_to = ReportedUpTo::Blocks(ReportedBlocks(self.reported));
        let kind = match self.spec {
            FilterSpec::Logs { filter, from, to } => FilterKind::Logs(Logs { filter, from, to, reported_to }),
            FilterSpec::BlockLogs { filter, block } => FilterKind::BlockLogs(BlockLogs { filter, block }),
            FilterSpec::Blocks => FilterKind::Blocks(Blocks { with_headers: false, reported_to }),
            FilterSpec::Pending => FilterKind::Pending(Pending {
                #[cfg(feature = "local")]
                next: None,
                waiting: self.pending.split_off(self.pending.len().saturating_sub(MAX_PENDING)),
            }),
            FilterSpec::Heads | FilterSpec::Syncing => return None,
        };
        let mut filter = InstalledFilter {
            id,
            kind,
            fresh: self.fresh,
            polled: now,
            subscription: None,
            asker: self.asker,
            rights: self.rights,
            bytes: 0,
        };
        filter.update_bytes();
        Some(filter)
    }
}

impl Filters {
    /// A filter for another host. This host keeps the filter, too, until [`Self::forget`]. `None` if there is no filter with this
    /// id, or if it is a subscription, which stays with its connection.
    pub fn export(&self, id: u128) -> Option<ExportedFilter> {
        let filter = self.installed.iter().find(|filter| filter.id == id && filter.subscription.is_none())?;
        ExportedFilter::of(filter)
    }

    /// Takes over a filter from another host, and replaces an older copy of it, as if it had been polled at `now`
    /// (seconds since 1970): the clocks of two hosts may differ. Other filters are dropped as for a new one. The filter is
    /// discarded if it exceeds a limit, or if only subscriptions have its kind.
    pub fn import(&mut self, id: u128, filter: ExportedFilter, now: u64) {
        self.forget(id);
        let Some(filter) = filter.install(id, now) else { return };
        if make_room(&mut self.installed, filter.asker, 1, filter.bytes).is_ok() {
            self.installed.push(filter);
        }
    }

    /// Removes this host's copy of a filter, because another host may answer the next poll. Subscriptions stay.
    pub fn forget(&mut self, id: u128) {
        self.installed.retain(|filter| filter.id != id || filter.subscription.is_some());
    }
}
