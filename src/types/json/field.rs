//! One JSON value as raw text, and its conversions to the types of fields.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde_json::value::RawValue;

use super::members::for_each_member;
use super::slots::RawMember;
use crate::types::error::{FieldError, FieldRule};
use crate::types::number::from_digits;

/// Most bytes of one variable-length field of a header. The header rules allow far fewer; the limit bounds
/// the cost of hashing each possible encoding.
pub(super) const MAX_HEADER_FIELD_BYTES: usize = 64 * 1024;
/// Most elements of an array: far more than the transactions (323, at 21,000 gas each) and the logs (18,133, at 375 gas each) that a block
/// of 6.8 million gas can have.
const MAX_ELEMENTS: usize = 65_536;
/// Decimal digits of the largest 256-bit number.
const MAX_DECIMAL_DIGITS: usize = 78;
/// Hex digits of the largest 256-bit number.
const MAX_HEX_DIGITS: usize = 64;

/// A field with its name, which errors state.
#[derive(Clone, Copy)]
pub(super) struct JsonField<'a> {
    name: &'static str,
    /// The raw JSON of the value; `None` if the field is missing or null.
    text: Option<&'a str>,
}

impl<'a> JsonField<'a> {
    pub(super) fn new(name: &'static str, slot: RawMember<'a>) -> Self {
        Self { name, text: slot.map(RawValue::get) }
    }

    pub(super) fn error(&self, rule: FieldRule) -> FieldError {
        FieldError::new(self.name, rule)
    }

    /// Whether the field is present and not null.
    pub(super) const fn is_present(&self) -> bool {
        self.text.is_some()
    }

    fn text(&self) -> Result<&'a str, FieldError> {
        self.text.ok_or(self.error(FieldRule::Missing))
    }

    /// The text between the quotes, or `None` if the value is not a string. Hex and decimal digits need no
    /// escapes, so escapes are not decoded.
    fn string(&self) -> Result<Option<&'a str>, FieldError> {
        let text = self.text()?;
        Ok(text.strip_prefix('"').and_then(|t| t.strip_suffix('"')))
    }

    /// Reads a number: bare or quoted, decimal or 0x-hex.
    pub(super) fn uint(&self) -> Result<U256, FieldError> {
        let bare = self.text()?;
        let digits = self.string()?.unwrap_or(bare);
        let (digits, radix, limit) = match digits.strip_prefix("0x") {
            // JSON has no bare hex numbers, so this one was quoted.
            Some(hex) => (hex, 16, MAX_HEX_DIGITS),
            None => (digits, 10, MAX_DECIMAL_DIGITS),
        };
        let valid = |c: u8| if radix == 16 { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
        if digits.is_empty() || !digits.bytes().all(valid) {
            return Err(self.error(FieldRule::NotANumber));
        }
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Ok(U256::ZERO);
        }
        let too_large = || self.error(FieldRule::TooLarge(256));
        if digits.len() > limit {
            return Err(too_large());
        }
        from_digits(digits, radix).ok_or_else(too_large)
    }

    /// Reads a number of at most 63 bits (the reference node's signed 64-bit integers).
    pub(super) fn uint63(&self) -> Result<u64, FieldError> {
        let value = self.uint()?;
        match i64::try_from(value) {
            Ok(value) => Ok(value.unsigned_abs()),
            Err(_) => Err(self.error(FieldRule::TooLarge(63))),
        }
    }

    /// Reads `0x` and an even number of hex digits, at most `limit` bytes.
    pub(super) fn data(&self, limit: usize) -> Result<Bytes, FieldError> {
        let text = self.string()?.unwrap_or("");
        if !text.starts_with("0x") {
            return Err(self.error(FieldRule::NotHex));
        }
        let found = text.len() / 2;
        if found.saturating_sub(1) > limit {
            return Err(self.error(FieldRule::TooLong { limit, found: found.saturating_sub(1) }));
        }
        hex::decode(text).map(Bytes::from).map_err(|_| self.error(FieldRule::NotHex))
    }

    /// As [`Self::data`], but empty if the field is missing.
    pub(super) fn data_or_empty(&self, limit: usize) -> Result<Bytes, FieldError> {
        if self.is_present() { self.data(limit) } else { Ok(Bytes::new()) }
    }

    /// Reads `0x` and exactly `N` bytes.
    pub(super) fn fixed<const N: usize>(&self) -> Result<[u8; N], FieldError> {
        let text = self.string()?.unwrap_or("");
        if !text.starts_with("0x") {
            return Err(self.error(FieldRule::NotHex));
        }
        let found = (text.len() / 2).saturating_sub(1);
        if found != N || text.len() % 2 != 0 {
            return Err(self.error(FieldRule::Length { expected: N, found }));
        }
        let mut out = [0u8; N];
        hex::decode_to_slice(text, &mut out).map_err(|_| self.error(FieldRule::NotHex))?;
        Ok(out)
    }

    /// Reads a 32-byte hash.
    pub(super) fn hash(&self) -> Result<B256, FieldError> {
        self.fixed::<32>().map(B256::from)
    }

    /// Reads a 20-byte address.
    pub(super) fn address(&self) -> Result<Address, FieldError> {
        self.fixed::<20>().map(Address::from)
    }

    /// Reads an address. A missing field, `0x`, and the `0x00` of older nodes are `None`.
    pub(super) fn optional_address(&self) -> Result<Option<Address>, FieldError> {
        match self.text {
            None | Some("\"0x\"" | "\"0x00\"") => Ok(None),
            _ => self.address().map(Some),
        }
    }

    /// The elements of an array; empty if the field is missing.
    pub(super) fn elements(&self) -> Result<Vec<JsonField<'a>>, FieldError> {
        let Some(text) = self.text else { return Ok(Vec::new()) };
        let (mut items, mut fits) = (Vec::new(), true);
        let read = for_each_member(text, &mut |item| {
            fits = items.len() < MAX_ELEMENTS;
            if fits {
                items.push(JsonField::new(self.name, Some(item).filter(|item| item.get() != "null")));
            }
            fits
        });
        read.map_err(|_| self.error(FieldRule::NotAnArray))?;
        fits.then_some(items).ok_or_else(|| self.error(FieldRule::TooMany(MAX_ELEMENTS)))
    }

    /// The elements of an array; an error if the field is missing.
    pub(super) fn required_elements(&self) -> Result<Vec<JsonField<'a>>, FieldError> {
        self.text()?;
        self.elements()
    }

    /// The raw text of the value.
    pub(super) fn json(&self) -> Result<&'a str, FieldError> {
        self.text()
    }

    /// Whether the value is a string.
    pub(super) fn is_string(&self) -> bool {
        self.text.is_some_and(|t| t.starts_with('"'))
    }
}
