//! Limits of messages and their answers.

/// Deepest nesting of arrays and objects in a message; no method needs more than six. The parser is recursive, so that deeper
/// messages could overflow the stack.
pub const MAX_DEPTH: usize = 128;

/// Most members of one batch, unless the host says otherwise ([`super::Caller::with_batch_limit`]): client libraries
/// send as many by default (ethers 100, viem 1,000). The limit of the reference node (rskj 9.1) is 50
/// (`rpc.providers.web.max_batch_requests_size`). The work of a batch is limited by time, and its results by
/// [`MAX_RESPONSE`], as those of a single call.
pub const BATCH_LIMIT: usize = 1_000;

/// The largest limit of a batch that a host can set: reading this many members takes little more memory than the longest
/// message.
pub const MAX_BATCH: usize = 10_000;

/// Longest id, in bytes of JSON. Client libraries send numbers, UUIDs or short texts. Answers repeat ids, also those that refuse
/// a message, so that the limit bounds what a refusal costs.
pub const MAX_ID: usize = 1024;

/// Largest answer in bytes, as `rpc.maxResponseSize` of the reference node (rskj 9.1). In a batch it limits all results
/// together.
pub const MAX_RESPONSE: usize = 10 * 1024 * 1024;
