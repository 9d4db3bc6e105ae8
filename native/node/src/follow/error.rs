//! Why a block could not be fetched.

use rootlight::consensus::MAX_UNCLES;
use rootlight::types::B256;
use rootlight::types::json::JsonError;
use rootlight_upstream::UpstreamError;

/// Why a block could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The upstream returned no result.
    #[error("block {number}: {error}")]
    Upstream {
        /// Height of the requested block.
        number: u64,
        /// The upstream's error.
        error: UpstreamError,
    },
    /// The upstream returned no result for a block by hash.
    #[error("block {hash}: {error}")]
    UpstreamByHash {
        /// Hash of the requested block.
        hash: B256,
        /// The upstream's error.
        error: UpstreamError,
    },
    /// The response is not a block, or its header does not have the stated hash.
    #[error("block {number}: {error}")]
    Block {
        /// Height of the requested block.
        number: u64,
        /// The field and the rule it breaks.
        error: JsonError,
    },
    /// The response is another block.
    #[error("block {number}: the upstream returned block {found}")]
    OtherBlock {
        /// Height of the requested block.
        number: u64,
        /// Height of the returned block.
        found: u64,
    },
    /// The response is a block with another hash.
    #[error("the upstream returned block {found} for block {hash}")]
    OtherHash {
        /// The requested hash.
        hash: B256,
        /// Hash of the returned block.
        found: B256,
    },
    /// The block names more uncles than a block may.
    #[error("block {hash} names {found} uncles, at most {MAX_UNCLES}")]
    TooManyUncles {
        /// Hash of the block.
        hash: B256,
        /// Number of uncles that it names.
        found: usize,
    },
    /// The response holds only the hashes of the transactions.
    #[error("block {number}: the upstream returned transaction hashes instead of transactions")]
    NoTransactions {
        /// Height of the block.
        number: u64,
    },
}
