//! Blocks as they are stored.

use alloy_primitives::{Address, B256};
use rootlight::consensus::{Network, check_receipts, check_transactions};
use rootlight::types::{Receipt, SealedHeader, Transaction};

use crate::error::BlockError;

/// Most topics of a log: the EVM has no instruction that writes more.
pub(crate) const MAX_TOPICS: usize = 4;

/// What is known of a block's place on the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// Only the source says that the block is on the chain.
    Stated,
    /// The header is on the heaviest proven chain, or an ancestor of it by hashes.
    Verified,
}

impl Proof {
    /// The value of the column.
    pub(crate) const fn code(self) -> i16 {
        match self {
            Self::Stated => 0,
            Self::Verified => 1,
        }
    }

    /// The meaning of the column. Any value but 1 counts as the weaker level.
    pub(crate) const fn of_code(code: i16) -> Self {
        match code {
            1 => Self::Verified,
            _ => Self::Stated,
        }
    }
}

/// A block whose transactions and receipts match its header. Only [`Self::check`] makes one; the loader stores nothing
/// else. It says nothing about the header's place on the chain, which is what [`Proof`] is for.
#[derive(Debug, Clone)]
pub struct MatchedBlock {
    header: SealedHeader,
    transactions: Vec<Transaction>,
    hashes: Vec<B256>,
    senders: Vec<Address>,
    receipts: Vec<Receipt>,
    logs: usize,
}

impl MatchedBlock {
    /// Checks transactions and receipts against the header, and recovers the senders.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn check(
        header: SealedHeader,
        transactions: Vec<Transaction>,
        receipts: Vec<Receipt>,
        network: &Network,
    ) -> Result<Self, BlockError> {
        let number = header.number;
        let body = |error| BlockError::Body { number, error };
        check_transactions(&header, &transactions, network).map_err(body)?;
        check_receipts(&header, &receipts, network).map_err(body)?;
        if receipts.len() != transactions.len() {
            let (receipts, transactions) = (receipts.len(), transactions.len());
            return Err(BlockError::Count { number, receipts, transactions });
        }
        let topics = receipts.iter().flat_map(|receipt| &receipt.logs).map(|log| log.topics.len());
        let (logs, most) =
            topics.fold((0_usize, 0), |(count, most), topics| (count.saturating_add(1), topics.max(most)));
        if most > MAX_TOPICS {
            return Err(BlockError::Topics { number, found: most });
        }
        let sender = |(index, transaction): (usize, &Transaction)| {
            let sender = transaction.recover_sender(network.chain_id);
            sender.map_err(|error| BlockError::Sender { number, index, error })
        };
        let senders = transactions.iter().enumerate().map(sender).collect::<Result<_, _>>()?;
        let hashes = transactions.iter().map(Transaction::hash).collect();
        Ok(Self { header, transactions, hashes, senders, receipts, logs })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &SealedHeader {
        &self.header
    }

    /// The transactions in block order.
    #[must_use]
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// The hashes of the transactions.
    #[must_use]
    pub fn hashes(&self) -> &[B256] {
        &self.hashes
    }

    /// The senders of the transactions.
    #[must_use]
    pub fn senders(&self) -> &[Address] {
        &self.senders
    }

    /// The receipts in block order.
    #[must_use]
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// Number of logs.
    #[must_use]
    pub const fn logs(&self) -> usize {
        self.logs
    }
}

/// A block of a source, with what is known of its place.
#[derive(Debug, Clone)]
pub struct SourceBlock {
    /// The block.
    pub block: MatchedBlock,
    /// What is known of its place on the chain.
    pub proof: Proof,
}
