//! Reorganisations.

use rootlight::engine::LogFilter;
use rootlight::types::B256;
use rootlight_index::{Appended, IndexError, MAX_REORGANISATION};

use crate::common::{TestDatabase, chain, counts_of, hash};

#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_replaces_rows_of_two_partitions_in_one_transaction() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(250).await.unwrap();
    let old = chain(0, 0, 220, B256::ZERO);
    writer.append(&old).await.unwrap();
    for first in [0, 100, 200] {
        writer.make_searchable(first).await.unwrap();
    }
    let new = chain(1, 190, 215, hash(&old[189]));
    // A reader that began before the reorganisation sees the old chain to its end.
    let reader = database.reader().await;
    let mut before = reader.logs(&LogFilter::default(), 0, 220);
    let mut seen = before.next().await.unwrap().unwrap();
    assert_eq!(writer.append(&new).await.unwrap(), Appended::Stored { removed: 31, traced: 0 });
    seen.extend(before.all().await.unwrap());
    assert_eq!(seen.len(), 3 * 221);
    assert!(seen.iter().all(|log| log.found.block.hash == hash(&old[log.found.block.number as usize])));

    assert_eq!(database.counts().await, counts_of(216));
    let after = reader.logs(&LogFilter::default(), 0, 215).all().await.unwrap();
    assert_eq!(after.len(), 3 * 216);
    for log in &after {
        let number = log.found.block.number as usize;
        let expected = if number < 190 { &old[number] } else { &new[number - 190] };
        assert_eq!(log.found.block.hash, hash(expected));
    }
    assert_eq!(reader.status().await.unwrap().covered, [(0, 215)]);
    assert_eq!(writer.hash(215).await.unwrap(), Some(hash(&new[25])));
    assert_eq!(writer.hash(216).await.unwrap(), None);
    // The same chain goes on.
    writer.append(&chain(2, 216, 218, hash(&new[25]))).await.unwrap();
    assert_eq!(database.counts().await, counts_of(219));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_below_the_start_of_a_partition_empties_it() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(250).await.unwrap();
    let old = chain(0, 0, 205, B256::ZERO);
    writer.append(&old).await.unwrap();
    let new = chain(1, 195, 198, hash(&old[194]));
    assert_eq!(writer.append(&new).await.unwrap(), Appended::Stored { removed: 11, traced: 0 });
    assert_eq!(database.counts().await, counts_of(199));
    let nexts: Vec<u64> = writer.ranges().await.unwrap().iter().map(|range| range.next).collect();
    assert_eq!(nexts, [100, 199, 200, 300]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_that_is_too_deep_changes_nothing() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(MAX_REORGANISATION + 100).await.unwrap();
    // The rows do not matter here, only the progress.
    database.sql("UPDATE rootlight.ranges SET next_block = end_block").await;
    let refused = writer.append(&chain(1, 0, 3, B256::ZERO)).await.unwrap_err();
    assert!(matches!(refused, IndexError::TooDeep { .. }), "{refused}");
    assert_eq!(database.counts().await, counts_of(0));
}
