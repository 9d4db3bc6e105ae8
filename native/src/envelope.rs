//! The JSON-RPC error responses that the host itself writes. All other responses come from the core.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Makes the error response to a message. Its `id` is that of a single request, unchanged, or `null` for a batch.
#[must_use]
pub fn error_for(message: &[u8], code: i32, text: &str) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Id<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
    }
    let single = message.trim_ascii_start().starts_with(b"{");
    let id = single
        .then(|| serde_json::from_slice::<Id<'_>>(message).ok()?.id)
        .flatten()
        .map_or("null", RawValue::get);
    let text = serde_json::Value::from(text);
    // Ids are numbers, strings or null; other values are not repeated.
    let id = if id.starts_with(['{', '[', 't', 'f']) { "null" } else { id };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{text}}}}}"#).into_bytes()
}

/// Makes an error response whose `id` is `null`, for messages without a request.
#[must_use]
pub fn error(code: i32, message: &str) -> Vec<u8> {
    let value =
        serde_json::json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    serde_json::to_vec(&value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_repeat_the_request_id_unchanged() {
        for (message, id) in [
            (r#" {"id":1.50,"method":"m"}"#, "1.50"),
            (r#"{"id":123456789012345678901234567890}"#, "123456789012345678901234567890"),
            (r#"{"id":"a\u0041"}"#, r#""a\u0041""#),
            (r#"{"method":"m"}"#, "null"),
            (r#"{"id":{}}"#, "null"),
            (r#"[{"id":1}]"#, "null"),
            ("nonsense", "null"),
        ] {
            let answer = String::from_utf8(error_for(message.as_bytes(), -1, "t\"x")).unwrap();
            assert_eq!(
                answer,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"t\"x"}}}}"#)
            );
        }
    }
}
