//! The hash of typed data that an account signs (EIP-712, in the form of `eth_signTypedData_v4`). A document has `types` (structs with
//! their fields), a `primaryType`, and the values of two structs: the `domain` that the signature is for, and the `message`.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::{B256, Keccak256, U256, hex, keccak256};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::types::json::Object;

/// The deepest nesting of structs and arrays, so that hashing does not exhaust the stack.
const MAX_DEPTH: u32 = 64;
/// The longest typed data, in bytes of JSON. No other message is handled while one is signed: small values take hundreds of
/// nanoseconds each and nested ones are parsed once for each level, so that the slowest data of this length takes some tenths of a
/// second.
const MAX_TEXT: usize = 512 * 1024;
/// The name of the struct whose value is the domain.
const DOMAIN: &str = "EIP712Domain";
/// The fields of the domain and their types, in the order of EIP-712. If a document does not define the domain, those are its fields
/// that have a value.
const DOMAIN_FIELDS: [(&str, &str); 5] = [
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
    ("salt", "bytes32"),
];
/// Most characters of a name that an error shows.
const SHOWN: usize = 40;

/// Why typed data has no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum TypedDataError {
    /// The text is not an object with the members that EIP-712 names.
    #[error("typed data is an object with types, primaryType, domain and message")]
    Form,
    /// A type that is neither defined nor one of EIP-712's, or that has the name of one.
    #[error("typed data: type {0:?} is not defined, or has the name of a type of EIP-712")]
    Type(String),
    #[error("typed data: the value of {field:?} is missing or not of type {kind:?}")]
    Value { field: String, kind: String },
    /// Structs or arrays within each other, deeper than 64 levels.
    #[error("typed data: more than {MAX_DEPTH} levels of structs and arrays")]
    Depth,
    /// More JSON than signing reads.
    #[error("typed data has more than {MAX_TEXT} bytes: sign a hash of its long values")]
    Long,
    /// Descriptions of types with more bytes than signing takes.
    #[error("typed data: the descriptions of its types have more than {MAX_DESCRIPTIONS} bytes")]
    Types,
}

/// The members of a JSON object, by name, still as text.
type RawMembers<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Most bytes of all descriptions of the types of one document together. The description of a struct repeats those of all structs
/// that it refers to, so a short document can describe far more bytes than it has.
const MAX_DESCRIPTIONS: usize = 256 * 1024;

/// A field of a struct: its name, and the name of its type.
#[derive(Deserialize)]
struct TypedField<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

/// A document of typed data.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypedData<'a> {
    #[serde(borrow)]
    types: BTreeMap<Cow<'a, str>, Vec<Object<TypedField<'a>>>>,
    #[serde(borrow)]
    primary_type: Cow<'a, str>,
    /// The value of the domain. Libraries leave out an empty one.
    #[serde(borrow, default)]
    domain: Option<&'a RawValue>,
    /// The value of the primary type. A document whose primary type is the domain has no message.
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

/// The hash that an account signs for typed data in JSON.
///
/// # Errors
/// The text is not typed data, a type is not defined, or a value is not of its type.
pub(super) fn digest(json: &str) -> Result<B256, TypedDataError> {
    if json.len() > MAX_TEXT {
        return Err(TypedDataError::Long);
    }
    let Object(mut data): Object<TypedData<'_>> = parse(json).ok_or(TypedDataError::Form)?;
    let domain = data.domain.or_else(|| parse("{}")).ok_or(TypedDataError::Form)?;
    if !data.types.contains_key(DOMAIN) {
        let given: RawMembers<'_> = parse(domain.get()).ok_or(TypedDataError::Form)?;
        let is_given = |name: &str| given.get(name).is_some_and(|value| value.get() != "null");
        let fields = DOMAIN_FIELDS.into_iter().filter(|(name, _)| is_given(name));
        let fields = fields.map(|(name, kind)| Object(TypedField { name: name.into(), kind: kind.into() }));
        data.types.insert(DOMAIN.into(), fields.collect());
    }
    let mut hasher =
        Hasher { types: &data.types, type_hashes: BTreeMap::new(), bytes_left: MAX_DESCRIPTIONS };
    let domain = hasher.value("domain", DOMAIN, Some(domain), 0)?;
    // The prefix of typed data (EIP-191, version 1).
    let mut bytes = alloc::vec![0x19, 0x01];
    bytes.extend(domain.0);
    if data.primary_type != DOMAIN {
        hasher.fields(&data.primary_type)?;
        bytes.extend(hasher.value("message", &data.primary_type, data.message, 0)?.0);
    }
    Ok(keccak256(bytes))
}

/// Parses JSON; `None` if it is not of the type.
fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    serde_json::from_str(json).ok()
}

/// The part of a name that an error shows.
fn cut_name(name: &str) -> String {
    name.chars().take(SHOWN).collect()
}

/// Hashes values of the types of one document.
struct Hasher<'a> {
    types: &'a BTreeMap<Cow<'a, str>, Vec<Object<TypedField<'a>>>>,
    /// The hashes of the types described so far, so that each type is described only once.
    type_hashes: BTreeMap<&'a str, B256>,
    /// How many bytes of descriptions of types are left, of [`MAX_DESCRIPTIONS`].
    bytes_left: usize,
}

impl<'a> Hasher<'a> {
    /// The fields of a struct; an error for any other type.
    fn fields(&self, name: &str) -> Result<(&'a str, &'a [Object<TypedField<'a>>]), TypedDataError> {
        let found = self.types.get_key_value(name).filter(|_| !is_atomic(name));
        let (name, fields) = found.ok_or_else(|| TypedDataError::Type(cut_name(name)))?;
        Ok((&**name, fields.as_slice()))
    }

    /// The hash of a struct's description: its name and fields, then those of the structs that it refers to, in the order of names.
    fn type_hash(&mut self, name: &'a str) -> Result<B256, TypedDataError> {
        if let Some(hash) = self.type_hashes.get(name) {
            return Ok(*hash);
        }
        let (mut others, mut next) = (BTreeSet::new(), alloc::vec![name]);
        while let Some(one) = next.pop() {
            for Object(field) in self.fields(one)?.1 {
                let base = field.kind.split('[').next().unwrap_or_default();
                if is_atomic(base) {
                    continue;
                }
                let (base, _) = self.fields(base)?;
                self.spend(base.len())?;
                if base != name && others.insert(base) {
                    next.push(base);
                }
            }
        }
        let mut text = String::new();
        for one in core::iter::once(name).chain(others) {
            text.push_str(one);
            let mut before = '(';
            for Object(TypedField { name, kind }) in self.fields(one)?.1 {
                self.spend(name.len().saturating_add(kind.len()).saturating_add(2))?;
                text.push(before);
                text.push_str(kind);
                text.push(' ');
                text.push_str(name);
                before = ',';
            }
            text.push_str(if before == '(' { "()" } else { ")" });
        }
        let hash = keccak256(text);
        self.type_hashes.insert(name, hash);
        Ok(hash)
    }

    /// Counts bytes of a description; an error if all descriptions together have too many.
    fn spend(&mut self, bytes: usize) -> Result<(), TypedDataError> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(TypedDataError::Types)?;
        Ok(())
    }

    /// The 32 bytes that encode a value within the struct or array that contains it (`encodeData` of EIP-712). `field` is its name,
    /// for errors.
    fn value(
        &mut self,
        field: &str,
        kind: &str,
        value: Option<&RawValue>,
        depth: u32,
    ) -> Result<B256, TypedDataError> {
        let wrong = || TypedDataError::Value { field: cut_name(field), kind: cut_name(kind) };
        if depth > MAX_DEPTH {
            return Err(TypedDataError::Depth);
        }
        let (json, below) = (value.ok_or_else(wrong)?.get(), depth.saturating_add(1));
        if let Some((item, length)) = array(kind) {
            let items: Vec<&RawValue> = parse(json).ok_or_else(wrong)?;
            if !length.is_empty() && length.parse() != Ok(items.len()) {
                return Err(wrong());
            }
            let mut hash = Keccak256::new();
            for one in items {
                hash.update(self.value(field, item, Some(one), below)?);
            }
            return Ok(hash.finalize());
        }
        if is_atomic(kind) {
            return atom_word(kind, json).ok_or_else(wrong);
        }
        let (kind, fields) = self.fields(kind)?;
        // A struct that is a field may be null. Domain and message, of depth 0, may not.
        if json == "null" && depth > 0 {
            return Ok(B256::ZERO);
        }
        let mut hash = Keccak256::new();
        hash.update(self.type_hash(kind)?);
        let members: RawMembers<'_> = parse(json).ok_or_else(wrong)?;
        for Object(TypedField { name, kind }) in fields {
            hash.update(self.value(name, kind, members.get(&**name).copied(), below)?);
        }
        Ok(hash.finalize())
    }
}

/// The type of an array's items and the text between its last brackets.
fn array(kind: &str) -> Option<(&str, &str)> {
    kind.strip_suffix(']')?.rsplit_once('[')
}

/// A type of numbers: whether it has a sign, and its bits.
fn integer(kind: &str) -> Option<(bool, usize)> {
    let (is_signed, bits) = match kind.strip_prefix("uint") {
        Some(bits) => (false, bits),
        None => (true, kind.strip_prefix("int")?),
    };
    let bits = if bits.is_empty() { 256 } else { type_size(bits)? };
    (bits % 8 == 0 && (8..=256).contains(&bits)).then_some((is_signed, bits))
}

/// The length of a type of bytes with a fixed length.
fn fixed_bytes_len(kind: &str) -> Option<usize> {
    type_size(kind.strip_prefix("bytes")?).filter(|length| (1..=32).contains(length))
}

/// A number in a type's name, which has no sign and no leading zero.
fn type_size(digits: &str) -> Option<usize> {
    digits.parse().ok().filter(|_| !digits.starts_with(['0', '+']))
}

/// Whether a type has no parts: neither a struct nor an array.
fn is_atomic(kind: &str) -> bool {
    matches!(kind, "address" | "bool" | "bytes" | "string")
        || integer(kind).is_some()
        || fixed_bytes_len(kind).is_some()
}

/// The 32 bytes that stand for a value of a type without parts; `None` if the value is not of the type.
fn atom_word(kind: &str, json: &str) -> Option<B256> {
    if let Some((is_signed, bits)) = integer(kind) {
        return number(json, is_signed, bits);
    }
    match kind {
        "bool" => Some(B256::from(U256::from(u8::from(parse::<bool>(json)?)))),
        "string" => Some(keccak256(&*parse::<Cow<'_, str>>(json)?)),
        "bytes" => Some(keccak256(bytes(json)?)),
        "address" => Some(B256::left_padding_from(&bytes(json).filter(|bytes| bytes.len() == 20)?)),
        kind => Some(B256::right_padding_from(
            &bytes(json).filter(|bytes| Some(bytes.len()) == fixed_bytes_len(kind))?,
        )),
    }
}

/// The bytes of a JSON text in hex with `0x`.
fn bytes(json: &str) -> Option<Vec<u8>> {
    let text: Cow<'_, str> = parse(json)?;
    hex::decode(text.strip_prefix("0x")?).ok()
}

/// An integer as a JSON number or as text, decimal or in hex, in two's complement.
fn number(json: &str, is_signed: bool, bits: usize) -> Option<B256> {
    // A failed parse of each number would take longer than all else.
    let text: Cow<'_, str> = if json.starts_with('"') { parse(json)? } else { json.into() };
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, &*text),
    };
    let (radix, digits) = digits.strip_prefix("0x").map_or((10, digits), |digits| (16, digits));
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = U256::from_str_radix(digits, radix).ok()?;
    // The largest number above zero has the sign's bit clear; the lowest below zero has that bit alone.
    let largest =
        U256::MAX.wrapping_shr(256_usize.saturating_sub(bits).saturating_add(usize::from(is_signed)));
    let fits = match is_negative {
        true => is_signed && magnitude <= largest.saturating_add(U256::from(1)),
        false => magnitude <= largest,
    };
    let word = if is_negative { U256::ZERO.wrapping_sub(magnitude) } else { magnitude };
    fits.then(|| B256::from(word))
}

#[cfg(test)]
#[path = "typed_data_test.rs"]
mod typed_data_test;
