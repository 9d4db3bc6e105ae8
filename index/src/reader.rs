//! Opens an index for reading, and runs the statements of each question in one read-only transaction.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Pool, Transaction};
use rootlight::consensus::Network;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, IsolationLevel, Row};

use crate::connect::Database;
use crate::connection::PooledConnection;
use crate::error::IndexError;
use crate::schema;
use crate::state::{covered, covers, int8, layout, ranges, uint};

/// How an index is opened for reading.
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    /// Number of connections, and so most questions that are answered at a time.
    pub connections: usize,
    /// Longest time of one statement.
    pub timeout: Duration,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self { connections: 8, timeout: Duration::from_secs(30) }
    }
}

/// Which blocks an index has, and who writes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexStatus {
    /// The index has no block below this one.
    pub floor: u64,
    /// Number of blocks of a partition.
    pub partition_blocks: u64,
    /// The first and the last block of each run of consecutive blocks that can be searched, in ascending order.
    pub covered: Vec<(u64, u64)>,
    /// Number of indexers that have opened the index for writing.
    pub epoch: u64,
    /// Host, process and start time of the newest indexer.
    pub writer: String,
}

/// Reads an index. Each question is answered from one snapshot of the database, so a reorganisation is seen whole or not at
/// all. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct IndexReader {
    pool: Pool,
    database: Arc<Database>,
    network: Arc<Network>,
    /// Longest time of one statement.
    timeout: Duration,
}

impl IndexReader {
    /// Opens an index of this network.
    ///
    /// # Errors
    /// [`IndexError::OlderSchema`] if there is no index, [`IndexError::NewerSchema`], [`IndexError::OtherNetwork`], and
    /// those of the database.
    pub async fn open(
        database: &Database,
        network: Arc<Network>,
        options: &ReaderOptions,
    ) -> Result<Self, IndexError> {
        let pool = database.pool(options.connections)?;
        let client = pool.get().await?;
        schema::check(&client).await?;
        let known = schema::known_version();
        layout(&**client, &network).await?.ok_or(IndexError::OlderSchema { found: 0, known })?;
        drop(client);
        Ok(Self { pool, database: Arc::new(database.clone()), network, timeout: options.timeout })
    }

    /// The network of the index.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The present status of the index.
    pub async fn status(&self) -> Result<IndexStatus, IndexError> {
        self.ask(async |question| {
            let sql = "SELECT floor_block, partition_blocks, epoch, writer FROM rootlight.state";
            let row = question.query_one(sql, &[]).await?;
            let covered = covered(&ranges(&**question).await?);
            Ok(IndexStatus {
                floor: uint(row.try_get(0)?),
                partition_blocks: uint(row.try_get(1)?),
                covered,
                epoch: uint(row.try_get(2)?),
                writer: row.try_get(3)?,
            })
        })
        .await
    }

    /// Answers a question: runs the function `question` in a transaction, whose statements all see one snapshot of the database. A
    /// caller that drops the future also ends the statement that runs.
    pub(crate) async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let mut connection = PooledConnection::of(&self.pool, &self.database).await?;
        let transaction = self.begin(&mut connection).await?;
        let answer = question(&transaction).await;
        // Nothing was written, so the transaction is rolled back.
        drop(transaction);
        connection.statements_ended();
        answer
    }

    /// Begins a read-only transaction that sees one snapshot of the database.
    async fn begin<'a>(&self, connection: &'a mut PooledConnection) -> Result<Transaction<'a>, IndexError> {
        let builder = connection.client()?.build_transaction();
        let transaction =
            builder.isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
        // PostgreSQL's compilation of expressions (jit) costs more than it saves for questions about few rows.
        let millis = self.timeout.as_millis();
        transaction
            .batch_execute(&format!("SET LOCAL statement_timeout = {millis}; SET LOCAL jit = off"))
            .await?;
        Ok(transaction)
    }
}

/// Refuses a question about blocks that are not loaded, or have no indexes yet.
pub(crate) async fn check_covered(client: &impl GenericClient, from: u64, to: u64) -> Result<(), IndexError> {
    match covers(&ranges(client).await?, from, to) {
        true => Ok(()),
        false => Err(IndexError::NotCovered { from, to }),
    }
}

/// The rows of a statement that is prepared once for each connection, because planning a statement about all partitions
/// takes longer than running it. Only for statements of a fixed text: each text stays in the connection's cache.
pub(crate) async fn rows(
    question: &Transaction<'_>,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, IndexError> {
    let statement = question.prepare_cached(sql).await?;
    Ok(question.query(&statement, parameters).await?)
}

/// The rows that a statement finds in blocks that can be searched. `sql` ends in a condition with the parameter `$1`, to which
/// `parameter` belongs, and `column` is its column of block numbers. In other blocks a look-up by hash would read partitions
/// that have no indexes yet from end to end.
pub(crate) async fn searchable_rows(
    question: &Transaction<'_>,
    sql: &str,
    column: &str,
    parameter: &(dyn ToSql + Sync),
) -> Result<Vec<Row>, IndexError> {
    let mut found = Vec::new();
    for (first, last) in covered(&ranges(&**question).await?) {
        let sql = format!("{sql} AND {column} BETWEEN $2 AND $3");
        found.extend(rows(question, &sql, &[parameter, &int8(first), &int8(last)]).await?);
    }
    Ok(found)
}
