//! Loading, two writers, retention.

use rootlight::types::B256;
use rootlight_index::{Appended, IndexError, Proof, Setup};

use crate::common::{TestDatabase, chain, counts_of, hash, network, setup};

#[tokio::test(flavor = "multi_thread")]
async fn loaded_blocks_are_read_back_as_they_were() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(150).await.unwrap();
    let blocks = chain(0, 0, 150, B256::ZERO);
    // One batch goes over the border of two partitions.
    for part in [&blocks[..60], &blocks[60..130], &blocks[130..]] {
        assert_eq!(writer.append(part).await.unwrap(), Appended::Stored { removed: 0, traced: 0 });
    }
    assert_eq!(database.counts().await, counts_of(151));
    for range in writer.ranges().await.unwrap().iter().take(2) {
        writer.make_searchable(range.first).await.unwrap();
    }
    let reader = database.reader().await;
    assert_eq!(reader.status().await.unwrap().covered, [(0, 150)]);
    for expected in &blocks {
        let number = expected.block.header().number;
        let block = reader.block(number).await.unwrap().unwrap();
        assert_eq!(block.proof, Proof::Verified);
        assert_eq!(block.senders, expected.block.senders());
        let block = block.check(&network()).unwrap();
        assert_eq!(block.header(), expected.block.header());
        assert_eq!(block.transactions(), expected.block.transactions());
        assert_eq!(block.receipts(), expected.block.receipts());
        let same = reader.block_with_hash(&hash(expected)).await.unwrap().unwrap();
        assert_eq!(same.header.number, number);
    }
    for transaction in blocks[120].block.hashes() {
        let block = reader.block_of_transaction(transaction).await.unwrap().unwrap();
        assert_eq!(block.header.hash(), hash(&blocks[120]));
    }
    assert!(reader.block_of_transaction(&B256::ZERO).await.unwrap().is_none());
    assert!(reader.block_with_hash(&B256::ZERO).await.unwrap().is_none());
    assert!(reader.block(151).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_is_an_error_and_never_an_answer() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(9).await.unwrap();
    let blocks = chain(0, 0, 9, B256::ZERO);
    writer.append(&blocks).await.unwrap();
    writer.make_searchable(0).await.unwrap();
    let reader = database.reader().await;
    database
        .sql("UPDATE rootlight.transactions SET value = 1 WHERE block_number = 3 AND transaction_index = 0")
        .await;
    let damaged = reader.block_of_transaction(&blocks[3].block.hashes()[0]).await.unwrap_err();
    assert!(matches!(damaged, IndexError::Damaged { number: 3, .. }), "{damaged}");
    database.sql("DELETE FROM rootlight.logs WHERE block_number = 4 AND log_index = 0").await;
    assert!(matches!(reader.block(4).await, Err(IndexError::Damaged { number: 4, what: "the logs" })));
    database.sql("UPDATE rootlight.blocks SET hash = parent_hash WHERE number = 5").await;
    assert!(matches!(reader.block(5).await, Err(IndexError::Damaged { number: 5, what: "the header" })));
    // A changed log passes here, and is refused by the check against the header.
    database.sql("UPDATE rootlight.logs SET data = '\\x01' WHERE block_number = 6 AND log_index = 0").await;
    let changed = reader.block(6).await.unwrap().unwrap();
    assert!(changed.check(&network()).unwrap_err().to_string().contains("receiptsRoot"));
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_do_not_continue_the_index_are_refused() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(50).await.unwrap();
    let blocks = chain(0, 0, 30, B256::ZERO);
    writer.append(&blocks[..10]).await.unwrap();
    let gap = writer.append(&blocks[11..]).await.unwrap_err();
    assert!(matches!(gap, IndexError::Progress { from: 11, next: 10 }), "{gap}");
    let hole = [blocks[10].clone(), blocks[12].clone()];
    assert!(matches!(writer.append(&hole).await, Err(IndexError::Unconnected { number: 12 })));
    let far = chain(0, 200, 201, B256::ZERO);
    assert!(matches!(writer.append(&far).await, Err(IndexError::Progress { from: 200, .. })));
    let other = chain(1, 10, 12, B256::repeat_byte(5));
    assert_eq!(writer.append(&other).await.unwrap(), Appended::OtherParent);
    assert_eq!(database.counts().await, counts_of(10));
    assert_eq!(writer.append(&[]).await.unwrap(), Appended::Stored { removed: 0, traced: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_indexer_is_refused_and_one_that_waits_takes_over() {
    let Some(database) = TestDatabase::new().await else { return };
    let first = database.open(&Setup { name: "the first one".into(), ..setup() }).await.unwrap();
    first.prepare(50).await.unwrap();
    let refused = database.open(&setup()).await.unwrap_err();
    let text = refused.to_string();
    assert!(
        matches!(refused, IndexError::Locked { .. }) && text.contains("the first one, since 2"),
        "{text}"
    );
    assert!(text.contains("--wait"), "{text}");

    let address = database.address.clone();
    let waiting = tokio::spawn(async move {
        let wait = Setup { wait: true, name: "the second one".into(), ..setup() };
        rootlight_index::Writer::open(&address, &network(), &wait).await.unwrap()
    });
    let blocks = chain(0, 0, 20, B256::ZERO);
    first.append(&blocks[..10]).await.unwrap();
    assert!(!waiting.is_finished());
    drop(first);
    let second = waiting.await.unwrap();
    second.append(&blocks[10..]).await.unwrap();
    assert_eq!(database.counts().await, counts_of(21));
    assert!(database.reader().await.status().await.unwrap().writer.starts_with("the second one, since "));
}

/// The lock of the first indexer is lost while the process goes on, as after a restart of the server.
#[tokio::test(flavor = "multi_thread")]
async fn an_indexer_that_has_lost_its_lock_cannot_write_any_more() {
    let Some(database) = TestDatabase::new().await else { return };
    let first = database.writer().await;
    first.prepare(50).await.unwrap();
    let blocks = chain(0, 0, 20, B256::ZERO);
    first.append(&blocks[..10]).await.unwrap();
    database
        .sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
        .await;
    while first.holds_lock() {
        tokio::task::yield_now().await;
    }
    let second = database.open(&Setup { wait: true, ..setup() }).await.unwrap();
    let fenced = first.append(&blocks[10..]).await.unwrap_err();
    assert!(matches!(fenced, IndexError::Fenced { own: 1, found: 2 }), "{fenced}");
    for refused in [
        first.make_searchable(0).await,
        first.prepare(500).await.map(drop),
        first.drop_below(100).await.map(drop),
    ] {
        assert!(matches!(refused, Err(IndexError::Fenced { .. })), "{refused:?}");
    }
    assert_eq!(database.counts().await, counts_of(10));
    second.append(&blocks[10..]).await.unwrap();
    assert_eq!(database.counts().await, counts_of(21));
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_drops_whole_partitions_and_keeps_the_rest_readable() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(350).await.unwrap();
    let blocks = chain(0, 0, 350, B256::ZERO);
    for part in blocks.chunks(90) {
        writer.append(part).await.unwrap();
    }
    for first in [0, 100, 200, 300] {
        writer.make_searchable(first).await.unwrap();
    }
    assert_eq!(writer.drop_below(99).await.unwrap(), 0);
    assert_eq!(writer.drop_below(250).await.unwrap(), 2);
    assert_eq!((writer.floor(), database.counts().await), (200, counts_of(151)));
    let status = database.reader().await.status().await.unwrap();
    assert_eq!((status.floor, status.covered), (200, vec![(200, 350)]));
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'rootlight.logs'::regclass";
    assert_eq!(database.number(partitions).await, 3);
    // Partitions that exist are not made again.
    writer.prepare(350).await.unwrap();
    assert_eq!(database.number(partitions).await, 3);
    assert_eq!(writer.drop_below(250).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ancestors_of_proven_blocks_become_proven_and_other_blocks_are_refused() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(350).await.unwrap();
    let mut blocks = chain(0, 0, 250, B256::ZERO);
    // The light client starts at block 230.
    blocks[..230].iter_mut().for_each(|block| block.proof = Proof::Stated);
    let stated = "SELECT count(*) FROM rootlight.blocks WHERE proof = 0";
    for part in [&blocks[200..], &blocks[..90]] {
        writer.append(part).await.unwrap();
    }
    for first in [0, 100, 200] {
        writer.make_searchable(first).await.unwrap();
    }
    writer.mark_ancestors_proven().await.unwrap();
    // The part between is not loaded, so nothing is known of the first blocks.
    assert_eq!(database.number(stated).await, 90);
    writer.append(&blocks[90..100]).await.unwrap();
    let mut wrong = chain(7, 100, 199, hash(&blocks[99]));
    wrong.iter_mut().for_each(|block| block.proof = Proof::Stated);
    writer.append(&wrong).await.unwrap();
    let refused = writer.mark_ancestors_proven().await.unwrap_err();
    assert!(matches!(refused, IndexError::NotAncestors { first: 100, last: 199, .. }), "{refused}");
    assert_eq!(database.number(stated).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_index_below_a_proven_block_becomes_proven() {
    let Some(database) = TestDatabase::new().await else { return };
    let writer = database.writer().await;
    writer.prepare(350).await.unwrap();
    let mut blocks = chain(0, 0, 250, B256::ZERO);
    blocks[..230].iter_mut().for_each(|block| block.proof = Proof::Stated);
    for part in [&blocks[200..], &blocks[100..200], &blocks[..100]] {
        writer.append(part).await.unwrap();
    }
    for first in [0, 200] {
        writer.make_searchable(first).await.unwrap();
    }
    let stated = "SELECT count(*) FROM rootlight.blocks WHERE proof = 0";
    writer.mark_ancestors_proven().await.unwrap();
    // The range between has no indexes yet, and what is above it says nothing of what is below.
    assert_eq!(database.number(stated).await, 200);
    writer.make_searchable(100).await.unwrap();
    writer.mark_ancestors_proven().await.unwrap();
    assert_eq!(database.number(stated).await, 0);
    assert_eq!(database.counts().await, counts_of(251));
}
