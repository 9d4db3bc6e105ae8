//! Logs by filter, against a scan of the same blocks.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use rootlight::engine::LogFilter;
use rootlight::types::{Address, B256, Log};
use rootlight_index::testkit::{LogsByTransaction, Maker};
use rootlight_index::{IndexError, IndexedLog, SourceBlock};

use crate::common::{TestDatabase, log, network};

/// Number of blocks; four partitions, the last of which is not full.
const BLOCKS: u64 = 330;

fn contents() -> impl Strategy<Value = Vec<LogsByTransaction>> {
    let log = (0_u8..5, proptest::collection::vec(0_u8..4, 0..=4));
    let logs = proptest::collection::vec(log.prop_map(|(contract, topics)| log_of(contract, &topics)), 0..4);
    // Many blocks have no log.
    let block = prop_oneof![2 => Just(Vec::new()), 1 => proptest::collection::vec(logs, 1..3)];
    proptest::collection::vec(block, BLOCKS as usize)
}

fn log_of(contract: u8, topics: &[u8]) -> Log {
    log(contract, topics)
}

fn filters() -> impl Strategy<Value = (LogFilter, u64, u64)> {
    let addresses = proptest::collection::vec((0_u8..6).prop_map(Address::repeat_byte), 0..3);
    let any = proptest::collection::vec((0_u8..5).prop_map(B256::repeat_byte), 0..3);
    let topics = proptest::collection::vec(any, 0..6);
    (addresses, topics, 0..BLOCKS, 0..BLOCKS)
        .prop_map(|(addresses, topics, a, b)| (LogFilter { addresses, topics }, a.min(b), a.max(b)))
}

/// The logs that a filter selects, as block, transaction hash, index of the transaction, index of the log, and the log.
type ScannedLog = (u64, B256, u64, u64, Log);

fn scan(blocks: &[SourceBlock], filter: &LogFilter, from: u64, to: u64) -> Vec<ScannedLog> {
    let mut found = Vec::new();
    for SourceBlock { block, .. } in &blocks[from as usize..=to as usize] {
        let mut log_index = 0;
        for (index, (receipt, hash)) in block.receipts().iter().zip(block.hashes()).enumerate() {
            for log in &receipt.logs {
                if filter.matches(log) {
                    found.push((block.header().number, *hash, index as u64, log_index, log.clone()));
                }
                log_index += 1;
            }
        }
    }
    found
}

fn rows(logs: Vec<IndexedLog>) -> Vec<ScannedLog> {
    let row = |IndexedLog { found, .. }| {
        (found.block.number, found.transaction, found.transaction_index, found.log_index, found.log)
    };
    logs.into_iter().map(row).collect()
}

#[test]
fn filters_give_what_a_scan_gives() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let Some(database) = runtime.block_on(TestDatabase::new()) else { return };
    let mut runner = TestRunner::new(Config { cases: 1, ..Config::default() });
    let contents = contents().new_tree(&mut runner).unwrap().current();
    let maker = Maker::new(network(), 0);
    let blocks = maker.chain(0, BLOCKS - 1, B256::ZERO, |number| contents[number as usize].clone());
    let reader = runtime.block_on(async {
        let writer = database.writer().await;
        let ranges = writer.prepare(BLOCKS).await.unwrap();
        for part in blocks.chunks(64) {
            writer.append(part).await.unwrap();
        }
        for range in &ranges {
            writer.make_searchable(range.first).await.unwrap();
        }
        database.reader().await
    });
    let (some, cases) = (std::cell::Cell::new(0), 300);
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    runner
        .run(&filters(), |(filter, from, to)| {
            let expected = scan(&blocks, &filter, from, to);
            let found = runtime.block_on(async { reader.logs(&filter, from, to).all().await });
            some.set(some.get() + u32::from(!expected.is_empty()));
            prop_assert_eq!(rows(found.unwrap()), expected);
            Ok(())
        })
        .unwrap();
    assert!(some.get() > cases / 10, "only {} of {cases} filters select logs", some.get());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_is_not_loaded_or_not_indexed_has_no_answer() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(150).await.unwrap();
    let blocks = Maker::new(network(), 0).chain(0, 150, B256::ZERO, |_| vec![vec![log(1, &[1])]]);
    writer.append(&blocks).await.unwrap();
    writer.make_searchable(0).await.unwrap();
    let reader = database.reader().await;
    let any = LogFilter::default();
    assert_eq!(reader.logs(&any, 0, 99).all().await.unwrap().len(), 100);
    for (from, to) in [(0, 100), (100, 100), (150, 160)] {
        let refused = reader.logs(&any, from, to).all().await.unwrap_err();
        assert!(matches!(refused, IndexError::NotCovered { .. }), "{refused}");
    }
    // A look-up by hash does not read partitions without indexes.
    let finds =
        async |at: usize| reader.block_with_hash(&blocks[at].block.header().hash()).await.unwrap().is_some();
    assert!(finds(99).await && !finds(100).await);
    writer.make_searchable(100).await.unwrap();
    assert_eq!(reader.logs(&any, 0, 150).all().await.unwrap().len(), 151);
    assert!(finds(100).await);
}

/// A reader holds a few pieces at a time, so a piece must not grow with the length of the logs.
#[tokio::test]
async fn long_logs_come_in_short_pieces() {
    const LENGTH: usize = 200_000;
    let Some(database) = TestDatabase::new().await else { return };
    let long = |number: u64| match number {
        // Short logs first, so that many rows are fetched at a time.
        0..20 => vec![vec![log_of(1, &[]); 20]],
        _ => vec![vec![Log { data: vec![7; LENGTH].into(), ..log_of(1, &[]) }]],
    };
    let blocks = Maker::new(network(), 0).chain(0, 79, B256::ZERO, long);
    let writer = database.writer().await;
    let first = writer.prepare(79).await.unwrap()[0].first;
    writer.append(&blocks).await.unwrap();
    writer.make_searchable(first).await.unwrap();
    let mut found = database.reader().await.logs(&LogFilter::default(), 20, 79);
    let (mut pieces, mut count) = (0, 0);
    while let Some(piece) = found.next().await {
        let piece = piece.unwrap();
        let bytes: usize = piece.iter().map(|log| log.found.log.data.len()).sum();
        assert!(bytes <= 16 * LENGTH, "{bytes} bytes");
        (pieces, count) = (pieces + 1, count + piece.len());
    }
    assert!(count == 60 && pieces > 6, "{count} logs in {pieces} pieces");
    let all = database.reader().await.logs(&LogFilter::default(), 0, 79).all().await.unwrap();
    assert_eq!(all.len(), 460);
}
