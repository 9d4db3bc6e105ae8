//! Transactions and receipts of a block, checked against its header.

use alloc::vec::Vec;

use thiserror::Error;

use super::{network::Network, rule::Rule, verified::VerifiedHeader};
use crate::{
    trie::{ordered_root, NodeFormat},
    types::{Bloom, Receipt, Transaction, B256},
};

/// Why transactions or receipts are not a block's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// Not the transactions that the header commits to.
    #[error("transactionsRoot: the header says {expected}, the transactions give {found}")]
    TransactionsRoot {
        /// The header's commitment.
        expected: B256,
        /// Root of the list.
        found: B256,
    },
    /// Not the receipts that the header commits to.
    #[error("receiptsRoot: the header says {expected}, the receipts give {found}")]
    ReceiptsRoot {
        /// The header's commitment.
        expected: B256,
        /// Root of the list.
        found: B256,
    },
    /// The receipts' blooms do not add up to the header's.
    #[error("logsBloom: the header's is not the union of the receipts'")]
    Bloom,
}

/// The trie format of transaction and receipt roots at a height (RSKIP-126).
#[must_use]
pub fn root_format(network: &Network, number: u64) -> NodeFormat {
    if network.active(Rule::Rskip126, number) {
        NodeFormat::Rskip107
    } else {
        NodeFormat::Orchid
    }
}

/// All transactions of a block, REMASC's last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedBody {
    block: B256,
    transactions: Vec<Transaction>,
    hashes: Vec<B256>,
}

impl VerifiedBody {
    /// Checks the transactions against the header's transactions root.
    ///
    /// # Errors
    /// [`BodyError::TransactionsRoot`].
    pub fn check(
        header: &VerifiedHeader,
        transactions: Vec<Transaction>,
        network: &Network,
    ) -> Result<Self, BodyError> {
        let raw: Vec<Vec<u8>> = transactions.iter().map(Transaction::encode).collect();
        let (expected, found) =
            (header.transactions_root, ordered_root(&raw, root_format(network, header.number)));
        if expected != found {
            return Err(BodyError::TransactionsRoot { expected, found });
        }
        let hashes = raw.iter().map(alloy_primitives::keccak256).collect();
        Ok(Self { block: header.hash(), transactions, hashes })
    }

    /// The body of a block whose header commits to no transactions at all (genesis).
    #[must_use]
    pub fn none(header: &VerifiedHeader) -> Option<Self> {
        let empty = header.transactions_root == crate::trie::EMPTY_ROOT;
        empty.then(|| Self { block: header.hash(), transactions: Vec::new(), hashes: Vec::new() })
    }

    /// Hash of the block they belong to.
    #[must_use]
    pub const fn block(&self) -> B256 {
        self.block
    }

    /// The transactions in order.
    #[must_use]
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// Their hashes in order.
    #[must_use]
    pub fn hashes(&self) -> &[B256] {
        &self.hashes
    }

    /// The place of a transaction.
    #[must_use]
    pub fn position(&self, hash: &B256) -> Option<usize> {
        self.hashes.iter().position(|known| known == hash)
    }
}

/// All receipts of a block, in the order of its transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedReceipts {
    block: B256,
    receipts: Vec<Receipt>,
}

impl VerifiedReceipts {
    /// Checks the receipts against the header's receipts root and bloom.
    ///
    /// # Errors
    /// [`BodyError::ReceiptsRoot`], [`BodyError::Bloom`].
    pub fn check(
        header: &VerifiedHeader,
        receipts: Vec<Receipt>,
        network: &Network,
    ) -> Result<Self, BodyError> {
        let raw: Vec<Vec<u8>> = receipts.iter().map(Receipt::encode).collect();
        let (expected, found) =
            (header.receipts_root, ordered_root(&raw, root_format(network, header.number)));
        if expected != found {
            return Err(BodyError::ReceiptsRoot { expected, found });
        }
        let bloom = receipts.iter().fold(Bloom::ZERO, |sum, receipt| sum | receipt.logs_bloom);
        if bloom != header.logs_bloom {
            return Err(BodyError::Bloom);
        }
        Ok(Self { block: header.hash(), receipts })
    }

    /// Hash of the block they belong to.
    #[must_use]
    pub const fn block(&self) -> B256 {
        self.block
    }

    /// The receipts in order.
    #[must_use]
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }
}
