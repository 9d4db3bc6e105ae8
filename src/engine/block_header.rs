//! The header of a block that handlers read.

use core::ops::Deref;

#[cfg(feature = "local")]
use crate::consensus::PendingHeader;
use crate::{
    consensus::{Network, VerifiedHeader},
    types::SealedHeader,
};

/// The header of a block of the chain, which is verified, or of the pending block of a chain that is executed here,
/// which is not mined. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockHeader {
    /// Of a block of the chain.
    Verified(VerifiedHeader),
    /// Of the pending block. A light client has none.
    #[cfg(feature = "local")]
    Pending(PendingHeader),
}

impl BlockHeader {
    /// The verified header; `None` for the pending block.
    pub fn verified(&self) -> Option<&VerifiedHeader> {
        match self {
            Self::Verified(header) => Some(header),
            #[cfg(feature = "local")]
            Self::Pending(_) => None,
        }
    }

    /// Whether this is the header of the pending block.
    pub fn is_pending(&self) -> bool {
        self.verified().is_none()
    }

    /// The header with its hash.
    pub fn sealed(&self) -> &SealedHeader {
        self
    }

    /// Whether the header's merged-mining fields may be shown, see [`VerifiedHeader::shows_work`]. The fields of the pending block are
    /// empty, because it is not mined, and may always be shown.
    pub fn shows_work(&self, network: &Network) -> bool {
        self.verified().is_none_or(|header| header.shows_work(network))
    }
}

impl Deref for BlockHeader {
    type Target = SealedHeader;

    fn deref(&self) -> &SealedHeader {
        match self {
            Self::Verified(header) => header,
            #[cfg(feature = "local")]
            Self::Pending(header) => header,
        }
    }
}

impl From<VerifiedHeader> for BlockHeader {
    fn from(header: VerifiedHeader) -> Self {
        Self::Verified(header)
    }
}

impl From<&VerifiedHeader> for BlockHeader {
    fn from(header: &VerifiedHeader) -> Self {
        Self::Verified(header.clone())
    }
}
