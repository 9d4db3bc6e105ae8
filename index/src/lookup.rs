//! Reads blocks with their transactions and receipts, by number, by hash or by a transaction's hash.

use alloy_primitives::{Address, B256};
// A transaction of the database, in which all statements of one question run ([`IndexReader::ask`]).
use deadpool_postgres::Transaction as Question;
use rootlight::types::{Header, Log, Receipt, SealedHeader, Transaction, decode_uncles};

use crate::block::{MatchedBlock, Proof};
use crate::error::{BlockError, IndexError};
use crate::reader::{IndexReader, rows, searchable_rows};
use crate::rows::{LOG_COLUMNS, RECEIPT_COLUMNS, RowFields, TRANSACTION_COLUMNS};
use crate::state::int8;

/// A block of the index.
#[derive(Debug, Clone)]
pub struct IndexedBlock {
    /// The header, whose hash was computed from its bytes.
    pub header: SealedHeader,
    /// The proof level of the block, as the loader noted it.
    pub proof: Proof,
    /// The transactions.
    pub transactions: Vec<Transaction>,
    /// The senders of the transactions, in their order.
    pub senders: Vec<Address>,
    /// The receipts.
    pub receipts: Vec<Receipt>,
    /// The headers of the uncles; `None` if they are not stored.
    pub uncles: Option<Vec<Header>>,
}

impl IndexedBlock {
    /// Checks the rows as the block of a source is checked: transactions, receipts and uncles must match the header.
    ///
    /// # Errors
    /// [`BlockError`]: a part does not match.
    pub fn check(self, network: &rootlight::consensus::Network) -> Result<MatchedBlock, BlockError> {
        let block = MatchedBlock::check(self.header, self.transactions, self.receipts, network)?;
        match self.uncles {
            Some(uncles) => block.with_uncles(uncles),
            None => Ok(block),
        }
    }
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

    /// The block of the transaction with this hash (of several rows, that of the newest run of blocks); `None` if the index does not
    /// have it, which proves nothing.
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

    /// Reads the header of the block at a height and checks its hash, then the other parts.
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
        let receipts = receipts(question, number).await?;
        Ok(Some(IndexedBlock { header, proof, transactions, senders, receipts, uncles }))
    }
}

/// The height of the block with this hash; `None` if no searchable block has it.
pub(crate) async fn number_of(question: &Question<'_>, hash: &B256) -> Result<Option<u64>, IndexError> {
    let sql = "SELECT number FROM rootlight.blocks WHERE hash = $1";
    let found = searchable_rows(question, sql, "number", &hash.as_slice()).await?;
    found.first().map(|row| Ok(RowFields::of(row)?.number)).transpose()
}

/// The transactions of a block with their senders.
async fn transactions(
    question: &Question<'_>,
    number: u64,
) -> Result<Vec<(Transaction, Address)>, IndexError> {
    let sql = format!(
        "SELECT {TRANSACTION_COLUMNS} FROM rootlight.transactions WHERE block_number = $1 ORDER BY transaction_index"
    );
    let found = rows(question, &sql, &[&int8(number)]).await?;
    let row = |row| {
        let fields = RowFields::of(row)?;
        Ok((fields.transaction()?, fields.address("sender")?))
    };
    found.iter().map(row).collect()
}

/// The receipts of a block with their logs.
async fn receipts(question: &Question<'_>, number: u64) -> Result<Vec<Receipt>, IndexError> {
    let number = int8(number);
    let sql = format!("SELECT {LOG_COLUMNS} FROM rootlight.logs WHERE block_number = $1 ORDER BY log_index");
    // Each log with the index of its transaction.
    let mut logs: Vec<(u64, Log)> = Vec::new();
    for row in rows(question, &sql, &[&number]).await? {
        let row = RowFields::of(&row)?.log()?;
        logs.push((row.transaction_index, row.log));
    }
    let sql = format!(
        "SELECT {RECEIPT_COLUMNS} FROM rootlight.receipts WHERE block_number = $1 ORDER BY transaction_index"
    );
    let mut logs = logs.into_iter().peekable();
    let mut receipts = Vec::new();
    for row in rows(question, &sql, &[&number]).await? {
        let fields = RowFields::of(&row)?;
        let index = fields.index("transaction_index")?;
        let own_logs =
            std::iter::from_fn(|| logs.next_if(|(of, _)| *of == index)).map(|(_, log)| log).collect();
        receipts.push(fields.receipt(own_logs)?);
    }
    Ok(receipts)
}
