//! The trie store of the reference node (rskj), read while the node writes it. The sidecar proves states from it.
//!
//! The store is a RocksDB database: the key is the keccak-256 of the value, which is a serialized node (RSKIP-107) or a long
//! value. The database is opened as a RocksDB secondary, which writes nothing into the node's folder and takes no lock there.

mod layout;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes, keccak256};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rocksdb::{BlockBasedOptions, DB, LogLevel, Options};
use rootlight::trie::{NodeSource, StoreFault, TrieStore};

use crate::sidecar::NodeStore;

pub use layout::{LayoutError, database};

/// Approximate memory of a cache entry besides its value, in bytes.
const ENTRY_BYTES: u64 = 120;

/// The expected size of an entry in bytes, by which the cache's tables are laid out.
const USUAL_BYTES: u64 = 250;

/// Least time between two times that the database catches up with the node because a node of the trie is missing, so that requests for
/// missing nodes cause a bounded amount of work. Catching up takes up to half a second after the node has written much.
const CATCH_UP_INTERVAL: Duration = Duration::from_millis(200);

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum OpenStoreError {
    /// The folder holds no store that can be read.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A folder for the library's own files cannot be made.
    #[error("a folder for temporary files: {0}")]
    Temporary(#[from] std::io::Error),
    #[error("the cache: {0}")]
    Cache(String),
    #[error("{}: {reason}", path.display())]
    Database { path: PathBuf, reason: String },
}

/// The trie nodes of a reference node.
pub struct RskjStore {
    database: DB,
    cache: Cache<B256, Bytes, CachedNodeWeight>,
    /// When the database last caught up because a node was missing.
    last_catch_up: Mutex<Option<Instant>>,
    // Files of the secondary. Fields are dropped in order, so they are deleted after the database is closed.
    _own_files: tempfile::TempDir,
}

/// The memory that an entry of the cache takes.
#[derive(Debug, Clone, Copy)]
struct CachedNodeWeight;

impl Weighter<B256, Bytes> for CachedNodeWeight {
    fn weight(&self, _: &B256, value: &Bytes) -> u64 {
        ENTRY_BYTES.saturating_add(u64::try_from(value.len()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for RskjStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RskjStore").field("path", &self.database.path()).finish_non_exhaustive()
    }
}

impl RskjStore {
    /// Opens the store in a node's database folder. A quarter of the cache's bytes is for the trie nodes that were read last; the rest is
    /// for blocks of the database's files and their indexes.
    pub fn open(folder: &Path, cache_bytes: u64) -> Result<Self, OpenStoreError> {
        let nodes = cache_bytes / 4;
        let blocks = usize::try_from(cache_bytes.saturating_sub(nodes)).unwrap_or(usize::MAX);
        let blocks = rocksdb::Cache::new_lru_cache(blocks)
            .map_err(|error| OpenStoreError::Cache(error.to_string()))?;
        let own_files = tempfile::Builder::new().prefix("rootlight-sidecar-").tempdir()?;
        let path = database(folder)?;
        let opened = DB::open_as_secondary(&options(&blocks), &path, &own_files.path().to_owned());
        let database =
            opened.map_err(|error| OpenStoreError::Database { path, reason: error.to_string() })?;
        let entries = usize::try_from(nodes / (USUAL_BYTES + ENTRY_BYTES)).unwrap_or(usize::MAX);
        let cache = Cache::with_weighter(entries, nodes, CachedNodeWeight);
        Ok(Self { database, cache, last_catch_up: Mutex::new(None), _own_files: own_files })
    }

    /// Reads a trie node from the database, without the cache.
    fn read(&self, hash: &B256) -> Result<Bytes, StoreFault> {
        match self.database.get_pinned(hash) {
            Ok(Some(value)) if keccak256(&value) == *hash => Ok(Bytes::copy_from_slice(&value)),
            Ok(Some(_)) => Err(StoreFault::Mismatch),
            Ok(None) => Err(StoreFault::Absent),
            Err(error) => Err(StoreFault::Unreadable(error.to_string())),
        }
    }

    /// As [`Self::read`]; a missing trie node is read once more after catching up with the node, unless that was done just before.
    fn read_again(&self, hash: &B256) -> Result<Bytes, StoreFault> {
        let read = self.read(hash);
        if read.is_ok() || !self.may_catch_up() || self.catch_up().is_err() {
            return read;
        }
        self.read(hash)
    }

    /// Whether enough time has passed since the database last caught up; if so, notes that it does now.
    fn may_catch_up(&self) -> bool {
        let mut last_catch_up = self.last_catch_up.lock().unwrap_or_else(PoisonError::into_inner);
        let may = last_catch_up.is_none_or(|at| at.elapsed() >= CATCH_UP_INTERVAL);
        if may {
            *last_catch_up = Some(Instant::now());
        }
        may
    }
}

impl NodeSource for RskjStore {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        if let Some(cached) = self.cache.get(hash) {
            return Some(cached);
        }
        let read = self.read_again(hash).ok()?;
        self.cache.insert(*hash, read.clone());
        Some(read)
    }
}

impl TrieStore for RskjStore {
    fn why_missing(&self, hash: &B256) -> StoreFault {
        self.read(hash).err().unwrap_or(StoreFault::Absent)
    }
}

impl NodeStore for RskjStore {
    fn catch_up(&self) -> Result<(), String> {
        self.database.try_catch_up_with_primary().map_err(|error| error.to_string())
    }

    fn version(&self) -> u64 {
        self.database.latest_sequence_number()
    }
}

/// The options of the database, with the cache for blocks of its files.
fn options(blocks: &rocksdb::Cache) -> Options {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(blocks);
    // Otherwise the indexes of all files stay in memory, some megabytes for each gigabyte of the store.
    tables.set_cache_index_and_filter_blocks(true);
    let mut options = Options::default();
    options.set_block_based_table_factory(&tables);
    // -1 keeps all files open from the start, because the node may delete a file between two catch-ups, and an open file stays readable.
    options.set_max_open_files(-1);
    // The library's own log, in the temporary folder.
    options.set_log_level(LogLevel::Warn);
    options.set_max_log_file_size(1 << 20);
    options.set_keep_log_file_num(2);
    options
}
