//! The wire form of questions to an upstream node: JSON-RPC requests out, hostile bytes in.
//!
//! Hosts move the bytes; this file alone gives them a shape. What comes back is still unproven.

use alloc::{borrow::ToOwned, boxed::Box, format, string::String, vec::Vec};

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::types::json::for_each_member;

/// One question to an upstream node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamCall {
    /// JSON-RPC method.
    pub method: &'static str,
    /// Parameters, a JSON array.
    pub params: String,
}

/// What came back for one question.
pub type Answer = Result<Box<RawValue>, CallFailure>;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// The upstream answered with an error object; its text is cut to [`MAX_ERROR_TEXT`].
    #[error("upstream error {code}: {message}")]
    Rpc {
        /// JSON-RPC code.
        code: i64,
        /// Message, cut and with control characters removed.
        message: String,
    },
    /// The bytes are no JSON-RPC answer to the question.
    #[error("malformed answer: {0}")]
    Malformed(&'static str),
    /// No bytes came: connection, time or size limit. The host says which.
    #[error("no answer: {0}")]
    Transport(String),
    /// The upstream wants fewer questions (HTTP 429 or 503), and a pause of this many seconds where it says so.
    #[error("no answer: the upstream asks for a pause")]
    Busy {
        /// Seconds, as in `Retry-After`.
        seconds: Option<u64>,
    },
    /// A recording does not hold this question.
    #[error("not recorded")]
    NotRecorded,
}

/// Longest error text taken over from an upstream, in characters.
pub const MAX_ERROR_TEXT: usize = 200;

impl UpstreamCall {
    /// A question with parameters already in JSON, e.g. `["0x1",true]`.
    pub fn new(method: &'static str, params: String) -> Self {
        Self { method, params }
    }

    /// The JSON-RPC request with this id.
    pub fn to_request(&self, id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{}}}"#, self.method, self.params)
    }
}

/// Writes several questions as one batch; ids count up from `first_id`. One question is written without brackets.
pub fn encode_batch(calls: &[UpstreamCall], first_id: u64) -> String {
    let requests: Vec<String> = calls.iter().zip(first_id..).map(|(call, id)| call.to_request(id)).collect();
    match requests.as_slice() {
        [single] => single.clone(),
        many => format!("[{}]", many.join(",")),
    }
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Present<'a>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

/// Tells a missing `result` from `"result":null`.
#[derive(Default)]
struct Present<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Present<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self(Some(raw)))
    }
}

#[derive(Deserialize)]
struct ErrorObject {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

/// Reads the answers to `count` questions whose ids count up from `first_id`. Order does not matter; a question
/// without an answer gets [`CallFailure::Malformed`]. Never fails as a whole: the result has `count` entries.
pub fn decode_batch(bytes: &[u8], first_id: u64, count: usize) -> Vec<Answer> {
    let mut answers: Vec<Answer> =
        (0..count).map(|_| Err(CallFailure::Malformed("no answer with this id"))).collect();
    let mut put = |response: Response<'_>| {
        let index = match response.id.and_then(|id| id.get().parse::<u64>().ok()) {
            Some(id) => id.checked_sub(first_id).and_then(|index| usize::try_from(index).ok()),
            // Some servers answer a request they cannot read without its id.
            None if count == 1 => Some(0),
            None => None,
        };
        if let Some(slot) = index.and_then(|index| answers.get_mut(index)) {
            *slot = response.into_answer();
        }
    };
    match read_responses(bytes, &mut put) {
        Ok(()) => answers,
        Err(failure) => (0..count).map(|_| Err(failure.clone())).collect(),
    }
}

/// Hands over each response as soon as it is read: there may be many more of them than were asked for.
fn read_responses<'a>(bytes: &'a [u8], put: &mut dyn FnMut(Response<'a>)) -> Result<(), CallFailure> {
    const NO_RESPONSE: CallFailure = CallFailure::Malformed("not a JSON-RPC response");
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_| CallFailure::Malformed("not JSON"))?;
    let mut good = true;
    let mut read = |raw: &'a RawValue| {
        // An array would stand for the members in order.
        let response = raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok());
        good = response.flatten().map(&mut *put).is_some();
        good
    };
    if raw.get().starts_with('[') {
        for_each_member(raw.get(), &mut read).map_err(|_| NO_RESPONSE)?;
    } else {
        read(raw);
    }
    good.then_some(()).ok_or(NO_RESPONSE)
}

impl Response<'_> {
    fn into_answer(self) -> Answer {
        match (self.result.0, self.error) {
            (_, Some(error)) => {
                Err(CallFailure::Rpc { code: error.code, message: printable(&error.message) })
            }
            (Some(result), None) => Ok(result.to_owned()),
            (None, None) => Err(CallFailure::Malformed("neither result nor error")),
        }
    }
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_ERROR_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8], first: u64, count: usize) -> Vec<Result<String, CallFailure>> {
        decode_batch(bytes, first, count).into_iter().map(|a| a.map(|raw| raw.get().into())).collect()
    }

    #[test]
    fn a_batch_is_written_and_read_in_any_order() {
        let calls = [UpstreamCall::new("a", "[]".into()), UpstreamCall::new("b", "[1]".into())];
        assert_eq!(
            encode_batch(&calls, 7),
            r#"[{"jsonrpc":"2.0","id":7,"method":"a","params":[]},{"jsonrpc":"2.0","id":8,"method":"b","params":[1]}]"#
        );
        let answers =
            texts(br#"[{"id":8,"result":{"x":1}},{"id":7,"result":null},{"id":9,"result":1}]"#, 7, 2);
        assert_eq!(answers, [Ok("null".into()), Ok(r#"{"x":1}"#.into())]);
    }

    #[test]
    fn failures_are_told_apart() {
        assert_eq!(texts(b"nonsense", 1, 2), [const { Err(CallFailure::Malformed("not JSON")) }; 2]);
        assert_eq!(texts(b"{}", 1, 1), [Err(CallFailure::Malformed("neither result nor error"))]);
        assert_eq!(
            texts(br#"{"id":2,"result":1}"#, 1, 1),
            [Err(CallFailure::Malformed("no answer with this id"))]
        );
        assert_eq!(
            texts(br#"{"id":1,"error":{"code":-32601,"message":"method\nnot found"}}"#, 1, 1),
            [Err(CallFailure::Rpc { code: -32601, message: "methodnot found".into() })]
        );
        assert_eq!(texts(br#"{"id":1,"result":1"#, 1, 1), [Err(CallFailure::Malformed("not JSON"))]);
    }

    /// An array would be read as the members in the order in which they are declared.
    #[test]
    fn a_response_is_an_object() {
        assert_eq!(texts(b"[[1,5]]", 1, 1), [Err(CallFailure::Malformed("not a JSON-RPC response"))]);
        assert_eq!(texts(b"5", 1, 1), [Err(CallFailure::Malformed("not a JSON-RPC response"))]);
    }

    #[test]
    fn an_answer_without_an_id_is_one_of_a_single_question() {
        assert_eq!(texts(br#"[{"result":1}]"#, 1, 1), [Ok("1".into())]);
        let nobody = || Err(CallFailure::Malformed("no answer with this id"));
        assert_eq!(texts(br#"[{"result":1}]"#, 1, 2), [nobody(), nobody()]);
    }

    #[test]
    fn error_texts_are_cut() {
        let long = format!(r#"{{"id":1,"error":{{"code":1,"message":"{}"}}}}"#, "x".repeat(5_000));
        assert_eq!(
            texts(long.as_bytes(), 1, 1),
            [Err(CallFailure::Rpc { code: 1, message: "x".repeat(200) })]
        );
    }
}
