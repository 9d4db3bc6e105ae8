//! A block by number and hash, as facts and requests name it.

use core::fmt;

use alloy_primitives::B256;

/// A block by number and hash. Requests to upstreams need the number, and the checks of their responses the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockRef {
    /// Height.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
}

impl fmt::Display for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} ({})", self.number, self.hash)
    }
}
