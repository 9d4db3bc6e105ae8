//! The JSON-RPC 2.0 envelope: bytes of one message in, calls out, and answers back to bytes.
//!
//! The envelope accepts what real clients send (missing `jsonrpc`, `params` null or `{}`), and refuses everything
//! else with the codes of JSON-RPC 2.0. Ids are kept byte for byte: a 128-bit number comes back as it was sent.

use alloc::{
    borrow::{Cow, ToOwned},
    boxed::Box,
    string::String,
    vec,
    vec::Vec,
};
use core::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::de::{Error as _, SeqAccess};
use serde_json::value::RawValue;

pub use super::limits::{BATCH_LIMIT, MAX_BATCH, MAX_DEPTH, MAX_ID, MAX_RESPONSE};
use super::{
    error::{EnvelopeError, RpcError, error_object},
    method::Method,
    named::in_order,
};
use crate::types::json::{MembersError, for_each_member};

/// Most parameters of a call that are read; no method takes nearly as many.
const MAX_PARAMS: usize = 32;

#[derive(Debug, Clone)]
pub(super) enum MessageForm {
    Single,
    /// A list of requests. An empty one is answered by `[]`, as the reference does.
    Batch,
    /// No JSON-RPC.
    Unusable(EnvelopeError),
}

/// A member of a message: a call, or the reason why it is not a valid one.
#[derive(Debug, Clone)]
pub struct MessageEntry {
    /// The id that the answer repeats.
    pub id: Id,
    /// The call, or why it cannot be made.
    pub call: Result<Call, RpcError>,
}

/// The `id` of a call.
#[derive(Debug, Clone)]
pub enum Id {
    /// No id: a notification, never answered.
    Absent,
    /// A string, a number or `null`, exactly as received.
    Given(Box<RawValue>),
    /// The id could not be read: answered with `null`.
    Unknown,
    /// The id is longer than [`MAX_ID`]: the call is refused, and answered with `null`.
    TooLong,
}

impl Id {
    /// The id as an answer has it: `null` in place of one that is absent, unreadable or too long.
    pub fn as_json(&self) -> &str {
        match self {
            Self::Given(raw) => raw.get(),
            Self::Absent | Self::Unknown | Self::TooLong => "null",
        }
    }

    /// The addition to the text of an error, so that the caller learns why its id is not repeated; empty for other ids.
    pub fn remark(&self) -> &'static str {
        match self {
            Self::TooLong => " (the id is longer than 1024 bytes, so it is not repeated)",
            _ => "",
        }
    }
}

/// A well-formed call. Its handler checks whether the parameters fit.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method name as received.
    pub method: String,
    /// The row of the method table with this name or alias.
    pub row: Option<&'static Method>,
    /// Positional parameters, unparsed.
    pub params: Vec<Box<RawValue>>,
}

/// The members of an array; `None` if it has more than `max`.
fn at_most(max: usize, text: &str) -> Result<Option<Vec<&RawValue>>, MembersError> {
    let (mut members, mut fits) = (Vec::new(), true);
    for_each_member(text, &mut |member| {
        fits = members.len() < max;
        if fits {
            members.push(member);
        }
        fits
    })?;
    Ok(fits.then_some(members))
}

/// Splits the bytes of one HTTP body or WebSocket message into its requests, in the order received.
///
/// # Errors
/// [`EnvelopeError`] when the whole payload is unusable: it is not JSON, not an object or array, nested deeper
/// than [`MAX_DEPTH`], or a batch of more than `max_batch` calls.
pub(super) fn parse(
    bytes: &[u8],
    max_batch: usize,
) -> Result<(MessageForm, Vec<MessageEntry>), EnvelopeError> {
    check_depth(bytes)?;
    if let Some(message) = read_once(bytes, max_batch) {
        return Ok(message);
    }
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_| EnvelopeError::Parse)?;
    match raw.get().as_bytes().first() {
        Some(b'{') => Ok((MessageForm::Single, vec![MessageEntry::parse(raw)])),
        Some(b'[') => match at_most(max_batch, raw.get()).map_err(|_| EnvelopeError::Parse)? {
            Some(members) => Ok((MessageForm::Batch, members.into_iter().map(MessageEntry::parse).collect())),
            None => Err(EnvelopeError::BatchTooLarge { max: max_batch }),
        },
        _ => Err(EnvelopeError::NotARequest),
    }
}

/// Reads a message in one pass. Returns `None` for a message with any fault; reading it member by member tells where
/// the fault is.
fn read_once(bytes: &[u8], max_batch: usize) -> Option<(MessageForm, Vec<MessageEntry>)> {
    let text = core::str::from_utf8(bytes).ok()?;
    match bytes.trim_ascii_start().first()? {
        b'{' => Some((MessageForm::Single, vec![MessageEntry::of(&serde_json::from_str(text).ok()?)])),
        b'[' => {
            let mut reader = serde_json::Deserializer::from_str(text);
            let entries = reader.deserialize_seq(BatchVisitor { max: max_batch }).ok()?;
            reader.end().ok()?;
            Some((MessageForm::Batch, entries))
        }
        _ => None,
    }
}

/// Reads the calls of a batch without faults.
struct BatchVisitor {
    max: usize,
}

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Vec<MessageEntry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of calls")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(fields) = members.next_element::<RequestFields<'de>>()? {
            if entries.len() >= self.max {
                return Err(A::Error::custom("too many calls"));
            }
            entries.push(MessageEntry::of(&fields));
        }
        Ok(entries)
    }
}

impl MessageEntry {
    fn parse(raw: &RawValue) -> Self {
        let Ok(fields) = serde_json::from_str::<RequestFields<'_>>(raw.get()) else {
            return Self { id: Id::Unknown, call: Err(RpcError::InvalidRequest) };
        };
        Self::of(&fields)
    }

    fn of(fields: &RequestFields<'_>) -> Self {
        match fields.id() {
            Ok(Id::TooLong) => Self { id: Id::TooLong, call: Err(RpcError::IdTooLong) },
            Ok(id) => Self { id, call: fields.call() },
            Err(error) => Self { id: Id::Unknown, call: Err(error) },
        }
    }
}

/// The known members of a request object. Of a repeated key the last value counts.
#[derive(Default)]
struct RequestFields<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
}

impl RequestFields<'_> {
    fn id(&self) -> Result<Id, RpcError> {
        match self.id {
            None => Ok(Id::Absent),
            Some(raw) => match raw.get().as_bytes().first() {
                Some(b'"' | b'-' | b'0'..=b'9' | b'n') => match raw.get().len() <= MAX_ID {
                    true => Ok(Id::Given(raw.to_owned())),
                    false => Ok(Id::TooLong),
                },
                _ => Err(RpcError::InvalidRequest),
            },
        }
    }

    fn call(&self) -> Result<Call, RpcError> {
        if self.jsonrpc.is_some_and(|v| v.get() != "\"2.0\"") {
            return Err(RpcError::InvalidRequest);
        }
        let method = self.method.ok_or(RpcError::InvalidRequest)?.get();
        // The JSON was read already: a text without escapes is what stands between its quotes.
        let plain = method.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let method = match plain.filter(|text| !text.contains('\\')) {
            Some(plain) => plain.to_owned(),
            None => serde_json::from_str(method).map_err(|_| RpcError::InvalidRequest)?,
        };
        let params = self.params(&method)?;
        Ok(Call { method, row: None, params })
    }

    fn params(&self, method: &str) -> Result<Vec<Box<RawValue>>, RpcError> {
        let Some(raw) = self.params else { return Ok(Vec::new()) };
        match raw.get().as_bytes().first() {
            Some(b'[') => {
                let params = at_most(MAX_PARAMS, raw.get()).map_err(|_| RpcError::InvalidRequest)?;
                let params = params.ok_or(RpcError::ParameterCount)?;
                Ok(params.into_iter().map(ToOwned::to_owned).collect())
            }
            Some(b'n') => Ok(Vec::new()),
            Some(b'{') if is_empty_object(raw.get()) => Ok(Vec::new()),
            Some(b'{') => in_order(method, raw),
            _ => Err(RpcError::InvalidRequest),
        }
    }
}

fn is_empty_object(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'{' | b'}' | b' ' | b'\t' | b'\r' | b'\n'))
}

impl<'de> Deserialize<'de> for RequestFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = RequestFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC request object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = RequestFields::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    match key.as_ref() {
                        "jsonrpc" => fields.jsonrpc = Some(map.next_value()?),
                        "id" => fields.id = Some(map.next_value()?),
                        "method" => fields.method = Some(map.next_value()?),
                        "params" => fields.params = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Refuses deep nesting before a recursive parser reads the bytes. It takes one pass and no allocation.
fn check_depth(bytes: &[u8]) -> Result<(), EnvelopeError> {
    // Most messages have fewer brackets. Counting them takes a fraction of the time.
    if bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= MAX_DEPTH {
        return Ok(());
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for &byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(EnvelopeError::TooDeep);
        }
    }
    Ok(())
}

/// The answer to one call, ready to be written.
pub type Outcome = Result<Box<RawValue>, RpcError>;

/// The response of a host that cannot answer a message: an error under the id of a single call, or under `null`.
pub fn write_error(id: &Id, code: i32, text: &str) -> String {
    let error = error_object(code, &[text, id.remark()].concat(), None);
    alloc::format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.as_json())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Reply;

    fn single_id(message: &[u8]) -> Id {
        match parse(message, 0) {
            Ok((MessageForm::Single, entries)) => {
                entries.into_iter().next().map_or(Id::Unknown, |entry| entry.id)
            }
            _ => Id::Unknown,
        }
    }

    #[test]
    fn error_responses_repeat_the_id_of_a_single_call() {
        for (message, id) in [
            (r#" {"id":1.50,"method":"m"}"#, "1.50"),
            (r#"{"id":123456789012345678901234567890}"#, "123456789012345678901234567890"),
            (r#"{"id":"a\u0041"}"#, r#""a\u0041""#),
            (r#"{"method":"m"}"#, "null"),
            (r#"{"id":{}}"#, "null"),
            (r#"[{"id":1}]"#, "null"),
            ("nonsense", "null"),
        ] {
            let expected =
                alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"t\"x"}}}}"#);
            assert_eq!(write_error(&single_id(message.as_bytes()), -1, "t\"x"), expected);
        }
    }

    /// A caller must not make the host keep, or send, as many bytes for a refusal as for an answer.
    #[test]
    fn an_id_that_is_too_long_is_refused_and_not_repeated() {
        let id = |bytes: usize| alloc::format!("\"{}\"", "x".repeat(bytes - 2));
        let call = |id: &str| alloc::format!(r#"{{"id":{id},"method":"eth_chainId"}}"#);
        let longest = id(MAX_ID);
        assert!(single(&call(&longest)).call.is_ok());
        assert!(write_error(&single_id(call(&longest).as_bytes()), -1, "t").contains(&longest));
        for long in
            [id(MAX_ID + 1), id(5 << 20), "7".repeat(MAX_ID + 1), alloc::format!("-{}", "7".repeat(MAX_ID))]
        {
            let entry = single(&call(&long));
            assert_eq!(code(&entry), -32600);
            let answer = answered(&entry.id, Err(entry.call.unwrap_err())).unwrap();
            assert_eq!(
                answer,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the id is longer than 1024 bytes"}}"#
            );
            let refused = write_error(&single_id(call(&long).as_bytes()), -1, "t");
            assert!(
                refused.len() < 200 && refused.contains("\"id\":null") && refused.contains("1024"),
                "{refused}"
            );
            let batch = alloc::format!("[{},{}]", call(&long), call("1"));
            let Ok((MessageForm::Batch, entries)) = parse(batch.as_bytes(), 2) else { panic!("a batch") };
            assert!(matches!(entries[0].id, Id::TooLong) && entries[1].call.is_ok());
        }
    }

    fn single(text: &str) -> MessageEntry {
        match parse(text.as_bytes(), BATCH_LIMIT).unwrap() {
            (MessageForm::Single, mut entries) if entries.len() == 1 => entries.remove(0),
            other => panic!("not a single call: {other:?}"),
        }
    }

    fn answered(id: &Id, outcome: Outcome) -> Option<String> {
        Reply::to_one(id.clone(), outcome).into_text()
    }

    fn code(entry: &MessageEntry) -> i32 {
        entry.call.as_ref().err().map(RpcError::code).unwrap_or_default()
    }

    /// A parsed list of parameters or of calls takes many times the memory of its text.
    #[test]
    fn long_lists_are_not_kept() {
        let many = alloc::format!("{}0", "0,".repeat(100_000));
        let call = alloc::format!(r#"{{"id":1,"method":"eth_call","params":[{many}]}}"#);
        assert!(matches!(single(&call).call, Err(RpcError::ParameterCount)));
        let batch = alloc::format!("[{many}]");
        let parsed = parse(batch.as_bytes(), BATCH_LIMIT);
        assert!(matches!(parsed, Err(EnvelopeError::BatchTooLarge { max: BATCH_LIMIT })));
        assert!(matches!(parse(b"[1,2", BATCH_LIMIT), Err(EnvelopeError::Parse)));
    }

    #[test]
    fn ids_come_back_byte_for_byte() {
        for id in ["1", "-7", "1.50", "\"a\\u0041\"", "null", "123456789012345678901234567890"] {
            let entry = single(&alloc::format!(r#"{{"id":{id},"method":"m"}}"#));
            let ok: Outcome = Ok(serde_json::value::to_raw_value(&true).unwrap());
            let written = answered(&entry.id, ok).unwrap();
            assert_eq!(written, alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"result":true}}"#));
        }
    }

    #[test]
    fn ids_of_other_kinds_are_invalid_requests_answered_with_null() {
        for id in ["true", "{}", "[1]"] {
            let entry = single(&alloc::format!(r#"{{"id":{id},"method":"m"}}"#));
            assert_eq!(code(&entry), -32600);
            assert!(answered(&entry.id, Err(RpcError::InvalidRequest)).unwrap().contains(r#""id":null"#));
        }
    }

    #[test]
    fn a_call_without_id_is_never_answered() {
        let entry = single(r#"{"method":"m"}"#);
        assert!(answered(&entry.id, Err(RpcError::InvalidRequest)).is_none());
    }

    #[test]
    fn absent_empty_and_positional_params_are_accepted() {
        for ok in ["[]", "null", "{}", "{ }"] {
            assert!(
                single(&alloc::format!(r#"{{"id":1,"method":"m","params":{ok}}}"#))
                    .call
                    .unwrap()
                    .params
                    .is_empty()
            );
        }
        let two = single(r#"{"id":1,"method":"m","params":["a",{"b":[1]}]}"#).call.unwrap();
        assert_eq!(two.params[1].get(), r#"{"b":[1]}"#);
        assert_eq!(code(&single(r#"{"id":1,"method":"m","params":{"a":1}}"#)), -32602);
        for bad in ["\"x\"", "5", "true"] {
            assert_eq!(code(&single(&alloc::format!(r#"{{"id":1,"method":"m","params":{bad}}}"#))), -32600);
        }
    }

    #[test]
    fn version_and_method_are_checked() {
        assert!(single(r#"{"id":1,"method":"m"}"#).call.is_ok());
        assert_eq!(code(&single(r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#)), -32600);
        assert_eq!(code(&single(r#"{"jsonrpc":2,"id":1,"method":"m"}"#)), -32600);
        assert_eq!(code(&single(r#"{"id":1}"#)), -32600);
        assert_eq!(code(&single(r#"{"id":1,"method":5}"#)), -32600);
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        let call = single(r#"{"id":1,"method":"a","method":"b","params":[1],"params":[2]}"#).call.unwrap();
        assert_eq!((call.method.as_str(), call.params[0].get()), ("b", "2"));
    }

    #[test]
    fn payloads_that_are_not_requests_are_refused() {
        for text in ["", "{", "nonsense", "{} x", "\u{7f}", r#"{"id":1,}"#] {
            assert_eq!(parse(text.as_bytes(), 50).unwrap_err().code(), -32700, "{text}");
        }
        for text in ["5", "\"x\"", "null", "true"] {
            assert_eq!(parse(text.as_bytes(), 50).unwrap_err().code(), -32600, "{text}");
        }
        assert_eq!(parse(&[0x22, 0xff, 0x22], 50).unwrap_err().code(), -32700);
        let deep = "[".repeat(100_000);
        assert_eq!(parse(deep.as_bytes(), 50).unwrap_err().code(), -32600);
    }

    /// Only the nesting of the JSON counts, not brackets inside strings.
    #[test]
    fn brackets_in_strings_do_not_count_as_nesting() {
        let params =
            |text: &str| parse(alloc::format!(r#"{{"id":1,"method":"m","params":[{text}]}}"#).as_bytes(), 50);
        let open = "[".repeat(MAX_DEPTH + 1);
        for text in [
            alloc::format!("\"{open}\""),
            alloc::format!(r#""\"{open}""#),
            alloc::format!(r#""\\","{open}""#),
        ] {
            assert!(params(&text).is_ok(), "{text}");
        }
        let nested = alloc::format!("{open}{}", "]".repeat(MAX_DEPTH + 1));
        for text in [nested.clone(), alloc::format!(r#""\\",{nested}"#), alloc::format!(r#""\"",{nested}"#)] {
            assert!(matches!(params(&text), Err(EnvelopeError::TooDeep)), "{text}");
        }
    }

    /// A message without faults is read in one pass, any other member by member, with the same result.
    #[test]
    fn one_pass_reads_what_many_passes_read() {
        let by_member = |text: &str| {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            match text.trim_start().starts_with('{') {
                true => alloc::format!("{:?}", (MessageForm::Single, [MessageEntry::parse(raw)])),
                false => {
                    let members = at_most(3, raw.get()).unwrap().unwrap();
                    let entries: Vec<MessageEntry> = members.into_iter().map(MessageEntry::parse).collect();
                    alloc::format!("{:?}", (MessageForm::Batch, entries))
                }
            }
        };
        let calls = [
            r#" {"jsonrpc":"2.0","id":1.50,"method":"m\u0041","params":[1, {"a":[]} ,"x"]} "#,
            r#"{"id":1,"id":"2","method":"m","params":null,"more":[{}]}"#,
            r#"{"id":[],"method":"m"}"#,
            r#"{"method":5,"jsonrpc":null}"#,
            r#"{"id":1,"method":"m","params":{ }}"#,
            "{}",
        ];
        for call in calls {
            for text in [call.into(), alloc::format!("[{call},{call}]")] {
                let once = read_once(text.as_bytes(), 3).unwrap();
                assert_eq!(alloc::format!("{once:?}"), by_member(&text), "{text}");
            }
        }
        assert!(matches!(read_once(b" [ ] ", 3), Some((MessageForm::Batch, entries)) if entries.is_empty()));
        let faults = ["", "5", "[5]", "[{}", "{} {}", "[{},]", "[{},{},{},{}]", "{\"id\":01}", "\u{c}{}"];
        for text in faults {
            assert!(read_once(text.as_bytes(), 3).is_none(), "{text}");
        }
        assert!(read_once(b"{\"a\":\"\xff\"}", 3).is_none());
    }

    #[test]
    fn a_batch_keeps_its_order_and_its_invalid_members() {
        assert!(matches!(parse(b"[]", 50), Ok((MessageForm::Batch, entries)) if entries.is_empty()));
        let Ok((MessageForm::Batch, members)) = parse(br#"[{"id":1,"method":"m"},[],7]"#, 50) else {
            panic!()
        };
        assert_eq!(members.iter().map(code).collect::<Vec<_>>(), [0, -32600, -32600]);
        let too_many = parse(br#"[{"id":1},{"id":2},{"id":3}]"#, 2).unwrap_err();
        assert_eq!(
            too_many.to_string(),
            "Cannot dispatch batch requests. 2 is the max number of supported batch requests"
        );
    }
}
