//! What a client asks of its host's index of blocks, and how the host answers. Client and host are one process, so only the
//! contents of an answer can be wrong, not its form.

use alloc::{boxed::Box, string::ToString as _, vec::Vec};

use alloy_primitives::{Address, B256};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

use super::upstream::UpstreamRequest;

/// Asks for the logs of a range: [`LogQuestion`]. The response is a [`LogReply`].
pub const INDEX_LOGS: &str = "index_logs";
/// Asks for a transaction by its hash, as `eth_getTransactionByHash` does.
pub const INDEX_TRANSACTION: &str = "index_transaction";
/// Asks for the receipt of a transaction by its hash, as `eth_getTransactionReceipt` does.
pub const INDEX_RECEIPT: &str = "index_receipt";

/// Whether a request is a question for the host's index, which no upstream gets.
#[must_use]
pub fn is_index_question(request: &UpstreamRequest) -> bool {
    [INDEX_LOGS, INDEX_TRANSACTION, INDEX_RECEIPT].contains(&request.method)
}

/// A range of blocks, both ends included, and which of its logs are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogQuestion {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// Any of these contracts; an empty list matches any.
    pub addresses: Vec<Address>,
    /// For each position, any of these topics; an empty list matches any log.
    pub topics: Vec<Vec<B256>>,
    /// Most logs; `None` for any number.
    pub most: Option<usize>,
}

/// The answer of an index to a [`LogQuestion`].
#[derive(Debug, Serialize, Deserialize)]
pub enum LogReply {
    /// All logs.
    All {
        /// Their number.
        count: usize,
        /// A JSON array of log objects, in the order of the chain.
        logs: Box<RawValue>,
    },
    /// There are more logs than were asked for.
    TooMany {
        /// The block whose logs exceed the number.
        at: u64,
    },
    /// The logs take more bytes than an answer may have.
    TooLong {
        /// The block whose logs exceed the number of bytes.
        at: u64,
    },
}

impl LogQuestion {
    /// The request to the index.
    #[must_use]
    pub fn to_request(&self) -> UpstreamRequest {
        UpstreamRequest::new(INDEX_LOGS, json!([self]).to_string())
    }

    /// Reads the parameters of a request; `None` if they are of another request.
    #[must_use]
    pub fn of_params(params: &str) -> Option<Self> {
        serde_json::from_str(params).ok().map(|[question]: [Self; 1]| question)
    }
}

/// Reads the hash in the parameters of a question about a transaction.
#[must_use]
pub fn hash_of_params(params: &str) -> Option<B256> {
    serde_json::from_str(params).ok().map(|[hash]: [B256; 1]| hash)
}

/// The request to the index about a transaction.
pub(crate) fn about_transaction(method: &'static str, hash: &B256) -> UpstreamRequest {
    UpstreamRequest::new(method, alloc::format!(r#"["{hash}"]"#))
}
