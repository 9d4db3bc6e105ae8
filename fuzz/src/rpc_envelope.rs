//! The JSON-RPC envelope, against a general JSON parser.

use rootlight::rpc::envelope::{BATCH_LIMIT, Id, MAX_DEPTH, Outcome};
use rootlight::rpc::{Dispatcher, Message, MessageEntry, Reply};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::limit::with_limit;

/// The bytes of a message.
pub fn check(data: &[u8]) {
    with_limit(data.len(), || check_message(data));
}

fn check_message(data: &[u8]) {
    // The general parser reads numbers and escapes that the envelope leaves to whoever needs them.
    let plain = serde_json::from_slice::<Value>(data).ok();
    let message = Message::read(data, &Dispatcher::default(), BATCH_LIMIT);
    assert_eq!(message.bytes(), data.len());
    if let Some(entry) = message.single() {
        return check_entry(entry, plain.as_ref());
    }
    if !message.is_batch() {
        let reply = Reply::to(message, Vec::new());
        assert!(reply.is_unusable());
        let answer: Value =
            serde_json::from_str(&reply.into_text().expect("an error")).expect("our own JSON");
        assert!(answer["id"].is_null() && answer["error"]["code"].is_i64());
        if let Some(value) = plain {
            let members = value.as_array().map_or(0, Vec::len);
            assert!(!(value.is_object() || value.is_array()) || members > BATCH_LIMIT || deep(data));
        }
        return;
    }
    let entries = message.entries();
    assert!(entries.len() <= BATCH_LIMIT);
    let members = plain.as_ref().and_then(Value::as_array);
    assert!(members.is_none_or(|members| members.len() == entries.len()));
    for (i, entry) in entries.iter().enumerate() {
        check_entry(entry, members.and_then(|members| members.get(i)));
    }
}

/// Whether brackets outside of strings could nest too deeply: more of them than the limit.
fn deep(data: &[u8]) -> bool {
    data.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() > MAX_DEPTH
}

fn check_entry(entry: &MessageEntry, plain: Option<&Value>) {
    check_answer(entry, &Ok(RawValue::from_string("[true]".into()).expect("JSON")));
    let call = match &entry.call {
        Ok(call) => call,
        Err(error) => return check_answer(entry, &Err(error.clone())),
    };
    for param in &call.params {
        assert!(serde_json::from_str::<serde::de::IgnoredAny>(param.get()).is_ok());
    }
    let Some(plain) = plain else { return };
    assert_eq!(plain["method"].as_str(), Some(call.method.as_str()));
    let none = Vec::new();
    let params = plain.get("params").and_then(Value::as_array).unwrap_or(&none);
    assert_eq!(params.len(), call.params.len());
    for (param, raw) in params.iter().zip(&call.params) {
        assert_eq!(&serde_json::from_str::<Value>(raw.get()).expect("parsed before"), param);
    }
    match &entry.id {
        Id::Absent => assert!(plain.get("id").is_none()),
        Id::Given(raw) => {
            assert_eq!(&serde_json::from_str::<Value>(raw.get()).expect("parsed before"), &plain["id"]);
        }
        Id::Unknown | Id::TooLong => panic!("a call whose id cannot be repeated"),
    }
}

/// An answer is JSON and repeats the id byte for byte; without an id there is none.
fn check_answer(entry: &MessageEntry, outcome: &Outcome) {
    #[derive(serde::Deserialize)]
    struct WrittenAnswer<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let Some(text) = Reply::to_one(entry.id.clone(), outcome.clone()).into_text() else {
        assert!(matches!(entry.id, Id::Absent));
        return;
    };
    let answer: WrittenAnswer<'_> = serde_json::from_str(&text).expect("our own JSON");
    match &entry.id {
        Id::Given(raw) => assert_eq!(answer.id.get(), raw.get()),
        _ => assert_eq!(answer.id.get(), "null"),
    }
}
