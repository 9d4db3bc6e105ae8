//! One response of an upstream as the core reads it, against a general JSON parser.

use rootlight::light::{RequestFailure, MAX_ERROR_TEXT, RawResponse};
use serde_json::Value;

use crate::limit::with_at_most;

/// The result that is handed out, an error's text and data, and what the parser keeps meanwhile.
const PER_BYTE: usize = 40;
/// The text of an answer.
pub fn check(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let general = serde_json::from_str::<Value>(text).ok();
    let allowed = text.len() * PER_BYTE;
    let (id, data, answer) = match with_at_most(allowed, || RawResponse::read(text)) {
        Ok(response) => {
            let (id, data) = (response.id(), response.error_data());
            (id, data, with_at_most(allowed, || response.into_result()))
        }
        Err(failure) => return assert!(!failure.to_string().is_empty()),
    };
    match &answer {
        Ok(result) => assert!(result.get() == "null" || text.contains(result.get())),
        Err(RequestFailure::Rpc { message, .. }) => assert!(message.chars().count() <= MAX_ERROR_TEXT),
        Err(failure) => assert!(!failure.to_string().is_empty()),
    }
    // The general parser takes of several members with one name the last; ours refuses them.
    let Some(general) = general else { return };
    assert!(general.is_object());
    assert_eq!(id, general["id"].as_u64());
    let error = general.get("error").filter(|error| !error.is_null());
    match (&answer, error) {
        (Ok(result), None) => {
            let result: Value = serde_json::from_str(result.get()).expect("a part of JSON");
            assert_eq!(general.get("result"), Some(&result));
        }
        (Ok(_), Some(_)) => panic!("an error is read as a result"),
        (Err(RequestFailure::Rpc { code, .. }), error) => {
            let error = error.expect("there is an error");
            assert_eq!(error["code"].as_i64(), Some(*code));
            let data = data.map(|data| serde_json::from_str::<Value>(data.get()).expect("a part of JSON"));
            assert_eq!(data.as_ref(), error.get("data").filter(|data| !data.is_null()));
        }
        (Err(_), _) => {}
    }
}
