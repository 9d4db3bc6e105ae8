//! A block by number and hash.

use core::fmt;

use alloy_primitives::B256;

/// A block by number and hash. Both are needed: upstreams are asked by number, and their responses are checked by hash.
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
