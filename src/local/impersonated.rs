//! Transactions of impersonated accounts, whose keys the node does not have. In place of a signature they have the
//! sender's address in `r` and `s`; a signature of a key has such values only with negligible probability. Only chains that
//! accept impersonated transactions read this mark.

use alloy_primitives::{Address, U256};

use crate::types::Transaction;

/// `v` of an EIP-155 signature with chain id 0 and an even y: EIP-155 defines `v` as 2 * chain id + 35 for even y.
const EIP155_BASE_V: u64 = 35;

/// Replaces the signature by a sender's address. Returns `None` if the chain id is too large for `v`, which
/// is one byte.
#[must_use]
pub fn mark_sender(mut transaction: Transaction, sender: Address, chain_id: u64) -> Option<Transaction> {
    let v = chain_id.checked_mul(2)?.checked_add(EIP155_BASE_V)?;
    transaction.v = u8::try_from(v).ok()?;
    transaction.r = U256::from_be_bytes(sender.into_word().0);
    transaction.s = transaction.r;
    Some(transaction)
}

/// Returns the sender of a transaction that [`mark_sender`] marked, or `None`. A real signature has equal `r` and `s`
/// below 2^160 only with negligible probability.
#[must_use]
pub fn marked_sender(transaction: &Transaction) -> Option<Address> {
    // An address has 160 bits.
    let is_mark =
        transaction.r == transaction.s && !transaction.r.is_zero() && transaction.r.bit_len() <= 160;
    is_mark.then(|| Address::from_word(transaction.r.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marked_sender_is_read_back() {
        let sender = Address::repeat_byte(0x0a);
        let marked = mark_sender(Transaction::remasc(3), sender, 33).unwrap();
        assert_eq!(marked_sender(&marked), Some(sender));
        assert_eq!(marked.chain_id(), Some(33));
        assert_eq!(marked_sender(&Transaction::remasc(3)), None);
        assert!(mark_sender(Transaction::remasc(3), sender, 200).is_none());
    }
}
