//! Traces: with their blocks, after them, and by filter.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rootlight::types::{Address, B256, REMASC_ADDRESS};
use rootlight_index::testkit::PostgresServer;
use rootlight_index::{
    Appended, BlockTraces, FoundTraces, IndexError, LoaderOptions, Proof, Setup, SourceBlock, Trace,
    TraceError, TraceFilter, TraceKind, TraceRange, TracedBlock,
};

use crate::common::{TestDatabase, chain, counts_of, hash, setup, traced, traces_before, traces_of};
use crate::loading::{MemorySource, loader, options};

const TRACES: &str = "SELECT count(*) FROM rootlight.traces";

/// Which blocks have traces, by partition.
async fn progress(database: &TestDatabase) -> Vec<(u64, u64)> {
    let client = database.address.connect().await.unwrap();
    let sql = "SELECT first_block, traces_next FROM rootlight.ranges ORDER BY 1";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get::<_, i64>(0) as u64, row.get::<_, i64>(1) as u64)).collect()
}

fn whole(from: u64, to: u64) -> TraceRange {
    TraceRange { from, to, must_reach: to, after: 0, count: usize::MAX >> 1, bytes: usize::MAX }
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_are_read_back_as_they_were() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(150).await.unwrap();
    let blocks = traced(chain(0, 0, 150, B256::ZERO));
    for part in [&blocks[..60], &blocks[60..130], &blocks[130..]] {
        let traced = part.len() as u64;
        assert_eq!(writer.append(part).await.unwrap(), Appended::Stored { removed: 0, traced });
    }
    assert_eq!(database.number(TRACES).await, traces_before(151));
    assert_eq!(progress(&database).await, [(0, 100), (100, 151), (200, 200)]);
    let reader = database.reader().await;
    assert_eq!(reader.traces_of(TracedBlock::Number(3)).await.unwrap(), None, "it cannot be searched yet");
    for first in [0, 100] {
        writer.make_searchable(first).await.unwrap();
    }
    for block in &blocks {
        let number = block.block.header().number;
        let expected = traces_of(&block.block);
        for which in [TracedBlock::Number(number), TracedBlock::Hash(hash(block))] {
            let (at, found) = reader.traces_of(which).await.unwrap().unwrap();
            assert_eq!((at.number, at.hash), (number, hash(block)));
            assert_eq!(found.iter().map(|found| found.trace.clone()).collect::<Vec<_>>(), expected);
        }
    }
    let second = blocks[17].block.hashes()[1];
    let (_, found) = reader.traces_of(TracedBlock::Transaction(second)).await.unwrap().unwrap();
    assert!(found.len() == 8 && found.iter().all(|found| found.transaction == second));
    for absent in
        [TracedBlock::Number(151), TracedBlock::Hash(B256::ZERO), TracedBlock::Transaction(B256::ZERO)]
    {
        assert_eq!(reader.traces_of(absent).await.unwrap(), None);
    }
    database.sql("UPDATE rootlight.traces SET kind = 'jump' WHERE block_number = 5").await;
    let damaged = reader.traces_of(TracedBlock::Number(5)).await.unwrap_err();
    assert!(matches!(damaged, IndexError::Damaged { number: 5, what: "a trace" }), "{damaged}");
}

/// The index does not know whether a source is right, but it keeps nothing that the block's transactions refute.
#[test]
fn traces_of_other_transactions_are_refused() {
    let block = &chain(0, 12, 12, B256::ZERO)[0].block;
    let right = traces_of(block);
    assert!(BlockTraces::check(block, right.clone()).is_ok());
    let refused = |change: &dyn Fn(&mut Vec<Trace>)| {
        let mut traces = right.clone();
        change(&mut traces);
        BlockTraces::check(block, traces).unwrap_err()
    };
    let transaction = |index| TraceError::Transaction { number: 12, index };
    assert_eq!(refused(&|traces| traces[0].from = Address::repeat_byte(1)), transaction(0));
    assert_eq!(refused(&|traces| traces[0].to = None), transaction(0));
    assert_eq!(refused(&|traces| traces[0].kind = TraceKind::Create), transaction(0));
    assert_eq!(refused(&|traces| traces[3].input = vec![1].into()), transaction(1));
    assert_eq!(refused(&|traces| traces.truncate(3)), transaction(1), "a transaction without traces");
    assert_eq!(refused(&|traces| traces[5].transaction = 2), transaction(2));
    assert_eq!(refused(&|traces| traces.swap(1, 4)), transaction(1));
    let order = |index| TraceError::Order { number: 12, index };
    assert_eq!(refused(&|traces| traces.swap(1, 2)), order(0));
    assert_eq!(refused(&|traces| traces[4].address = vec![0, 0]), order(1));
}

#[test]
fn uncles_that_do_not_match_the_header_are_refused() {
    let block = chain(0, 5, 5, B256::ZERO).remove(0).block;
    assert_eq!(block.uncles(), Some(&[][..]));
    let uncle = block.header().header().clone();
    let refused = block.with_uncles(vec![uncle]).unwrap_err();
    assert!(matches!(refused, rootlight_index::BlockError::Uncles { number: 5 }), "{refused}");
}

/// Filters of recipients, and pages, against a scan of the same blocks.
#[test]
fn filters_and_pages_give_what_a_scan_gives() {
    const LAST: u64 = 330;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let Some(database) = runtime.block_on(TestDatabase::new()) else { return };
    let blocks = traced(chain(0, 0, LAST, B256::ZERO));
    // Rows of transactions get other senders and recipients: what is compared is the question.
    let address = |number: u64| Address::repeat_byte((number % 5) as u8 + 1);
    let reader = runtime.block_on(async {
        let writer = database.writer().await;
        let ranges = writer.prepare(LAST).await.unwrap();
        for part in blocks.chunks(64) {
            writer.append(part).await.unwrap();
        }
        for range in &ranges {
            writer.make_searchable(range.first).await.unwrap();
        }
        let bytes = |what: &str| format!("decode(repeat(lpad(to_hex({what} % 5 + 1), 2, '0'), 20), 'hex')");
        let (sender, recipient) = (bytes("block_number"), bytes("(block_number / 5 + transaction_index)"));
        database
            .sql(&format!("UPDATE rootlight.transactions SET sender = {sender}, recipient = {recipient}"))
            .await;
        database.reader().await
    });
    let scan = |filter: &TraceFilter, from: u64, to: u64| {
        let wanted = |list: &[Address], one| list.is_empty() || list.contains(&one);
        let of = |number: u64| {
            let traces = traces_of(&blocks[number as usize].block).into_iter();
            traces.filter(move |trace| {
                wanted(&filter.senders, address(number))
                    && wanted(&filter.recipients, address(number / 5 + u64::from(trace.transaction)))
            })
        };
        (from..=to).flat_map(of).collect::<Vec<_>>()
    };
    let any = || proptest::collection::vec((1_u8..7).prop_map(Address::repeat_byte), 0..3);
    let page = (0..400_usize, prop_oneof![0..50_usize, Just(10_000)]);
    let cases = (any(), any(), 0..=LAST, 0..=LAST, page);
    let (some, full) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    TestRunner::new(Config { cases: 200, ..Config::default() })
        .run(&cases, |(senders, recipients, a, b, (after, count))| {
            let (from, to) = (a.min(b), a.max(b));
            let filter = TraceFilter { senders, recipients };
            let all = scan(&filter, from, to);
            let range = TraceRange { after, count, ..whole(from, to) };
            let found = runtime.block_on(reader.traces(&filter, &range)).unwrap();
            let FoundTraces::All { traces, skipped, last } = found else { panic!("{found:?}") };
            let traces: Vec<Trace> = traces.into_iter().map(|found| found.trace).collect();
            let expected: Vec<Trace> = all.iter().skip(after).take(count).cloned().collect();
            prop_assert_eq!(&traces, &expected);
            prop_assert_eq!(last, to);
            if count > 0 {
                prop_assert_eq!(skipped, after.min(all.len()));
            }
            some.set(some.get() + u32::from(!expected.is_empty()));
            full.set(full.get() + u32::from(expected.len() == count));
            Ok(())
        })
        .unwrap();
    assert!(some.get() > 20 && full.get() > 20, "{} {}", some.get(), full.get());
    // The transaction of REMASC has no sender, so that no address is its sender.
    let zero = TraceFilter { senders: vec![Address::ZERO], recipients: Vec::new() };
    let found = runtime.block_on(reader.traces(&zero, &whole(0, LAST))).unwrap();
    assert!(matches!(found, FoundTraces::All { traces, .. } if traces.is_empty()));
    let few = TraceRange { bytes: 5_000, ..whole(0, LAST) };
    let found = runtime.block_on(reader.traces(&TraceFilter::default(), &few)).unwrap();
    assert_eq!(found, FoundTraces::TooLong);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_without_traces_has_no_answer() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(150).await.unwrap();
    let blocks = chain(0, 0, 150, B256::ZERO);
    writer.append(&traced(blocks[..100].to_vec())).await.unwrap();
    writer.append(&blocks[100..120]).await.unwrap();
    // A gap: traces above blocks that have none are left out, and so are those that do not follow the others.
    let stored = writer.append(&traced(blocks[120..].to_vec())).await.unwrap();
    assert_eq!(stored, Appended::Stored { removed: 0, traced: 0 });
    for first in [0, 100] {
        writer.make_searchable(first).await.unwrap();
    }
    let reader = database.reader().await;
    let any = TraceFilter::default();
    let found = reader.traces(&any, &TraceRange { must_reach: 90, ..whole(0, 130) }).await.unwrap();
    let FoundTraces::All { traces, last: 99, .. } = found else { panic!("{found:?}") };
    assert_eq!(traces.len() as i64, traces_before(100));
    for (from, to) in [(0, 100), (100, 110), (120, 150), (160, 170)] {
        let refused = reader.traces(&any, &whole(from, to)).await.unwrap_err();
        assert!(matches!(refused, IndexError::TracesNotLoaded { .. }), "{refused}");
    }
    // Blocks of another branch, or that do not follow, get no traces.
    let other = writer.append_traces(100, &traced(chain(1, 100, 110, hash(&blocks[99])))).await;
    assert!(matches!(other, Err(IndexError::OtherBranch { number: 100 })), "{other:?}");
    for wrong in [&blocks[101..110], &blocks[99..110], &blocks[100..110]] {
        // The last ones have no traces.
        let wrong = if wrong.len() == 10 { wrong.to_vec() } else { traced(wrong.to_vec()) };
        let refused = writer.append_traces(100, &wrong).await;
        assert!(matches!(refused, Err(IndexError::Progress { .. })), "{refused:?}");
    }
    writer.append_traces(100, &traced(blocks[100..].to_vec())).await.unwrap();
    let twice = writer.append_traces(100, &traced(blocks[100..].to_vec())).await;
    assert!(matches!(twice, Err(IndexError::Progress { next: 151, .. })), "{twice:?}");
    assert_eq!(database.number(TRACES).await, traces_before(151));
    assert_eq!(reader.traces(&any, &whole(0, 150)).await.map(|_| ()).unwrap(), ());
}

/// The traces of one block are too long; only questions about its transactions suffer.
#[tokio::test(flavor = "multi_thread")]
async fn too_long_traces_of_a_block_are_named() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(50).await.unwrap();
    let mut blocks = traced(chain(0, 0, 20, B256::ZERO));
    let long = vec![0; 7_000_000];
    let mut traces = traces_of(&blocks[12].block);
    traces[1].input = long.clone().into();
    traces[2].input = long.into();
    blocks[12].traces = Some(BlockTraces::check(&blocks[12].block, traces).unwrap());
    writer.append(&blocks).await.unwrap();
    writer.make_searchable(0).await.unwrap();
    let reader = database.reader().await;
    let any = TraceFilter::default();
    assert!(reader.traces(&any, &whole(0, 11)).await.is_ok());
    let refused = reader.traces(&any, &whole(0, 12)).await.unwrap_err();
    assert!(matches!(refused, IndexError::TracesTooLong { number: 12 }), "{refused}");
    let refused = reader.traces_of(TracedBlock::Number(12)).await.unwrap_err();
    assert!(matches!(refused, IndexError::TracesTooLong { number: 12 }), "{refused}");
    let others = TraceFilter { recipients: vec![Address::repeat_byte(7)], ..any.clone() };
    assert!(reader.traces(&others, &whole(0, 20)).await.is_ok());
    // A reorganisation removes the mark.
    writer.append(&traced(chain(1, 11, 30, hash(&blocks[10])))).await.unwrap();
    let remasc = TraceFilter { recipients: vec![REMASC_ADDRESS], ..any };
    let found = reader.traces(&remasc, &whole(0, 30)).await.unwrap();
    assert!(matches!(found, FoundTraces::All { traces, .. } if traces.len() as i64 == traces_before(31)));
    assert_eq!(database.number(TRACES).await, traces_before(31));
}

#[tokio::test(flavor = "multi_thread")]
async fn reorganisations_and_retention_remove_traces() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(320).await.unwrap();
    let blocks = traced(chain(0, 0, 320, B256::ZERO));
    writer.append(&blocks).await.unwrap();
    let new = traced(chain(1, 195, 210, hash(&blocks[194])));
    let stored = writer.append(&new).await.unwrap();
    assert_eq!(stored, Appended::Stored { removed: 126, traced: 16 });
    assert_eq!(progress(&database).await, [(0, 100), (100, 200), (200, 211), (300, 300), (400, 400)]);
    assert_eq!(database.number(TRACES).await, traces_before(211));
    writer.drop_below(150).await.unwrap();
    assert_eq!(database.number(TRACES).await, traces_before(211) - traces_before(100));
    // Blocks without traces replace some that had them.
    writer.append(&chain(2, 205, 215, hash(&new[9]))).await.unwrap();
    assert_eq!(progress(&database).await, [(100, 200), (200, 205), (300, 300), (400, 400)]);
}

/// An index without traces gets them while the chain grows and is reorganised, and the server restarts.
#[tokio::test(flavor = "multi_thread")]
async fn traces_can_be_switched_on_later() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let server = Arc::new(server);
    let database = TestDatabase::on(server.clone()).await;
    let source = Arc::new(MemorySource::of(chain(0, 0, 640, B256::ZERO)));
    loader(&database, source.clone(), options(true)).run().await.unwrap();
    assert_eq!(database.number(TRACES).await, 0);

    source.traces.store(true, Ordering::Relaxed);
    let with_traces = LoaderOptions { traces: true, batch: 8, ..options(false) };
    let running = loader(&database, source.clone(), with_traces.clone());
    let task = tokio::spawn(async move { running.run().await });
    for (salt, from, head) in [(1, 630, 650), (2, 590, 660), (3, 661, 720)] {
        source.reorganise(salt, from, head);
        let restarted = server.clone();
        tokio::time::sleep(Duration::from_millis(60)).await;
        tokio::task::spawn_blocking(move || {
            restarted.end("QUIT");
            restarted.run();
        })
        .await
        .unwrap();
    }
    let all = traces_before(721);
    for _ in 0..2_000 {
        if database.number(TRACES).await == all && database.counts().await == counts_of(721) {
            break;
        }
        assert!(!task.is_finished(), "{:?}", task.await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    task.abort();
    let _ = task.await;
    let ends: Vec<u64> = progress(&database).await.iter().map(|(_, next)| *next).collect();
    assert_eq!(ends, [100, 200, 300, 400, 500, 600, 700, 721, 800]);
    assert_eq!(database.number(TRACES).await, all, "no trace twice");
    let of_branch = "SELECT count(*) FROM rootlight.traces t JOIN rootlight.transactions x USING (block_number, transaction_index)";
    assert_eq!(database.number(of_branch).await, all);

    // A run that ends at the head fills what is missing, and a source without traces is told so.
    database.sql("DELETE FROM rootlight.traces WHERE block_number BETWEEN 250 AND 299").await;
    database.sql("UPDATE rootlight.ranges SET traces_next = 250 WHERE first_block = 200").await;
    source.traces.store(false, Ordering::Relaxed);
    let once = LoaderOptions { once: true, ..with_traces };
    let ended = loader(&database, source.clone(), once.clone()).run().await.unwrap_err().to_string();
    assert!(ended.contains("no traces of block 250"), "{ended}");
    source.traces.store(true, Ordering::Relaxed);
    loader(&database, source, once).run().await.unwrap();
    assert_eq!(database.number(TRACES).await, all);
}

/// An index that the program before made: its blocks stay, and traces and uncles come with new ones.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_version_of_the_schema_is_brought_forward() {
    let Some(database) = TestDatabase::new().await else { return };
    let mut client = database.address.connect().await.unwrap();
    client.batch_execute("CREATE SCHEMA rootlight").await.unwrap();
    let first = include_str!("../../migrations/V1__blocks_and_logs.sql");
    let migration = refinery::Migration::unapplied("V1__blocks_and_logs", first).unwrap();
    let mut runner = refinery::Runner::new(&[migration]);
    runner.set_migration_table_name("rootlight.migrations").run_async(&mut client).await.unwrap();
    // The contents of version 1: two partitions, one of which can be searched.
    let genesis = crate::common::network().genesis_hash;
    client
        .batch_execute(&format!(
            "INSERT INTO rootlight.state (network, chain_id, genesis_hash, partition_blocks, floor_block) VALUES ('regtest', 33, decode('{genesis:x}', 'hex'), 100, 0)"
        ))
        .await
        .unwrap();
    for (begin, end, searchable) in [(0, 100, true), (100, 200, false)] {
        for (table, key) in [
            ("blocks", "number"),
            ("transactions", "block_number"),
            ("receipts", "block_number"),
            ("logs", "block_number"),
        ] {
            client
                .batch_execute(&format!(
                    "CREATE TABLE rootlight.{table}_{begin:012} (LIKE rootlight.{table} INCLUDING ALL, CHECK ({key} >= {begin} AND {key} < {end}));
                     ALTER TABLE rootlight.{table} ATTACH PARTITION rootlight.{table}_{begin:012} FOR VALUES FROM ({begin}) TO ({end})"
                ))
                .await
                .unwrap();
        }
        client
            .batch_execute(&format!(
                "INSERT INTO rootlight.ranges VALUES ({begin}, {end}, {begin}, {searchable})"
            ))
            .await
            .unwrap();
    }
    drop(client);
    let writer = database.open(&Setup { wait: true, ..setup() }).await.unwrap();
    writer.prepare(150).await.unwrap();
    let blocks: Vec<SourceBlock> = traced(chain(0, 0, 150, B256::ZERO));
    writer.append(&blocks).await.unwrap();
    writer.make_searchable(100).await.unwrap();
    let indexes = "SELECT count(*) FROM pg_indexes WHERE schemaname = 'rootlight' AND indexname IN ('traces_000000000000_sender', 'traces_000000000000_recipient', 'traces_000000000100_sender', 'traces_000000000100_recipient')";
    assert_eq!(database.number(indexes).await, 4);
    let reader = database.reader().await;
    let found = reader.traces(&TraceFilter::default(), &whole(0, 150)).await.unwrap();
    assert!(matches!(found, FoundTraces::All { traces, .. } if traces.len() as i64 == traces_before(151)));
    let block = reader.block(7).await.unwrap().unwrap();
    assert_eq!((block.proof, block.uncles), (Proof::Verified, Some(Vec::new())));
    database.sql("UPDATE rootlight.blocks SET uncles = NULL WHERE number = 7").await;
    assert_eq!(reader.block(7).await.unwrap().unwrap().uncles, None);
    writer.drop_below(200).await.unwrap();
    assert_eq!(database.number(TRACES).await, 0);
}
