//! Typed parameters. The parsers accept the same texts as the reference node, and fail with its messages (see its `parameters`
//! classes).

use alloc::{borrow::Cow, boxed::Box, string::String, sync::Arc, vec::Vec};
use core::{any::Any, cell::RefCell, fmt};

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{ParamError, RpcError};
use crate::types::json::Object;

/// Most storage keys of one `eth_getProof`. The limit bounds the work of an answer: each key is looked up in the trie, and its
/// nodes are written.
pub const MAX_PROOF_KEYS: usize = 1024;

/// The positional parameters of a call.
#[derive(Debug, Clone, Copy)]
pub struct Params<'a> {
    /// The values, unparsed.
    values: &'a [Box<RawValue>],
    /// The values that earlier runs of the call have parsed; `None` if no run follows.
    parsed: Option<&'a Parsed>,
}

/// Parameters that an earlier run of the same call has parsed, by position.
#[derive(Default)]
pub(super) struct Parsed(RefCell<Vec<(usize, Arc<dyn Any + Send + Sync>)>>);

impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parsed").finish_non_exhaustive()
    }
}

/// A block parameter: the block that a caller names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockParam {
    /// The newest block.
    Latest,
    /// Block 0.
    Earliest,
    /// The next block; a light client answers with the newest one.
    Pending,
    /// The newest block that counts as safe ([`BlockId::Safe`](crate::engine::BlockId::Safe)).
    Safe,
    /// The newest block that counts as final ([`BlockId::Finalized`](crate::engine::BlockId::Finalized)).
    Finalized,
    /// A block number; `None` if it is larger than any block number can be. The text is that of the caller, for error messages.
    Number(Option<u64>, String),
    /// A block hash.
    Hash {
        /// The hash.
        hash: B256,
        /// Whether a block off the canonical chain is an error (EIP-1898).
        require_canonical: bool,
        /// Whether the hash was given in a map, which changes error texts.
        in_map: bool,
    },
}

impl<'a> Params<'a> {
    /// Checks the count: at least `required`, none of them `null`, at most `total`.
    ///
    /// # Errors
    /// [`RpcError::ParameterCount`].
    pub fn new(values: &'a [Box<RawValue>], required: usize, total: usize) -> Result<Self, RpcError> {
        let given = values.len();
        let nulls = values.iter().take(required).any(|value| value.get() == "null");
        if given < required || given > total || nulls {
            return Err(RpcError::ParameterCount);
        }
        Ok(Self { values, parsed: None })
    }

    /// The parameters of a call whose count was checked.
    pub(super) fn of_request(values: &'a [Box<RawValue>], parsed: &'a Parsed) -> Self {
        Self { values, parsed: Some(parsed) }
    }

    /// Parses the parameter at a position, and keeps the result for further runs of the call: a call on a light
    /// client runs again after each round of fetching, and some parameters are long.
    pub(super) fn once<T: Send + Sync + 'static, E>(
        &self,
        position: usize,
        parse: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let Some(Parsed(parsed)) = self.parsed else { return parse().map(Arc::new) };
        let earlier = parsed.borrow().iter().find(|(at, _)| *at == position).map(|(_, value)| value.clone());
        if let Some(Ok(value)) = earlier.map(Arc::downcast) {
            return Ok(value);
        }
        let value = Arc::new(parse()?);
        parsed.borrow_mut().push((position, value.clone()));
        Ok(value)
    }

    /// The parameter at `position` unless it is missing or `null`.
    fn raw(&self, position: usize) -> Option<&'a RawValue> {
        self.values.get(position).map(|v| &**v).filter(|v| v.get() != "null")
    }

    /// Whether there is a parameter that is not `null`.
    pub fn is_given(&self, position: usize) -> bool {
        self.raw(position).is_some()
    }

    /// The number of bytes of a parameter's text.
    pub(super) fn length(&self, position: usize) -> usize {
        self.raw(position).map_or(0, |raw| raw.get().len())
    }

    /// An upper bound of the number of objects in a parameter's text: braces in strings count too.
    pub(super) fn objects(&self, position: usize) -> usize {
        self.raw(position).map_or(0, |raw| raw.get().bytes().filter(|byte| *byte == b'{').count())
    }

    /// A parameter as text, for error messages: a string's content, anything else as it was written.
    pub fn text(&self, position: usize) -> String {
        self.raw(position).map(string_or_number).unwrap_or_default()
    }

    /// Bytes in hex, `0x` optional, an odd count of digits padded on the left.
    ///
    /// # Errors
    /// [`ParamError::Data`].
    pub fn data(&self, position: usize) -> Result<Bytes, ParamError> {
        parse_data(&self.string(position).ok_or(ParamError::Data)?)
    }

    fn string(&self, position: usize) -> Option<Cow<'a, str>> {
        self.raw(position).and_then(string)
    }

    /// An address: 40 hex digits, `0x` optional, any case; 39 digits after `0x` are padded.
    ///
    /// # Errors
    /// [`ParamError::AddressLength`], [`ParamError::AddressHex`].
    pub fn address(&self, position: usize) -> Result<Address, ParamError> {
        parse_address(&self.string(position).ok_or(ParamError::AddressLength)?)
    }

    /// A 32-byte hash: 64 hex digits, `0x` optional. `name` names the parameter in errors ("block hash", "transaction
    /// hash").
    ///
    /// # Errors
    /// [`ParamError::HashLength`], [`ParamError::HashHex`].
    pub fn hash(&self, position: usize, name: &'static str) -> Result<B256, ParamError> {
        parse_hash(&self.string(position).ok_or(ParamError::HashLength(name))?, name)
    }

    /// A number of up to 256 bits: `0x` hex, a decimal string or a JSON number.
    ///
    /// # Errors
    /// [`ParamError::Number`], [`ParamError::NumberPrefix`], [`ParamError::NumberLength`].
    pub fn number(&self, position: usize) -> Result<U256, ParamError> {
        let raw = self.raw(position).ok_or_else(|| ParamError::Number(String::from("null")))?;
        parse_number(&string_or_number(raw))
    }

    /// An index: `0x` and lower-case hex digits, at most 0x7fffffff.
    ///
    /// # Errors
    /// [`ParamError::Index`], [`ParamError::IndexRange`].
    pub fn index(&self, position: usize) -> Result<usize, ParamError> {
        let raw = self.raw(position).ok_or_else(|| ParamError::Index(String::from("null")))?;
        let text = string_or_number(raw);
        let digits = text.strip_prefix("0x").ok_or_else(|| ParamError::Index(text.clone()))?;
        if !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(ParamError::Index(text));
        }
        match u32::from_str_radix(digits, 16) {
            Ok(index) if index <= 0x7fff_ffff => Ok(index as usize),
            _ => Err(ParamError::IndexRange),
        }
    }

    /// A boolean; `default` if it is missing or null.
    ///
    /// # Errors
    /// [`ParamError::Type`].
    pub fn boolean(&self, position: usize, default: bool) -> Result<bool, ParamError> {
        match self.raw(position).map(RawValue::get) {
            None => Ok(default),
            Some("true" | "\"true\"" | "1") => Ok(true),
            Some("false" | "\"false\"" | "0") => Ok(false),
            Some(_) => Err(ParamError::Type { position, expected: "a boolean" }),
        }
    }

    /// An object, or `None` if it is missing or null.
    ///
    /// # Errors
    /// [`ParamError::Type`], with `expected` as text.
    pub fn object<T: Deserialize<'a>>(
        &self,
        position: usize,
        expected: &'static str,
    ) -> Result<Option<T>, ParamError> {
        self.raw(position)
            .map(|raw| object(raw).map_err(|_| ParamError::Type { position, expected }))
            .transpose()
    }

    /// A text or an array, or `None` if it is missing or null. Objects are read by [`Self::object`].
    ///
    /// # Errors
    /// [`ParamError::Type`], with `expected` as text.
    pub(super) fn value<T: Deserialize<'a>>(
        &self,
        position: usize,
        expected: &'static str,
    ) -> Result<Option<T>, ParamError> {
        self.raw(position)
            .map(|raw| serde_json::from_str(raw.get()).map_err(|_| ParamError::Type { position, expected }))
            .transpose()
    }

    /// Storage keys: an array of hex numbers of up to 32 bytes.
    ///
    /// # Errors
    /// [`ParamError::Type`], [`ParamError::TooManyKeys`], [`ParamError::Number`].
    pub fn storage_keys(&self, position: usize) -> Result<Vec<U256>, ParamError> {
        let keys: Vec<String> = self.value(position, "an array of storage keys")?.unwrap_or_default();
        if keys.len() > MAX_PROOF_KEYS {
            return Err(ParamError::TooManyKeys { given: keys.len(), max: MAX_PROOF_KEYS });
        }
        keys.iter().map(|key| parse_number(key)).collect()
    }

    /// A block parameter: tag, number, hash, or map with `blockHash` or `blockNumber`; `latest` if it is missing.
    ///
    /// # Errors
    /// The block variants of [`ParamError`].
    pub fn block(&self, position: usize) -> Result<BlockParam, ParamError> {
        let Some(raw) = self.raw(position) else { return Ok(BlockParam::Latest) };
        block_param(raw, false)
    }

    /// As [`Self::block`], but decimal numbers are accepted too, as in the reference node's `eth_call`.
    ///
    /// # Errors
    /// The block variants of [`ParamError`].
    pub fn call_block(&self, position: usize) -> Result<BlockParam, ParamError> {
        let Some(raw) = self.raw(position) else { return Ok(BlockParam::Latest) };
        block_param(raw, true)
    }

    /// As [`Self::call_block`], but JSON numbers are accepted too, as Otterscan writes them.
    ///
    /// # Errors
    /// The block variants of [`ParamError`].
    #[cfg(any(all(feature = "catalogue", feature = "local"), all(feature = "dev", feature = "light")))]
    pub(super) fn any_block(&self, position: usize) -> Result<BlockParam, ParamError> {
        let Some(raw) = self.raw(position) else { return Ok(BlockParam::Latest) };
        any_block_param(raw)
    }

    /// Bytes that must start with `0x`, for `web3_sha3`.
    ///
    /// # Errors
    /// [`ParamError::Sha3`].
    pub fn prefixed_bytes(&self, position: usize) -> Result<Bytes, ParamError> {
        let text = self.string(position).ok_or(ParamError::Sha3)?;
        let digits = text.strip_prefix("0x").ok_or(ParamError::Sha3)?;
        decode_hex(digits).ok_or(ParamError::Sha3)
    }
}

/// Parses an object. An array is an error, although serde would read it as the fields in order.
pub(super) fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> serde_json::Result<T> {
    serde_json::from_str(raw.get()).map(|Object(object)| object)
}

/// Parses a block parameter that is not null. `decimal` accepts decimal numbers too.
pub(super) fn block_param(raw: &RawValue, decimal: bool) -> Result<BlockParam, ParamError> {
    match raw.get().as_bytes().first() {
        Some(b'"') => parse_block_text(&string(raw).ok_or(ParamError::BlockType)?, decimal),
        Some(b'{') => parse_block_map(raw),
        _ => Err(ParamError::BlockType),
    }
}

/// As [`block_param`] with decimal numbers; JSON numbers are accepted too.
#[cfg(any(test, feature = "light", all(feature = "catalogue", feature = "local")))]
pub(super) fn any_block_param(raw: &RawValue) -> Result<BlockParam, ParamError> {
    match raw.get().parse() {
        Ok(number) => Ok(BlockParam::Number(Some(number), raw.get().into())),
        Err(_) => block_param(raw, true),
    }
}

/// The value of a JSON string; borrowed if the string has no escapes.
pub(super) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inside.filter(|text| !text.contains('\\')) {
        Some(plain) => Some(Cow::Borrowed(plain)),
        None => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

/// The value of a JSON string, or the text of any other JSON value.
fn string_or_number(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into())
}

/// Decodes hex digits; an odd count of digits is padded on the left.
fn decode_hex(digits: &str) -> Option<Bytes> {
    // The decoder would accept a second `0x`.
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    if digits.len().is_multiple_of(2) {
        return hex::decode(digits).ok().map(Bytes::from);
    }
    hex::decode(alloc::format!("0{digits}")).ok().map(Bytes::from)
}

/// Bytes in hex, `0x` optional, an odd count of digits padded on the left.
pub(crate) fn parse_data(text: &str) -> Result<Bytes, ParamError> {
    decode_hex(text.strip_prefix("0x").unwrap_or(text)).ok_or(ParamError::Data)
}

/// Parses an address as the reference node does.
pub(crate) fn parse_address(text: &str) -> Result<Address, ParamError> {
    if !(40..=42).contains(&text.len()) {
        return Err(ParamError::AddressLength);
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let bytes = decode_hex(digits).ok_or(ParamError::AddressHex)?;
    Address::try_from(&bytes[..]).map_err(|_| ParamError::AddressLength)
}

/// Parses a 32-byte hash as the reference node does; `name` is the name of the parameter in errors.
pub(super) fn parse_hash(text: &str, name: &'static str) -> Result<B256, ParamError> {
    // The reference node compares the length of the whole text first, and gives another error for 65 or 66 characters
    // without `0x`.
    if !(64..=66).contains(&text.len()) {
        return Err(ParamError::HashLength(name));
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() > 64 {
        return Err(ParamError::HashHex(name));
    }
    if digits.len() != 64 {
        return Err(ParamError::HashLength(name));
    }
    let bytes = decode_hex(digits).ok_or(ParamError::HashHex(name))?;
    B256::try_from(&bytes[..]).map_err(|_| ParamError::HashLength(name))
}

/// Parses a number of up to 256 bits as the reference node does.
pub(crate) fn parse_number(text: &str) -> Result<U256, ParamError> {
    /// Characters of the longest number: `0x` and 64 digits.
    const MAX_TEXT: usize = 66;
    if text.len() > MAX_TEXT {
        return Err(ParamError::NumberLength(text.chars().take(MAX_TEXT).collect()));
    }
    let bad = || ParamError::Number(text.into());
    if let Some(digits) = text.strip_prefix("0x") {
        if digits.is_empty() {
            return Ok(U256::ZERO);
        }
        return U256::from_str_radix(digits, 16).map_err(|_| bad());
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return U256::from_str_radix(text, 10).map_err(|_| bad());
    }
    // Hex digits without `0x` have an error of their own.
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(ParamError::NumberPrefix);
    }
    Err(bad())
}

/// Makes a block parameter out of a tag with capital letters, which the reference node's methods for logs and traces accept;
/// passes other results on.
pub(super) fn tag_in_any_case(param: Result<BlockParam, ParamError>) -> Result<BlockParam, ParamError> {
    match param {
        Err(ParamError::BlockId(text)) if text.bytes().any(|letter| letter.is_ascii_uppercase()) => {
            parse_tag(&text.to_ascii_lowercase()).ok_or(ParamError::BlockId(text))
        }
        other => other,
    }
}

/// Parses a tag, a number or a hash. `decimal` accepts decimal numbers too.
fn parse_block_text(text: &str, decimal: bool) -> Result<BlockParam, ParamError> {
    parse_tag(text).map_or_else(|| parse_number_or_hash(text, decimal), Ok)
}

fn parse_tag(text: &str) -> Option<BlockParam> {
    Some(match text {
        "latest" => BlockParam::Latest,
        "earliest" => BlockParam::Earliest,
        "pending" => BlockParam::Pending,
        "safe" => BlockParam::Safe,
        "finalized" => BlockParam::Finalized,
        _ => return None,
    })
}

fn parse_number_or_hash(text: &str, decimal: bool) -> Result<BlockParam, ParamError> {
    let bad = || ParamError::BlockId(text.into());
    if let Some(digits) = text.strip_prefix("0x") {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        if digits.len() == 64 {
            let hash = parse_hash(text, "block hash").map_err(|_| bad())?;
            return Ok(BlockParam::Hash { hash, require_canonical: false, in_map: false });
        }
        return Ok(BlockParam::Number(u64::from_str_radix(digits, 16).ok(), text.into()));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    if decimal {
        return Ok(BlockParam::Number(text.parse().ok(), text.into()));
    }
    Err(ParamError::BlockNumber(text.into()))
}

/// A block parameter as a map (EIP-1898).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockParamMap<'a> {
    #[serde(default, borrow)]
    block_hash: Option<&'a RawValue>,
    #[serde(default, borrow)]
    block_number: Option<&'a RawValue>,
    #[serde(default, borrow)]
    require_canonical: Option<&'a RawValue>,
}

fn parse_block_map(raw: &RawValue) -> Result<BlockParam, ParamError> {
    let map: BlockParamMap<'_> = object(raw).map_err(|_| ParamError::BlockMap)?;
    if let Some(hash) = map.block_hash {
        let text: String =
            serde_json::from_str(hash.get()).map_err(|_| ParamError::HashLength("block hash"))?;
        let require_canonical = matches!(map.require_canonical.map(RawValue::get), Some("true" | "\"true\""));
        return Ok(BlockParam::Hash {
            hash: parse_hash(&text, "block hash")?,
            require_canonical,
            in_map: true,
        });
    }
    let number = map.block_number.ok_or(ParamError::BlockMap)?;
    let text = string_or_number(number);
    if text.starts_with("0x") {
        return parse_number_or_hash(&text, false);
    }
    parse_number(&text)?;
    Err(ParamError::BlockNumber(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raws(text: &str) -> Vec<Box<RawValue>> {
        serde_json::from_str(text).unwrap()
    }

    fn param(text: &str) -> Result<BlockParam, String> {
        let raws = raws(&alloc::format!("[{text}]"));
        Params::new(&raws, 0, 1).unwrap().block(0).map_err(|e| e.to_string())
    }

    #[test]
    fn block_selectors_are_tags_numbers_hashes_and_maps() {
        assert_eq!(param("\"latest\""), Ok(BlockParam::Latest));
        assert_eq!(param("null"), Ok(BlockParam::Latest));
        assert_eq!(param("\"0x0a\""), Ok(BlockParam::Number(Some(10), "0x0a".into())));
        assert_eq!(
            param("\"0xffffffffffffffffffffff\""),
            Ok(BlockParam::Number(None, "0xffffffffffffffffffffff".into()))
        );
        assert_eq!(param(r#"{"blockNumber":"0x5"}"#), Ok(BlockParam::Number(Some(5), "0x5".into())));
        let hash = B256::repeat_byte(0xab);
        let by_hash = |require_canonical, in_map| Ok(BlockParam::Hash { hash, require_canonical, in_map });
        assert_eq!(param(&alloc::format!("\"{hash}\"")), by_hash(false, false));
        for flag in ["true", "\"true\""] {
            assert_eq!(
                param(&alloc::format!(r#"{{"blockHash":"{hash}","requireCanonical":{flag}}}"#)),
                by_hash(true, true)
            );
        }
    }

    #[test]
    fn any_block_takes_json_numbers_too() {
        let any = |text: &str| any_block_param(&raws(&alloc::format!("[{text}]"))[0]).ok();
        let number = |number, text: &str| Some(BlockParam::Number(number, text.into()));
        assert_eq!(any("12"), number(Some(12), "12"));
        assert_eq!(any("\"12\""), number(Some(12), "12"));
        assert_eq!(any("\"0xc\""), number(Some(12), "0xc"));
        assert_eq!(any("\"latest\""), Some(BlockParam::Latest));
        for refused in ["-1", "1.5", "1e3", "18446744073709551616", "true", "[]"] {
            assert_eq!(any(refused), None, "{refused}");
        }
        assert!(param("12").is_err());
    }

    #[test]
    fn invalid_block_selectors_are_refused() {
        let cases = [
            ("\"0X1\"", "Invalid block identifier '0X1'"),
            ("\"-0x1\"", "Invalid block identifier '-0x1'"),
            ("\"\"", "Invalid block identifier ''"),
            ("\"0x\"", "Invalid block identifier '0x'"),
            ("\"0x1g\"", "Invalid block identifier '0x1g'"),
            ("\"1g\"", "Invalid block identifier '1g'"),
            ("\"LATEST\"", "Invalid block identifier 'LATEST'"),
            ("\"5\"", "invalid blocknumber 5"),
            ("5", "Invalid input"),
            ("[]", "Invalid input"),
            ("{}", "Invalid block input"),
            (r#"{"blockNumber":"5"}"#, "invalid blocknumber 5"),
            (
                r#"{"blockNumber":"latest"}"#,
                "Invalid param latest: value must be a valid hex or string number.",
            ),
            (r#"{"blockHash":"0x12"}"#, "Invalid block hash: incorrect length."),
        ];
        for (text, message) in cases {
            assert_eq!(param(text), Err(message.into()), "{text}");
        }
    }

    #[test]
    fn hashes_have_64_digits() {
        let parse = |text: &str| parse_hash(text, "block hash").map_err(|e| e.to_string());
        let (hash, digits) = (B256::repeat_byte(0xab), "ab".repeat(32));
        assert_eq!((parse(&digits), parse(&alloc::format!("0x{digits}"))), (Ok(hash), Ok(hash)));
        let length = "Invalid block hash: incorrect length.";
        for text in
            ["", &digits[1..], &alloc::format!("0x{}", &digits[1..]), &alloc::format!("0x{}", &digits[2..])]
        {
            assert_eq!(parse(text), Err(length.into()), "{text}");
        }
        assert_eq!(parse(&alloc::format!("0xa{digits}")), Err(length.into()), "67 characters");
        let form = parse(&"zz".repeat(32));
        assert!(form.as_ref().is_err_and(|words| words != length), "{form:?}");
        assert_eq!(parse(&alloc::format!("a{digits}")), form);
        assert_eq!(parse(&alloc::format!("aa{digits}")), form);
    }

    #[test]
    fn the_storage_keys_of_a_proof_are_limited() {
        let keys = |count: usize| {
            let list = alloc::vec!["\"0x1\""; count].join(",");
            let raws = raws(&alloc::format!("[[{list}]]"));
            Params::new(&raws, 0, 1).unwrap().storage_keys(0)
        };
        assert_eq!(keys(MAX_PROOF_KEYS).map(|keys| keys.len()), Ok(1_024));
        let given = MAX_PROOF_KEYS + 1;
        assert_eq!(keys(given), Err(ParamError::TooManyKeys { given, max: MAX_PROOF_KEYS }));
    }

    #[test]
    fn addresses_have_40_digits_or_39_after_0x() {
        let address = Address::repeat_byte(0xcd);
        let digits = "cd".repeat(20);
        assert_eq!(parse_address(&digits), Ok(address));
        assert_eq!(parse_address(&alloc::format!("0x{}", digits.to_uppercase())), Ok(address));
        assert_eq!(parse_address(&alloc::format!("0x{}", &digits[1..])).unwrap().0[0], 0x0d);
        assert_eq!(parse_address(&alloc::format!("0X{digits}")), Err(ParamError::AddressHex));
        assert_eq!(parse_address("0x12"), Err(ParamError::AddressLength));
        assert_eq!(parse_address(&alloc::format!("0x{}", "z".repeat(40))), Err(ParamError::AddressHex));
    }

    #[test]
    fn numbers_and_indexes_are_parsed_as_by_the_reference_node() {
        assert_eq!(parse_number("0x"), Ok(U256::ZERO));
        assert_eq!(parse_number("17"), Ok(U256::from(17)));
        assert_eq!(parse_number("ab"), Err(ParamError::NumberPrefix));
        assert_eq!(parse_number("-1"), Err(ParamError::Number("-1".into())));
        assert!(matches!(parse_number(&"1".repeat(67)), Err(ParamError::NumberLength(_))));
        let index = |text: &str| Params::new(&raws(text), 1, 1).unwrap().index(0).map_err(|e| e.to_string());
        assert_eq!(index("[\"0x1f\"]"), Ok(31));
        assert!(
            index("[\"0x1F\"]").is_err() && index("[\"1\"]").is_err() && index("[\"0x80000000\"]").is_err()
        );
        assert_eq!(index("[\"0x\"]"), Err("Invalid index param: value must be a valid hex number.".into()));
    }

    #[test]
    fn too_few_and_too_many_parameters_are_refused() {
        let values = raws("[1,2]");
        assert!(
            Params::new(&values, 0, 1).is_err()
                && Params::new(&values, 3, 3).is_err()
                && Params::new(&values, 1, 2).is_ok()
        );
    }
}
