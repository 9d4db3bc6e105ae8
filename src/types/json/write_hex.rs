//! Hex strings in answers: numbers, bytes, hashes, addresses and blooms.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bloom, Bytes, U256, hex};
use serde::{Serialize, Serializer};

/// A number: `0x` and hex digits without leading zeros; zero is `0x0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Quantity(pub U256);

impl From<u64> for Quantity {
    fn from(value: u64) -> Self {
        Self(U256::from(value))
    }
}

impl From<U256> for Quantity {
    fn from(value: U256) -> Self {
        Self(value)
    }
}

/// Characters of the longest number: `0x` and 64 digits.
const MAX_QUANTITY: usize = 66;

impl Quantity {
    /// Passes the text of the number to a function, without allocation. Formatting the number by `fmt` takes several times as long.
    pub(crate) fn with_text<T>(&self, take: impl FnOnce(&str) -> T) -> T {
        let bytes = self.0.to_be_bytes::<32>();
        let mut digits = hex::Buffer::<32, true>::new();
        let digits = digits.format(&bytes);
        // The prefix moves to the last two characters before the first digit that counts.
        let start = self.0.leading_zeros().checked_div(4).unwrap_or_default().min(63);
        let mut text = [b'0'; MAX_QUANTITY];
        text.iter_mut().zip(digits.bytes()).skip(start.saturating_add(2)).for_each(|(to, from)| *to = from);
        if let Some(x) = text.get_mut(start.saturating_add(1)) {
            *x = b'x';
        }
        take(text.get(start..).and_then(|text| str::from_utf8(text).ok()).unwrap_or(digits))
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

/// Bytes: `0x` and two hex digits for each byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Data(pub Bytes);

impl From<B256> for Data {
    fn from(value: B256) -> Self {
        Self(Bytes::from(value.0.to_vec()))
    }
}

impl From<Vec<u8>> for Data {
    fn from(value: Vec<u8>) -> Self {
        Self(Bytes::from(value))
    }
}

impl From<Bytes> for Data {
    fn from(value: Bytes) -> Self {
        Self(value)
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode_prefixed(&self.0))
    }
}

/// Serializes bytes of fixed length as 0x-hex.
fn fixed<const N: usize, S: Serializer>(bytes: &[u8; N], s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(hex::Buffer::<N, true>::new().format(bytes))
}

/// For `serialize_with`: a hash.
pub(super) fn hash<S: Serializer>(value: &B256, s: S) -> Result<S::Ok, S::Error> {
    fixed(&value.0, s)
}

/// For `serialize_with`: a hash or null.
pub(super) fn hash_or_null<S: Serializer>(value: &Option<B256>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => fixed(&value.0, s),
        None => s.serialize_none(),
    }
}

/// For `serialize_with`: a list of hashes.
pub(super) fn hashes<S: Serializer>(values: &[B256], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(values.iter().map(Hash))
}

/// For `serialize_with`: a list of hashes or null.
pub(super) fn hashes_or_null<S: Serializer>(values: &Option<Vec<B256>>, s: S) -> Result<S::Ok, S::Error> {
    match values {
        Some(values) => hashes(values, s),
        None => s.serialize_none(),
    }
}

/// For `serialize_with`: an address.
pub(super) fn address<S: Serializer>(value: &Address, s: S) -> Result<S::Ok, S::Error> {
    fixed(&value.0.0, s)
}

/// For `serialize_with`: an address or null.
pub(super) fn address_or_null<S: Serializer>(value: &Option<Address>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => address(value, s),
        None => s.serialize_none(),
    }
}

/// For `serialize_with`: an address, or `0x` for none.
pub(super) fn address_or_empty<S: Serializer>(value: &Option<Address>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => address(value, s),
        None => s.serialize_str("0x"),
    }
}

/// For `serialize_with`: a bloom.
pub(super) fn bloom<S: Serializer>(value: &Bloom, s: S) -> Result<S::Ok, S::Error> {
    fixed(&value.0.0, s)
}

/// For `serialize_with`: a bloom or null.
pub(super) fn bloom_or_null<S: Serializer>(value: &Option<Bloom>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => bloom(value, s),
        None => s.serialize_none(),
    }
}

/// A hash as a list element.
struct Hash<'a>(&'a B256);

impl Serialize for Hash<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hash(self.0, serializer)
    }
}
