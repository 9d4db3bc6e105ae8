//! The loader: filling in parallel, reorganisations of the source, restarts of the server and of the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rootlight::types::B256;
use rootlight_index::testkit::PostgresServer;
use rootlight_index::{
    BlockSource, IndexError, LoadError, LoadEvent, Loader, LoaderOptions, Setup, SourceBlock, SourceError,
};

use crate::common::{TestDatabase, chain, counts_of, hash, network, setup, traced};

/// A chain in memory, which can be reorganised.
pub(crate) struct MemorySource {
    chain: Mutex<Vec<SourceBlock>>,
    answers: AtomicU64,
    /// Pause before each answer.
    pause: Duration,
    /// Whether the source can tell the hash of a block at a height.
    knows_hashes: bool,
    /// Whether blocks come with traces.
    pub(crate) traces: std::sync::atomic::AtomicBool,
}

impl MemorySource {
    pub(crate) fn of(chain: Vec<SourceBlock>) -> Self {
        Self {
            chain: Mutex::new(chain),
            answers: AtomicU64::new(0),
            pause: Duration::ZERO,
            knows_hashes: true,
            traces: false.into(),
        }
    }

    /// Replaces the blocks from a height on by others up to a new head.
    pub(crate) fn reorganise(&self, salt: u64, from: u64, head: u64) {
        let mut chain_now = self.chain.lock().unwrap();
        let parent = hash(&chain_now[from as usize - 1]);
        chain_now.truncate(from as usize);
        chain_now.extend(chain(salt, from, head, parent));
    }

    pub(crate) fn head(&self) -> SourceBlock {
        self.chain.lock().unwrap().last().unwrap().clone()
    }
}

impl BlockSource for MemorySource {
    fn head(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        let head = self.head().block.header().number;
        async move { Ok(head) }.boxed()
    }

    fn hash(&self, number: u64) -> Option<B256> {
        self.knows_hashes.then(|| self.chain.lock().unwrap().get(number as usize).map(hash)).flatten()
    }

    fn blocks(&self, first: u64, last: u64) -> BoxFuture<'_, Result<Vec<SourceBlock>, SourceError>> {
        self.answers.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::time::sleep(self.pause).await;
            let chain = self.chain.lock().unwrap();
            let last = last.min(chain.len() as u64 - 1);
            let blocks = chain.get(first as usize..=last as usize).unwrap_or_default().to_vec();
            Ok(if self.traces.load(Ordering::Relaxed) { traced(blocks) } else { blocks })
        }
        .boxed()
    }
}

pub(crate) fn options(once: bool) -> LoaderOptions {
    LoaderOptions {
        jobs: 3,
        batch: 16,
        settled_depth: 50,
        retain: None,
        poll: Duration::from_millis(5),
        retry: Duration::from_millis(50),
        traces: false,
        once,
    }
}

pub(crate) fn loader(database: &TestDatabase, source: Arc<MemorySource>, options: LoaderOptions) -> Loader {
    Loader {
        database: database.address.clone(),
        network: network(),
        // The lock of a connection that was just dropped may still be held.
        setup: Setup { wait: true, ..setup() },
        source,
        options,
        observer: Arc::new(|_| {}),
    }
}

/// Waits until the index has exactly the chain of a source.
async fn until_equal(database: &TestDatabase, source: &MemorySource) {
    let reader = database.reader().await;
    for _ in 0..2_000 {
        let head = source.head();
        let number = head.block.header().number;
        let covered = reader.status().await.map(|status| status.covered).unwrap_or_default();
        if covered == [(0, number)] && reader.block_with_hash(&hash(&head)).await.unwrap().is_some() {
            assert_eq!(database.counts().await, counts_of(number + 1));
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the index does not reach the source: {:?}", reader.status().await);
}

/// The hashes of all blocks are those of the source, in order.
pub(crate) async fn check_hashes(database: &TestDatabase, source: &MemorySource) {
    let client = database.address.connect().await.unwrap();
    let rows = client.query("SELECT hash FROM rootlight.blocks ORDER BY number", &[]).await.unwrap();
    let stored: Vec<B256> = rows.iter().map(|row| B256::from_slice(row.get::<_, &[u8]>(0))).collect();
    let expected: Vec<B256> = source.chain.lock().unwrap().iter().map(hash).collect();
    assert!(stored == expected, "{} blocks, expected {}", stored.len(), expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_loaded_in_parallel_once_and_no_block_twice() {
    let Some(database) = TestDatabase::new().await else { return };
    let source = Arc::new(MemorySource::of(chain(0, 0, 730, B256::ZERO)));
    let events = Arc::new(Mutex::new(Vec::new()));
    let (seen, options) = (events.clone(), options(true));
    let observed = Loader {
        observer: Arc::new(move |event| seen.lock().unwrap().push(event)),
        ..loader(&database, source.clone(), options.clone())
    };
    observed.run().await.unwrap();
    assert_eq!(database.counts().await, counts_of(731));
    check_hashes(&database, &source).await;
    assert_eq!(database.reader().await.status().await.unwrap().covered, [(0, 730)]);
    let events = std::mem::take(&mut *events.lock().unwrap());
    assert_eq!(events[..2], [LoadEvent::Opened, LoadEvent::Planned { missing: 731, head: 730 }]);
    let stored = events.iter().map(|event| match event {
        LoadEvent::Stored { blocks, logs, removed: 0 } => {
            assert_eq!(*logs, 3 * blocks);
            *blocks
        }
        LoadEvent::Stored { removed, .. } => panic!("{removed} blocks removed"),
        _ => 0,
    });
    assert_eq!(stored.sum::<u64>(), 731);
    assert!(events.contains(&LoadEvent::AtHead(730)));
    // A second run asks for nothing.
    let asked = source.answers.load(Ordering::Relaxed);
    loader(&database, source.clone(), options).run().await.unwrap();
    assert_eq!(source.answers.load(Ordering::Relaxed), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn reorganisations_of_the_source_are_followed() {
    for knows_hashes in [true, false] {
        let Some(database) = TestDatabase::new().await else { return };
        let source =
            Arc::new(MemorySource { knows_hashes, ..MemorySource::of(chain(0, 0, 230, B256::ZERO)) });
        let running = loader(&database, source.clone(), options(false));
        drop(database.writer().await);
        let task = tokio::spawn(async move { running.run().await });
        until_equal(&database, &source).await;
        // One block, a few, over the border of a partition; then blocks without a reorganisation.
        for (salt, from, head) in [(1, 230, 231), (2, 220, 233), (3, 190, 240), (4, 241, 320)] {
            source.reorganise(salt, from, head);
            until_equal(&database, &source).await;
        }
        check_hashes(&database, &source).await;
        // A source that knows its hashes tells of a branch that is not longer, too.
        if knows_hashes {
            source.reorganise(5, 310, 320);
            until_equal(&database, &source).await;
            source.reorganise(6, 310, 312);
            source.reorganise(7, 305, 319);
            for _ in 0..2_000 {
                if database.counts().await == counts_of(320) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            check_hashes(&database, &source).await;
        }
        task.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_partitions_are_dropped_while_the_chain_grows() {
    let Some(database) = TestDatabase::new().await else { return };
    let source = Arc::new(MemorySource::of(chain(0, 0, 380, B256::ZERO)));
    let keep = LoaderOptions { retain: Some(150), ..options(true) };
    // A new index does not load what it would drop.
    loader(&database, source.clone(), keep.clone()).run().await.unwrap();
    assert_eq!(database.reader().await.status().await.unwrap().covered, [(200, 380)]);
    source.reorganise(0, 381, 620);
    loader(&database, source.clone(), keep).run().await.unwrap();
    let status = database.reader().await.status().await.unwrap();
    assert_eq!((status.floor, status.covered), (400, vec![(400, 620)]));
    assert_eq!(database.counts().await, counts_of(221));
}

/// Dropped partitions raise the first block of the index above the one that the flags name.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_with_a_first_block_is_opened_again_after_partitions_were_dropped() {
    let Some(database) = TestDatabase::new().await else { return };
    let source = Arc::new(MemorySource::of(chain(0, 0, 380, B256::ZERO)));
    let load = |retain: u64| {
        let options = LoaderOptions { retain: Some(retain), ..options(true) };
        let loader = loader(&database, source.clone(), options);
        Loader { setup: Setup { first_block: Some(250), ..loader.setup.clone() }, ..loader }
    };
    load(1_000).run().await.unwrap();
    assert_eq!(database.reader().await.status().await.unwrap().covered, [(250, 380)]);
    load(20).run().await.unwrap();
    for retain in [20, 1_000] {
        load(retain).run().await.unwrap();
        assert_eq!(database.reader().await.status().await.unwrap().covered, [(300, 380)], "{retain}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_loader_ends_with_a_clear_error() {
    let Some(database) = TestDatabase::new().await else { return };
    let source = Arc::new(MemorySource::of(chain(0, 0, 30, B256::ZERO)));
    let first = database.open(&Setup { name: "the other machine".into(), ..setup() }).await.unwrap();
    let second = Loader { setup: setup(), ..loader(&database, source, options(true)) };
    let ended = second.run().await.unwrap_err();
    assert!(matches!(ended, LoadError::Index(IndexError::Locked { .. })), "{ended}");
    assert!(ended.to_string().contains("the other machine"), "{ended}");
    drop(first);
}

/// The server is ended in every way while blocks are loaded; no row is lost or doubled.
#[tokio::test(flavor = "multi_thread")]
async fn loading_goes_on_after_restarts_of_the_server() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let server = Arc::new(server);
    let database = TestDatabase::on(server.clone()).await;
    drop(database.writer().await);
    let pause = Duration::from_millis(8);
    let source = Arc::new(MemorySource { pause, ..MemorySource::of(chain(0, 0, 2_000, B256::ZERO)) });
    let running = loader(&database, source.clone(), LoaderOptions { batch: 8, ..options(false) });
    let task = tokio::spawn(async move { running.run().await });
    // A loader that cannot begin ends with the reason.
    let reader = database.reader().await;
    while reader.status().await.unwrap().covered.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for signal in ["QUIT", "INT", "QUIT"] {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let restarted = server.clone();
        tokio::task::spawn_blocking(move || {
            restarted.end(signal);
            restarted.run();
        })
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!task.is_finished(), "{:?}", task.await);
    }
    until_equal(&database, &source).await;
    check_hashes(&database, &source).await;
    task.abort();
}

/// Tasks are dropped at any point, which closes their connections in the middle of a statement.
#[tokio::test(flavor = "multi_thread")]
async fn a_loader_that_is_dropped_at_any_moment_leaves_whole_batches() {
    let Some(database) = TestDatabase::new().await else { return };
    drop(database.writer().await);
    let source = Arc::new(MemorySource::of(chain(0, 0, 900, B256::ZERO)));
    for round in 0..12_u64 {
        // Partitions are filled in parallel, or one after the other.
        let settled_depth = if round % 2 == 0 { 50 } else { 10_000 };
        let running = loader(&database, source.clone(), LoaderOptions { settled_depth, ..options(true) });
        let task = tokio::spawn(async move { running.run().await });
        tokio::time::sleep(Duration::from_millis(20 + 13 * round)).await;
        task.abort();
        let _ = task.await;
        let loaded = database
            .number("SELECT coalesce(sum(next_block - first_block), 0)::bigint FROM rootlight.ranges")
            .await;
        // A batch may be committed between the two questions.
        let counts = database.counts().await;
        assert!(
            counts[0] >= loaded && counts[1] >= 2 * loaded && counts[3] >= 3 * loaded,
            "{loaded} {counts:?}"
        );
        assert_eq!((counts[1], counts[2]), (2 * counts[0], 2 * counts[0]));
    }
    loader(&database, source.clone(), LoaderOptions { settled_depth: 10_000, ..options(true) })
        .run()
        .await
        .unwrap();
    assert_eq!(database.counts().await, counts_of(901));
    assert_eq!(database.reader().await.status().await.unwrap().covered, [(0, 900)]);
    check_hashes(&database, &source).await;
}

/// Partitions that were filled in parallel, with a gap, are followed by a run that appends blocks in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_gap_below_loaded_partitions_is_filled() {
    let Some(database) = TestDatabase::new().await else { return };
    let blocks = chain(0, 0, 900, B256::ZERO);
    let writer = database.writer().await;
    writer.prepare(900).await.unwrap();
    writer.append(&blocks[..288]).await.unwrap();
    writer.append(&blocks[300..448]).await.unwrap();
    drop(writer);
    let source = Arc::new(MemorySource::of(blocks));
    let running = loader(&database, source.clone(), LoaderOptions { settled_depth: 10_000, ..options(true) });
    tokio::time::timeout(Duration::from_secs(60), running.run()).await.expect("it ends").unwrap();
    assert_eq!(database.counts().await, counts_of(901));
    check_hashes(&database, &source).await;
}

/// While the disk is full nothing is stored and the loader tries again; with room it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_holds_loading_up_and_loses_nothing() {
    let Some(server) = PostgresServer::start_with_small_disk(64) else { return };
    let server = Arc::new(server);
    let database = TestDatabase::at(server.clone(), &server.small_database().await);
    drop(database.writer().await);
    server.fill_disk(true);
    let source = Arc::new(MemorySource::of(chain(0, 0, 400, B256::ZERO)));
    let opened = Arc::new(AtomicU64::new(0));
    let sessions = opened.clone();
    let observer = move |event| {
        sessions.fetch_add(u64::from(event == LoadEvent::Opened), Ordering::Relaxed);
    };
    let running = Loader { observer: Arc::new(observer), ..loader(&database, source.clone(), options(true)) };
    let task = tokio::spawn(async move { running.run().await });
    while opened.load(Ordering::Relaxed) < 3 {
        assert!(!task.is_finished(), "{:?}", task.await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let loaded = database.counts().await;
    assert!(loaded[0] < 401, "the disk was not full");
    assert_eq!(loaded, counts_of(loaded[0] as u64));
    assert!(server.log().contains("No space left on device"), "{}", server.log());
    server.fill_disk(false);
    task.await.unwrap().unwrap();
    assert_eq!(database.counts().await, counts_of(401));
    check_hashes(&database, &source).await;
}

/// An earlier process ended between the last block of a partition and its indexes.
#[tokio::test(flavor = "multi_thread")]
async fn full_partitions_without_indexes_get_them_at_the_next_start() {
    for settled_depth in [50, 10_000] {
        let Some(database) = TestDatabase::new().await else { return };
        let source = Arc::new(MemorySource::of(chain(0, 0, 250, B256::ZERO)));
        let writer = database.writer().await;
        writer.prepare(250).await.unwrap();
        writer.append(&source.blocks(0, 220).await.unwrap()).await.unwrap();
        drop(writer);
        loader(&database, source, LoaderOptions { settled_depth, ..options(true) }).run().await.unwrap();
        assert_eq!(database.reader().await.status().await.unwrap().covered, [(0, 250)]);
    }
}
