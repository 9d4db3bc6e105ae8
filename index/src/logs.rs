//! Reads the logs that a filter selects, and sends them in pieces while later rows are fetched.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use rootlight::engine::{FoundLog, LogFilter};
use rootlight::types::BlockRef;
use tokio::sync::mpsc;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::block::{MAX_TOPICS, Proof};
use crate::error::IndexError;
use crate::reader::{IndexReader, check_covered, rows as prepared_rows};
use crate::rows::{LOG_COLUMNS, LogRow, RowFields};

/// Most rows that are fetched at a time.
const MAX_ROWS: usize = 1_000;

/// Rows of the first fetch, whose lengths are not known yet. The gas of a block pays for a log of at most some 800 kB, so
/// the first fetch takes at most some 13 MB.
pub(crate) const FIRST_ROWS: usize = 16;

/// Bytes that the rows of a piece (the rows of one fetch) should have. The number of rows is chosen by the length of the
/// rows before them, so a piece exceeds this where rows get longer.
const PIECE_BYTES: usize = 1024 * 1024;

/// Most pieces of an answer that wait for the reader of the stream, each of at most [`MAX_ROWS`] logs.
const WAITING_PIECES: usize = 2;

/// A log of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedLog {
    /// The log, its block and transaction.
    pub found: FoundLog,
    /// The proof level of its block.
    pub proof: Proof,
}

/// The logs of a range, in the order of the chain. Dropping the stream ends the statement that reads them.
#[derive(Debug)]
pub struct LogStream(mpsc::Receiver<Result<Vec<IndexedLog>, IndexError>>);

impl LogStream {
    /// The next logs; `None` at the end. After an error there are no more.
    pub async fn next(&mut self) -> Option<Result<Vec<IndexedLog>, IndexError>> {
        self.0.recv().await
    }

    /// All logs that are left.
    ///
    /// # Errors
    /// The first error.
    pub async fn all(mut self) -> Result<Vec<IndexedLog>, IndexError> {
        let mut all = Vec::new();
        while let Some(logs) = self.next().await {
            all.extend(logs?);
        }
        Ok(all)
    }
}

impl IndexReader {
    /// The logs that a filter selects in the blocks from one to another, both included.
    ///
    /// The stream's first item is [`IndexError::NotCovered`] if some of these blocks are not loaded.
    pub fn logs(&self, filter: &LogFilter, from: u64, to: u64) -> LogStream {
        let (sender, receiver) = mpsc::channel(WAITING_PIECES);
        let (reader, filter) = (self.clone(), filter.clone());
        tokio::spawn(async move {
            let sent = tokio::select! {
                sent = reader.send_logs(&filter, from, to, &sender) => sent,
                () = sender.closed() => return,
            };
            if let Err(error) = sent {
                // The receiver may be gone, which needs no error.
                let _ = sender.send(Err(error)).await;
            }
        });
        LogStream(receiver)
    }

    async fn send_logs(
        &self,
        filter: &LogFilter,
        from: u64,
        to: u64,
        sender: &mpsc::Sender<Result<Vec<IndexedLog>, IndexError>>,
    ) -> Result<(), IndexError> {
        self.ask(async |question| send_logs(question, filter, from, to, sender).await).await
    }
}

/// Sends the logs that a filter selects, in pieces. `question` is the database transaction of [`IndexReader::ask`].
async fn send_logs(
    question: &Transaction<'_>,
    filter: &LogFilter,
    from: u64,
    to: u64,
    sender: &mpsc::Sender<Result<Vec<IndexedLog>, IndexError>>,
) -> Result<(), IndexError> {
    check_covered(&**question, from, to).await?;
    let Some(condition) = log_condition(filter, from, to) else { return Ok(()) };
    let (parameters, condition) = (condition.parameters(), &condition.text);
    let sql = format!(
        "SELECT {LOG_COLUMNS} FROM rootlight.logs WHERE {condition} ORDER BY block_number, log_index"
    );
    let portal = question.bind(&sql, &parameters).await?;
    let fetch =
        async |rows: usize| question.query_portal(&portal, i32::try_from(rows).unwrap_or(i32::MAX)).await;
    let mut requested = FIRST_ROWS;
    let mut rows = fetch(requested).await?;
    loop {
        let last = rows.len() < requested;
        requested = next_rows(&rows);
        // The next rows are fetched while these are decoded.
        let fetch_next = async { if last { Ok(Vec::new()) } else { fetch(requested).await } };
        let (logs, fetched) = tokio::join!(with_blocks(question, &rows), fetch_next);
        let logs = logs?;
        if (!logs.is_empty() && sender.send(Ok(logs)).await.is_err()) || last {
            return Ok(());
        }
        rows = fetched?;
    }
}

/// How many rows to fetch after these: as many as fit into a piece if they are as long as these, and at most four times as
/// many as these.
pub(crate) fn next_rows(rows: &[Row]) -> usize {
    let bytes = rows.iter().map(Row::raw_size_bytes).fold(0, usize::saturating_add);
    let fit = PIECE_BYTES.saturating_mul(rows.len()).checked_div(bytes).unwrap_or(MAX_ROWS);
    fit.min(rows.len().saturating_mul(4)).clamp(1, MAX_ROWS)
}

/// An SQL condition on rows of a range of blocks, and its parameters.
pub(crate) struct Condition<'a> {
    pub(crate) text: String,
    /// The list of values for each parameter, `$1` first.
    values: Vec<Vec<&'a [u8]>>,
}

impl<'a> Condition<'a> {
    /// The rows of these blocks, both included.
    pub(crate) fn of_blocks(column: &str, from: u64, to: u64) -> Self {
        // The bounds are written into the text, so that the planner leaves out other partitions.
        Self { text: format!("{column} BETWEEN {from} AND {to}"), values: Vec::new() }
    }

    /// Demands that a column has one of these values.
    pub(crate) fn and_any(&mut self, column: &str, values: Vec<&'a [u8]>) {
        self.values.push(values);
        self.text.push_str(&format!(" AND {column} = ANY(${})", self.values.len()));
    }

    /// The parameters of the statement, in the order of their numbers.
    pub(crate) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|values| values as _).collect()
    }
}

/// The condition that a filter states; `None` if no log can match: the filter names a fifth topic, which no log has.
fn log_condition(filter: &LogFilter, from: u64, to: u64) -> Option<Condition<'_>> {
    let mut condition = Condition::of_blocks("block_number", from, to);
    if !filter.addresses.is_empty() {
        condition.and_any("address", filter.addresses.iter().map(|address| address.as_slice()).collect());
    }
    for (at, topics) in filter.topics.iter().enumerate().filter(|(_, topics)| !topics.is_empty()) {
        if at >= MAX_TOPICS {
            return None;
        }
        condition.and_any(&format!("topic{at}"), topics.iter().map(|topic| topic.as_slice()).collect());
    }
    Some(condition)
}

/// Completes logs with the hashes and proofs of their blocks.
async fn with_blocks(question: &Transaction<'_>, rows: &[Row]) -> Result<Vec<IndexedLog>, IndexError> {
    let mut numbers: Vec<i64> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    numbers.dedup();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    // A join looks each number up in its own partition. `number = ANY($1)` would look all of them up in every partition.
    let sql = "SELECT b.number, b.hash, b.proof FROM unnest($1::bigint[]) AS wanted (number)
               JOIN rootlight.blocks b ON b.number = wanted.number";
    let mut blocks = HashMap::new();
    for row in prepared_rows(question, sql, &[&numbers]).await? {
        let fields = RowFields::of(&row)?;
        blocks.insert(fields.number, (fields.hash("hash")?, Proof::of_code(fields.get("proof")?)));
    }
    let log = |row| {
        let fields = RowFields::of(row)?;
        let number = fields.number;
        let (hash, proof) =
            blocks.get(&number).copied().ok_or(IndexError::Damaged { what: "a missing row", number })?;
        let LogRow { log_index, transaction_index, transaction, log } = fields.log()?;
        let block = BlockRef { number, hash };
        let found = FoundLog { log, log_index, transaction, transaction_index, block };
        Ok(IndexedLog { found, proof })
    };
    rows.iter().map(log).collect()
}
