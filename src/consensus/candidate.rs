//! Headers that are not checked yet: the input of the header chain and of all header rules.

use alloc::sync::Arc;

use super::network::Network;
use crate::types::{B256, Header, HeaderError, SealedHeader};

/// A decoded header that is not checked yet, with its hash and its hash for merged mining (the hash to which a Bitcoin coinbase commits),
/// both computed from it. The header is behind an `Arc`, because it takes a kilobyte and passes through several owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderCandidate {
    header: Arc<SealedHeader>,
    mining_hash: Result<B256, HeaderError>,
}

impl HeaderCandidate {
    /// Decodes a header of a network. Both hashes are computed over the given bytes where possible, not over an encoding of the result.
    pub fn decode(rlp: &[u8], network: &Network) -> Result<Self, HeaderError> {
        let (header, mining_base) = Header::decode_sealed(rlp, &|number| network.header_shape(number))?;
        Ok(Self::new(header, mining_base))
    }

    /// `mining_base` is the hash for merged mining before fork detection data replace its last bytes.
    fn new(header: SealedHeader, mining_base: B256) -> Self {
        Self { mining_hash: header.complete_mining_hash(mining_base), header: Arc::new(header) }
    }

    /// The header.
    pub fn header(&self) -> &SealedHeader {
        &self.header
    }

    /// The hash for merged mining; an error if the coinbase lacks fork detection data.
    pub const fn mining_hash(&self) -> &Result<B256, HeaderError> {
        &self.mining_hash
    }

    /// Returns the header.
    #[must_use]
    pub fn into_header(self) -> SealedHeader {
        Arc::unwrap_or_clone(self.header)
    }

    pub(super) fn into_shared(self) -> Arc<SealedHeader> {
        self.header
    }
}

impl From<Header> for HeaderCandidate {
    fn from(header: Header) -> Self {
        let (header, mining_base) = header.seal_with_mining_base();
        Self::new(header, mining_base)
    }
}

impl From<SealedHeader> for HeaderCandidate {
    fn from(header: SealedHeader) -> Self {
        let mining_base = header.mining_base_hash();
        Self::new(header, mining_base)
    }
}
