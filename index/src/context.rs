//! Settings, reports and errors that the tasks of a loader share.

use std::sync::Arc;
use std::time::Duration;

use crate::error::IndexError;
use crate::source::{BlockSource, SourceBlock, SourceError};
use crate::writer::{Appended, SharedWriter};

/// How an index is loaded.
#[derive(Debug, Clone)]
pub struct LoaderOptions {
    /// Number of partitions that are filled at a time.
    pub jobs: usize,
    /// Most blocks of one database transaction, and of one request to the source.
    pub batch: u64,
    /// Partitions that end at least so many blocks below the head are filled in parallel. Newer blocks may be reorganised,
    /// so they are loaded in ascending order.
    pub settled_depth: u64,
    /// Least number of newest blocks that stay in the index; partitions that are entirely older are dropped. `None` drops none.
    pub retain: Option<u64>,
    /// Pause between requests for the head of the source, once all blocks are loaded.
    pub poll: Duration,
    /// Pause before a step that failed is tried again.
    pub retry: Duration,
    /// Whether blocks that are stored without traces get theirs later. The source must give traces.
    pub traces: bool,
    /// Whether to end once all blocks up to the head are loaded.
    pub once: bool,
}

impl Default for LoaderOptions {
    fn default() -> Self {
        Self {
            jobs: 4,
            batch: 128,
            // Far deeper than reorganisations that happen, so that a parallel task does not meet one.
            settled_depth: 1_000,
            retain: None,
            poll: Duration::from_secs(1),
            retry: Duration::from_secs(2),
            traces: false,
            once: false,
        }
    }
}

/// A report of a loader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadEvent {
    /// The lock of the index is taken, and the schema is up to date.
    Opened,
    /// The plan is made: how many blocks are to be loaded up to the head.
    Planned {
        /// Number of blocks that are missing.
        missing: u64,
        /// Height of the source's head.
        head: u64,
    },
    /// A batch of blocks was committed.
    Stored {
        /// Number of blocks.
        blocks: u64,
        /// Number of their logs.
        logs: u64,
        /// Number of blocks that a reorganisation removed.
        removed: u64,
    },
    /// Number of stored blocks that are to get their traces.
    TracesPlanned(u64),
    /// Number of blocks whose traces were stored now.
    Traced(u64),
    /// Number of the newest block: all blocks of its partition up to this one are loaded and can be searched.
    AtHead(u64),
    /// Number of partitions that were dropped because they are old.
    Dropped(usize),
}

/// Takes the reports of a loader. The function must return at once: the loader waits for it.
pub type Observer = Arc<dyn Fn(LoadEvent) + Send + Sync>;

/// Why loading ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The index cannot be written.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The source does not give the blocks.
    #[error("{0}")]
    Source(#[from] SourceError),
}

impl LoadError {
    /// Whether another try may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            // The next session plans anew from the blocks that are loaded.
            Self::Index(IndexError::Progress { .. }) => true,
            Self::Index(error) => error.is_transient(),
            Self::Source(error) => matches!(error, SourceError::Transient(_)),
        }
    }
}

/// The writer, the source and the observer, which every task of a loader uses.
#[derive(Clone)]
pub(crate) struct LoaderContext {
    pub(crate) writer: SharedWriter,
    pub(crate) source: Arc<dyn BlockSource>,
    pub(crate) observer: Observer,
}

impl LoaderContext {
    /// Stores blocks and reports them. Returns the height after the last one; `None` if nothing was stored, because the stored
    /// block below the first one is on another branch.
    pub(crate) async fn store(&self, blocks: &[SourceBlock]) -> Result<Option<u64>, IndexError> {
        let logs = blocks.iter().map(|block| block.block.logs() as u64).fold(0, u64::saturating_add);
        match self.writer.append(blocks).await? {
            Appended::OtherParent => Ok(None),
            Appended::Stored { removed, traced } => {
                let blocks_stored = blocks.len() as u64;
                (self.observer)(LoadEvent::Stored { blocks: blocks_stored, logs, removed });
                if traced > 0 {
                    (self.observer)(LoadEvent::Traced(traced));
                }
                let last = blocks.last().map(|last| last.block.header().number);
                Ok(last.and_then(|last| last.checked_add(1)))
            }
        }
    }
}
