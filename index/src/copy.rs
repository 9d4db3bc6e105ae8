//! Writes blocks and traces as rows, by PostgreSQL's COPY in the binary format. Called within the writer's transactions.

use std::pin::pin;

use alloy_primitives::{Address, B256};
use rootlight::types::{HeaderForm, RawUint, Transaction, encode_uncles};
use tokio_postgres::Transaction as DatabaseTransaction;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

use crate::error::IndexError;
use crate::numeric::Numeric;
use crate::source::SourceBlock;
use crate::state::int8;
use crate::trace::{BlockTraces, Trace};

/// Opens a COPY into a table, runs the block that writes the rows, and ends the COPY. Columns are given with their types.
macro_rules! copy {
    ($database:expr, $table:literal ( $($column:literal $kind:ident),* ), |$writer:ident| $rows:block) => {{
        let columns = [$($column),*].join(",");
        let sql = format!(concat!("COPY rootlight.", $table, "({}) FROM STDIN BINARY"), columns);
        let sink = $database.copy_in(&sql).await?;
        let mut $writer = pin!(BinaryCopyInWriter::new(sink, &[$(Type::$kind),*]));
        $rows
        $writer.finish().await?;
    }};
}

/// Writes the rows of blocks, without their traces, which [`traces`] writes.
pub(crate) async fn write(
    database: &DatabaseTransaction<'_>,
    blocks: &[SourceBlock],
) -> Result<(), IndexError> {
    headers(database, blocks).await?;
    transactions(database, blocks).await?;
    receipts(database, blocks).await?;
    logs(database, blocks).await
}

/// Converts an index or a number of transactions or logs to an `integer`: a block has far fewer than 2^31.
fn int4(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The column of an address.
fn address(address: Option<&Address>) -> Option<&[u8]> {
    address.map(|address| address.as_slice())
}

/// Writes the rows of the table `blocks`.
async fn headers(database: &DatabaseTransaction<'_>, blocks: &[SourceBlock]) -> Result<(), IndexError> {
    copy!(
        database,
        "blocks"(
            "number" INT8, "hash" BYTEA, "parent_hash" BYTEA, "timestamp" INT8, "miner" BYTEA, "gas_limit" NUMERIC,
            "gas_used" INT8, "minimum_gas_price" NUMERIC, "difficulty" NUMERIC, "transaction_count" INT4,
            "log_count" INT4, "proof" INT2, "header" BYTEA, "uncles" BYTEA
        ),
        |writer| {
            for SourceBlock { block, proof, .. } in blocks {
                let header = block.header();
                writer
                    .as_mut()
                    .write(&[
                        &int8(header.number),
                        &header.hash().as_slice(),
                        &header.parent_hash.as_slice(),
                        &int8(header.timestamp),
                        &address(header.coinbase.as_ref()),
                        &Numeric(header.gas_limit.value()),
                        &int8(header.gas_used),
                        &Numeric(header.minimum_gas_price.value()),
                        &Numeric(header.difficulty.value()),
                        &int4(block.transactions().len()),
                        &int4(block.logs()),
                        &proof.code(),
                        &header.encode(HeaderForm::Full),
                        &block.uncles().map(encode_uncles),
                    ])
                    .await?;
            }
        }
    );
    Ok(())
}

/// Length in bytes of a number as it is hashed: a transaction may have leading zeros, but is far shorter than 2^31 bytes.
fn raw_len(number: &RawUint) -> i32 {
    i32::try_from(number.len()).unwrap_or(i32::MAX)
}

async fn transactions(database: &DatabaseTransaction<'_>, blocks: &[SourceBlock]) -> Result<(), IndexError> {
    copy!(
        database,
        "transactions"(
            "block_number" INT8, "transaction_index" INT4, "hash" BYTEA, "sender" BYTEA, "recipient" BYTEA,
            "created_contract" BYTEA, "value" NUMERIC, "nonce" NUMERIC, "gas_limit" NUMERIC, "gas_price" NUMERIC,
            "input" BYTEA, "v" INT2, "r" BYTEA, "s" BYTEA, "nonce_bytes" INT4, "gas_limit_bytes" INT4,
            "gas_price_bytes" INT4
        ),
        |writer| {
            for SourceBlock { block, .. } in blocks {
                let number = int8(block.header().number);
                let signed = block.transactions().iter().zip(block.hashes()).zip(block.senders());
                for (index, ((transaction, hash), sender)) in signed.enumerate() {
                    let Transaction { nonce, gas_price, gas_limit, to, value, data, v, r, s } = transaction;
                    writer
                        .as_mut()
                        .write(&[
                            &number,
                            &int4(index),
                            &hash.as_slice(),
                            &sender.as_slice(),
                            &address(to.as_ref()),
                            &address(transaction.contract_address(sender).as_ref()),
                            &Numeric(*value),
                            &Numeric(nonce.value()),
                            &Numeric(gas_limit.value()),
                            &Numeric(gas_price.value()),
                            &data.as_ref(),
                            &i16::from(*v),
                            &B256::from(*r).as_slice(),
                            &B256::from(*s).as_slice(),
                            &raw_len(nonce),
                            &raw_len(gas_limit),
                            &raw_len(gas_price),
                        ])
                        .await?;
                }
            }
        }
    );
    Ok(())
}

async fn receipts(database: &DatabaseTransaction<'_>, blocks: &[SourceBlock]) -> Result<(), IndexError> {
    copy!(
        database,
        "receipts"(
            "block_number" INT8, "transaction_index" INT4, "transaction_hash" BYTEA, "success" BOOL, "gas_used" INT8,
            "cumulative_gas_used" INT8, "first_log_index" INT4, "log_count" INT4
        ),
        |writer| {
            for SourceBlock { block, .. } in blocks {
                let number = int8(block.header().number);
                let mut first_log_index = 0_usize;
                for (index, (receipt, hash)) in block.receipts().iter().zip(block.hashes()).enumerate() {
                    writer
                        .as_mut()
                        .write(&[
                            &number,
                            &int4(index),
                            &hash.as_slice(),
                            &receipt.success,
                            &int8(receipt.gas_used),
                            &int8(receipt.cumulative_gas_used),
                            &int4(first_log_index),
                            &int4(receipt.logs.len()),
                        ])
                        .await?;
                    first_log_index = first_log_index.saturating_add(receipt.logs.len());
                }
            }
        }
    );
    Ok(())
}

async fn logs(database: &DatabaseTransaction<'_>, blocks: &[SourceBlock]) -> Result<(), IndexError> {
    copy!(
        database,
        "logs"(
            "block_number" INT8, "log_index" INT4, "transaction_index" INT4, "transaction_hash" BYTEA,
            "address" BYTEA, "topic0" BYTEA, "topic1" BYTEA, "topic2" BYTEA, "topic3" BYTEA, "data" BYTEA
        ),
        |writer| {
            for SourceBlock { block, .. } in blocks {
                let number = int8(block.header().number);
                let mut log_index = 0_i32;
                for (index, (receipt, hash)) in block.receipts().iter().zip(block.hashes()).enumerate() {
                    for log in &receipt.logs {
                        let topic = |at: usize| log.topics.get(at).map(B256::as_slice);
                        writer
                            .as_mut()
                            .write(&[
                                &number,
                                &log_index,
                                &int4(index),
                                &hash.as_slice(),
                                &log.address.as_slice(),
                                &topic(0),
                                &topic(1),
                                &topic(2),
                                &topic(3),
                                &log.data.as_ref(),
                            ])
                            .await?;
                        log_index = log_index.saturating_add(1);
                    }
                }
            }
        }
    );
    Ok(())
}

/// Writes the rows of the traces of blocks, and notes which blocks have traces beyond the limits. Returns the number of traces.
pub(crate) async fn traces(
    database: &DatabaseTransaction<'_>,
    blocks: &[SourceBlock],
) -> Result<u64, IndexError> {
    let mut count = 0_u64;
    copy!(
        database,
        "traces"(
            "block_number" INT8, "transaction_index" INT4, "trace_index" INT4, "trace_address" INT4_ARRAY,
            "subtraces" INT4, "kind" TEXT, "sender" BYTEA, "recipient" BYTEA, "value" NUMERIC, "gas" INT8,
            "gas_used" INT8, "error" TEXT, "input" BYTEA, "output" BYTEA
        ),
        |writer| {
            for SourceBlock { block, traces, .. } in blocks {
                let number = int8(block.header().number);
                // `trace_index` counts the traces of one transaction.
                let (mut transaction, mut trace_index) = (0_u32, 0_i32);
                for trace in traces_to_store(traces.as_ref()) {
                    if transaction != trace.transaction {
                        (transaction, trace_index) = (trace.transaction, 0);
                    }
                    let row = TraceRow::of(trace);
                    writer
                        .as_mut()
                        .write(&[
                            &number,
                            &int4_from_u32(trace.transaction),
                            &trace_index,
                            &row.path,
                            &int4_from_u32(trace.subtraces),
                            &row.kind,
                            &trace.from.as_slice(),
                            &address(trace.to.as_ref()),
                            &Numeric(trace.value),
                            &trace.gas.map(int8),
                            &row.gas_used,
                            &trace.error,
                            &trace.input.as_ref(),
                            &row.output,
                        ])
                        .await?;
                    trace_index = trace_index.saturating_add(1);
                    count = count.saturating_add(1);
                }
            }
        }
    );
    note_too_long(database, blocks).await?;
    Ok(count)
}

/// Notes which blocks have traces that exceed the limits, and so are not stored.
async fn note_too_long(database: &DatabaseTransaction<'_>, blocks: &[SourceBlock]) -> Result<(), IndexError> {
    for block in blocks {
        if block.traces.as_ref().is_some_and(|traces| traces.traces().is_none()) {
            let sql = "INSERT INTO rootlight.untraced (block_number) VALUES ($1)";
            database.execute(sql, &[&int8(block.block.header().number)]).await?;
        }
    }
    Ok(())
}

/// The traces of a block; empty if there are none or they exceed the limits.
fn traces_to_store(traces: Option<&BlockTraces>) -> &[Trace] {
    traces.and_then(BlockTraces::traces).unwrap_or_default()
}

/// Converts an index in a list of traces to an `integer`: a block has far fewer than 2^31.
fn int4_from_u32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The columns of a trace whose form in the database differs from that in [`Trace`].
struct TraceRow<'a> {
    kind: String,
    /// The column `trace_address`.
    path: Vec<i32>,
    gas_used: Option<i64>,
    output: Option<&'a [u8]>,
}

impl<'a> TraceRow<'a> {
    fn of(trace: &'a Trace) -> Self {
        let outcome = trace.outcome.as_ref();
        Self {
            kind: trace.kind.name().to_owned(),
            path: trace.address.iter().copied().map(int4_from_u32).collect(),
            gas_used: outcome.map(|outcome| int8(outcome.gas_used)),
            output: outcome.map(|outcome| outcome.output.as_ref()),
        }
    }
}
