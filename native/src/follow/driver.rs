//! The loop of a follower: fetch a window of blocks, import each, keep them, go on.

use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::{ChainError, Network};
use rootlight::light::UpstreamCall;
use rootlight::local::ImportError;
use rootlight::types::B256;
use tracing::warn;

use super::fetch::{FetchError, Fetched, fetch_blocks, fetch_uncles};
use super::progress::Progress;
use crate::store::StoreError;
use crate::upstream::{SharedUpstream, UpstreamError};

/// First step back when the upstream's chain does not continue ours; doubled each time.
const FIRST_REWIND: u64 = 8;

/// Why following ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// A block breaks a rule, or execution gives something else than its header says.
    #[error("{0}")]
    Import(#[from] ImportError),
    /// The upstream's chain has another genesis.
    #[error("the upstream follows another genesis than this network's")]
    OtherChain,
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the driver imports into.
pub trait Target: Send + Sync {
    /// Height of the head.
    fn head(&self) -> u64;

    /// The upstream has announced this height.
    fn announced(&self, _height: u64) {}

    /// Whether a block was imported before.
    fn knows(&self, block: &B256) -> bool;

    /// Imports blocks in order, and keeps them; stops at the first that is refused. The blocks of their uncles are
    /// imported beside the chain: only their headers have to be valid, so one that is refused says nothing about the
    /// block that names it.
    ///
    /// # Errors
    /// Why it is refused.
    fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError>;
}

/// Times of the loop.
#[derive(Debug, Clone)]
pub struct FollowOptions {
    /// Pause before looking for new blocks.
    pub poll: Duration,
    /// Pause after a failed fetch.
    pub retry: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { poll: Duration::from_secs(1), retry: Duration::from_secs(5) }
    }
}

/// Follows for as long as blocks verify. `caught_up` is told when the head is reached for the first time.
pub async fn follow(
    target: Arc<dyn Target>,
    upstream: SharedUpstream,
    network: Arc<Network>,
    options: FollowOptions,
    mut caught_up: impl FnMut(u64) + Send,
) -> FollowError {
    let mut progress = Progress::start(target.head());
    let mut place = Place { next: target.head().saturating_add(1), rewind: FIRST_REWIND };
    loop {
        let (announced, blocks) = match window(&*target, &upstream, &network, place.next).await {
            Ok(fetched) => fetched,
            Err(error) => {
                warn!("{error}; trying again");
                tokio::time::sleep(options.retry).await;
                continue;
            }
        };
        progress.set_target(announced);
        target.announced(announced);
        if blocks.is_empty() {
            progress.finish();
            caught_up(target.head());
            tokio::time::sleep(options.poll).await;
            // The newest block again: the upstream may have switched to a branch that is no longer than ours.
            place.next = target.head().min(announced).max(1);
            continue;
        }
        match place.import(&target, blocks).await {
            Ok(true) => progress.at(target.head()),
            Ok(false) => {}
            Err(Stop::Retry) => tokio::time::sleep(options.retry).await,
            Err(Stop::End(error)) => return error,
        }
    }
}

/// Where the loop is.
struct Place {
    /// The next block to fetch.
    next: u64,
    /// How far to go back where the next block does not link to the chain.
    rewind: u64,
}

/// Why blocks were not imported.
enum Stop {
    /// They may be imported later.
    Retry,
    /// They do not verify.
    End(FollowError),
}

impl Place {
    /// Imports blocks and goes on behind them, or goes back if they link to none of ours; whether they were imported.
    async fn import(&mut self, target: &Arc<dyn Target>, blocks: Vec<Fetched>) -> Result<bool, Stop> {
        let last = blocks.last().map_or(self.next, |fetched| fetched.block.header.number);
        let importing = target.clone();
        let outcome = tokio::task::spawn_blocking(move || importing.import(blocks)).await;
        match outcome {
            Ok(Ok(())) => {
                (self.next, self.rewind) = (last.saturating_add(1), FIRST_REWIND);
                Ok(true)
            }
            Ok(Err(FollowError::Import(ImportError::Header(ChainError::UnknownParent { .. })))) => {
                if self.next <= 1 {
                    return Err(Stop::End(FollowError::OtherChain));
                }
                self.next = self.next.saturating_sub(self.rewind).max(1);
                self.rewind = self.rewind.saturating_mul(2);
                Ok(false)
            }
            Ok(Err(FollowError::Store(failure))) => {
                // Nothing of the window was taken in; the disk may have room again later.
                warn!("{failure}; trying again");
                Err(Stop::Retry)
            }
            Ok(Err(error)) => Err(Stop::End(error)),
            Err(failure) => {
                warn!(%failure, "an import failed");
                Err(Stop::Retry)
            }
        }
    }
}

/// The upstream's height, and blocks from a height on with those of their uncles.
async fn window(
    target: &dyn Target,
    upstream: &SharedUpstream,
    network: &Network,
    first: u64,
) -> Result<(u64, Vec<Fetched>), FetchError> {
    let last = announced(upstream).await.map_err(|error| FetchError::Upstream { number: first, error })?;
    let blocks = fetch_blocks(&**upstream, network, first, last).await?;
    // The newest block comes again each time somebody looks for new ones; its uncles do not.
    let new = |block: &B256| !target.knows(block);
    Ok((last, fetch_uncles(&**upstream, network, blocks, new).await))
}

/// The upstream's height.
async fn announced(upstream: &SharedUpstream) -> Result<u64, UpstreamError> {
    let answers = upstream.request(vec![UpstreamCall::new("eth_blockNumber", "[]".into())]).await;
    let unusable = || UpstreamError::Malformed("eth_blockNumber: not a height".into());
    let text = answers.into_iter().next().ok_or_else(unusable)??;
    rootlight::light::prove::quantity(&text).ok_or_else(unusable)
}
