//! Numbers whose byte form is hashed. The same value can have several byte forms.

use alloc::vec::Vec;
use alloy_primitives::U256;

use super::error::{FieldError, FieldRule};
use super::rlp;

/// An unsigned number that keeps the length of its byte form.
///
/// Gas limits of headers and transactions, and transaction nonces, are hashed as the bytes received, leading
/// zeros included. Length 0 is the empty string (value 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RawUint {
    value: U256,
    /// Length of the byte form, never shorter than the value needs.
    len: u32,
}

impl RawUint {
    /// The shortest form: no leading zeros, zero as the empty string.
    pub fn minimal(value: U256) -> Self {
        Self { value, len: byte_len(&value) }
    }

    /// The shortest two's-complement form, as Java's `BigInteger.toByteArray` writes it: one leading zero
    /// byte if the top bit is set, and the byte 00 for zero.
    pub fn signed_minimal(value: U256) -> Self {
        // A value of 8 bits takes 2 bytes, one of 7 bits takes 1, zero takes 1.
        let len = (value.bit_len() as u32 / 8).saturating_add(1);
        Self { value, len }
    }

    /// The value in `len` bytes, or in as many as it needs if that is more.
    pub fn padded(value: U256, len: u32) -> Self {
        Self { value, len: len.max(byte_len(&value)) }
    }

    /// Reads big-endian bytes and keeps their number, leading zeros included.
    pub fn from_be_slice(bytes: &[u8], field: &'static str) -> Result<Self, FieldError> {
        let too_large = FieldError::new(field, FieldRule::TooLarge(256));
        let len = u32::try_from(bytes.len()).map_err(|_| too_large.clone())?;
        let value = U256::try_from_be_slice(rlp::trim(bytes)).ok_or(too_large)?;
        Ok(Self { value, len })
    }

    /// The value.
    pub const fn value(&self) -> U256 {
        self.value
    }

    /// Length of the byte form.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether the byte form is the empty string.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends the number as an RLP string.
    pub fn put(&self, out: &mut Vec<u8>) {
        let bytes = self.value.to_be_bytes::<32>();
        let len = self.len as usize;
        match bytes.len().checked_sub(len).and_then(|start| bytes.get(start..)) {
            Some(tail) => rlp::put_str(out, tail),
            None => {
                // Longer than 32 bytes: pad with zeros. The input had `len` bytes, so the allocation is
                // bounded.
                let mut long = alloc::vec![0; len.saturating_sub(bytes.len())];
                long.extend_from_slice(&bytes);
                rlp::put_str(out, &long);
            }
        }
    }
}

/// Length of the value in bytes without leading zeros.
fn byte_len(value: &U256) -> u32 {
    value.byte_len() as u32
}

/// A non-negative number in two's complement (header difficulty and minimum gas price).
///
/// An absent number (the empty string, read as zero) is distinct from zero (the byte 00): the two hash
/// differently, and the header rules refuse an absent minimum gas price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SignedUint(RawUint);

impl SignedUint {
    /// The absent number: the empty string.
    pub const ABSENT: Self = Self(RawUint { value: U256::ZERO, len: 0 });

    /// The shortest form of a value.
    pub fn new(value: U256) -> Self {
        Self(RawUint::signed_minimal(value))
    }

    /// A form with more leading zero bytes than needed (only the genesis difficulty has one).
    pub fn padded(value: U256, len: u32) -> Self {
        Self(RawUint::padded(value, len.max(Self::new(value).0.len)))
    }

    /// Reads the two's-complement bytes; `padded` allows superfluous leading zeros.
    pub fn from_be_slice(bytes: &[u8], padded: bool, field: &'static str) -> Result<Self, FieldError> {
        match bytes {
            [] => return Ok(Self::ABSENT),
            [top, ..] if *top >= 0x80 => return Err(FieldError::new(field, FieldRule::Negative)),
            [0, next, ..] if *next < 0x80 && !padded => {
                return Err(FieldError::new(field, FieldRule::NotMinimal));
            }
            _ => {}
        }
        RawUint::from_be_slice(bytes, field).map(Self)
    }

    /// The value; absent counts as zero.
    pub const fn value(&self) -> U256 {
        self.0.value
    }

    /// Whether the field is the empty string.
    pub const fn is_absent(&self) -> bool {
        self.0.len == 0
    }

    /// Appends the number as an RLP string.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

impl From<U256> for SignedUint {
    fn from(value: U256) -> Self {
        Self::new(value)
    }
}

impl From<u64> for SignedUint {
    fn from(value: u64) -> Self {
        Self::new(U256::from(value))
    }
}

impl From<U256> for RawUint {
    fn from(value: U256) -> Self {
        Self::minimal(value)
    }
}

impl From<u64> for RawUint {
    fn from(value: u64) -> Self {
        Self::minimal(U256::from(value))
    }
}
