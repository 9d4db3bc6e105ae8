//! A block of an executed chain, and the terms by which it is found.

use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use crate::consensus::{VerifiedBody, VerifiedReceipts};

/// An address or topic in a block by which an index finds the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// The contract that wrote a log.
    Contract(Address),
    /// A topic of a log, with its position from 0.
    Topic(usize, B256),
    /// The sender of a transaction.
    Sender(Address),
    /// The recipient of a transaction.
    Recipient(Address),
}

/// Estimated memory of a transaction with its receipt and index entries, without data and logs, in bytes.
const TRANSACTION_SIZE: usize = 1_024;
/// Estimated memory of a log without its data, in bytes.
const LOG_SIZE: usize = 256;

/// The parts of a block besides its header and uncles.
#[derive(Debug, Clone)]
pub struct StoredBlock {
    /// The transactions of the block.
    pub body: Arc<VerifiedBody>,
    /// The receipts of the transactions.
    pub receipts: Arc<VerifiedReceipts>,
    /// The senders of the transactions, in the same order; the zero address for the unsigned transaction that calls
    /// REMASC, the contract that pays miners.
    pub senders: Vec<Address>,
}

impl StoredBlock {
    /// The approximate memory of the block in bytes, without its header.
    pub(super) fn size(&self) -> usize {
        let transactions = self.body.transactions().iter().map(|transaction| transaction.data.len());
        let logs = self.receipts.receipts().iter().flat_map(|receipt| &receipt.logs);
        let counted = transactions.chain(logs.map(|log| log.data.len().saturating_add(LOG_SIZE)));
        // The block itself counts as one more transaction.
        let fixed = self.senders.len().saturating_add(1).saturating_mul(TRANSACTION_SIZE);
        counted.fold(fixed, usize::saturating_add)
    }

    /// Passes every term of the block to `visit`, with repetitions.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(Term)) {
        for log in self.receipts.receipts().iter().flat_map(|receipt| &receipt.logs) {
            visit(Term::Contract(log.address));
            for (position, topic) in log.topics.iter().enumerate() {
                visit(Term::Topic(position, *topic));
            }
        }
        for recipient in self.body.transactions().iter().filter_map(|transaction| transaction.to) {
            visit(Term::Recipient(recipient));
        }
        // The zero address stands for the missing sender of the transaction that calls REMASC.
        for sender in self.senders.iter().filter(|sender| !sender.is_zero()) {
            visit(Term::Sender(*sender));
        }
    }
}
