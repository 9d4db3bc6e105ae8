//! The loop of a follower: imports and stores a window of blocks while the next windows are fetched, steps back where the upstream
//! has switched to another branch, and ends when a block does not verify.

use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::{ChainError, Network};
use rootlight::local::ImportError;
use rootlight::types::B256;
use rootlight_upstream::SharedUpstream;
use tracing::warn;

use super::fetch::{Fetched, fetch_headers};
use super::prefetch::Prefetcher;
use super::progress::Progress;
use crate::store::ChainStoreError;

/// First step back, in blocks, when the upstream's chain does not continue ours; each further step is twice as long, so that a deep
/// fork is found in few steps.
const FIRST_REWIND: u64 = 8;

/// Why following ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum FollowError {
    /// A block breaks a rule, or its execution does not give what its header states.
    #[error("{0}")]
    Import(#[from] ImportError),
    #[error(
        "the upstream's chain has another block 0 than this network: give an upstream of this network, or a network file with \
         the genesis of the upstream's chain (--network FILE, docs/networks.md)"
    )]
    OtherChain,
    /// The upstream's chain left the followed one below the oldest state that is kept.
    #[error(
        "the upstream's chain has left the one followed here at block {fork}, {depth} blocks below its newest, and the state \
         of block {fork} is not in memory: start again without --history, or with --history {depth} or more, which takes \
         older states from --data-dir (without --data-dir, a new start begins at block 0)"
    )]
    TooDeep { fork: u64, depth: u64 },
    /// The upstream's chain is a branch of more blocks than are kept outside the canonical chain, and is not the heaviest
    /// with them.
    #[error(
        "block {0}: the upstream's branch is longer than the blocks that are kept outside the heaviest chain, which is still \
         the one followed here: if the upstream is right, start again with an empty --data-dir"
    )]
    TooLong(u64),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] ChainStoreError),
}

/// The chain that blocks are imported into.
pub trait FollowTarget: Send + Sync {
    /// Returns the height of the head.
    fn head(&self) -> u64;

    /// Reports the height that the upstream has announced.
    fn announced(&self, _height: u64) {}

    /// Whether a block was imported before.
    fn knows(&self, block: &B256) -> bool;

    /// Imports blocks in order and stores them; stops at the first block that is refused. The blocks of their
    /// uncles are imported as side blocks. Only the header of an uncle must be valid, so a refused uncle
    /// block says nothing about the block that names it.
    ///
    /// # Errors
    /// The error of the first block that is refused.
    fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError>;
}

/// Pauses of the loop.
#[derive(Debug, Clone)]
pub struct FollowOptions {
    /// Pause between requests for new blocks.
    pub poll: Duration,
    /// Pause after a failed fetch.
    pub retry: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { poll: Duration::from_secs(1), retry: Duration::from_secs(5) }
    }
}

/// Follows the upstream until a block fails verification, and returns the error. `caught_up` is called with
/// the head's height each time the upstream's head is reached.
pub async fn follow(
    target: Arc<dyn FollowTarget>,
    upstream: SharedUpstream,
    network: Arc<Network>,
    options: FollowOptions,
    mut caught_up: impl FnMut(u64) + Send,
) -> FollowError {
    let mut progress = Progress::start(target.head());
    let importer = target.clone();
    let mut ahead =
        Prefetcher::new(Arc::new(move |block| importer.knows(block)), upstream.clone(), network.clone());
    let mut position = FollowPosition::after(target.head());
    loop {
        let (announced, blocks) = match ahead.window(position.next).await {
            Ok(fetched) => fetched,
            Err(error) => {
                warn!("{error}; trying again");
                tokio::time::sleep(options.retry).await;
                continue;
            }
        };
        progress.set_target(announced);
        // The call may block until a message that changes the node has run. A failure of the thread changes nothing here.
        let followed = target.clone();
        let _ = tokio::task::spawn_blocking(move || followed.announced(announced)).await;
        if blocks.is_empty() {
            if announced == 0 && has_other_genesis(&upstream, &network).await {
                return FollowError::OtherChain;
            }
            progress.finish();
            caught_up(target.head());
            tokio::time::sleep(options.poll).await;
            // The newest block is requested again, because the upstream may have switched to a branch of the
            // same length.
            position.next = target.head().min(announced).max(1);
            continue;
        }
        match position.import(&target, blocks).await {
            Ok(true) => progress.at(target.head()),
            Ok(false) => {}
            Err(ImportStop::Retry) => tokio::time::sleep(options.retry).await,
            Err(ImportStop::Early(error)) => {
                position.warn_early(&error);
                tokio::time::sleep(options.retry).await;
            }
            Err(ImportStop::End(error)) => return error,
        }
    }
}

/// Whether the upstream shows another block 0 than the network's. On a chain with further blocks, block 1 shows this as well.
async fn has_other_genesis(upstream: &SharedUpstream, network: &Network) -> bool {
    let headers = fetch_headers(&**upstream, network, 0, 0).await.unwrap_or_default();
    headers.first().is_some_and(|header| header.hash() != network.genesis_hash)
}

/// The loop's position in the upstream's chain.
struct FollowPosition {
    /// Height of the next block to fetch.
    next: u64,
    /// Number of blocks to go back if the next block does not link to the chain.
    rewind: u64,
    /// The last block that was imported.
    last: Option<(u64, B256)>,
    /// Height of the block ahead of the clock that was reported last.
    early: Option<u64>,
}

/// Why blocks were not imported.
enum ImportStop {
    /// The import may succeed later.
    Retry,
    /// A block is ahead of this computer's clock.
    Early(ChainError),
    /// The blocks do not verify.
    End(FollowError),
}

impl FollowPosition {
    /// The position of a chain with this head.
    fn after(head: u64) -> Self {
        Self { next: head.saturating_add(1), rewind: FIRST_REWIND, last: None, early: None }
    }

    /// Reports a block ahead of the clock, once.
    fn warn_early(&mut self, error: &ChainError) {
        let number = match error {
            ChainError::Rule { number, .. } | ChainError::Uncles { number, .. } => *number,
            _ => self.next,
        };
        if self.early.replace(number) != Some(number) {
            warn!(
                "{error}; waiting until it is due: check this computer's clock, or that of the upstream's miner"
            );
        }
    }

    /// Imports blocks and moves on, or steps back if they do not link to our chain. Returns whether they were
    /// imported.
    async fn import(
        &mut self,
        target: &Arc<dyn FollowTarget>,
        blocks: Vec<Fetched>,
    ) -> Result<bool, ImportStop> {
        let last = blocks.last().map_or(self.next, |fetched| fetched.block.header.number);
        let id = |fetched: &Fetched| (fetched.block.header.number, fetched.block.header.hash());
        let ids: Vec<(u64, B256)> = blocks.iter().map(id).collect();
        let importing = target.clone();
        match tokio::task::spawn_blocking(move || importing.import(blocks)).await {
            Ok(Ok(())) => {
                (self.next, self.rewind) = (last.saturating_add(1), FIRST_REWIND);
                (self.last, self.early) = (ids.last().copied(), None);
                Ok(true)
            }
            Ok(Err(FollowError::Import(ImportError::Header(ChainError::UnknownParent {
                number,
                parent,
            })))) => {
                let parent = (number.saturating_sub(1), parent);
                self.step_back(parent, self.last == Some(parent) || ids.contains(&parent)).map(|()| false)
            }
            Ok(Err(error)) => Err(refused(error, target.head())),
            Err(failure) => {
                warn!(%failure, "an import failed");
                Err(ImportStop::Retry)
            }
        }
    }

    /// Goes back to find the last common block. A parent that was imported and dropped again ends the loop, because importing it
    /// again would drop it again.
    fn step_back(&mut self, parent: (u64, B256), was_dropped: bool) -> Result<(), ImportStop> {
        if was_dropped {
            return Err(ImportStop::End(FollowError::TooLong(parent.0.saturating_add(1))));
        }
        if self.next <= 1 {
            return Err(ImportStop::End(FollowError::OtherChain));
        }
        self.next = self.next.saturating_sub(self.rewind).max(1);
        self.rewind = self.rewind.saturating_mul(2);
        Ok(())
    }
}

/// The next step when the chain with this head refuses a block.
fn refused(error: FollowError, head: u64) -> ImportStop {
    match error {
        FollowError::Import(ImportError::Header(error)) if error.is_early() => ImportStop::Early(error),
        FollowError::Import(ImportError::NoState { number, .. }) => {
            let fork = number.saturating_sub(1);
            ImportStop::End(FollowError::TooDeep { fork, depth: head.saturating_sub(fork) })
        }
        FollowError::Store(failure) => {
            // No block of the window was imported. The disk may have room again later.
            warn!("{failure}; trying again");
            ImportStop::Retry
        }
        error => ImportStop::End(error),
    }
}
