//! Reading a JSON-RPC answer of an upstream without trusting its form.

use serde::de::{Deserializer, IgnoredAny};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::Value;

use super::{CallResult, UpstreamError};

/// Characters of a hostile error text that are kept.
const MESSAGE_CHARS: usize = 1000;

/// Longest data of an error that is kept, bytes of JSON text: as values it takes many times as much.
const DATA_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// One answer of a message.
#[derive(Debug)]
pub struct Reply {
    /// Its id, if it is a small number (ours always are).
    pub id: Option<u64>,
    /// What it says.
    pub result: CallResult,
}

/// Reads an answer object.
///
/// `result: null` is a result; an envelope with neither result nor error is malformed.
pub fn parse_reply(text: &str) -> Result<Reply, UpstreamError> {
    // Serde would also take an array as the members in order.
    if !text.trim_start().starts_with('{') {
        return Err(UpstreamError::Malformed("answer is not an object".into()));
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(text).map_err(|failure| UpstreamError::Malformed(failure.to_string()))?;
    let id = envelope.id.and_then(|raw| raw.get().parse().ok());
    let error = envelope.error.filter(|raw| raw.get() != "null");
    let result = match (error, envelope.result) {
        (Some(error), _) => Err(rpc_error(error)),
        (None, Some(result)) => Ok(result.to_owned()),
        // Serde gives `None` for a missing member and for a literal null.
        (None, None) if has_result(text) => Ok(null()),
        (None, None) => Err(UpstreamError::Malformed("neither result nor error".into())),
    };
    Ok(Reply { id, result })
}

/// The JSON text `null`.
pub(crate) fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

fn rpc_error(raw: &RawValue) -> UpstreamError {
    #[derive(Deserialize)]
    struct Error<'a> {
        code: i64,
        #[serde(default)]
        message: String,
        #[serde(default)]
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    match serde_json::from_str::<Error<'_>>(raw.get()) {
        Ok(error) => UpstreamError::Rpc {
            code: error.code,
            message: error.message.chars().take(MESSAGE_CHARS).collect(),
            data: error.data.filter(|data| data.get().len() <= DATA_BYTES).and_then(value),
        },
        Err(_) => UpstreamError::Malformed("error member is no JSON-RPC error".into()),
    }
}

fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

/// Whether there is a result, be it `null`. Nothing is kept of the other members, of which there may be many.
fn has_result(text: &str) -> bool {
    fn present<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
        IgnoredAny::deserialize(value).map(|_| true)
    }
    #[derive(Deserialize)]
    struct Members {
        #[serde(default, deserialize_with = "present")]
        result: bool,
    }
    serde_json::from_str::<Members>(text).is_ok_and(|members| members.result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_errors() {
        let reply = parse_reply(r#"{"id":7,"result":{"a": 1.50}}"#).unwrap();
        assert_eq!((reply.id, reply.result.unwrap().get()), (Some(7), r#"{"a": 1.50}"#));
        assert_eq!(parse_reply(r#"{"result":null}"#).unwrap().result.unwrap().get(), "null");
        assert_eq!(parse_reply(r#"{"result":1,"error":null}"#).unwrap().result.unwrap().get(), "1");
        let error = parse_reply(r#"{"id":"x","error":{"code":-1,"message":"m","data":"0x"}}"#).unwrap();
        assert_eq!(error.id, None);
        assert!(matches!(error.result, Err(UpstreamError::Rpc { code: -1, .. })));
    }

    #[test]
    fn long_messages_are_cut() {
        let message = "\u{e9}".repeat(MESSAGE_CHARS + 1);
        let reply =
            parse_reply(&format!(r#"{{"id":1,"error":{{"code":-1,"message":"{message}"}}}}"#)).unwrap();
        let Err(UpstreamError::Rpc { message, .. }) = reply.result else { panic!("an error") };
        assert_eq!(message.chars().count(), MESSAGE_CHARS);
    }

    #[test]
    fn malformed_answers() {
        for text in ["", "[]", "[1,2]", "5", "{\"result\":", "{}x"] {
            assert!(parse_reply(text).is_err(), "{text}");
        }
        for text in ["{}", r#"{"error":"no"}"#, r#"{"error":{"message":"no code"}}"#] {
            assert!(matches!(parse_reply(text).unwrap().result, Err(UpstreamError::Malformed(_))), "{text}");
        }
    }
}
