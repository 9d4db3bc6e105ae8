//! Blocks that may be stored: their transactions and receipts were checked against the header.

use alloy_primitives::{Address, B256};
use rootlight::consensus::{Network, check_receipts, check_transactions};
use rootlight::types::{EMPTY_UNCLES_HASH, Header, Receipt, SealedHeader, Transaction, uncles_hash};

use crate::error::BlockError;

/// Most topics of a log: the EVM has no instruction that writes more.
pub(crate) const MAX_TOPICS: usize = 4;

/// How sure it is that a block is on the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// Only the source says that the block is on the chain.
    Stated,
    /// The header is on the heaviest proven chain, or an ancestor of it by hashes.
    Verified,
}

impl Proof {
    /// The number that the column `blocks.proof` holds for this level.
    pub(crate) const fn code(self) -> i16 {
        match self {
            Self::Stated => 0,
            Self::Verified => 1,
        }
    }

    /// Reads the column `blocks.proof`. Any number but 1 counts as the weaker level.
    pub(crate) const fn of_code(code: i16) -> Self {
        match code {
            1 => Self::Verified,
            _ => Self::Stated,
        }
    }
}

/// A block whose transactions and receipts match its header. Only [`Self::check`] makes one; the loader stores nothing
/// else. Whether the header is on the chain is not checked here; [`Proof`] states that.
#[derive(Debug, Clone)]
pub struct MatchedBlock {
    header: SealedHeader,
    transactions: Vec<Transaction>,
    hashes: Vec<B256>,
    senders: Vec<Address>,
    receipts: Vec<Receipt>,
    log_count: usize,
    /// `None` if the uncles are not known.
    uncles: Option<Vec<Header>>,
}

impl MatchedBlock {
    /// Checks transactions and receipts against the header, and recovers the senders.
    ///
    /// # Errors
    /// All but [`BlockError::Uncles`].
    pub fn check(
        header: SealedHeader,
        transactions: Vec<Transaction>,
        receipts: Vec<Receipt>,
        network: &Network,
    ) -> Result<Self, BlockError> {
        let number = header.number;
        let mismatch = |error| BlockError::Body { number, error };
        check_transactions(&header, &transactions, network).map_err(mismatch)?;
        check_receipts(&header, &receipts, network).map_err(mismatch)?;
        if receipts.len() != transactions.len() {
            let (receipts, transactions) = (receipts.len(), transactions.len());
            return Err(BlockError::Count { number, receipts, transactions });
        }
        let topic_counts = receipts.iter().flat_map(|receipt| &receipt.logs).map(|log| log.topics.len());
        let (log_count, most_topics) = topic_counts
            .fold((0_usize, 0), |(logs, most), topics| (logs.saturating_add(1), topics.max(most)));
        if most_topics > MAX_TOPICS {
            return Err(BlockError::Topics { number, found: most_topics });
        }
        let sender = |(index, transaction): (usize, &Transaction)| {
            let sender = transaction.recover_sender(network.chain_id);
            sender.map_err(|error| BlockError::Sender { number, index, error })
        };
        let senders = transactions.iter().enumerate().map(sender).collect::<Result<_, _>>()?;
        let hashes = transactions.iter().map(Transaction::hash).collect();
        let uncles = (header.uncles_hash == EMPTY_UNCLES_HASH).then(Vec::new);
        Ok(Self { header, transactions, hashes, senders, receipts, log_count, uncles })
    }

    /// Adds the uncles, if they match the header.
    ///
    /// # Errors
    /// [`BlockError::Uncles`].
    pub fn with_uncles(mut self, uncles: Vec<Header>) -> Result<Self, BlockError> {
        if uncles_hash(&uncles) != self.header.uncles_hash {
            return Err(BlockError::Uncles { number: self.header.number });
        }
        self.uncles = Some(uncles);
        Ok(self)
    }

    /// The header.
    pub const fn header(&self) -> &SealedHeader {
        &self.header
    }

    /// The transactions in block order.
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// The hashes of the transactions, in block order.
    pub fn hashes(&self) -> &[B256] {
        &self.hashes
    }

    /// The senders of the transactions, in block order.
    pub fn senders(&self) -> &[Address] {
        &self.senders
    }

    /// The receipts in block order.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// The headers of the uncles; `None` if they are not known.
    pub fn uncles(&self) -> Option<&[Header]> {
        self.uncles.as_deref()
    }

    /// Number of logs.
    pub const fn logs(&self) -> usize {
        self.log_count
    }
}
