//! Reads the index for a light client. Every block is checked against its header before any part of it is returned.
//!
//! Questions are of two kinds, with connections and limits of their own: brief ones look up a block or transaction, long ones
//! read logs and traces.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rootlight::consensus::Network;
use rootlight::types::{B256, BlockRef};
use rootlight_index::{Database, IndexError, IndexReader, IndexedBlock, ReaderOptions};
use rootlight_node::light::index::TransactionPart;
use rootlight_node::light::{BlockPosition, ProvenChain};
use rootlight_upstream::tls_config;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use tracing::warn;

use super::block::CheckedIndexBlock;
use super::failure::NoAnswer;
use super::query_limiter::QueryLimiter;

/// Connections for questions about blocks and transactions.
const BRIEF_CONNECTIONS: usize = 6;
/// Most questions about blocks and transactions that run or wait for a connection.
const BRIEF_QUESTIONS: usize = 64;
/// Longest time of such a question: a backend, which is asked after it, needs about as long.
const BRIEF_TIME: Duration = Duration::from_secs(1);
/// Connections for questions about logs and traces: more would only make each question slower.
const LONG_CONNECTIONS: usize = 4;
/// Most questions about logs and traces that run or wait for a connection.
const LONG_QUESTIONS: usize = 16;
/// Longest time of a question about logs or traces, a third of the default time of a message (60 s).
const LONG_TIME: Duration = Duration::from_secs(20);
/// About how many checked blocks the cache will hold, by which it sizes its tables. A block is cached because a client asks
/// for its body and its receipts one after the other.
const CACHE_BLOCKS: usize = 2_000;
/// Most transactions for which the hash of their block is cached.
const CACHE_TRANSACTIONS: usize = 32_768;

/// How questions to an index ended, since the start. Look-ups of transactions and uncles below the proven chain count only if they
/// failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexCounts {
    /// The index had the answer, or has no traces of a block below the proven chain.
    pub answered: u64,
    /// The index did not have it, so that a backend was asked.
    pub missed: u64,
    /// There was an error: the database failed or was slow, was not asked (it had failed a moment ago, or too many questions were
    /// open), or it could not answer a question about logs or traces, because it lacks blocks or is on another branch.
    pub failed: u64,
}

/// The weight of a checked block in the cache: its bytes.
#[derive(Debug, Clone)]
struct BlockWeight;

impl Weighter<B256, Arc<CheckedIndexBlock>> for BlockWeight {
    fn weight(&self, _: &B256, block: &Arc<CheckedIndexBlock>) -> u64 {
        block.bytes() as u64
    }
}

/// The readers for the two kinds of questions.
#[derive(Debug)]
pub(super) struct Readers {
    brief: IndexReader,
    pub(super) long: IndexReader,
}

/// An index beside the backends of a light client. Everything that it returns of a block matches the block's header, and a
/// block at a height of the proven chain is returned only if it is the chain's block.
pub struct IndexSource {
    database: Database,
    network: Arc<Network>,
    /// Empty until the database was reached.
    readers: OnceCell<Readers>,
    /// Empty until [`Self::follow`].
    chain: OnceLock<ProvenChain>,
    brief_limiter: QueryLimiter,
    long_limiter: QueryLimiter,
    blocks: Cache<B256, Arc<CheckedIndexBlock>, BlockWeight>,
    /// The hash of the block of each transaction.
    blocks_by_transaction: Cache<B256, B256>,
    answered: AtomicU64,
    missed: AtomicU64,
    failed: AtomicU64,
}

impl std::fmt::Debug for IndexSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexSource").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl IndexSource {
    /// Opens the index at `postgres://...` of this network. At most `cache_bytes` of checked blocks are cached. If the database
    /// cannot be reached now, the first question tries again.
    ///
    /// # Errors
    /// [`IndexError::Address`]; [`IndexError::OtherNetwork`], [`IndexError::OlderSchema`] or [`IndexError::NewerSchema`] if
    /// the database was reached.
    pub async fn open(url: &str, network: Arc<Network>, cache_bytes: u64) -> Result<Arc<Self>, IndexError> {
        let database = Database::parse(url, rustls::ClientConfig::clone(&tls_config()))?;
        let source = Self {
            database,
            network,
            readers: OnceCell::new(),
            chain: OnceLock::new(),
            // A brief question that takes too long counts as a failure of the database (`true`), a long one does not (`false`).
            brief_limiter: QueryLimiter::new(BRIEF_QUESTIONS, BRIEF_CONNECTIONS, BRIEF_TIME, true),
            long_limiter: QueryLimiter::new(LONG_QUESTIONS, LONG_CONNECTIONS, LONG_TIME, false),
            blocks: Cache::with_weighter(CACHE_BLOCKS, cache_bytes, BlockWeight),
            blocks_by_transaction: Cache::new(CACHE_TRANSACTIONS),
            answered: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        };
        match source.readers().await {
            Err(error @ (IndexError::Database(_) | IndexError::Pool(_))) => {
                warn!(%error, "the index cannot be read now");
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        Ok(Arc::new(source))
    }

    /// Sets the chain that blocks are compared with. Before the call the index answers nothing; a second call changes nothing.
    pub fn follow(&self, chain: ProvenChain) {
        let _ = self.chain.set(chain);
    }

    /// How questions ended.
    pub fn counts(&self) -> IndexCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        IndexCounts { answered: read(&self.answered), missed: read(&self.missed), failed: read(&self.failed) }
    }

    /// The chain that blocks are compared with.
    pub(super) fn chain(&self) -> Result<&ProvenChain, NoAnswer> {
        self.chain.get().ok_or(NoAnswer::NoChain)
    }

    /// The readers, which are opened by the first call that reaches the database.
    pub(super) async fn readers(&self) -> Result<&Readers, IndexError> {
        let open = async |connections, timeout| {
            let options = ReaderOptions { connections, timeout };
            IndexReader::open(&self.database, self.network.clone(), &options).await
        };
        let both = async || {
            let brief = open(BRIEF_CONNECTIONS, BRIEF_TIME).await?;
            Ok(Readers { brief, long: open(LONG_CONNECTIONS, LONG_TIME).await? })
        };
        self.readers.get_or_try_init(both).await
    }

    /// The block object of a block of the proven chain with at least `depth` blocks on top; `None` if a backend is to be asked.
    pub(super) async fn block(&self, hash: &B256, depth: u64) -> Option<Box<RawValue>> {
        let chain = self.chain.get()?;
        let block = match self.blocks.get(hash) {
            Some(block) => Some(block),
            None => {
                self.look_up(async |reader: &IndexReader| reader.block_with_hash(hash).await).await.ok()?
            }
        };
        let block =
            block.filter(|block| block.block_ref.hash == *hash && chain.is_deep(&block.block_ref, depth));
        self.count_outcome(block.map(|block| block.object.clone()))
    }

    /// A transaction or receipt as JSON; `None` if a backend is to be asked. The block may be below the proven chain; then
    /// only the index says that the block is on the chain.
    pub(super) async fn part(&self, part: TransactionPart, transaction: &B256) -> Option<Box<RawValue>> {
        let found = self.find_part(part, transaction).await.ok()?;
        self.count_outcome(found)
    }

    /// As [`Self::part`], with the reason if there is no answer. Does not count the outcome.
    pub(super) async fn find_part(
        &self,
        part: TransactionPart,
        transaction: &B256,
    ) -> Result<Option<Box<RawValue>>, NoAnswer> {
        let chain = self.chain()?;
        let part_of = |block: &Arc<CheckedIndexBlock>| {
            let found = block
                .part(part, transaction)
                .filter(|_| chain.position(&block.block_ref) != BlockPosition::Elsewhere);
            found.map(ToOwned::to_owned)
        };
        let cached = self.blocks_by_transaction.get(transaction).and_then(|hash| self.blocks.get(&hash));
        if let Some(found) = cached.as_ref().and_then(part_of) {
            return Ok(Some(found));
        }
        let read = async |reader: &IndexReader| reader.block_of_transaction(transaction).await;
        Ok(self.look_up(read).await?.as_ref().and_then(part_of))
    }

    /// Asks a question about logs or traces.
    pub(super) async fn ask_long<T>(
        &self,
        question: impl Future<Output = Result<T, NoAnswer>>,
    ) -> Result<T, NoAnswer> {
        let answer = self.long_limiter.ask(question).await;
        let count = if answer.is_ok() { &self.answered } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Reads a block, checks it on a thread for blocking work, and caches it. `None` if the index does not have it, or if its
    /// rows do not match its header.
    pub(super) async fn look_up(
        &self,
        read: impl AsyncFnOnce(&IndexReader) -> Result<Option<IndexedBlock>, IndexError>,
    ) -> Result<Option<Arc<CheckedIndexBlock>>, NoAnswer> {
        let read = async { Ok(read(&self.readers().await?.brief).await?) };
        let block = self.brief_limiter.ask(read).await.inspect_err(|_| {
            self.failed.fetch_add(1, Ordering::Relaxed);
        })?;
        let Some(block) = block else { return Ok(None) };
        let (network, number) = (self.network.clone(), block.header.number);
        let check = tokio::task::spawn_blocking(move || CheckedIndexBlock::of(block, &network));
        let checked = check.await.map_err(|failure| NoAnswer::Interrupted(failure.to_string()))?;
        let Some(checked) = checked else {
            warn!(number, "rows of the index do not match the block's header");
            return Ok(None);
        };
        let checked = Arc::new(checked);
        self.cache(&checked);
        Ok(Some(checked))
    }

    /// Puts a checked block and its transactions into the caches.
    fn cache(&self, block: &Arc<CheckedIndexBlock>) {
        let BlockRef { hash, .. } = block.block_ref;
        self.blocks.insert(hash, block.clone());
        block.hashes().iter().for_each(|transaction| self.blocks_by_transaction.insert(*transaction, hash));
    }

    /// Counts an answer as found or missed.
    fn count_outcome<T>(&self, answer: Option<T>) -> Option<T> {
        let count = if answer.is_some() { &self.answered } else { &self.missed };
        count.fetch_add(1, Ordering::Relaxed);
        answer
    }
}
