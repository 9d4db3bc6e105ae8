//! Transactions and receipts that a verified header commits to: the roots that a header states, and the types that only a comparison with
//! them makes.

use alloc::vec::Vec;

use thiserror::Error;

use super::network::Network;
use super::rule::Rule;
use super::verified::VerifiedHeader;
use crate::trie::{EMPTY_ROOT, NodeFormat, ordered_root};
use crate::types::bloom::logs_bloom;
use crate::types::{B256, Bloom, Receipt, SealedHeader, Transaction};

/// Why transactions or receipts do not belong to a block.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum BodyError {
    /// The header commits to other transactions.
    #[error("transactionsRoot: {expected}, the transactions give {found}")]
    TransactionsRoot { expected: B256, found: B256 },
    /// The header commits to other receipts.
    #[error("receiptsRoot: {expected}, the receipts give {found}")]
    ReceiptsRoot { expected: B256, found: B256 },
    /// The numbers of receipts and transactions differ.
    #[error("{receipts} receipts for {transactions} transactions")]
    Count { receipts: usize, transactions: usize },
    /// A receipt's bloom is not the bloom of its logs. Only an invalid block can contain it.
    #[error("receipt {index}: logsBloom is not that of its logs")]
    ReceiptBloom { index: usize },
    /// The header's bloom is not the union of the receipts' blooms. Only an invalid block can have it.
    #[error("logsBloom: not the union of the receipts' blooms")]
    Bloom,
    /// A receipt's cumulative gas is not the running sum of its sublist. Only an invalid block can contain
    /// it.
    #[error("receipt {index}: cumulativeGasUsed {found}, the sum is {expected}")]
    CumulativeGas {
        index: usize,
        /// Sum of the gas used in the sublist up to this transaction.
        expected: u64,
        found: u64,
    },
    /// The sum of the receipts' gas is not the header's gas used. Only an invalid block can have it.
    #[error("gasUsed: {expected}, the receipts sum up to {found}")]
    GasUsed { expected: u64, found: u64 },
}

/// The node format of the tries of a block's transactions and receipts: before RSKIP-126 the orchid format, then that of RSKIP-107.
#[must_use]
pub fn root_format(network: &Network, number: u64) -> NodeFormat {
    if network.active(Rule::Rskip126, number) { NodeFormat::Rskip107 } else { NodeFormat::Orchid }
}

/// About the bytes of memory that a transaction takes besides its data; for the budgets of caches.
const TRANSACTION_BYTES: usize = 600;
/// About the bytes of memory that a receipt takes besides its logs.
const RECEIPT_BYTES: usize = 500;
/// About the bytes of memory that a log takes besides its topics and data.
const LOG_BYTES: usize = 128;

/// Root of the trie of a block's transactions.
#[must_use]
pub fn transactions_root(transactions: &[Transaction], format: NodeFormat) -> B256 {
    let encoded: Vec<Vec<u8>> = transactions.iter().map(Transaction::encode).collect();
    ordered_root(&encoded, format)
}

/// Root of the trie of a block's receipts.
#[must_use]
pub fn receipts_root(receipts: &[Receipt], format: NodeFormat) -> B256 {
    let encoded: Vec<Vec<u8>> = receipts.iter().map(Receipt::encode).collect();
    ordered_root(&encoded, format)
}

/// Checks transactions against the transactions root of a header. The header itself need not be verified: the result
/// says nothing about the chain.
///
/// # Errors
/// [`BodyError::TransactionsRoot`].
pub fn check_transactions(
    header: &SealedHeader,
    transactions: &[Transaction],
    network: &Network,
) -> Result<(), BodyError> {
    let expected = header.transactions_root;
    let found = transactions_root(transactions, root_format(network, header.number));
    if expected == found { Ok(()) } else { Err(BodyError::TransactionsRoot { expected, found }) }
}

/// Checks receipts against the receipts root, the bloom and the gas of a header. The header itself need not be verified:
/// the result says nothing about the chain.
///
/// # Errors
/// The first of [`BodyError`] that applies.
pub fn check_receipts(
    header: &SealedHeader,
    receipts: &[Receipt],
    network: &Network,
) -> Result<(), BodyError> {
    let expected = header.receipts_root;
    let found = receipts_root(receipts, root_format(network, header.number));
    if expected != found {
        return Err(BodyError::ReceiptsRoot { expected, found });
    }
    check_blooms(header, receipts)?;
    check_gas(header, receipts)
}

/// The transactions of a block, checked against its verified header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedBody {
    block: B256,
    transactions: Vec<Transaction>,
    hashes: Vec<B256>,
}

impl VerifiedBody {
    /// Creates a body from hashes only, for tests.
    #[cfg(test)]
    pub(crate) const fn of_hashes(block: B256, hashes: Vec<B256>) -> Self {
        Self { block, transactions: Vec::new(), hashes }
    }

    /// Checks the transactions against the transactions root of the header.
    pub fn check(
        header: &VerifiedHeader,
        transactions: Vec<Transaction>,
        network: &Network,
    ) -> Result<Self, BodyError> {
        check_transactions(header, &transactions, network)?;
        let hashes = transactions.iter().map(Transaction::hash).collect();
        Ok(Self { block: header.hash(), transactions, hashes })
    }

    /// Creates the body of a block that this program has executed or built; the execution has checked or computed the root.
    #[cfg(feature = "local")]
    pub(crate) fn executed(header: &SealedHeader, transactions: Vec<Transaction>) -> Self {
        let hashes = transactions.iter().map(Transaction::hash).collect();
        Self { block: header.hash(), transactions, hashes }
    }

    /// The empty body of a block whose header commits to no transactions (genesis). `None` for other blocks.
    #[must_use]
    pub fn if_empty(header: &VerifiedHeader) -> Option<Self> {
        let empty = header.transactions_root == EMPTY_ROOT;
        empty.then(|| Self { block: header.hash(), transactions: Vec::new(), hashes: Vec::new() })
    }

    /// Hash of the block.
    pub const fn block(&self) -> B256 {
        self.block
    }

    /// The transactions in block order; the REMASC transaction is the last one.
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// The hashes of the transactions, in block order.
    pub fn hashes(&self) -> &[B256] {
        &self.hashes
    }

    /// Approximate memory of the body, in bytes.
    pub fn bytes(&self) -> usize {
        let add = |sum: usize, transaction: &Transaction| {
            sum.saturating_add(TRANSACTION_BYTES).saturating_add(transaction.data.len())
        };
        // An empty body counts as one transaction.
        self.transactions.iter().fold(TRANSACTION_BYTES, add)
    }

    /// Index of a transaction in the block.
    pub fn position(&self, hash: &B256) -> Option<usize> {
        self.hashes.iter().position(|other| other == hash)
    }
}

/// All receipts of a block, checked against its verified header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedReceipts {
    block: B256,
    receipts: Vec<Receipt>,
}

impl VerifiedReceipts {
    /// Checks the receipts against the receipts root of the header. Also checks the blooms and gas sums,
    /// which are right in every valid block.
    pub fn check(
        header: &VerifiedHeader,
        receipts: Vec<Receipt>,
        network: &Network,
    ) -> Result<Self, BodyError> {
        check_receipts(header, &receipts, network)?;
        Ok(Self { block: header.hash(), receipts })
    }

    /// Creates the receipts of a block that this program has executed or built; the execution has checked or computed the root.
    #[cfg(feature = "local")]
    pub(crate) fn executed(header: &SealedHeader, receipts: Vec<Receipt>) -> Self {
        Self { block: header.hash(), receipts }
    }

    /// Checks that there is one receipt for each transaction of the same block's body.
    pub fn matches(&self, body: &VerifiedBody) -> Result<(), BodyError> {
        let (receipts, transactions) = (self.receipts.len(), body.transactions.len());
        if receipts == transactions && self.block == body.block {
            return Ok(());
        }
        Err(BodyError::Count { receipts, transactions })
    }

    /// Hash of the block.
    pub const fn block(&self) -> B256 {
        self.block
    }

    /// The receipts in order.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// Approximate memory of the receipts, in bytes.
    pub fn bytes(&self) -> usize {
        let logs = self.receipts.iter().flat_map(|receipt| &receipt.logs);
        let receipts = self.receipts.len().saturating_add(1).saturating_mul(RECEIPT_BYTES);
        logs.fold(receipts, |sum, log| {
            let topics = log.topics.len().saturating_mul(32);
            sum.saturating_add(LOG_BYTES).saturating_add(topics).saturating_add(log.data.len())
        })
    }
}

/// Checks the bloom of each receipt, and that the header's bloom is their union.
fn check_blooms(header: &SealedHeader, receipts: &[Receipt]) -> Result<(), BodyError> {
    let mut all = Bloom::ZERO;
    for (index, receipt) in receipts.iter().enumerate() {
        if receipt.logs_bloom != logs_bloom(&receipt.logs) {
            return Err(BodyError::ReceiptBloom { index });
        }
        all |= receipt.logs_bloom;
    }
    if all == header.logs_bloom {
        return Ok(());
    }
    Err(BodyError::Bloom)
}

/// Checks the gas sums. From RSKIP-144 on a block's transactions are sublists that may run in parallel, then a sequential rest; an edge in
/// the header is the index behind a sublist. Cumulative gas restarts at each edge. The block's gas is the sum over all receipts.
fn check_gas(header: &SealedHeader, receipts: &[Receipt]) -> Result<(), BodyError> {
    let (mut list, mut block) = (0u64, 0u64);
    for (index, receipt) in receipts.iter().enumerate() {
        if header.edges.iter().any(|edge| usize::from(*edge) == index) {
            list = 0;
        }
        list = list.saturating_add(receipt.gas_used);
        block = block.saturating_add(receipt.gas_used);
        if receipt.cumulative_gas_used != list {
            return Err(BodyError::CumulativeGas {
                index,
                expected: list,
                found: receipt.cumulative_gas_used,
            });
        }
    }
    if block == header.gas_used {
        return Ok(());
    }
    Err(BodyError::GasUsed { expected: header.gas_used, found: block })
}
