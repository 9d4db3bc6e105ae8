//! Writes recordings, which `replay` reads as upstreams. `record` (of `rootlight record`) sends all requests that a light client
//! makes about a range of blocks; `recorded` records the requests that a program sends while it runs.

mod recorded;
mod writer;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use rootlight::light::{UpstreamRequest, prove};
use serde::Deserialize;
use serde_json::json;

use crate::{Upstream, UpstreamError, UpstreamResult, call, quantity};
pub use recorded::{RECORDING_BYTES, RecordedUpstream, Recording};
use writer::Files;
pub use writer::RecordError;

/// Number of blocks that are requested at a time; limits memory and gives regular progress lines.
const STEP: u64 = 50;

/// The range, accounts and form of a recording.
#[derive(Debug, Clone)]
pub struct RecordPlan {
    /// First block.
    pub from: u64,
    /// Last block; the upstream's head if `None`.
    pub to: Option<u64>,
    /// Accounts to prove at every block.
    pub accounts: Vec<String>,
    /// Storage slots to prove with each account.
    pub slots: Vec<String>,
    /// Whether the files are compressed.
    pub gzip: bool,
}

/// The recorded range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedRange {
    /// First block.
    pub from: u64,
    /// Last block.
    pub to: u64,
    /// Number of recorded responses, one per line.
    pub answers: u64,
}

/// The fields of a block that lead to further requests.
#[derive(Debug, Deserialize)]
struct BlockLinks {
    hash: String,
    #[serde(default)]
    transactions: Vec<Transaction>,
    #[serde(default)]
    uncles: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Transaction {
    hash: String,
}

/// Records an upstream into a folder, and calls `progress` with lines of text.
///
/// # Errors
/// The upstream fails or lacks a block of the range, or a file cannot be written.
pub async fn record(
    upstream: &dyn Upstream,
    plan: &RecordPlan,
    folder: &Path,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<RecordedRange, RecordError> {
    let mut recorder = BlockRecorder {
        upstream,
        files: Files::create(folder, plan.gzip)?,
        missing: BTreeSet::new(),
        answers: 0,
        progress,
    };
    let to = recorder.last_block(plan).await?;
    recorder.info().await?;
    let started = Instant::now();
    let mut first = plan.from;
    while first <= to {
        let last = to.min(first.saturating_add(STEP - 1));
        recorder.blocks(first, last, plan).await?;
        let (done, total) = (last - plan.from + 1, to - plan.from + 1);
        let seconds = started.elapsed().as_secs_f64().max(0.001);
        progress(&format!("blocks {done}/{total}, {:.0} per second", done as f64 / seconds));
        first = last.saturating_add(1);
    }
    let answers = recorder.answers;
    recorder.files.finish()?;
    Ok(RecordedRange { from: plan.from, to, answers })
}

/// A recording of a range of blocks that is being made.
struct BlockRecorder<'a> {
    upstream: &'a dyn Upstream,
    files: Files,
    /// Methods that the upstream does not have. Each is reported once and then left out.
    missing: BTreeSet<&'static str>,
    /// Number of responses written.
    answers: u64,
    /// Gets lines of text for the user.
    progress: &'a (dyn Fn(&str) + Sync),
}

impl BlockRecorder<'_> {
    /// The last block of the plan, after a check of the range against the upstream's head.
    async fn last_block(&self, plan: &RecordPlan) -> Result<u64, RecordError> {
        let answer = self.upstream.request(vec![call("eth_blockNumber", json!([]))]).await.into_iter().next();
        let head = match answer {
            Some(Ok(result)) => prove::quantity(&result),
            Some(Err(error)) => return Err(RecordError::Head(error.to_string())),
            None => None,
        };
        let head = head.ok_or_else(|| RecordError::Head("not a number".into()))?;
        let to = plan.to.unwrap_or(head);
        if to > head || plan.from > to {
            return Err(RecordError::Range { from: plan.from, to, head });
        }
        Ok(to)
    }

    /// Records the requests about the chain as a whole.
    async fn info(&mut self) -> Result<(), RecordError> {
        let requests =
            ["eth_chainId", "net_version", "web3_clientVersion"].map(|method| call(method, json!([])));
        self.ask("info", requests.to_vec()).await.map(|_| ())
    }

    /// Records all requests about the blocks from `first` to `last`.
    async fn blocks(&mut self, first: u64, last: u64, plan: &RecordPlan) -> Result<(), RecordError> {
        let requests =
            (first..=last).map(|n| call("eth_getBlockByNumber", json!([quantity(n), true]))).collect();
        let mut blocks = Vec::new();
        for (answer, n) in self.ask("blocks", requests).await?.into_iter().zip(first..) {
            let text = answer.map_err(|error| RecordError::Block { number: n, reason: error.to_string() })?;
            let block: BlockLinks = serde_json::from_str(text.get())
                .map_err(|failure| RecordError::Block { number: n, reason: failure.to_string() })?;
            blocks.push(block);
        }
        let requests =
            (first..=last).map(|n| call("rsk_getRawBlockHeaderByNumber", json!([quantity(n)]))).collect();
        self.ask("headers", requests).await?;
        let uncles = blocks.iter().zip(first..).flat_map(|(block, n)| block.uncle_requests(n)).collect();
        self.ask("uncles", uncles).await?;
        let receipts = blocks.iter().flat_map(BlockLinks::receipt_requests).collect();
        self.ask("receipts", receipts).await?;
        let proof =
            |n: u64, account: &String| call("eth_getProof", json!([account, plan.slots, quantity(n)]));
        let proofs = (first..=last).flat_map(|n| plan.accounts.iter().map(move |account| (n, account)));
        let proofs = proofs.map(|(n, account)| proof(n, account)).collect();
        self.ask("proofs", proofs).await.map(|_| ())
    }

    /// Sends requests and writes the responses into the file of this name. A failed connection ends the recording; errors of single
    /// requests are recorded.
    async fn ask(
        &mut self,
        file: &'static str,
        requests: Vec<UpstreamRequest>,
    ) -> Result<Vec<UpstreamResult>, RecordError> {
        let requests: Vec<UpstreamRequest> =
            requests.into_iter().filter(|call| !self.missing.contains(call.method)).collect();
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.upstream.request(requests.clone()).await;
        for (call, answer) in requests.iter().zip(&answers) {
            match answer {
                // "Method not found" (JSON-RPC 2.0).
                Err(UpstreamError::Rpc { code: -32601, .. }) => self.leave_out(call.method),
                // The upstream is itself a recording, which does not hold this response.
                Err(UpstreamError::NotRecorded(_)) => {}
                Err(error @ UpstreamError::Rpc { .. }) => self.write(file, call, Err(error))?,
                Err(error) => return Err(RecordError::Upstream(error.to_string())),
                Ok(result) => self.write(file, call, Ok(result))?,
            }
        }
        Ok(answers)
    }

    /// Notes that the upstream does not have a method.
    fn leave_out(&mut self, method: &'static str) {
        if self.missing.insert(method) {
            (self.progress)(&format!("{method} is not available from {}; left out", self.upstream.name()));
        }
    }

    /// Writes a request and its response into the file of this name.
    fn write(
        &mut self,
        file: &'static str,
        call: &UpstreamRequest,
        answer: Result<&serde_json::value::RawValue, &UpstreamError>,
    ) -> Result<(), RecordError> {
        self.answers = self.answers.saturating_add(1);
        self.files.write(file, self.answers, call, answer)
    }
}

impl BlockLinks {
    /// The requests for the uncles of a block.
    fn uncle_requests(&self, number: u64) -> Vec<UpstreamRequest> {
        let by = |method, block: String, index: u64| call(method, json!([block, quantity(index)]));
        (0..self.uncles.len() as u64)
            .flat_map(|index| {
                [
                    by("eth_getUncleByBlockNumberAndIndex", quantity(number), index),
                    by("eth_getUncleByBlockHashAndIndex", self.hash.clone(), index),
                ]
            })
            .chain(self.uncles.iter().map(|hash| call("rsk_getRawBlockHeaderByHash", json!([hash]))))
            .collect()
    }

    /// The requests for the receipts of a block's transactions.
    fn receipt_requests(&self) -> Vec<UpstreamRequest> {
        let of = |tx: &Transaction| {
            let hash = &tx.hash;
            [
                call("eth_getTransactionReceipt", json!([hash])),
                call("rsk_getRawTransactionReceiptByHash", json!([hash])),
                call("rsk_getTransactionReceiptNodesByHash", json!([self.hash, hash])),
            ]
        };
        self.transactions.iter().flat_map(of).collect()
    }
}
