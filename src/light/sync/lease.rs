//! Leases: if the upstreams' chain is far ahead of ours, one upstream at a time fetches its headers, the fastest one first.

use super::{exchange::UpstreamExchange, lease_state::Lease, peer::SyncPeer};

/// If a chain is more than this many blocks ahead of ours, one upstream at a time fetches its headers. Several upstreams would
/// send the same headers.
const BULK: u64 = 64;

impl UpstreamExchange<'_> {
    /// Whether only one upstream at a time fetches headers up to this height.
    pub(super) fn is_bulk(&self, height: u64) -> bool {
        self.has_others() && height > self.followed.head_number().saturating_add(BULK)
    }

    /// Takes the lease, if no other upstream has it or should have it first. Returns whether it did.
    pub(super) fn take_lease(&mut self) -> bool {
        let may_end = |lease: &Lease| lease.holder == self.upstream || lease.is_over(self.now);
        if self.leases.lease.as_ref().is_some_and(|lease| !may_end(lease)) {
            return false;
        }
        // The rate of the lease that ends here counts in the comparison below.
        self.finish_lease();
        // The fastest upstream goes first. One whose rate is not known counts as fastest, so that each shows its speed once.
        let rate = |peer: &SyncPeer| peer.source.record.rate.unwrap_or(u64::MAX);
        let is_ahead = |peer: &SyncPeer| peer.source.announced.is_some_and(|height| self.is_bulk(height));
        let own = rate(self.peer);
        if self.all().filter(|peer| !peer.is_resting() && is_ahead(peer)).any(|peer| rate(peer) > own) {
            return false;
        }
        self.leases.lease = Some(Lease { holder: self.upstream, began: self.now.millis, headers: 0 });
        true
    }

    /// Whether this upstream alone is asked for headers: it has the lease, or there is no other upstream.
    pub(super) fn is_alone(&self) -> bool {
        !self.has_others() || self.leases.lease.is_some_and(|lease| lease.holder == self.upstream)
    }

    /// Counts the headers that a window added to the chain, whose head was at `before`.
    pub(super) fn count(&mut self, before: u64) {
        let gained = self.followed.head_number().saturating_sub(before);
        self.followed.meter.count(gained, self.peer.asked, self.now);
        if gained > 0 {
            self.leases.count(self.upstream, gained, self.now);
        }
    }

    /// Whether the upstream has to stop fetching many headers: its lease is over, or another upstream has the lease now.
    pub(super) fn lease_is_over(&mut self) -> bool {
        match &self.leases.lease {
            Some(lease) if lease.holder == self.upstream && lease.is_over(self.now) => {
                self.finish_lease();
                true
            }
            Some(lease) if lease.holder != self.upstream => {
                self.peer.source.announced.is_some_and(|height| self.is_bulk(height))
            }
            // The upstream's own lease goes on, or nobody has one.
            _ => false,
        }
    }

    /// Ends the upstream's lease, if it has one.
    pub(super) fn drop_lease(&mut self) {
        if self.leases.lease.is_some_and(|lease| lease.holder == self.upstream) {
            self.finish_lease();
        }
    }

    /// Ends the present lease, which another upstream may hold, and remembers the rate of its headers.
    fn finish_lease(&mut self) {
        let Some(lease) = self.leases.lease.take() else { return };
        let elapsed = self.now.millis.saturating_sub(lease.began).max(1);
        for (index, peer) in self.all_mut().enumerate() {
            if index == lease.holder {
                peer.source.record.rate = lease.headers.saturating_mul(1_000).checked_div(elapsed);
            } else if !peer.search.at_end {
                // This upstream has waited for the lease.
                peer.end_pause();
            }
        }
    }
}
