//! One response of an upstream as the core reads it, against a general JSON parser.

use std::fmt;

use rootlight::light::{MAX_ERROR_TEXT, RawResponse, RequestFailure};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};

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
            // Data that is repeated is not handed out.
            let shown = error.get("data").filter(|data| !data.is_null() && data_members(text) == 1);
            assert_eq!(data.as_ref(), shown);
        }
        (Err(_), _) => {}
    }
}

/// How many members `data` the error of a response has.
fn data_members(text: &str) -> usize {
    #[derive(serde::Deserialize)]
    struct ReplyVisitor<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let response: ReplyVisitor<'_> = serde_json::from_str(text).expect("a response with one error");
    let Names(names) = serde_json::from_str(response.error.get()).expect("an object");
    names.iter().filter(|name| *name == "data").count()
}

/// The names of an object's members, with repetitions.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamesVisitor;

        impl<'de> Visitor<'de> for NamesVisitor {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, _)) = members.next_entry::<String, &RawValue>()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }

        deserializer.deserialize_map(NamesVisitor)
    }
}
