//! Questions whose caller has stopped waiting.

use std::sync::Arc;
use std::time::Duration;

use rootlight::engine::LogFilter;
use rootlight::types::B256;
use rootlight_index::testkit::Maker;
use rootlight_index::{IndexReader, ReaderOptions};

use crate::common::{TestDatabase, network};

/// Longer than the pool waits for a free connection.
const TIMEOUT: Duration = Duration::from_secs(600);

/// An index of ten blocks whose only connection waits for statements without limit.
async fn reader(database: &TestDatabase) -> IndexReader {
    let writer = database.writer().await;
    let ranges = writer.prepare(10).await.unwrap();
    writer.append(&Maker::new(network(), 0).chain(0, 9, B256::ZERO, |_| Vec::new())).await.unwrap();
    for range in &ranges {
        writer.make_searchable(range.first).await.unwrap();
    }
    let options = ReaderOptions { connections: 1, timeout: TIMEOUT };
    IndexReader::open(&database.address, Arc::new(network()), &options).await.unwrap()
}

/// Whether a question that needs no lock is answered, at least after a long while.
async fn answers(reader: &IndexReader) -> bool {
    tokio::time::timeout(TIMEOUT / 10, reader.status()).await.is_ok_and(|status| status.is_ok())
}

/// Waits until this many statements wait for a lock.
async fn waiting(database: &TestDatabase, count: i64) {
    let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while database.number(query).await != count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_dropped_question_ends_its_statement_and_frees_its_connection() {
    let Some(database) = TestDatabase::new().await else { return };
    let reader = reader(&database).await;
    // Questions about logs wait for this lock, the status does not.
    let holder = database.address.connect().await.unwrap();
    holder.batch_execute("BEGIN; LOCK TABLE rootlight.logs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let filter = LogFilter::default();
    for round in 0..3 {
        let logs = reader.logs(&filter, 0, 9);
        waiting(&database, 1).await;
        drop(logs);
        assert!(answers(&reader).await, "round {round}");
        waiting(&database, 0).await;
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(reader.logs(&filter, 0, 9).all().await.unwrap().is_empty());
}
