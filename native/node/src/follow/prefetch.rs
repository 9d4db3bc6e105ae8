//! Windows of blocks that are fetched while earlier ones are imported.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rootlight::consensus::Network;
use rootlight::light::UpstreamRequest;
use rootlight::types::{B256, Block};
use rootlight_upstream::{SharedUpstream, UpstreamError};
use tokio::task::JoinHandle;

use super::error::FetchError;
use super::fetch::{Fetched, WINDOW, fetch_blocks, fetch_uncles};

/// Most windows that are fetched or wait for their import. Several requests are under way at once, so that the time of
/// each does not add up.
const WINDOWS: usize = 4;

/// Bytes of waiting blocks from which on no further window is fetched. The windows that are under way then may exceed
/// it, each by the longest response that the upstream's client accepts for each of its batches.
const BYTES: usize = 64 << 20;

/// Estimated memory of a block and of a transaction without its data, in bytes.
const BLOCK_BYTES: usize = 2_048;
const TRANSACTION_BYTES: usize = 512;

/// Whether a block was imported before.
pub(super) type Knows = Arc<dyn Fn(&B256) -> bool + Send + Sync>;

/// The upstream's height, and a window of blocks.
pub(super) type BlockWindow = (u64, Vec<Fetched>);

/// A window that is fetched, or waits.
struct Task {
    first: u64,
    fetched: JoinHandle<Result<FetchedWindow, FetchError>>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.fetched.abort();
    }
}

/// A fetched window. Its bytes count towards [`BYTES`] until it is dropped.
struct FetchedWindow {
    window: BlockWindow,
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Drop for FetchedWindow {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Fetches windows ahead of the import.
pub(super) struct Prefetcher {
    knows: Knows,
    upstream: SharedUpstream,
    network: Arc<Network>,
    tasks: VecDeque<Task>,
    /// Estimated bytes of the blocks that wait.
    waiting: Arc<AtomicUsize>,
}

impl Prefetcher {
    /// Fetches from this upstream. The uncles of blocks that the importer knows are left out.
    pub(super) fn new(knows: Knows, upstream: SharedUpstream, network: Arc<Network>) -> Self {
        Self { knows, upstream, network, tasks: VecDeque::new(), waiting: Arc::default() }
    }

    /// Returns the window that begins with this block, and continues with the ones after it if the upstream has them.
    /// Windows that were fetched for another place are dropped.
    pub(super) async fn window(&mut self, first: u64) -> Result<BlockWindow, FetchError> {
        if self.tasks.front().is_none_or(|task| task.first != first) {
            self.tasks.clear();
            self.begin(first);
        }
        let Some(mut task) = self.tasks.pop_front() else { return Ok((0, Vec::new())) };
        let fetched = match (&mut task.fetched).await {
            Ok(fetched) => fetched,
            Err(failure) => {
                let error = UpstreamError::Transport(format!("a fetch failed: {failure}"));
                Err(FetchError::Upstream { number: first, error })
            }
        };
        if fetched.is_err() {
            self.tasks.clear();
        }
        let mut reserved = fetched?;
        let window = std::mem::take(&mut reserved.window);
        drop(reserved);
        self.continue_after(first, &window);
        Ok(window)
    }

    /// Begins to fetch the windows after one, as many as there is room for. A window that is not full is the last one.
    fn continue_after(&mut self, first: u64, (announced, blocks): &BlockWindow) {
        if (blocks.len() as u64) < WINDOW {
            return;
        }
        let mut next = self.tasks.back().map_or(first, |task| task.first).saturating_add(WINDOW);
        while self.tasks.len() < WINDOWS && next <= *announced && self.waiting.load(Ordering::Relaxed) < BYTES
        {
            self.begin(next);
            next = next.saturating_add(WINDOW);
        }
    }

    fn begin(&mut self, first: u64) {
        let (knows, upstream, network) = (self.knows.clone(), self.upstream.clone(), self.network.clone());
        let all = self.waiting.clone();
        let fetched = tokio::spawn(async move {
            let window = window(&*knows, &upstream, &network, first).await?;
            let bytes = window.1.iter().map(size).fold(0, usize::saturating_add);
            all.fetch_add(bytes, Ordering::Relaxed);
            Ok(FetchedWindow { window, bytes, all })
        });
        self.tasks.push_back(Task { first, fetched });
    }
}

/// Estimated memory of a fetched block, in bytes.
fn size(fetched: &Fetched) -> usize {
    let of = |block: &Block| {
        let data = block.body.transactions.iter().map(|tx| tx.data.len().saturating_add(TRANSACTION_BYTES));
        data.fold(BLOCK_BYTES, usize::saturating_add)
    };
    fetched.uncles.iter().map(of).fold(of(&fetched.block), usize::saturating_add)
}

/// Returns the upstream's height, and the blocks from `first` on with the blocks of their uncles.
async fn window(
    knows: &(dyn Fn(&B256) -> bool + Send + Sync),
    upstream: &SharedUpstream,
    network: &Network,
    first: u64,
) -> Result<BlockWindow, FetchError> {
    let last = announced(upstream).await.map_err(|error| FetchError::Upstream { number: first, error })?;
    let blocks = fetch_blocks(&**upstream, network, first, last).await?;
    // The newest block is fetched again at each poll; its uncles need to be fetched only once.
    let new = |block: &B256| !knows(block);
    Ok((last, fetch_uncles(&**upstream, network, blocks, new).await))
}

/// Returns the upstream's height.
async fn announced(upstream: &SharedUpstream) -> Result<u64, UpstreamError> {
    let answers = upstream.request(vec![UpstreamRequest::new("eth_blockNumber", "[]".into())]).await;
    let unusable = || UpstreamError::Malformed("eth_blockNumber: not a height".into());
    let text = answers.into_iter().next().ok_or_else(unusable)??;
    rootlight::light::prove::quantity(&text).ok_or_else(unusable)
}
