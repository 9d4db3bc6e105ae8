//! Versions of the schema, networks and layouts.

use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight_index::{IndexError, IndexReader, ReaderOptions, Setup, Writer, known_version};

use crate::common::{TestDatabase, network, setup};

#[tokio::test(flavor = "multi_thread")]
async fn a_new_database_gets_the_schema_and_a_second_start_changes_nothing() {
    let Some(database) = TestDatabase::new().await else { return };
    let reader = || async {
        IndexReader::open(&database.address, Arc::new(network()), &ReaderOptions::default()).await.map(drop)
    };
    assert!(matches!(reader().await, Err(IndexError::OlderSchema { found: 0, .. })));
    drop(database.writer().await);
    reader().await.unwrap();
    let applied = database.number("SELECT count(*) FROM rootlight.migrations").await;
    assert_eq!(applied, i64::from(known_version()));
    // A process that starts meanwhile sees no older version.
    assert_eq!(database.number("SELECT count(DISTINCT xmin::text) FROM rootlight.migrations").await, 1);
    drop(database.open(&Setup { partition_blocks: None, wait: true, ..setup() }).await.unwrap());
    assert_eq!(database.number("SELECT count(*) FROM rootlight.migrations").await, applied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_refused_by_writers_and_readers_and_is_not_changed() {
    let Some(database) = TestDatabase::new().await else { return };
    drop(database.writer().await);
    let newer = known_version() + 1;
    database
        .sql(&format!(
            "INSERT INTO rootlight.migrations VALUES ({newer}, 'later', '2030-01-01T00:00:00Z', '1')"
        ))
        .await;
    let refused = database.open(&Setup { wait: true, ..setup() }).await.unwrap_err();
    assert!(matches!(refused, IndexError::NewerSchema { found, .. } if found == newer), "{refused}");
    assert!(refused.to_string().contains("use the newer program"), "{refused}");
    let read = IndexReader::open(&database.address, Arc::new(network()), &ReaderOptions::default()).await;
    assert!(matches!(read, Err(IndexError::NewerSchema { .. })));
    assert_eq!(database.number("SELECT epoch FROM rootlight.state").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_network_is_refused() {
    let Some(database) = TestDatabase::new().await else { return };
    drop(database.writer().await);
    let wait = Setup { wait: true, ..setup() };
    let refused = Writer::open(&database.address, &Network::testnet(), &wait).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("regtest (chain id 33") && text.contains("testnet (chain id 31"), "{text}");
    let read =
        IndexReader::open(&database.address, Arc::new(Network::mainnet()), &ReaderOptions::default()).await;
    assert!(matches!(read, Err(IndexError::OtherNetwork { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_partition_size_or_a_lower_first_block_is_refused() {
    let Some(database) = TestDatabase::new().await else { return };
    let first = Setup { first_block: Some(150), wait: true, ..setup() };
    drop(database.open(&first).await.unwrap());
    let size = Setup { partition_blocks: Some(50), ..first.clone() };
    let refused = database.open(&size).await.unwrap_err().to_string();
    assert!(refused.contains("blocks of a partition 100, not 50"), "{refused}");
    let lower = Setup { first_block: Some(149), ..first.clone() };
    let refused = database.open(&lower).await.unwrap_err().to_string();
    assert!(refused.contains("first block 150, not 149"), "{refused}");
    let writer = database.open(&first).await.unwrap();
    let ranges = writer.prepare(210).await.unwrap();
    let bounds: Vec<(u64, u64)> = ranges.iter().map(|range| (range.first, range.end)).collect();
    assert_eq!(bounds, [(150, 200), (200, 300), (300, 400)]);
}
