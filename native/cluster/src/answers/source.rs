//! The index as it answers a light client: what it says is checked before it is passed on.

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

/// Connections for blocks and transactions.
const BRIEF_CONNECTIONS: usize = 6;
/// Questions about blocks and transactions that may be open; those without a connection wait for one.
const BRIEF_QUESTIONS: usize = 64;
/// Time of such a question: a backend answers about as fast.
const BRIEF_TIME: Duration = Duration::from_secs(1);
/// Connections for logs: more would only make each question slower.
const LOG_CONNECTIONS: usize = 4;
/// Questions about logs that may be open; those without a connection wait for one.
const LOG_QUESTIONS: usize = 16;
/// Time of a question about logs, a third of the time that a message has.
const LOG_TIME: Duration = Duration::from_secs(20);
/// About how many checked blocks the cache will hold, by which it sizes its tables. A block is kept because its body and its
/// receipts are asked for one after the other; answers that are asked for again and again are kept elsewhere.
const CACHE_BLOCKS: usize = 2_000;
/// Transactions whose blocks are remembered.
const CACHE_TRANSACTIONS: usize = 32_768;

/// How questions to an index ended, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexCounts {
    /// The index had the answer.
    pub answered: u64,
    /// The index did not have it, so that a backend was asked.
    pub missed: u64,
    /// The database failed, was slow, or was left alone.
    pub failed: u64,
}

/// The weight of a checked block.
#[derive(Debug, Clone)]
struct BlockWeight;

impl Weighter<B256, Arc<CheckedIndexBlock>> for BlockWeight {
    fn weight(&self, _: &B256, block: &Arc<CheckedIndexBlock>) -> u64 {
        block.bytes() as u64
    }
}

#[derive(Debug)]
pub(super) struct Readers {
    brief: IndexReader,
    pub(super) logs: IndexReader,
}

/// An index beside the backends of a light client. It gives nothing that does not match a header, and nothing of blocks on
/// the proven chain that are not the chain's.
pub struct IndexSource {
    database: Database,
    network: Arc<Network>,
    readers: OnceCell<Readers>,
    chain: OnceLock<ProvenChain>,
    brief: QueryLimiter,
    long: QueryLimiter,
    blocks: Cache<B256, Arc<CheckedIndexBlock>, BlockWeight>,
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
    /// Opens the index at `postgres://...` of this network, of which at most `cache_bytes` of checked blocks are kept. A
    /// database that cannot be reached now is tried again when something is asked.
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
            brief: QueryLimiter::new(BRIEF_QUESTIONS, BRIEF_CONNECTIONS, BRIEF_TIME, true),
            long: QueryLimiter::new(LOG_QUESTIONS, LOG_CONNECTIONS, LOG_TIME, false),
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

    /// Names the chain that blocks are compared with. Until then the index answers nothing; the first chain counts.
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

    pub(super) async fn readers(&self) -> Result<&Readers, IndexError> {
        let open = async |connections, timeout| {
            let options = ReaderOptions { connections, timeout };
            IndexReader::open(&self.database, self.network.clone(), &options).await
        };
        let both = async || {
            let brief = open(BRIEF_CONNECTIONS, BRIEF_TIME).await?;
            Ok(Readers { brief, logs: open(LOG_CONNECTIONS, LOG_TIME).await? })
        };
        self.readers.get_or_try_init(both).await
    }

    /// The block object of a block of the proven chain, which has this many blocks on top; `None` if a backend is to be
    /// asked.
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
        self.noted(block.map(|block| block.object.clone()))
    }

    /// A part of a transaction in a block of the index; `None` if a backend is to be asked. A block below the proven
    /// chain only tells where the transaction is.
    pub(super) async fn part(&self, about: TransactionPart, transaction: &B256) -> Option<Box<RawValue>> {
        let found = self.found(about, transaction).await.ok()?;
        self.noted(found)
    }

    /// As [`Self::part`]; says why there is no answer.
    pub(super) async fn found(
        &self,
        about: TransactionPart,
        transaction: &B256,
    ) -> Result<Option<Box<RawValue>>, NoAnswer> {
        let chain = self.chain()?;
        let part = |block: &Arc<CheckedIndexBlock>| {
            let part = block
                .part(about, transaction)
                .filter(|_| chain.position(&block.block_ref) != BlockPosition::Elsewhere);
            part.map(ToOwned::to_owned)
        };
        let kept = self.blocks_by_transaction.get(transaction).and_then(|hash| self.blocks.get(&hash));
        if let Some(part) = kept.as_ref().and_then(part) {
            return Ok(Some(part));
        }
        let read = async |reader: &IndexReader| reader.block_of_transaction(transaction).await;
        Ok(self.look_up(read).await?.as_ref().and_then(part))
    }

    /// Asks a question that may take long.
    pub(super) async fn long<T>(
        &self,
        question: impl Future<Output = Result<T, NoAnswer>>,
    ) -> Result<T, NoAnswer> {
        let answer = self.long.ask(question).await;
        let count = if answer.is_ok() { &self.answered } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Reads a block, checks it on a thread for blocking work, and keeps it.
    pub(super) async fn look_up(
        &self,
        read: impl AsyncFnOnce(&IndexReader) -> Result<Option<IndexedBlock>, IndexError>,
    ) -> Result<Option<Arc<CheckedIndexBlock>>, NoAnswer> {
        let read = async { Ok(read(&self.readers().await?.brief).await?) };
        let block = self.brief.ask(read).await.inspect_err(|_| {
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
        self.keep(&checked);
        Ok(Some(checked))
    }

    fn keep(&self, block: &Arc<CheckedIndexBlock>) {
        let BlockRef { hash, .. } = block.block_ref;
        self.blocks.insert(hash, block.clone());
        block.hashes().iter().for_each(|transaction| self.blocks_by_transaction.insert(*transaction, hash));
    }

    fn noted<T>(&self, answer: Option<T>) -> Option<T> {
        let count = if answer.is_some() { &self.answered } else { &self.missed };
        count.fetch_add(1, Ordering::Relaxed);
        answer
    }
}
