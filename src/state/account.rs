//! An account's nonce and balance, as the state trie stores them.

use alloc::vec::Vec;

use alloy_primitives::U256;
use alloy_rlp::{Encodable as _, Header};
use thiserror::Error;

/// Value of an account key: the RLP list of nonce and balance, and flags if they are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Number of transactions sent, or of contracts created.
    pub nonce: u64,
    /// Balance in wei; 0 if there is a debt.
    pub balance: U256,
    /// Wei by which the balance is negative. A balance becomes negative if a transaction to the Bridge that is free of charge fails: it is
    /// then charged without a check of the balance.
    pub debt: U256,
    /// Flags. Bit 0 means hibernated; the reference node has never set it.
    pub flags: u32,
}

/// Why bytes do not decode as an account.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AccountError {
    /// The bytes are not an RLP list of strings.
    #[error("account is not an RLP list: {0}")]
    Rlp(alloy_rlp::Error),
    /// The list has fewer than two or more than three fields, or bytes follow it.
    #[error("account has {0} fields, not 2 or 3")]
    Fields(usize),
    /// The nonce has more than 8 bytes or leading zeros.
    #[error("account nonce is not a minimal number below 2^64")]
    Nonce,
    /// The balance is not in minimal two's complement, or is 2^256 wei or more.
    #[error("account balance is not a minimal number below 2^256")]
    Balance,
    /// The flags are zero (they must then be absent) or not minimal.
    #[error("account flags are not a minimal non-zero number below 2^32")]
    Flags,
}

impl Account {
    /// Decodes the value of an account key. Encoding the result returns the input.
    pub fn decode(bytes: &[u8]) -> Result<Self, AccountError> {
        let mut rest = bytes;
        let mut list = Header::decode_bytes(&mut rest, true).map_err(AccountError::Rlp)?;
        let mut fields: Vec<&[u8]> = Vec::with_capacity(3);
        while !list.is_empty() && fields.len() <= 3 {
            fields.push(Header::decode_bytes(&mut list, false).map_err(AccountError::Rlp)?);
        }
        let (nonce, balance, flags) = match (fields.as_slice(), rest.is_empty()) {
            ([nonce, balance], true) => (*nonce, *balance, None),
            ([nonce, balance, flags], true) => (*nonce, *balance, Some(*flags)),
            (other, _) => return Err(AccountError::Fields(other.len())),
        };
        let (balance, debt) = signed(balance).ok_or(AccountError::Balance)?;
        Ok(Self {
            nonce: unsigned(nonce).ok_or(AccountError::Nonce)?,
            balance,
            debt,
            flags: match flags {
                None => 0,
                Some(flags) => non_zero_flags(flags).ok_or(AccountError::Flags)?,
            },
        })
    }

    /// Encodes the account for the state trie.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        self.nonce.encode(&mut fields);
        self.balance_bytes().as_slice().encode(&mut fields);
        if self.flags != 0 {
            self.flags.encode(&mut fields);
        }
        let mut out = Vec::new();
        Header { list: true, payload_length: fields.len() }.encode(&mut out);
        out.extend_from_slice(&fields);
        out
    }
}

impl Account {
    /// Adds wei; a debt is paid first.
    pub fn credit(&mut self, amount: U256) {
        let paid = self.debt.min(amount);
        self.debt = self.debt.saturating_sub(paid);
        self.balance = self.balance.saturating_add(amount.saturating_sub(paid));
    }

    /// Subtracts wei; the part that exceeds the balance becomes a debt.
    pub fn charge(&mut self, amount: U256) {
        let paid = self.balance.min(amount);
        self.balance = self.balance.saturating_sub(paid);
        self.debt = self.debt.saturating_add(amount.saturating_sub(paid));
    }

    /// The balance in minimal two's complement; zero is one byte.
    pub fn balance_bytes(&self) -> Vec<u8> {
        if self.debt.is_zero() {
            let mut bytes = self.balance.to_be_bytes_trimmed_vec();
            if bytes.first().is_none_or(|top| *top >= 0x80) {
                bytes.insert(0, 0);
            }
            return bytes;
        }
        // -d is the complement of d - 1. A leading ff keeps the number negative.
        let below = self.debt.saturating_sub(U256::from(1));
        let mut bytes: Vec<u8> = below.to_be_bytes_trimmed_vec().iter().map(|byte| !byte).collect();
        if bytes.first().is_none_or(|top| *top < 0x80) {
            bytes.insert(0, 0xff);
        }
        bytes
    }
}

/// Decodes a big-endian number of at most 8 bytes without leading zeros; no bytes are zero.
fn unsigned(bytes: &[u8]) -> Option<u64> {
    if bytes.len() > 8 || bytes.first() == Some(&0) {
        return None;
    }
    Some(bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

fn non_zero_flags(bytes: &[u8]) -> Option<u32> {
    unsigned(bytes).and_then(|flags| u32::try_from(flags).ok()).filter(|flags| *flags != 0)
}

/// Decodes a balance, which is in minimal two's complement, into balance and debt. The negative number `-d` is stored as the complement
/// of `d - 1`.
fn signed(bytes: &[u8]) -> Option<(U256, U256)> {
    match bytes {
        [] | [0, 0..=0x7f, ..] | [0xff, 0x80..=0xff, ..] => None,
        [0x80..=0xff, ..] => {
            let below: Vec<u8> = bytes.iter().map(|byte| !byte).skip_while(|byte| *byte == 0).collect();
            let below = U256::try_from_be_slice(&below)?;
            Some((U256::ZERO, below.checked_add(U256::from(1))?))
        }
        [0, rest @ ..] | rest => Some((U256::try_from_be_slice(rest)?, U256::ZERO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_balance_of_an_empty_account_is_one_zero_byte() {
        let empty = Account::default();
        assert_eq!(hex::encode(empty.encode()), "c28000");
        assert_eq!(Account::decode(&empty.encode()), Ok(empty));
    }

    #[test]
    fn accounts_decode_to_what_was_encoded() {
        for balance in [U256::from(1), U256::from(0x7f), U256::from(0x80), U256::from(0xff00), U256::MAX] {
            for nonce in [0, 1, 0x7f, 0x80, u64::MAX] {
                for flags in [0, 1, 0x80] {
                    let account = Account { nonce, balance, debt: U256::ZERO, flags };
                    assert_eq!(Account::decode(&account.encode()), Ok(account));
                    let account = Account { nonce, balance: U256::ZERO, debt: balance, flags };
                    assert_eq!(Account::decode(&account.encode()), Ok(account));
                }
            }
        }
    }

    /// Recorded on the reference node: a failed free Bridge transaction with a gas price.
    #[test]
    fn a_balance_can_be_negative() {
        let account = Account { nonce: 1, balance: U256::ZERO, debt: U256::from(99_838), flags: 0 };
        assert_eq!(hex::encode(account.encode()), "c50183fe7a02");
        let mut account = Account { balance: U256::from(162), debt: U256::ZERO, ..account };
        account.charge(U256::from(100_000));
        assert_eq!(account.debt, U256::from(99_838));
        account.credit(U256::from(99_840));
        assert_eq!((account.balance, account.debt), (U256::from(2), U256::ZERO));
    }

    #[test]
    fn accounts_that_break_a_rule_are_refused() {
        let refused = |hex: &str| Account::decode(&hex::decode(hex).unwrap()).unwrap_err();
        assert_eq!(refused("c18000"), AccountError::Fields(1));
        assert_eq!(refused("c180"), AccountError::Fields(1));
        assert_eq!(refused("c480000101"), AccountError::Fields(4));
        assert_eq!(refused("c2800000"), AccountError::Fields(2), "a byte behind the list");
        assert_eq!(refused("c20000"), AccountError::Nonce, "zero must be the empty string");
        assert_eq!(refused("cb8901000000000000000000"), AccountError::Nonce);
        assert_eq!(refused("c28080"), AccountError::Balance, "empty balance");
        assert_eq!(refused("c48082ffff"), AccountError::Balance, "negative, not minimal");
        assert_eq!(refused("c480820001"), AccountError::Balance, "not minimal");
        assert_eq!(refused("c3800080"), AccountError::Flags, "flags of zero");
        assert!(matches!(refused("8080"), AccountError::Rlp(_)));
        assert!(matches!(refused(""), AccountError::Rlp(_)));
    }
}
