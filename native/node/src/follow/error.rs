//! Why a block could not be fetched.

use rootlight::consensus::MAX_UNCLES;
use rootlight::types::B256;
use rootlight::types::json::JsonError;
use rootlight_upstream::UpstreamError;

/// Why a block could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum FetchError {
    /// The upstream returned no result.
    #[error("block {number}: {error}")]
    Upstream { number: u64, error: UpstreamError },
    /// The upstream returned no result for a block by hash.
    #[error("block {hash}: {error}")]
    UpstreamByHash { hash: B256, error: UpstreamError },
    /// The response is not a block, or its header does not have the stated hash.
    #[error("block {number}: {error}")]
    Block { number: u64, error: JsonError },
    /// The response is another block.
    #[error("block {number}: the upstream returned block {found}")]
    OtherBlock { number: u64, found: u64 },
    /// The response is a block with another hash.
    #[error("the upstream returned block {found} for block {hash}")]
    OtherHash { hash: B256, found: B256 },
    /// The block names more uncles than a block may.
    #[error("block {hash} names {found} uncles, at most {MAX_UNCLES}")]
    TooManyUncles { hash: B256, found: usize },
    /// The response holds only the hashes of the transactions.
    #[error("block {number}: the upstream returned transaction hashes instead of transactions")]
    NoTransactions { number: u64 },
}
