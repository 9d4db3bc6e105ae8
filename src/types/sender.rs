//! Sender recovery and the signature rules of transactions.

use alloy_primitives::{Address, keccak256};
use thiserror::Error;

use super::recovery::{HALF_ORDER, RecoveryId, recover};
use super::transaction::Transaction;

/// Why a transaction has no valid sender.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum SenderError {
    /// `v` is not 27, 28 or 35/36 + 2 * chain id.
    #[error("transaction.v: {0} is not a signature's v")]
    V(u8),
    /// The transaction was signed for another chain.
    #[error("transaction.v: chain id {found}, expected {expected}")]
    ChainId { expected: u64, found: u64 },
    #[error("transaction.s: not in the lower half of the group order")]
    HighS,
    /// `r` or `s` is out of range, or no curve point belongs to them.
    #[error("transaction.r: no public key has this signature")]
    NoKey,
}

impl Transaction {
    /// Recovers the sender of a transaction on the network with this chain id. A transaction without chain id
    /// is valid on every network. The sender of the REMASC transaction is the zero address.
    pub fn recover_sender(&self, chain_id: u64) -> Result<Address, SenderError> {
        if self.is_remasc() {
            return Ok(Address::ZERO);
        }
        let odd = self.y_is_odd().ok_or(SenderError::V(self.v))?;
        match self.chain_id() {
            Some(found) if found != chain_id => {
                return Err(SenderError::ChainId { expected: chain_id, found });
            }
            _ => {}
        }
        if self.s >= HALF_ORDER {
            return Err(SenderError::HighS);
        }
        let id = RecoveryId::of(odd);
        let key = recover(&self.signing_hash(), &self.r, &self.s, id).ok_or(SenderError::NoKey)?;
        Ok(Address::from_word(keccak256(key)))
    }
}

impl Transaction {
    /// Recovers the public key (x and y, 64 bytes) that signed the transaction, without checking the chain id
    /// or the range of `s`. `None` for the REMASC transaction.
    pub fn recover_public_key(&self) -> Option<[u8; 64]> {
        recover(&self.signing_hash(), &self.r, &self.s, RecoveryId::of(self.y_is_odd()?))
    }
}
