//! Blocks, transactions and receipts by number or hash.

use alloy_primitives::{Address, B256};
use deadpool_postgres::Transaction as Question;
use rootlight::types::{BlockRef, Header, Log, Receipt, SealedHeader, Transaction, decode_uncles};
use tokio_postgres::types::ToSql;

use crate::block::{MatchedBlock, Proof};
use crate::error::{BlockError, IndexError};
use crate::reader::{IndexReader, rows, searchable_rows};
use crate::rows::{LOG, RECEIPT, RowFields, TRANSACTION};
use crate::state::int8;

/// A block of the index.
#[derive(Debug, Clone)]
pub struct IndexedBlock {
    /// The header, whose hash was computed from its bytes.
    pub header: SealedHeader,
    /// What was known of its place when it was loaded.
    pub proof: Proof,
    /// The transactions.
    pub transactions: Vec<Transaction>,
    /// Their senders.
    pub senders: Vec<Address>,
    /// The receipts.
    pub receipts: Vec<Receipt>,
    /// The headers of the uncles; `None` if they are not stored.
    pub uncles: Option<Vec<Header>>,
}

impl IndexedBlock {
    /// Checks the rows as a source's block is checked: transactions, receipts and uncles must match the header.
    pub fn check(self, network: &rootlight::consensus::Network) -> Result<MatchedBlock, BlockError> {
        let block = MatchedBlock::check(self.header, self.transactions, self.receipts, network)?;
        match self.uncles {
            Some(uncles) => block.with_uncles(uncles),
            None => Ok(block),
        }
    }
}

/// A transaction of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedTransaction {
    /// The transaction.
    pub transaction: Transaction,
    /// Its sender.
    pub sender: Address,
    /// Its block.
    pub block: BlockRef,
    /// Its index in the block.
    pub index: u64,
    /// What is known of its block.
    pub proof: Proof,
}

/// A receipt of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedReceipt {
    /// The receipt.
    pub receipt: Receipt,
    /// Index in the block of its first log.
    pub first_log_index: u64,
    /// Its transaction.
    pub transaction: IndexedTransaction,
}

impl IndexReader {
    /// The block at a height; `None` if it is not loaded.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] and those of the database.
    pub async fn block(&self, number: u64) -> Result<Option<IndexedBlock>, IndexError> {
        self.ask(async |question| self.block_at(question, number).await).await
    }

    /// The block with this hash; `None` if the index does not have it.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] and those of the database.
    pub async fn block_with_hash(&self, hash: &B256) -> Result<Option<IndexedBlock>, IndexError> {
        self.ask(async |question| match number_of(question, hash).await? {
            Some(number) => self.block_at(question, number).await,
            None => Ok(None),
        })
        .await
    }

    /// The block of the transaction with this hash; `None` if the index does not have it, which proves nothing.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] and those of the database.
    pub async fn block_of_transaction(&self, hash: &B256) -> Result<Option<IndexedBlock>, IndexError> {
        let sql = "SELECT block_number FROM rootlight.transactions WHERE hash = $1";
        self.ask(async |question| {
            match searchable_rows(question, sql, "block_number", &hash.as_slice()).await?.last() {
                Some(row) => self.block_at(question, RowFields::of(row)?.number).await,
                None => Ok(None),
            }
        })
        .await
    }

    async fn block_at(
        &self,
        question: &Question<'_>,
        number: u64,
    ) -> Result<Option<IndexedBlock>, IndexError> {
        let sql = "SELECT number, hash, proof, header, uncles FROM rootlight.blocks WHERE number = $1";
        let found = rows(question, sql, &[&int8(number)]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let fields = RowFields::of(row)?;
        let damaged = |what| IndexError::Damaged { what, number };
        let shape = |number| self.network().header_shape(number);
        let header = Header::decode(fields.get("header")?, &shape).map_err(|_| damaged("the header"))?.seal();
        if header.hash() != fields.hash("hash")? {
            return Err(damaged("the header"));
        }
        let uncles = fields.get::<Option<&[u8]>>("uncles")?.map(|rlp| decode_uncles(rlp, &shape));
        let uncles = uncles.transpose().map_err(|_| damaged("the uncles"))?;
        let proof = Proof::of_code(fields.get("proof")?);
        let (transactions, senders) = transactions(question, number).await?.into_iter().unzip();
        let receipts = receipts(question, number, None).await?;
        let receipts = receipts.into_iter().map(|(receipt, _)| receipt).collect();
        Ok(Some(IndexedBlock { header, proof, transactions, senders, receipts, uncles }))
    }

    /// The height of the block with this hash; `None` if the index does not have it.
    pub async fn number_of(&self, hash: &B256) -> Result<Option<u64>, IndexError> {
        self.ask(async |question| number_of(question, hash).await).await
    }

    /// The transaction with this hash; `None` if the index does not have it, which proves nothing.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] and those of the database.
    pub async fn transaction(&self, hash: &B256) -> Result<Option<IndexedTransaction>, IndexError> {
        self.ask(async |question| transaction(question, hash).await).await
    }

    /// The receipt of the transaction with this hash; `None` if the index does not have it, which proves nothing.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] and those of the database.
    pub async fn receipt(&self, hash: &B256) -> Result<Option<IndexedReceipt>, IndexError> {
        self.ask(async |question| {
            let Some(transaction) = transaction(question, hash).await? else { return Ok(None) };
            let number = transaction.block.number;
            match receipts(question, number, Some(transaction.index)).await?.pop() {
                Some((receipt, first_log_index)) => {
                    Ok(Some(IndexedReceipt { receipt, first_log_index, transaction }))
                }
                None => Err(IndexError::Damaged { what: "a missing row", number }),
            }
        })
        .await
    }
}

pub(crate) async fn number_of(question: &Question<'_>, hash: &B256) -> Result<Option<u64>, IndexError> {
    let sql = "SELECT number FROM rootlight.blocks WHERE hash = $1";
    let found = searchable_rows(question, sql, "number", &hash.as_slice()).await?;
    found.first().map(|row| Ok(RowFields::of(row)?.number)).transpose()
}

async fn transaction(question: &Question<'_>, hash: &B256) -> Result<Option<IndexedTransaction>, IndexError> {
    let sql = format!("SELECT {TRANSACTION} FROM rootlight.transactions WHERE hash = $1");
    let found = searchable_rows(question, &sql, "block_number", &hash.as_slice()).await?;
    let Some(row) = found.last() else { return Ok(None) };
    let fields = RowFields::of(row)?;
    let number = fields.number;
    let sql = "SELECT number, hash, proof FROM rootlight.blocks WHERE number = $1";
    let block = question.query_one(sql, &[&int8(number)]).await?;
    let block = RowFields::of(&block)?;
    Ok(Some(IndexedTransaction {
        transaction: fields.transaction()?,
        sender: fields.address("sender")?,
        block: BlockRef { number, hash: block.hash("hash")? },
        index: fields.index("transaction_index")?,
        proof: Proof::of_code(block.get("proof")?),
    }))
}

/// The transactions of a block with their senders.
async fn transactions(
    question: &Question<'_>,
    number: u64,
) -> Result<Vec<(Transaction, Address)>, IndexError> {
    let sql = format!(
        "SELECT {TRANSACTION} FROM rootlight.transactions WHERE block_number = $1 ORDER BY transaction_index"
    );
    let found = rows(question, &sql, &[&int8(number)]).await?;
    let row = |row| {
        let fields = RowFields::of(row)?;
        Ok((fields.transaction()?, fields.address("sender")?))
    };
    found.iter().map(row).collect()
}

/// The receipts of a block, or the one at an index, with the index of the first log of each.
async fn receipts(
    question: &Question<'_>,
    number: u64,
    index: Option<u64>,
) -> Result<Vec<(Receipt, u64)>, IndexError> {
    let at = if index.is_some() { "AND transaction_index = $2" } else { "" };
    let index = index.map(|index| i32::try_from(index).unwrap_or(i32::MAX));
    let number = int8(number);
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&number];
    parameters.extend(index.as_ref().map(|index| index as &(dyn ToSql + Sync)));
    let sql = format!("SELECT {LOG} FROM rootlight.logs WHERE block_number = $1 {at} ORDER BY log_index");
    let mut logs: Vec<(u64, Log)> = Vec::new();
    for row in rows(question, &sql, &parameters).await? {
        let row = RowFields::of(&row)?.log()?;
        logs.push((row.transaction_index, row.log));
    }
    let sql = format!(
        "SELECT {RECEIPT} FROM rootlight.receipts WHERE block_number = $1 {at} ORDER BY transaction_index"
    );
    let mut logs = logs.into_iter().peekable();
    let mut receipts = Vec::new();
    for row in rows(question, &sql, &parameters).await? {
        let fields = RowFields::of(&row)?;
        let index = fields.index("transaction_index")?;
        let own = std::iter::from_fn(|| logs.next_if(|(at, _)| *at == index)).map(|(_, log)| log).collect();
        receipts.push((fields.receipt(own)?, fields.index("first_log_index")?));
    }
    Ok(receipts)
}
