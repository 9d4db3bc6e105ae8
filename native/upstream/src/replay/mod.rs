//! Recordings as upstreams: `replay:PATH` gives the response that was recorded for the same method and parameters.
//!
//! A recording is a JSON-lines file, or a folder of them (`*.jsonl`, `*.jsonl.gz`, read in the order of their
//! names). These lines are used:
//!
//! * `{"request": {...}, "response": {...}}`, full JSON-RPC envelopes; both may be batches;
//! * `{"node": "0x..."}` or `{"hash": "0x...", "value": "0x..."}`: a node of the state trie, or a value of more than 32
//!   bytes, which the trie stores by hash. State proofs of recorded blocks are computed from them.
//!
//! Other lines are skipped. Responses stay in the files, and are read when they are requested; only an index is in memory.
//!
//! | file | contents |
//! |---|---|
//! | `source` | the files: opening, decompressing, reading |
//! | `line` | decodes a line |
//! | `index` | finds the line of a request or a node |
//! | `chain` | the recorded blocks |
//! | `state` | proofs and values from recorded trie nodes |

mod chain;
mod index;
mod line;
mod source;
mod state;

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::B256;
use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_limits::Limits;
use serde_json::Value;

use super::{ReservedResults, Upstream, UpstreamError, UpstreamResult, source_quota};
use index::{RecordingIndex, RequestKey};

pub use source::ReplayError;

/// Longest description of a request in a "not recorded" error, in characters.
const REQUEST_CHARS: usize = 300;

/// A recording that responds to requests.
#[derive(Clone)]
pub struct Replay {
    index: Arc<RecordingIndex>,
    name: String,
    limits: Arc<Limits>,
}

impl Replay {
    /// Opens a file or a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReplayError> {
        Self::open_within(path, Limits::new())
    }

    /// Opens a file or a folder, whose memory counts in these limits.
    pub fn open_within(path: impl AsRef<Path>, limits: Arc<Limits>) -> Result<Self, ReplayError> {
        let (path, budget) = (path.as_ref(), limits.recordings());
        let index = Arc::new(RecordingIndex::build(source::open(path, budget)?, budget)?);
        Ok(Self { index, name: format!("replay:{}", path.display()), limits })
    }

    /// Opens a gzip-compressed JSON-lines recording from its bytes. The name is for errors and logs.
    pub fn from_gzip(name: &str, bytes: &[u8]) -> Result<Self, ReplayError> {
        let limits = Limits::new();
        let budget = limits.recordings();
        let index = Arc::new(RecordingIndex::build(vec![source::gunzip(name, bytes, budget)?], budget)?);
        Ok(Self { index, name: format!("replay:{name}"), limits })
    }

    /// Opens a recording that a user has named. It must have a request or a node; and if a chain id is given and the recording has
    /// one, they must be equal.
    ///
    /// # Errors
    /// Also [`ReplayError::NoRecording`] and [`ReplayError::OtherNetwork`].
    pub(crate) fn open_named(
        path: impl AsRef<Path>,
        limits: Arc<Limits>,
        chain_id: Option<u64>,
    ) -> Result<Self, ReplayError> {
        let path = path.as_ref();
        let replay = Self::open_within(path, limits)?;
        if replay.index.is_empty() {
            return Err(ReplayError::NoRecording(path.to_owned()));
        }
        match (replay.chain_id(), chain_id) {
            (Some(found), Some(expected)) if found != expected => {
                Err(ReplayError::OtherNetwork { path: path.to_owned(), found, expected })
            }
            _ => Ok(replay),
        }
    }

    /// The recorded chain id.
    fn chain_id(&self) -> Option<u64> {
        let answer = self.recorded("eth_chainId", &[])?.ok()?;
        chain::quantity(answer.get().trim_matches('"'))
    }

    /// Number of recorded requests.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the recording holds no request.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the height of the highest block recorded by number.
    pub fn head(&self) -> Option<u64> {
        self.index.chain().head()
    }

    /// Returns the hash and state root of a recorded canonical block.
    pub fn block(&self, number: u64) -> Option<(B256, B256)> {
        self.index.chain().by_number(number).map(|block| (block.hash, block.state_root))
    }

    /// Returns a recorded trie node, or a value over 32 bytes, checked against its hash.
    pub fn node(&self, hash: &B256) -> Option<alloy_primitives::Bytes> {
        self.index.node(hash)
    }

    /// Returns the response to one request: recorded, or derived from recorded blocks and trie nodes. A derived
    /// result takes precedence over a recorded error or null.
    pub fn answer(&self, method: &str, params: &[Value]) -> UpstreamResult {
        if let Some(answer) = self.head_request(method, params) {
            return answer;
        }
        // The first response that is an error or null, in case no other is found.
        let mut unsettled = None;
        for source in [Self::recorded, Self::by_number_instead, Self::with_hashes, Self::state_answer] {
            match source(self, method, params) {
                Some(answer) if is_settled(&answer) => return answer,
                answer => unsettled = unsettled.or(answer),
            }
        }
        unsettled.unwrap_or_else(|| not_recorded(method, params))
    }

    /// Computes proofs and state values from recorded trie nodes.
    fn state_answer(&self, method: &str, params: &[Value]) -> Option<UpstreamResult> {
        match state::answer(&self.index, method, params) {
            Ok(value) => Some(raw(&value)),
            Err(reason) => Option::<UpstreamError>::from(reason).map(Err),
        }
    }

    /// The recorded response to a request.
    fn recorded(&self, method: &str, params: &[Value]) -> Option<UpstreamResult> {
        self.index.answer(&RequestKey::new(method, params))
    }

    /// The head of a recording is its highest block, even if a recorded `eth_blockNumber` or "latest" block is
    /// lower.
    fn head_request(&self, method: &str, params: &[Value]) -> Option<UpstreamResult> {
        let head = self.head()?;
        let tag = params.first().and_then(Value::as_str);
        match (method, tag) {
            ("eth_blockNumber", _) if params.is_empty() => Some(raw(&Value::from(format!("{head:#x}")))),
            ("eth_getBlockByNumber", Some("latest")) => {
                let mut numbered = params.to_vec();
                *numbered.first_mut()? = Value::from(format!("{head:#x}"));
                let by_number = self.recorded(method, &numbered).filter(is_settled);
                let is_head =
                    |answer: &UpstreamResult| chain::block_of(answer).is_some_and(|b| b.number == head);
                let latest = || self.recorded(method, params).filter(is_head);
                Some(by_number.or_else(latest).unwrap_or_else(|| not_recorded(method, &numbered)))
            }
            _ => None,
        }
    }

    /// Answers a request about a canonical block by its hash with the response that was recorded for the block's number.
    fn by_number_instead(&self, method: &str, params: &[Value]) -> Option<UpstreamResult> {
        let method = match method {
            "eth_getBlockByHash" => "eth_getBlockByNumber",
            "eth_getBlockTransactionCountByHash" => "eth_getBlockTransactionCountByNumber",
            "eth_getTransactionByBlockHashAndIndex" => "eth_getTransactionByBlockNumberAndIndex",
            "eth_getUncleByBlockHashAndIndex" => "eth_getUncleByBlockNumberAndIndex",
            "eth_getUncleCountByBlockHash" => "eth_getUncleCountByBlockNumber",
            "rsk_getRawBlockHeaderByHash" | "ext_getRawBlockHeaderByHash" => "rsk_getRawBlockHeaderByNumber",
            "trace_block" => "trace_block",
            _ => return None,
        };
        let hash: B256 = params.first()?.as_str()?.parse().ok()?;
        let number = self.index.chain().canonical_number(&hash)?;
        let mut params = params.to_vec();
        *params.first_mut()? = Value::from(format!("{number:#x}"));
        let answer = self.recorded(method, &params)?;
        // Where a recording has two blocks of this number, only a response that states the hash is known to be of
        // the right one.
        let is_right = !self.index.chain().is_reorganized(number) || chain::states_block(&answer, &hash);
        is_right.then_some(answer)
    }

    /// A block with the hashes of its transactions, from one that was recorded with whole transactions.
    fn with_hashes(&self, method: &str, params: &[Value]) -> Option<UpstreamResult> {
        let [selector, Value::Bool(false)] = params else { return None };
        if !matches!(method, "eth_getBlockByNumber" | "eth_getBlockByHash") {
            return None;
        }
        let whole = [selector.clone(), Value::Bool(true)];
        let whole = self.recorded(method, &whole).or_else(|| self.by_number_instead(method, &whole))?.ok()?;
        let mut block: Value = serde_json::from_str(whole.get()).ok()?;
        for transaction in block.get_mut("transactions")?.as_array_mut()? {
            *transaction = transaction.get("hash")?.clone();
        }
        Some(raw(&block))
    }
}

impl Upstream for Replay {
    fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
        let (replay, count) = (self.clone(), requests.len());
        Box::pin(async move {
            // Reading files blocks, so it runs on a thread for blocking work.
            let work = tokio::task::spawn_blocking(move || {
                let answer = |call: &UpstreamRequest| match serde_json::from_str::<Vec<Value>>(&call.params) {
                    Ok(params) => replay.answer(call.method, &params),
                    Err(failure) => {
                        Err(state::invalid_params(format!("params are not a JSON array: {failure}")))
                    }
                };
                requests.iter().map(answer).collect()
            });
            work.await.unwrap_or_else(|failure| {
                (0..count).map(|_| Err(UpstreamError::Transport(failure.to_string()))).collect()
            })
        })
    }

    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move { source_quota::hold(&self.limits, self.request(requests).await).await })
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Whether a response is a result other than null.
fn is_settled(answer: &UpstreamResult) -> bool {
    answer.as_ref().is_ok_and(|result| result.get() != "null")
}

fn not_recorded(method: &str, params: &[Value]) -> UpstreamResult {
    let text = format!("{method} {}", Value::from(params.to_vec()));
    Err(UpstreamError::NotRecorded(text.chars().take(REQUEST_CHARS).collect()))
}

/// Encodes a value as JSON text.
fn raw(value: &Value) -> UpstreamResult {
    serde_json::value::to_raw_value(value).map_err(|failure| UpstreamError::Malformed(failure.to_string()))
}
