//! Fetches windows of blocks while earlier ones are imported.

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

/// Most windows that are fetched or wait for their import. Several requests are under way at the same time, so that their waits
/// overlap.
const MAX_WINDOWS: usize = 4;

/// Bytes of waiting blocks from which on no further window is fetched. Windows that are under way then may exceed the limit, each
/// by the longest response that the upstream's client accepts.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Estimated memory of a block without its transactions, in bytes.
const BLOCK_BYTES: usize = 2_048;
/// Estimated memory of a transaction without its data, in bytes.
const TRANSACTION_BYTES: usize = 512;

/// Whether a block was imported before.
pub(super) type Knows = Arc<dyn Fn(&B256) -> bool + Send + Sync>;

/// The upstream's height, and a window of blocks.
pub(super) type BlockWindow = (u64, Vec<Fetched>);

/// A window that is being fetched, or waits for its import.
struct WindowTask {
    first: u64,
    fetched: JoinHandle<Result<FetchedWindow, FetchError>>,
}

impl Drop for WindowTask {
    fn drop(&mut self) {
        self.fetched.abort();
    }
}

/// A fetched window. Its bytes count towards [`MAX_WAITING_BYTES`] until it is dropped.
struct FetchedWindow {
    window: BlockWindow,
    /// Estimated memory of the blocks.
    bytes: usize,
    /// [`Prefetcher::waiting`].
    waiting: Arc<AtomicUsize>,
}

impl Drop for FetchedWindow {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Fetches windows ahead of the import.
pub(super) struct Prefetcher {
    knows: Knows,
    upstream: SharedUpstream,
    network: Arc<Network>,
    /// The windows that are being fetched or wait, in order; consecutive ones are [`WINDOW`] blocks apart.
    tasks: VecDeque<WindowTask>,
    /// Estimated bytes of the blocks that wait.
    waiting: Arc<AtomicUsize>,
}

impl Prefetcher {
    /// Fetches from this upstream. The uncles of blocks that the importer knows are left out.
    pub(super) fn new(knows: Knows, upstream: SharedUpstream, network: Arc<Network>) -> Self {
        Self { knows, upstream, network, tasks: VecDeque::new(), waiting: Arc::default() }
    }

    /// Returns the window that begins with this block, and continues with the ones after it if the upstream has them.
    /// Windows that were fetched for another height are dropped.
    pub(super) async fn window(&mut self, first: u64) -> Result<BlockWindow, FetchError> {
        if self.tasks.front().is_none_or(|task| task.first != first) {
            self.tasks.clear();
            self.begin(first);
        }
        // There is a task: `begin` has added one if there was none.
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
        let mut fetched = fetched?;
        let window = std::mem::take(&mut fetched.window);
        // The blocks wait no longer, so their bytes make way for further windows.
        drop(fetched);
        self.continue_after(first, &window);
        Ok(window)
    }

    /// Begins to fetch the windows after one, within the limits. A window that is not full is the last of the upstream's chain.
    fn continue_after(&mut self, first: u64, (announced, blocks): &BlockWindow) {
        if (blocks.len() as u64) < WINDOW {
            return;
        }
        let mut next = self.tasks.back().map_or(first, |task| task.first).saturating_add(WINDOW);
        while self.tasks.len() < MAX_WINDOWS
            && next <= *announced
            && self.waiting.load(Ordering::Relaxed) < MAX_WAITING_BYTES
        {
            self.begin(next);
            next = next.saturating_add(WINDOW);
        }
    }

    /// Begins to fetch the window from block `first` on.
    fn begin(&mut self, first: u64) {
        let (knows, upstream, network) = (self.knows.clone(), self.upstream.clone(), self.network.clone());
        let waiting = self.waiting.clone();
        let fetched = tokio::spawn(async move {
            let window = window(&*knows, &upstream, &network, first).await?;
            let bytes = window.1.iter().map(size).fold(0, usize::saturating_add);
            waiting.fetch_add(bytes, Ordering::Relaxed);
            Ok(FetchedWindow { window, bytes, waiting })
        });
        self.tasks.push_back(WindowTask { first, fetched });
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
