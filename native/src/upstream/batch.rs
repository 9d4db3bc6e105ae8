//! JSON-RPC batches: writing one, and finding each call's answer in what came back.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::Value;

use super::{parse_reply, Call, CallResult, UpstreamError};

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a [Value],
}

/// The message for some calls: an object for one, an array for more; ids count from 1.
pub(crate) fn encode(calls: &[Call]) -> Vec<u8> {
    let requests: Vec<Request<'_>> = calls
        .iter()
        .zip(1_u64..)
        .map(|(call, id)| Request { jsonrpc: "2.0", id, method: &call.method, params: &call.params })
        .collect();
    let text = match requests.as_slice() {
        [only] => serde_json::to_vec(only),
        all => serde_json::to_vec(all),
    };
    // Strings and values that came out of a JSON parser always serialize.
    text.unwrap_or_default()
}

/// What an upstream said to a batch.
pub(crate) enum Decoded {
    /// Results in the order of the calls.
    Results(Vec<CallResult>),
    /// One error for the whole batch, for instance that it is too long.
    Refused(UpstreamError),
}

/// Reads the answer to `count` calls.
pub(crate) fn decode(text: &str, count: usize) -> Result<Decoded, UpstreamError> {
    if count == 1 && !text.trim_start().starts_with('[') {
        return Ok(Decoded::Results(vec![parse_reply(text)?.result]));
    }
    if text.trim_start().starts_with('{') {
        let refusal = match parse_reply(text)?.result {
            Err(error) => error,
            Ok(_) => UpstreamError::Malformed("single answer to a batch".into()),
        };
        return Ok(Decoded::Refused(refusal));
    }
    let members: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|failure| UpstreamError::Malformed(failure.to_string()))?;
    let mut results: Vec<Option<CallResult>> = Vec::new();
    results.resize_with(count, || None);
    for member in members.into_iter().take(count) {
        let Ok(reply) = parse_reply(member.get()) else { continue };
        let slot = reply
            .id
            .and_then(|id| usize::try_from(id).ok()?.checked_sub(1))
            .and_then(|at| results.get_mut(at));
        if let Some(slot @ None) = slot {
            *slot = Some(reply.result);
        }
    }
    let missing = || Err(UpstreamError::Malformed("no answer with this id in the batch".into()));
    Ok(Decoded::Results(results.into_iter().map(|result| result.unwrap_or_else(missing)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str) -> Call {
        Call::new(method, vec![Value::from("0x1")])
    }

    #[test]
    fn one_call_is_an_object() {
        let text = encode(&[call("a")]);
        assert_eq!(text, br#"{"jsonrpc":"2.0","id":1,"method":"a","params":["0x1"]}"#);
        assert!(encode(&[call("a"), call("b")]).starts_with(b"["));
    }

    #[test]
    fn answers_in_any_order_and_with_gaps() {
        let text = r#"[{"id":3,"result":"c"},{"id":1,"result":"a"},{"id":1,"result":"later"},{"id":9,"result":"x"},7]"#;
        let Ok(Decoded::Results(results)) = decode(text, 5) else { panic!() };
        assert_eq!(results[0].as_ref().unwrap().get(), "\"a\"");
        assert!(matches!(results[1], Err(UpstreamError::Malformed(_))));
        assert_eq!(results[2].as_ref().unwrap().get(), "\"c\"");
    }

    #[test]
    fn a_refused_batch_is_told_apart() {
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too long"}}"#;
        assert!(matches!(decode(text, 2), Ok(Decoded::Refused(UpstreamError::Rpc { code: -32600, .. }))));
        assert!(decode("nonsense", 2).is_err());
    }
}
