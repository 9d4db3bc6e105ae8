//! Transactions of accounts whose keys nobody here holds, as tests send them. They have a signature that names the sender
//! and that no key makes: only a chain that was told so takes them for what they say.

use alloy_primitives::{Address, U256};

use crate::types::Transaction;

/// `v` of an EIP-155 signature with chain id 0 and an even y.
const PROTECTED_V: u64 = 35;

/// Puts the mark of a sender in the place of a signature; `None` if the chain id is too large for the one byte that `v`
/// has.
#[must_use]
pub fn mark_sender(mut transaction: Transaction, sender: Address, chain_id: u64) -> Option<Transaction> {
    let v = chain_id.checked_mul(2)?.checked_add(PROTECTED_V)?;
    transaction.v = u8::try_from(v).ok()?;
    transaction.r = U256::from_be_bytes(sender.into_word().0);
    transaction.s = transaction.r;
    Some(transaction)
}

/// The sender that such a mark names; no signature that a key made looks like one.
#[must_use]
pub fn marked_sender(transaction: &Transaction) -> Option<Address> {
    let is_mark =
        transaction.r == transaction.s && !transaction.r.is_zero() && transaction.r.bit_len() <= 160;
    is_mark.then(|| Address::from_word(transaction.r.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back() {
        let sender = Address::repeat_byte(0x0a);
        let marked = mark_sender(Transaction::remasc(3), sender, 33).unwrap();
        assert_eq!(marked_sender(&marked), Some(sender));
        assert_eq!(marked.chain_id(), Some(33));
        assert_eq!(marked_sender(&Transaction::remasc(3)), None);
        assert!(mark_sender(Transaction::remasc(3), sender, 200).is_none());
    }
}
