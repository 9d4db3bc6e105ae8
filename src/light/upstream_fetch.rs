//! Fetching from one upstream: the requests for a target, the forms in which they are tried, and the responses so far. `fetch` moves
//! on to other upstreams, `prove` checks the responses.

use alloc::{
    format,
    string::{String, ToString as _},
    vec,
    vec::Vec,
};
use core::fmt;

use alloy_primitives::{Address, B256, U256};
use thiserror::Error;

use super::upstream::{RequestFailure, UpstreamRequest, UpstreamResponse};
use crate::{
    consensus::MAX_UNCLES,
    state::{Fact, StateKey},
    types::BlockRef,
};

/// JSON-RPC error code of a method that does not exist.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// Advice for when an upstream has none of the methods that give proofs.
const NO_PROOFS: &str = "; add an upstream that gives proofs, by eth_getProof or rootlight_getWitness";

/// Advice for when no upstream responded at all.
const UNREACHABLE: &str = "; check that the upstreams can be reached, or add others";

/// The target of a fetch: a fact, or a group of facts that one request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchTarget {
    /// A single fact.
    One(Fact),
    /// An account and some of its storage slots, in one proof.
    Proof {
        /// The block whose state is requested.
        block: BlockRef,
        /// The account.
        address: Address,
        /// The slots, sorted.
        slots: Vec<U256>,
    },
    /// All state that a run is expected to read, which the upstream finds by executing the run itself. A witness only saves round
    /// trips: data that it lacks is requested when the run misses it.
    Witness {
        /// The block whose state is requested.
        block: BlockRef,
        /// The JSON-RPC method.
        method: &'static str,
        /// The parameters, a JSON array.
        params: String,
    },
}

/// Why a fact could not be proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactFailure {
    /// The description of the fact.
    pub target: String,
    /// The outcome of each attempt, in order.
    pub attempts: Vec<AttemptFailure>,
}

impl core::error::Error for FactFailure {}

impl FactFailure {
    /// Whether an upstream lacks a method that was tried.
    pub(crate) fn is_unsupported(&self) -> bool {
        let is_unknown_method = |attempt: &AttemptFailure| {
            matches!(&attempt.cause, Cause::Call(RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. }))
        };
        self.attempts.iter().any(is_unknown_method)
    }

    /// Whether no upstream responded, so that none has shown that it lacks the fact.
    fn is_silence(&self) -> bool {
        let has_no_response = |attempt: &AttemptFailure| {
            matches!(&attempt.cause, Cause::Call(RequestFailure::Transport(_) | RequestFailure::Busy { .. }))
        };
        !self.attempts.is_empty() && self.attempts.iter().all(has_no_response)
    }
}

impl fmt::Display for FactFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_silence = self.is_silence();
        let lack = if is_silence { "no response about" } else { "no proof of" };
        write!(f, "{lack} {}", self.target)?;
        // The name of an upstream is written once before its attempts, which follow each other.
        let mut last_name = "";
        for (index, attempt) in self.attempts.iter().enumerate() {
            f.write_str(if index == 0 { ": " } else { "; " })?;
            if attempt.name != last_name {
                last_name = &attempt.name;
                write!(f, "{last_name}: ")?;
            }
            write!(f, "{}: {}", attempt.method, attempt.cause)?;
        }
        if self.is_unsupported() {
            f.write_str(NO_PROOFS)?;
        }
        if is_silence {
            f.write_str(UNREACHABLE)?;
        }
        Ok(())
    }
}

/// One failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFailure {
    /// The number of the upstream that was asked.
    pub upstream: usize,
    /// The upstream's name as the caller may know it; empty if the failure is not that of one upstream.
    pub name: String,
    /// The JSON-RPC method that was called.
    pub method: &'static str,
    /// The fault of the response.
    pub cause: Cause,
}

/// The fault of a response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Cause {
    /// The request failed.
    #[error(transparent)]
    Call(#[from] RequestFailure),
    /// The response is `null`, and nothing shows whether the fact exists.
    #[error("the upstream says there is none")]
    Denied,
    /// JSON leaves out part of a header, and that part cannot be restored. An honest response may lack the part.
    #[error("{0} (the JSON form hides part of a header, and the upstream did not return the raw form)")]
    Hidden(String),
    /// The response is `null`, but the fact must exist, since a verified header commits to it.
    #[error("the upstream says there is none, but the header commits to it")]
    Withheld,
    /// The response does not prove the fact. The text names the rule that failed.
    #[error("{0}")]
    Refuted(String),
    /// The response does not prove the fact, but the request did not name the block by its hash: an honest upstream on
    /// another branch responds about its own block.
    #[error("{0} (asked without a block hash, the upstream may have answered about another branch)")]
    OtherBranch(String),
    /// The upstream proves presence only, and the fact may be absent.
    #[error("{0} (the upstream gives no proofs of absence)")]
    NoAbsence(String),
    /// Another fact is needed first and is not known.
    #[error("needs {0} first")]
    Needs(Fact),
}

impl FetchTarget {
    /// The requests in the form of this number, from 0, or `None` if there is no such form.
    ///
    /// For receipts, `parts` are the hashes of the block's transactions; for uncles, the hashes of the uncles that an
    /// upstream has shown; for other targets they are ignored.
    pub fn requests(&self, attempt: usize, parts: &[B256]) -> Option<Vec<UpstreamRequest>> {
        match self {
            Self::One(fact) => fact_requests(fact, attempt, parts),
            Self::Proof { block, address, slots } => {
                let number = format!("{:#x}", block.number);
                let (method, at) = match attempt {
                    0 => ("eth_getProof", number),
                    1 => ("rsk_getProof", number),
                    // The upstream may have another block at that height, and this form does not name the height.
                    BY_HASH_PROOF => ("eth_getProof", block.hash.to_string()),
                    _ => return None,
                };
                let keys: Vec<String> = slots.iter().map(|slot| format!("\"{slot:#066x}\"")).collect();
                let params = format!(r#"["{address:#x}",[{}],"{at}"]"#, keys.join(","));
                Some(vec![UpstreamRequest::new(method, params)])
            }
            Self::Witness { method, params, .. } => {
                (attempt == 0).then(|| vec![UpstreamRequest::new(method, params.clone())])
            }
        }
    }

    /// The block that the request is about, if it is known.
    pub(super) fn block(&self) -> Option<&BlockRef> {
        match self {
            Self::One(Fact::Header(_) | Fact::Location(_)) => None,
            Self::One(Fact::HeaderAt(_)) => None,
            Self::One(
                Fact::Body(block) | Fact::Uncles(block, _) | Fact::Receipts(block) | Fact::State(block, _),
            )
            | Self::Proof { block, .. }
            | Self::Witness { block, .. } => Some(block),
        }
    }

    /// The number of the form that names the block by its hash, if the other forms do not. It is the last form.
    fn by_hash(&self) -> Option<usize> {
        match self {
            Self::Proof { .. } => Some(BY_HASH_PROOF),
            Self::One(Fact::Body(_) | Fact::State(..)) => Some(BY_HASH),
            _ => None,
        }
    }
}

impl fmt::Display for FetchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(fact) => fact.fmt(f),
            Self::Proof { block, address, slots } => {
                write!(f, "account {address} and {} storage slots at {block}", slots.len())
            }
            Self::Witness { block, .. } => write!(f, "what a run reads at {block}"),
        }
    }
}

/// The form that requests a proof with the block's hash.
const BY_HASH_PROOF: usize = 2;

/// The form that requests a body, or bytes of state, with the block's hash.
const BY_HASH: usize = 1;

/// The last form for uncles: raw, because JSON leaves out the uncle count that an uncle's header states.
pub(super) const RAW_UNCLES: usize = 3;

/// The last form for a header by its hash: raw, because JSON leaves out the uncle count that the header of an uncle states.
pub(super) const RAW_HEADER: usize = 2;

/// The last form for a header by its height, raw for the same reason.
pub(super) const RAW_HEADER_AT: usize = 1;

fn raw_by_hash(hash: &B256) -> UpstreamRequest {
    UpstreamRequest::new("rsk_getRawBlockHeaderByHash", format!(r#"["{hash}"]"#))
}

/// The requests for a fact in the form of this number.
fn fact_requests(fact: &Fact, attempt: usize, parts: &[B256]) -> Option<Vec<UpstreamRequest>> {
    let one = |method, params| Some(vec![UpstreamRequest::new(method, params)]);
    match (fact, attempt) {
        (Fact::Header(hash), 0) => one("eth_getBlockByHash", format!(r#"["{hash}",true]"#)),
        (Fact::Header(hash), 1) => one("eth_getBlockByHash", format!(r#"["{hash}",false]"#)),
        (Fact::Header(hash), RAW_HEADER) => {
            let block = UpstreamRequest::new("eth_getBlockByHash", format!(r#"["{hash}",true]"#));
            Some(vec![raw_by_hash(hash), block])
        }
        (Fact::HeaderAt(number), 0..=RAW_HEADER_AT) => {
            let block = UpstreamRequest::new("eth_getBlockByNumber", format!(r#"["{number:#x}",false]"#));
            let raw = UpstreamRequest::new("rsk_getRawBlockHeaderByNumber", format!(r#"["{number:#x}"]"#));
            Some(if attempt == RAW_HEADER_AT { vec![raw, block] } else { vec![block] })
        }
        (Fact::Body(block), 0) => one("eth_getBlockByNumber", format!(r#"["{:#x}",true]"#, block.number)),
        (Fact::Body(block), BY_HASH) => one("eth_getBlockByHash", format!(r#"["{}",true]"#, block.hash)),
        (Fact::Location(hash), 0) => one("eth_getTransactionReceipt", format!(r#"["{hash}"]"#)),
        (Fact::Location(hash), 1) => one("eth_getTransactionByHash", format!(r#"["{hash}"]"#)),
        (Fact::Uncles(block, count), attempt) => uncle_requests(block, *count, attempt, parts),
        (Fact::Receipts(_), attempt) => {
            let method = *["eth_getTransactionReceipt", "rsk_getRawTransactionReceiptByHash"].get(attempt)?;
            Some(parts.iter().map(|hash| UpstreamRequest::new(method, format!(r#"["{hash}"]"#))).collect())
        }
        (Fact::State(block, key), attempt) => state_requests(block, key, attempt),
        _ => None,
    }
}

fn uncle_requests(
    block: &BlockRef,
    count: u32,
    attempt: usize,
    shown: &[B256],
) -> Option<Vec<UpstreamRequest>> {
    let (method, selector, count) = match attempt {
        0 => ("eth_getUncleByBlockHashAndIndex", format!("{}", block.hash), count),
        1 => ("eth_getUncleByBlockNumberAndIndex", format!("{:#x}", block.number), count),
        // No rule ties the uncle count in the header to the list, so this form requests all indexes.
        2 => ("eth_getUncleByBlockHashAndIndex", format!("{}", block.hash), MAX_UNCLES as u32),
        // Each uncle's raw header, then its block object, which has the merged-mining proof that raw headers lack.
        RAW_UNCLES if !shown.is_empty() => {
            let (hash, count) = (format!("{}", block.hash), shown.len() as u32);
            let raw = shown.iter().map(raw_by_hash);
            let objects = (0..count).map(|index| {
                UpstreamRequest::new("eth_getUncleByBlockHashAndIndex", format!(r#"["{hash}","{index:#x}"]"#))
            });
            return Some(raw.chain(objects).collect());
        }
        _ => return None,
    };
    // The header may state any count.
    let indexes = 0..count.min(MAX_UNCLES as u32);
    Some(
        indexes
            .map(|index| UpstreamRequest::new(method, format!(r#"["{selector}","{index:#x}"]"#)))
            .collect(),
    )
}

/// State that proofs do not carry: the bytes behind a hash.
fn state_requests(block: &BlockRef, key: &StateKey, attempt: usize) -> Option<Vec<UpstreamRequest>> {
    let at = match attempt {
        0 => format!(r#""{:#x}""#, block.number),
        BY_HASH => format!(r#"{{"blockHash":"{}"}}"#, block.hash),
        _ => return None,
    };
    let (method, params) = match key {
        StateKey::Code(address) => ("eth_getCode", format!(r#"["{address:#x}",{at}]"#)),
        StateKey::StorageBytes(address, slot) => {
            ("rsk_getStorageBytesAt", format!(r#"["{address:#x}","{slot:#x}",{at}]"#))
        }
        // `plan` requests accounts and slots as proofs, and the other keys are not in the trie.
        _ => return None,
    };
    Some(vec![UpstreamRequest::new(method, params)])
}

/// A fetch from one upstream, in progress.
#[derive(Debug)]
pub struct UpstreamFetch {
    /// The target of the fetch.
    pub target: FetchTarget,
    /// The number of the upstream that is asked.
    pub upstream: usize,
    /// The number of the present attempt, from 0.
    attempt: usize,
    /// Whether the form with the block's hash is tried first. To a request by number, most upstreams would respond about another
    /// block.
    by_hash: bool,
    /// The requests of the present attempt.
    requests: Vec<UpstreamRequest>,
    /// The responses to these requests, as far as they have arrived.
    responses: Vec<Option<UpstreamResponse>>,
    failures: Vec<AttemptFailure>,
}

impl UpstreamFetch {
    /// A fetch at its first attempt.
    pub fn new(target: FetchTarget) -> Self {
        Self::ordered(target, &[], false)
    }

    /// As [`Self::new`], for a target whose requests name `parts`, such as the transactions of a block. With `by_hash`,
    /// for a block off the chain, the block's hash is tried before its number.
    pub(super) fn ordered(target: FetchTarget, parts: &[B256], by_hash: bool) -> Self {
        let (responses, failures) = (Vec::new(), Vec::new());
        let mut fetch =
            Self { target, upstream: 0, attempt: 0, by_hash, requests: Vec::new(), responses, failures };
        fetch.prepare(parts);
        fetch
    }

    /// The same fetch for another upstream, from its first attempt on.
    pub(super) fn for_upstream(self, upstream: usize, parts: &[B256]) -> Self {
        Self { upstream, ..Self::ordered(self.target, parts, self.by_hash) }
    }

    /// Prepares the requests of the present attempt. Returns whether there are any.
    fn prepare(&mut self, parts: &[B256]) -> bool {
        let Some(requests) = self.target.requests(self.form(), parts) else { return false };
        self.responses = requests.iter().map(|_| None).collect();
        self.requests = requests;
        true
    }

    /// The number of the form that the present attempt uses: as a rule the same number. With `by_hash` the last form comes first,
    /// and the others follow.
    fn form(&self) -> usize {
        match (self.by_hash, self.target.by_hash(), self.attempt) {
            (true, Some(last), 0) => last,
            (true, Some(last), attempt) if attempt <= last => attempt.saturating_sub(1),
            (_, _, attempt) => attempt,
        }
    }

    /// The cause as it counts against the upstream. If the request did not name the block by its hash, a response about another branch
    /// is not a fault.
    pub(super) fn blame(&self, cause: Cause) -> Cause {
        let by_number = self.target.by_hash().is_some_and(|form| form != self.form());
        match cause {
            // Receipts are requested by transaction, which may be in another block on another branch.
            Cause::Refuted(rule)
                if by_number || matches!(self.target, FetchTarget::One(Fact::Receipts(_))) =>
            {
                Cause::OtherBranch(rule)
            }
            cause => cause,
        }
    }

    /// The requests of the present attempt.
    pub fn requests(&self) -> &[UpstreamRequest] {
        &self.requests
    }

    /// The number of the present attempt, from 0. For headers, uncles, receipts and locations it is also the number of the form.
    pub fn attempt(&self) -> usize {
        self.attempt
    }

    /// Takes the response to the request at `index`; the first response counts.
    pub fn take_response(&mut self, index: usize, response: UpstreamResponse) {
        if let Some(slot) = self.responses.get_mut(index) {
            slot.get_or_insert(response);
        }
    }

    /// Whether every request of the attempt has its response.
    pub fn is_complete(&self) -> bool {
        self.responses.iter().all(Option::is_some)
    }

    /// The failure of a request that got no response at all, if there is one.
    pub fn silence(&self) -> Option<RequestFailure> {
        self.responses().find_map(RequestFailure::of_silence).cloned()
    }

    /// Whether the host had no memory for a response ([`RequestFailure::BudgetUsedUp`]).
    pub fn lacks_memory(&self) -> bool {
        self.responses().any(|response| matches!(response, Err(RequestFailure::BudgetUsedUp)))
    }

    /// Forgets the responses, so that all are requested again.
    pub fn forget_responses(&mut self) {
        self.responses.iter_mut().for_each(|response| *response = None);
    }

    /// The responses of a complete attempt.
    pub fn responses(&self) -> impl Iterator<Item = &UpstreamResponse> {
        self.responses.iter().flatten()
    }

    /// Why the attempt before this one failed.
    pub fn last_cause(&self) -> Option<&Cause> {
        self.failures.last().map(|failure| &failure.cause)
    }

    /// Ends the present attempt and moves on to the next one.
    ///
    /// # Errors
    /// [`FactFailure`] if there are no more forms to try, or if the upstream was silent.
    pub fn next_attempt(&mut self, cause: Cause, parts: &[B256]) -> Result<(), FactFailure> {
        let method = self.requests.first().map_or("-", |request| request.method);
        // A silent upstream is not asked in other forms.
        let is_silent = self.silence().is_some();
        self.failures.push(AttemptFailure { upstream: self.upstream, name: String::new(), method, cause });
        self.attempt = self.attempt.saturating_add(1);
        if !is_silent && self.prepare(parts) {
            return Ok(());
        }
        Err(FactFailure { target: format!("{}", self.target), attempts: core::mem::take(&mut self.failures) })
    }
}
