//! One answer of an upstream as the native host reads it, against a general JSON parser.

use rootlight_native::upstream::{parse_reply, UpstreamError};
use serde_json::Value;

use crate::limit::with_at_most;

/// The result that is handed out, an error's text and data, and what the parser keeps meanwhile.
const PER_BYTE: usize = 40;
/// Characters of an error's text.
const MESSAGE: usize = 1000;

/// The text of an answer.
pub fn check(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let general = serde_json::from_str::<Value>(text).ok();
    let reply = match with_at_most(text.len() * PER_BYTE, || parse_reply(text)) {
        Ok(reply) => reply,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    match &reply.result {
        Ok(result) => assert!(result.get() == "null" || text.contains(result.get())),
        Err(UpstreamError::Rpc { message, .. }) => assert!(message.chars().count() <= MESSAGE),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // The general parser takes of several members with one name the last; ours refuses them.
    let Some(general) = general else { return };
    assert!(general.is_object());
    assert_eq!(reply.id, general["id"].as_u64().filter(|_| general["id"].is_u64()));
    let error = general.get("error").filter(|error| !error.is_null());
    match (&reply.result, error) {
        (Ok(result), None) => {
            let result: Value = serde_json::from_str(result.get()).expect("a part of JSON");
            assert_eq!(general.get("result"), Some(&result));
        }
        (Ok(_), Some(_)) => panic!("an error is read as a result"),
        (Err(UpstreamError::Rpc { code, data, .. }), error) => {
            let error = error.expect("there is an error");
            assert_eq!(error["code"].as_i64(), Some(*code));
            assert!(data.is_none() || data.as_ref() == error.get("data"));
        }
        (Err(_), _) => {}
    }
}
