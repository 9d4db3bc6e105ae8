//! The partitions of the tables, one for each range of blocks: the writer makes them before the loader needs them, adds their
//! secondary indexes when their blocks are loaded, and drops them when they are too old.

use tokio_postgres::{GenericClient, Transaction};

use crate::error::IndexError;
use crate::state::int8;

/// The partitioned tables.
const TABLES: [&str; 5] = ["blocks", "transactions", "receipts", "logs", "traces"];

/// Longest wait for running readers before a partition is added or dropped: new readers queue behind this wait.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '5s'";

/// Memory for sorting while one secondary index is made.
const SORT_MEMORY: &str = "SET LOCAL maintenance_work_mem = '256MB'";

/// Secondary indexes: table, name, columns and condition. The indexes of topics leave out logs without that topic.
/// PostgreSQL stores equal keys once with the list of their rows, so frequent keys cost little.
const INDEXES: [(&str, &str, &str); 12] = [
    ("blocks", "hash", "(hash)"),
    // Blocks of `Proof::Stated`. The names of indexes are in stored databases, so they stay.
    ("blocks", "stated", "(number) WHERE proof = 0"),
    ("transactions", "hash", "(hash)"),
    ("transactions", "sender", "(sender, block_number)"),
    ("transactions", "recipient", "(recipient, block_number) WHERE recipient IS NOT NULL"),
    ("logs", "address", "(address)"),
    ("logs", "topic0", "(topic0) WHERE topic0 IS NOT NULL"),
    ("logs", "topic1", "(topic1) WHERE topic1 IS NOT NULL"),
    ("logs", "topic2", "(topic2) WHERE topic2 IS NOT NULL"),
    ("logs", "topic3", "(topic3) WHERE topic3 IS NOT NULL"),
    ("traces", "sender", "(sender, block_number)"),
    ("traces", "recipient", "(recipient, block_number) WHERE recipient IS NOT NULL"),
];

/// The name of a table's partition, which ends in the number of its first block.
fn name(table: &str, first: u64) -> String {
    format!("{table}_{first:012}")
}

/// The column of the block's number, by which a table is partitioned.
fn key(table: &str) -> &'static str {
    if table == "blocks" { "number" } else { "block_number" }
}

/// Makes the partitions of the blocks from `first` to the one before `end`, and their row in `ranges`. Attaching a finished
/// table takes a weaker lock than making a partition in place, so that readers go on.
pub(crate) async fn create(transaction: &Transaction<'_>, first: u64, end: u64) -> Result<(), IndexError> {
    transaction.batch_execute(LOCK_TIMEOUT).await?;
    for table in TABLES {
        let partition = name(table, first);
        let key = key(table);
        let sql = format!(
            "CREATE TABLE rootlight.{partition} (LIKE rootlight.{table} INCLUDING ALL, CHECK ({key} >= {first} AND {key} < {end}));
             ALTER TABLE rootlight.{table} ATTACH PARTITION rootlight.{partition} FOR VALUES FROM ({first}) TO ({end});"
        );
        transaction.batch_execute(&sql).await?;
    }
    let row = "INSERT INTO rootlight.ranges (first_block, end_block, next_block, traces_next) VALUES ($1, $2, $1, $1)";
    transaction.execute(row, &[&int8(first), &int8(end)]).await?;
    Ok(())
}

/// Makes the secondary indexes of a range, and marks it searchable.
pub(crate) async fn make_searchable(transaction: &Transaction<'_>, first: u64) -> Result<(), IndexError> {
    transaction.batch_execute(SORT_MEMORY).await?;
    for (table, index, columns_and_condition) in INDEXES {
        let partition = name(table, first);
        let sql =
            format!("CREATE INDEX {partition}_{index} ON rootlight.{partition} {columns_and_condition}");
        transaction.batch_execute(&sql).await?;
    }
    for table in TABLES {
        transaction.batch_execute(&format!("ANALYZE rootlight.{}", name(table, first))).await?;
    }
    let sql = "UPDATE rootlight.ranges SET searchable = true WHERE first_block = $1";
    transaction.execute(sql, &[&int8(first)]).await?;
    Ok(())
}

/// The first blocks of partitions that exist, in ascending order, whether or not they have a row in `ranges`: a partition
/// loses its row before it is dropped. All tables have the same partitions, so those of `logs` are listed.
pub(crate) async fn existing(client: &impl GenericClient) -> Result<Vec<u64>, IndexError> {
    let sql = "SELECT substr(relname, length('logs_') + 1)::bigint FROM pg_class
               JOIN pg_inherits ON inhrelid = pg_class.oid WHERE inhparent = 'rootlight.logs'::regclass ORDER BY 1";
    let rows = client.query(sql, &[]).await?;
    rows.iter().map(|row| Ok(row.try_get(0).map(crate::state::uint)?)).collect()
}

/// Drops the partitions that begin at this block.
pub(crate) async fn remove(transaction: &Transaction<'_>, first: u64) -> Result<(), IndexError> {
    transaction.batch_execute(LOCK_TIMEOUT).await?;
    let names: Vec<String> = TABLES.iter().map(|table| format!("rootlight.{}", name(table, first))).collect();
    transaction.batch_execute(&format!("DROP TABLE IF EXISTS {}", names.join(", "))).await?;
    Ok(())
}
