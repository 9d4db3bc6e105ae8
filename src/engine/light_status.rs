//! What handlers read of a light client: its synchronization, its start and its upstreams.

use crate::{
    consensus::{ChainView, Checkpoint},
    light::{LowWork, PinnedHead, Progress, SyncFault, UpstreamState},
};

/// The state of a light client at its pinned head.
pub trait LightStatus {
    /// The pinned chain; `None` until the checkpoint's header is verified.
    fn chain(&self) -> Option<&ChainView>;

    /// The block that the chain starts at: trusted, or believed for the work above it.
    fn checkpoint(&self) -> &Checkpoint;

    /// Whether the start is believed for its work alone, rather than for its hash.
    fn is_by_work(&self) -> bool;

    /// How far synchronization is.
    fn progress(&self) -> Progress;

    /// Whether the head has been reached.
    fn is_synced(&self) -> bool;

    /// Whether the uncles of all blocks are proven, or known to be unavailable.
    fn is_settled(&self) -> bool;

    /// Age of the head in seconds by the host's clock, if it is older than the head of a chain that grows.
    fn stale(&self) -> Option<u64>;

    /// A stretch of the chain with less work than the floor asks for.
    fn low_work(&self) -> Option<&LowWork>;

    /// Headers of an earlier run whose proofs of work are still to be checked in this one.
    fn to_prove(&self) -> u64;

    /// Why no upstream is of use, if none is.
    fn fault(&self) -> Option<&SyncFault>;

    /// The state of every upstream, by number.
    fn upstreams(&self) -> &[UpstreamState];
}

impl LightStatus for PinnedHead {
    fn chain(&self) -> Option<&ChainView> {
        Self::chain(self)
    }

    fn checkpoint(&self) -> &Checkpoint {
        Self::checkpoint(self)
    }

    fn is_by_work(&self) -> bool {
        Self::is_by_work(self)
    }

    fn progress(&self) -> Progress {
        Self::progress(self)
    }

    fn is_synced(&self) -> bool {
        Self::is_synced(self)
    }

    fn is_settled(&self) -> bool {
        Self::is_settled(self)
    }

    fn stale(&self) -> Option<u64> {
        Self::stale(self)
    }

    fn low_work(&self) -> Option<&LowWork> {
        Self::low_work(self)
    }

    fn to_prove(&self) -> u64 {
        Self::to_prove(self)
    }

    fn fault(&self) -> Option<&SyncFault> {
        Self::fault(self)
    }

    fn upstreams(&self) -> &[UpstreamState] {
        self.states()
    }
}
