//! Decodes rows of blocks, transactions, receipts and logs. A row that does not have the form that the loader writes is
//! an error ([`IndexError::Damaged`]).

use alloy_primitives::{Address, B256, Bytes, U256};
use rootlight::types::{Log, RawUint, Receipt, Transaction};
use tokio_postgres::Row;

use crate::error::IndexError;
use crate::numeric::Numeric;
use crate::state::uint;

/// A row, and the number of its block, which errors name.
pub(crate) struct RowFields<'a> {
    row: &'a Row,
    pub(crate) number: u64,
}

impl<'a> RowFields<'a> {
    /// Takes a row whose first column is the number of the block.
    pub(crate) fn of(row: &'a Row) -> Result<Self, IndexError> {
        Ok(Self { row, number: uint(row.try_get(0)?) })
    }

    /// The error of a row that does not have the form that the loader writes.
    fn damaged(&self, what: &'static str) -> IndexError {
        IndexError::Damaged { what, number: self.number }
    }

    /// A value of a type that the library decodes.
    pub(crate) fn get<T: tokio_postgres::types::FromSql<'a>>(&self, column: &str) -> Result<T, IndexError> {
        Ok(self.row.try_get(column)?)
    }

    /// An `integer` that is never negative.
    pub(crate) fn index(&self, column: &'static str) -> Result<u64, IndexError> {
        let index: i32 = self.get(column)?;
        u64::try_from(index).map_err(|_| self.damaged(column))
    }

    /// A `bigint` that is never negative.
    pub(crate) fn number(&self, column: &'static str) -> Result<u64, IndexError> {
        let number: i64 = self.get(column)?;
        u64::try_from(number).map_err(|_| self.damaged(column))
    }

    pub(crate) fn hash(&self, column: &'static str) -> Result<B256, IndexError> {
        let bytes: &[u8] = self.get(column)?;
        B256::try_from(bytes).map_err(|_| self.damaged(column))
    }

    pub(crate) fn address(&self, column: &'static str) -> Result<Address, IndexError> {
        let bytes: &[u8] = self.get(column)?;
        Address::try_from(bytes).map_err(|_| self.damaged(column))
    }

    pub(crate) fn bytes(&self, column: &str) -> Result<Bytes, IndexError> {
        Ok(Bytes::copy_from_slice(self.get(column)?))
    }

    pub(crate) fn numeric(&self, column: &str) -> Result<U256, IndexError> {
        Ok(self.get::<Numeric>(column)?.0)
    }

    /// A number in the length in bytes in which it is hashed, which is in the column `len_column`.
    fn padded(&self, column: &str, len_column: &'static str) -> Result<RawUint, IndexError> {
        let len: i32 = self.get(len_column)?;
        let len = u32::try_from(len).map_err(|_| self.damaged(len_column))?;
        Ok(RawUint::padded(self.numeric(column)?, len))
    }

    /// The value of the column at a position, for logs: looking columns up by their names costs more than decoding them.
    fn at<T: tokio_postgres::types::FromSql<'a>>(&self, position: usize) -> Result<T, IndexError> {
        Ok(self.row.try_get(position)?)
    }

    /// A log; the columns are those of [`LOG_COLUMNS`], in their order.
    pub(crate) fn log(&self) -> Result<LogRow, IndexError> {
        let damaged = || self.damaged("a log");
        let index = |position| u64::try_from(self.at::<i32>(position)?).map_err(|_| damaged());
        let mut topics = Vec::new();
        // `topic0` to `topic3`.
        for position in 5..9 {
            let Some(bytes) = self.at::<Option<&[u8]>>(position)? else { break };
            topics.push(B256::try_from(bytes).map_err(|_| damaged())?);
        }
        let address = Address::try_from(self.at::<&[u8]>(4)?).map_err(|_| damaged())?;
        Ok(LogRow {
            log_index: index(1)?,
            transaction_index: index(2)?,
            transaction: B256::try_from(self.at::<&[u8]>(3)?).map_err(|_| damaged())?,
            log: Log { address, topics, data: Bytes::copy_from_slice(self.at(9)?) },
        })
    }

    /// A transaction, whose computed hash equals that of its row; the columns are those of [`TRANSACTION_COLUMNS`].
    pub(crate) fn transaction(&self) -> Result<Transaction, IndexError> {
        let to = self.get::<Option<&[u8]>>("recipient")?.map(Address::try_from).transpose();
        let v: i16 = self.get("v")?;
        let transaction = Transaction {
            nonce: self.padded("nonce", "nonce_bytes")?,
            gas_price: self.padded("gas_price", "gas_price_bytes")?,
            gas_limit: self.padded("gas_limit", "gas_limit_bytes")?,
            to: to.map_err(|_| self.damaged("recipient"))?,
            value: self.numeric("value")?,
            data: self.bytes("input")?,
            v: u8::try_from(v).map_err(|_| self.damaged("v"))?,
            r: self.hash("r")?.into(),
            s: self.hash("s")?.into(),
        };
        match transaction.hash() == self.hash("hash")? {
            true => Ok(transaction),
            false => Err(self.damaged("a transaction")),
        }
    }

    /// A receipt with its logs; the columns are those of [`RECEIPT_COLUMNS`].
    pub(crate) fn receipt(&self, logs: Vec<Log>) -> Result<Receipt, IndexError> {
        if self.index("log_count")? != logs.len() as u64 {
            return Err(self.damaged("the logs"));
        }
        let (cumulative, used) = (self.number("cumulative_gas_used")?, self.number("gas_used")?);
        Ok(Receipt::new(self.get("success")?, cumulative, used, logs))
    }
}

/// A log, with its index in the block and its transaction.
pub(crate) struct LogRow {
    pub(crate) log_index: u64,
    pub(crate) transaction_index: u64,
    /// Hash of the transaction.
    pub(crate) transaction: B256,
    pub(crate) log: Log,
}

/// Columns of a log, in the order in which [`RowFields::log`] reads them.
pub(crate) const LOG_COLUMNS: &str = "block_number, log_index, transaction_index, transaction_hash, address, topic0, topic1, topic2, topic3, data";

/// Columns of a transaction.
pub(crate) const TRANSACTION_COLUMNS: &str = "block_number, transaction_index, hash, sender, recipient, value, nonce, gas_limit, gas_price, input, v, r, s, nonce_bytes, gas_limit_bytes, gas_price_bytes";

/// Columns of a receipt.
pub(crate) const RECEIPT_COLUMNS: &str =
    "block_number, transaction_index, success, gas_used, cumulative_gas_used, first_log_index, log_count";
