//! Reads traces: those of a block or of a transaction, and those of the transactions that a filter selects.

use alloy_primitives::{Address, B256, Bytes};
use deadpool_postgres::Transaction;
use rootlight::types::BlockRef;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::IndexError;
use crate::logs::{Condition, FIRST_ROWS, next_rows};
use crate::lookup::number_of;
use crate::reader::{IndexReader, rows, searchable_rows};
use crate::rows::RowFields;
use crate::state::{int8, ranges, traced};
use crate::trace::{Trace, TraceKind, TraceOutcome};

/// A trace of the index. No header commits to traces, so a trace is never proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedTrace {
    /// The trace.
    pub trace: Trace,
    /// Hash of its transaction.
    pub transaction: B256,
    /// The block of the traced transaction.
    pub block: BlockRef,
}

/// Selects transactions, whose traces are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFilter {
    /// Any of these senders; an empty list matches any. No list matches the transaction
    /// of REMASC (Rootstock's contract that pays the miners, called by the last transaction of each block), which has no sender.
    pub senders: Vec<Address>,
    /// Any of these recipients; an empty list matches any.
    pub recipients: Vec<Address>,
}

/// The blocks to search, and which of the selected traces are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRange {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// The block up to which the index must have traces. Above it the search ends at the last block with traces.
    pub must_reach: u64,
    /// Number of traces at the beginning that are left out.
    pub after: usize,
    /// Most traces after those that are left out.
    pub count: usize,
    /// Most bytes of traces, counted as [`Trace::bytes`].
    pub bytes: usize,
}

/// The traces that a filter found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundTraces {
    /// The wanted traces.
    All {
        /// The traces, in the order of the chain.
        traces: Vec<IndexedTrace>,
        /// Number of traces that were found and left out, at most [`TraceRange::after`].
        skipped: usize,
        /// The last block of the search. If `count` traces were found, later ones up to this block may be missing.
        last: u64,
    },
    /// The traces take more than [`TraceRange::bytes`].
    TooLong,
}

/// The block or transaction whose traces are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedBlock {
    /// The block at a height.
    Number(u64),
    /// The block with a hash.
    Hash(B256),
    /// The transaction with this hash.
    Transaction(B256),
}

/// Columns of a trace `t` and the hash of its block `b`.
const TRACE_COLUMNS: &str = "t.block_number, t.transaction_index, t.trace_address, t.subtraces, t.kind, t.sender, t.recipient, t.value, t.gas, t.gas_used, t.error, t.input, t.output, b.hash AS block_hash";

impl IndexReader {
    /// The traces of a block or transaction, and the block; `None` if the index does not have them.
    ///
    /// # Errors
    /// [`IndexError::TracesTooLong`], [`IndexError::Damaged`] and those of the database.
    pub async fn traces_of(
        &self,
        which: TracedBlock,
    ) -> Result<Option<(BlockRef, Vec<IndexedTrace>)>, IndexError> {
        self.ask(async |question| {
            let (number, index) = match which {
                TracedBlock::Number(number) => (Some(number), None),
                TracedBlock::Hash(hash) => (number_of(question, &hash).await?, None),
                TracedBlock::Transaction(hash) => position_of(question, &hash).await?.unzip(),
            };
            let covered = traced(&ranges(&**question).await?);
            let has = |number: &u64| covered.iter().any(|(first, last)| (first..=last).contains(&number));
            let Some(number) = number.filter(has) else { return Ok(None) };
            let sql =
                "SELECT number, hash, EXISTS (SELECT FROM rootlight.untraced WHERE block_number = $1) AS untraced
                       FROM rootlight.blocks WHERE number = $1";
            let row = question.query_one(sql, &[&int8(number)]).await?;
            let fields = RowFields::of(&row)?;
            if fields.get("untraced")? {
                return Err(IndexError::TracesTooLong { number });
            }
            let block = BlockRef { number, hash: fields.hash("hash")? };
            let sql = format!(
                "SELECT {TRACE_COLUMNS}, x.hash FROM rootlight.traces t
                 JOIN rootlight.transactions x ON x.block_number = $1 AND x.transaction_index = t.transaction_index
                 JOIN rootlight.blocks b ON b.number = $1
                 WHERE t.block_number = $1 AND ($2::integer IS NULL OR t.transaction_index = $2)
                 ORDER BY t.transaction_index, t.trace_index"
            );
            let found = rows(question, &sql, &[&int8(number), &index]).await?;
            Ok(Some((block, found.iter().map(indexed).collect::<Result<_, _>>()?)))
        })
        .await
    }

    /// The traces of the transactions that a filter selects, in the order of the chain.
    ///
    /// # Errors
    /// [`IndexError::TracesNotLoaded`], [`IndexError::TracesTooLong`], [`IndexError::Damaged`] and those of the database.
    pub async fn traces(&self, filter: &TraceFilter, range: &TraceRange) -> Result<FoundTraces, IndexError> {
        self.ask(async |question| {
            let TraceRange { from, to, must_reach, after, count, bytes } = *range;
            let runs = traced(&ranges(&**question).await?);
            let run = runs.into_iter().find(|(first, end)| *first <= from && from.max(must_reach) <= *end);
            let Some((_, end)) = run else { return Err(IndexError::TracesNotLoaded { from, to: must_reach.max(from) }) };
            let last = to.min(end);
            let most = after.saturating_add(count);
            let mut found = Collected { to_skip: after, wanted: count, bytes_left: bytes, traces: Vec::new() };
            let Some(condition) = transaction_condition(filter, from, last) else {
                return Ok(FoundTraces::All { traces: Vec::new(), skipped: 0, last });
            };
            let (parameters, condition) = (condition.parameters(), &condition.text);
            check_untraced(question, condition, &parameters).await?;
            // Each transaction has at least one trace, so `most` transactions suffice. They are few, so their rows are looked up one
            // by one: other kinds of joins would read whole partitions.
            let sql = format!(
                "WITH x AS MATERIALIZED (SELECT x.block_number, x.transaction_index, x.hash FROM rootlight.transactions x
                     WHERE {condition} ORDER BY x.block_number, x.transaction_index LIMIT {most})
                 SELECT {TRACE_COLUMNS}, x.hash FROM x
                 JOIN rootlight.traces t ON t.block_number = x.block_number AND t.transaction_index = x.transaction_index
                 JOIN rootlight.blocks b ON b.number = x.block_number
                 WHERE t.block_number BETWEEN {from} AND {last} AND b.number BETWEEN {from} AND {last}
                 ORDER BY x.block_number, x.transaction_index, t.trace_index"
            );
            question.batch_execute("SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off").await?;
            let portal = question.bind(&sql, &parameters).await?;
            let mut requested = FIRST_ROWS;
            while found.wanted > 0 {
                let rows = question.query_portal(&portal, i32::try_from(requested).unwrap_or(i32::MAX)).await?;
                if !found.take(&rows)? {
                    return Ok(FoundTraces::TooLong);
                }
                if rows.len() < requested {
                    break;
                }
                requested = next_rows(&rows);
            }
            let skipped = after.saturating_sub(found.to_skip);
            Ok(FoundTraces::All { traces: found.traces, skipped, last })
        })
        .await
    }
}

/// The height and the index of a transaction; of several rows, those of the newest run of blocks.
async fn position_of(question: &Transaction<'_>, hash: &B256) -> Result<Option<(u64, i32)>, IndexError> {
    let sql = "SELECT block_number, transaction_index FROM rootlight.transactions WHERE hash = $1";
    let found = searchable_rows(question, sql, "block_number", &hash.as_slice()).await?;
    let position = |row| {
        let fields = RowFields::of(row)?;
        Ok((fields.number, fields.get("transaction_index")?))
    };
    found.last().map(position).transpose()
}

/// Refuses a question if a block with too long traces has a transaction that the condition selects.
async fn check_untraced(
    question: &Transaction<'_>,
    condition: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<(), IndexError> {
    let sql = format!(
        "SELECT u.block_number FROM rootlight.untraced u
         JOIN rootlight.transactions x ON x.block_number = u.block_number WHERE {condition} LIMIT 1"
    );
    match question.query_opt(&sql, parameters).await? {
        Some(row) => Err(IndexError::TracesTooLong { number: RowFields::of(&row)?.number }),
        None => Ok(()),
    }
}

/// The condition on transactions `x` that a filter states; `None` if no transaction can match.
fn transaction_condition(filter: &TraceFilter, from: u64, last: u64) -> Option<Condition<'_>> {
    let mut condition = Condition::of_blocks("x.block_number", from, last);
    // The transaction of REMASC has no signature; its sender is stored as zero, which no list may match.
    let senders = filter.senders.iter().filter(|sender| !sender.is_zero()).map(|sender| sender.as_slice());
    let recipients = filter.recipients.iter().map(|recipient| recipient.as_slice());
    let lists = [
        ("x.sender", filter.senders.is_empty(), senders.collect::<Vec<_>>()),
        ("x.recipient", filter.recipients.is_empty(), recipients.collect()),
    ];
    for (column, matches_any, values) in lists {
        match matches_any {
            true => {}
            // All senders of the list were zero.
            false if values.is_empty() => return None,
            false => condition.and_any(column, values),
        }
    }
    Some(condition)
}

/// The traces that were found so far.
struct Collected {
    /// Traces that are still to be left out.
    to_skip: usize,
    /// Traces that are still wanted.
    wanted: usize,
    bytes_left: usize,
    traces: Vec<IndexedTrace>,
}

impl Collected {
    /// Takes rows; returns `false` if the wanted traces exceed the bytes.
    fn take(&mut self, rows: &[Row]) -> Result<bool, IndexError> {
        for row in rows {
            if self.wanted == 0 {
                break;
            }
            if self.to_skip > 0 {
                self.to_skip = self.to_skip.saturating_sub(1);
                continue;
            }
            let found = indexed(row)?;
            match self.bytes_left.checked_sub(found.trace.bytes()) {
                Some(left) => self.bytes_left = left,
                None => return Ok(false),
            }
            self.wanted = self.wanted.saturating_sub(1);
            self.traces.push(found);
        }
        Ok(true)
    }
}

/// A row with the columns of [`TRACE_COLUMNS`] and the transaction's hash.
fn indexed(row: &Row) -> Result<IndexedTrace, IndexError> {
    let fields = RowFields::of(row)?;
    let number = fields.number;
    Ok(IndexedTrace {
        trace: trace(&fields)?,
        transaction: fields.hash("hash")?,
        block: BlockRef { number, hash: fields.hash("block_hash")? },
    })
}

/// Reads the columns of a trace.
fn trace(fields: &RowFields<'_>) -> Result<Trace, IndexError> {
    let number = fields.number;
    let damaged = || IndexError::Damaged { what: "a trace", number };
    let small = |number: i32| u32::try_from(number).map_err(|_| damaged());
    let whole = |number: Option<i64>| number.map(u64::try_from).transpose().map_err(|_| damaged());
    let path: Vec<i32> = fields.get("trace_address")?;
    let to = fields.get::<Option<&[u8]>>("recipient")?.map(Address::try_from).transpose();
    let outcome = match (whole(fields.get("gas_used")?)?, fields.get::<Option<&[u8]>>("output")?) {
        (Some(gas_used), Some(output)) => {
            Some(TraceOutcome { gas_used, output: Bytes::copy_from_slice(output) })
        }
        (None, None) => None,
        _ => return Err(damaged()),
    };
    Ok(Trace {
        transaction: small(fields.get("transaction_index")?)?,
        address: path.into_iter().map(small).collect::<Result<_, _>>()?,
        subtraces: small(fields.get("subtraces")?)?,
        kind: TraceKind::of_name(fields.get("kind")?).ok_or_else(damaged)?,
        from: fields.address("sender")?,
        to: to.map_err(|_| damaged())?,
        value: fields.numeric("value")?,
        gas: whole(fields.get("gas")?)?,
        input: fields.bytes("input")?,
        outcome,
        error: fields.get("error")?,
    })
}
