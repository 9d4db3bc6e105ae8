//! Legacy transactions, with and without a chain id (EIP-155), and the REMASC transaction.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};

use super::error::{FieldError, FieldRule};
use super::header_decode::optional_address;
use super::number::RawUint;
use super::rlp::{ListBuf, RlpReader, put_str, put_u64, put_u256, trim, uint};

/// The contract that distributes fees; the last transaction of every block calls it.
pub const REMASC_ADDRESS: Address = address!("0000000000000000000000000000000001000008");

/// `v` of a signature without chain id, whose point R has an even y. With an odd y, `v` is 28.
const UNPROTECTED_V: u8 = 27;
/// `v` of an EIP-155 signature with chain id 0 and an even y; `v` grows by 2 with the chain id. Chain ids start at 1.
const PROTECTED_V: u8 = 35;

/// A transaction. Fields keep the byte form that is hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Sender's nonce in the byte form received; zero is the empty string.
    pub nonce: RawUint,
    /// Gas price in wei: absent (empty string), zero (byte 00) or without leading zeros.
    pub gas_price: RawUint,
    /// Gas limit in the byte form received.
    pub gas_limit: RawUint,
    /// Receiver; `None` creates a contract.
    pub to: Option<Address>,
    /// Value transferred, in wei.
    pub value: U256,
    /// Call data or init code.
    pub data: Bytes,
    /// Recovery id: 27/28, or 35/36 + 2 * chain id; 0 if not signed.
    pub v: u8,
    /// `r` of the signature.
    pub r: U256,
    /// `s` of the signature.
    pub s: U256,
}

impl Transaction {
    /// The REMASC transaction of a block: unsigned, sent by the zero address.
    pub fn remasc(block_number: u64) -> Self {
        // The reference node encodes these two numbers as the byte 00, not as the empty string.
        let zero_byte = RawUint::signed_minimal(U256::ZERO);
        Self {
            nonce: RawUint::from(block_number.saturating_sub(1)),
            gas_price: zero_byte,
            gas_limit: zero_byte,
            to: Some(REMASC_ADDRESS),
            value: U256::ZERO,
            data: Bytes::new(),
            v: 0,
            r: U256::ZERO,
            s: U256::ZERO,
        }
    }

    /// Decodes a transaction. Encoding the result returns the input.
    pub fn decode(rlp: &[u8]) -> Result<Self, FieldError> {
        let mut tx = RlpReader::list(rlp, "transaction")?;
        let nonce = raw(&mut tx, "transaction.nonce")?;
        if nonce.len() == 1 && nonce.value().is_zero() {
            // The reference node writes a single zero byte as the empty string.
            return Err(FieldError::new("transaction.nonce", FieldRule::NotMinimal));
        }
        let decoded = Self {
            nonce,
            gas_price: gas_price(tx.next_str("transaction.gasPrice")?)?,
            gas_limit: raw(&mut tx, "transaction.gas")?,
            to: optional_address(tx.next_str("transaction.to")?, "transaction.to")?,
            value: uint(tx.next_str("transaction.value")?, "transaction.value")?,
            data: Bytes::copy_from_slice(tx.next_str("transaction.input")?),
            v: signature_v(tx.next_str("transaction.v")?)?,
            r: uint(tx.next_str("transaction.r")?, "transaction.r")?,
            s: uint(tx.next_str("transaction.s")?, "transaction.s")?,
        };
        tx.finish("transaction")?;
        Ok(decoded)
    }

    /// Encodes the transaction as it is hashed, sent and stored in the transactions trie.
    pub fn encode(&self) -> Vec<u8> {
        let mut list = self.unsigned();
        let v = [self.v];
        put_str(list.items(), trim(&v));
        put_u256(list.items(), &self.r);
        put_u256(list.items(), &self.s);
        list.into_list()
    }

    /// The transaction hash.
    pub fn hash(&self) -> B256 {
        keccak256(self.encode())
    }

    /// The hash that the sender signed, for the chain id that `v` states.
    pub fn signing_hash(&self) -> B256 {
        let mut list = self.unsigned();
        if let Some(chain_id) = self.chain_id() {
            put_u64(list.items(), chain_id);
            put_str(list.items(), &[]);
            put_str(list.items(), &[]);
        }
        keccak256(list.as_list())
    }

    /// Encodes the first six fields.
    fn unsigned(&self) -> ListBuf {
        // All fields but the data usually take fewer than 256 bytes.
        let mut list = ListBuf::with_capacity(self.data.len().saturating_add(256));
        let out = list.items();
        self.nonce.put(out);
        self.gas_price.put(out);
        self.gas_limit.put(out);
        put_str(out, self.to.as_ref().map_or(&[], |a| a.as_slice()));
        put_u256(out, &self.value);
        put_str(out, &self.data);
        list
    }

    /// The chain id stated by `v` (EIP-155). `None` for 27 and 28, and for values that no signature has.
    pub fn chain_id(&self) -> Option<u64> {
        match self.v.checked_sub(PROTECTED_V)? / 2 {
            0 => None,
            id => Some(u64::from(id)),
        }
    }

    /// Whether the y coordinate of the signature's point is odd. `None` if no signature has this `v`.
    pub fn y_is_odd(&self) -> Option<bool> {
        match self.v {
            UNPROTECTED_V => Some(false),
            28 => Some(true),
            // 35 + 2 * chain id for an even y, so an even `v` means an odd y.
            v => self.chain_id().map(|_| v % 2 == 0),
        }
    }

    /// Whether this transaction has the form of a REMASC transaction. The caller checks that it is the last
    /// one of its block.
    pub fn is_remasc(&self) -> bool {
        self.to == Some(REMASC_ADDRESS)
            && self.data.is_empty()
            && self.v == 0
            && self.r.is_zero()
            && self.s.is_zero()
            && self.value.is_zero()
            && self.gas_limit.value().is_zero()
            && self.gas_price.value().is_zero()
    }

    /// The address of the contract that this transaction creates. `None` if it is not a creation.
    pub fn contract_address(&self, sender: &Address) -> Option<Address> {
        if self.to.is_some() {
            return None;
        }
        let mut list = ListBuf::with_capacity(64);
        put_str(list.items(), sender.as_slice());
        put_u256(list.items(), &self.nonce.value());
        Some(Address::from_word(keccak256(list.as_list())))
    }
}

/// Reads a number with the bytes that it has.
fn raw(reader: &mut RlpReader<'_>, field: &'static str) -> Result<RawUint, FieldError> {
    RawUint::from_be_slice(reader.next_str(field)?, field)
}

/// Reads a gas price: empty, the byte 00, or a number without leading zeros.
fn gas_price(bytes: &[u8]) -> Result<RawUint, FieldError> {
    let field = "transaction.gasPrice";
    if bytes.len() > 1 && bytes.first() == Some(&0) {
        return Err(FieldError::new(field, FieldRule::NotMinimal));
    }
    RawUint::from_be_slice(bytes, field)
}

/// Reads `v`: one byte, or the empty string for zero.
fn signature_v(bytes: &[u8]) -> Result<u8, FieldError> {
    let field = "transaction.v";
    match bytes {
        [] => Ok(0),
        [0] => Err(FieldError::new(field, FieldRule::NotMinimal)),
        [v] => Ok(*v),
        long => Err(FieldError::new(field, FieldRule::TooLong { limit: 1, found: long.len() })),
    }
}
