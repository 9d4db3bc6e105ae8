//! The interface that handlers read, which a light client and an executed chain implement.

use alloc::{string::String, vec::Vec};

use super::{Chain, Pool, State};
use crate::consensus::bitcoin::ServedBitcoin;

/// Progress of synchronization, for `eth_syncing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncProgress {
    /// Block at which this client started.
    pub starting: u64,
    /// Newest verified block.
    pub current: u64,
    /// Newest block an upstream has announced.
    pub highest: u64,
}

/// The data that handlers read: a chain at one head, its state and pool, and the status of the client itself.
pub trait View: Chain + State + Pool {
    /// The progress of synchronization, or `None` if the head is current.
    fn syncing(&self) -> Option<SyncProgress> {
        None
    }

    /// Names of the upstreams in use, without credentials; empty for a chain without upstreams.
    fn upstreams(&self) -> Vec<String> {
        Vec::new()
    }

    /// The light client at its pinned head; `None` on a chain that is executed locally.
    #[cfg(feature = "light")]
    fn light(&self) -> Option<&crate::light::PinnedHead> {
        None
    }

    /// The Bitcoin chain that is followed, or that a development chain is mined on; `None` without one.
    fn bitcoin(&self) -> Option<&dyn ServedBitcoin> {
        None
    }

    /// The last events, in order; `None` on a view that records no events, such as a light client's, whose filters compare the
    /// chain with the blocks that they have reported.
    #[cfg(feature = "local")]
    fn events(&self) -> Option<&crate::local::Events> {
        None
    }
}
