//! Nonce and balance as the state trie holds them.

use alloc::vec::Vec;

use alloy_primitives::U256;
use alloy_rlp::{Encodable as _, Header};
use thiserror::Error;

/// Value of an account key: RLP of nonce and balance, with flags only where there are some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// Bit 0: hibernated. Never set so far.
    pub flags: u32,
}

/// Why bytes are no account.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AccountError {
    /// Not the RLP list of strings it must be.
    #[error("account is no RLP list: {0}")]
    Rlp(alloy_rlp::Error),
    /// Other than two or three fields, or bytes behind the list.
    #[error("account has {0} fields, not 2 or 3")]
    Fields(usize),
    /// A nonce of more than 8 bytes or with leading zeros.
    #[error("account nonce is not a minimal number below 2^64")]
    Nonce,
    /// A balance that is not in minimal two's complement, negative, or of 2^256 wei and more.
    #[error("account balance is not a minimal non-negative number below 2^256")]
    Balance,
    /// Flags that are zero (they must then be absent) or not minimal.
    #[error("account flags are not a minimal non-zero number below 2^32")]
    Flags,
}

impl Account {
    /// Reads the value of an account key; strict, so encoding gives the same bytes back.
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
        Ok(Self {
            nonce: unsigned(nonce).ok_or(AccountError::Nonce)?,
            balance: signed(balance).ok_or(AccountError::Balance)?,
            flags: match flags {
                None => 0,
                Some(flags) => non_zero_flags(flags).ok_or(AccountError::Flags)?,
            },
        })
    }

    /// Bytes for the state trie.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        self.nonce.encode(&mut fields);
        let mut balance = self.balance.to_be_bytes_trimmed_vec();
        if balance.first().is_none_or(|top| *top >= 0x80) {
            // Two's complement: a leading zero keeps the number positive, and is zero itself.
            balance.insert(0, 0);
        }
        balance.as_slice().encode(&mut fields);
        if self.flags != 0 {
            self.flags.encode(&mut fields);
        }
        let mut out = Vec::new();
        Header { list: true, payload_length: fields.len() }.encode(&mut out);
        out.extend_from_slice(&fields);
        out
    }
}

fn unsigned(bytes: &[u8]) -> Option<u64> {
    if bytes.len() > 8 || bytes.first() == Some(&0) {
        return None;
    }
    Some(bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

fn non_zero_flags(bytes: &[u8]) -> Option<u32> {
    unsigned(bytes).and_then(|flags| u32::try_from(flags).ok()).filter(|flags| *flags != 0)
}

fn signed(bytes: &[u8]) -> Option<U256> {
    match bytes {
        [] | [0x80..=0xff, ..] | [0, 0..=0x7f, ..] => None,
        [0, rest @ ..] | rest => U256::try_from_be_slice(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_account_keeps_a_zero_byte() {
        let empty = Account::default();
        assert_eq!(hex::encode(empty.encode()), "c28000");
        assert_eq!(Account::decode(&empty.encode()), Ok(empty));
    }

    #[test]
    fn round_trips() {
        for balance in [U256::from(1), U256::from(0x7f), U256::from(0x80), U256::from(0xff00), U256::MAX] {
            for nonce in [0, 1, 0x7f, 0x80, u64::MAX] {
                for flags in [0, 1, 0x80] {
                    let account = Account { nonce, balance, flags };
                    assert_eq!(Account::decode(&account.encode()), Ok(account));
                }
            }
        }
    }

    #[test]
    fn each_rule_is_caught() {
        let refused = |hex: &str| Account::decode(&hex::decode(hex).unwrap()).unwrap_err();
        assert_eq!(refused("c18000"), AccountError::Fields(1));
        assert_eq!(refused("c180"), AccountError::Fields(1));
        assert_eq!(refused("c480000101"), AccountError::Fields(4));
        assert_eq!(refused("c2800000"), AccountError::Fields(2), "a byte behind the list");
        assert_eq!(refused("c20000"), AccountError::Nonce, "zero must be the empty string");
        assert_eq!(refused("cb8901000000000000000000"), AccountError::Nonce);
        assert_eq!(refused("c28080"), AccountError::Balance, "empty balance");
        assert_eq!(refused("c38081ff"), AccountError::Balance, "negative balance");
        assert_eq!(refused("c480820001"), AccountError::Balance, "not minimal");
        assert_eq!(refused("c3800080"), AccountError::Flags, "flags of zero");
        assert!(matches!(refused("8080"), AccountError::Rlp(_)));
        assert!(matches!(refused(""), AccountError::Rlp(_)));
    }
}
