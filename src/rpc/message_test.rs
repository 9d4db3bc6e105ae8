//! Messages as callers send them, and ids in answers.

use super::*;
use crate::rpc::Reply;
use crate::rpc::envelope::{BATCH_LIMIT, Outcome, write_error};

fn parse(bytes: &[u8], max_batch: usize) -> Result<(MessageForm, Vec<MessageEntry>), EnvelopeError> {
    let Message { kind, entries, .. } = Message::read(bytes, &Dispatcher::default(), max_batch);
    match kind {
        MessageForm::Unusable(error) => Err(error),
        kind => Ok((kind, entries)),
    }
}

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

/// A notification is a request object without `id` (JSON-RPC 2.0, section 4.1); section 7 answers `{"foo": "boo"}`.
#[test]
fn an_object_that_is_no_request_is_answered_without_its_id() {
    let objects = [
        "{}",
        r#"{"foo":"boo"}"#,
        r#"{"jsonrpc":"2.0","method":1}"#,
        r#"{"jsonrpc":"1.0","method":"m"}"#,
        r#"{"method":"m","params":5}"#,
    ];
    for object in objects {
        let entry = single(object);
        assert_eq!(code(&entry), -32600, "{object}");
        assert!(answered(&entry.id, Err(RpcError::InvalidRequest)).unwrap().contains(r#""id":null"#));
    }
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
    for text in
        [alloc::format!("\"{open}\""), alloc::format!(r#""\"{open}""#), alloc::format!(r#""\\","{open}""#)]
    {
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
            true => alloc::format!(
                "{:?}",
                (MessageForm::Single, [MessageEntry::parse(raw, &Dispatcher::default())])
            ),
            false => {
                let members = members_at_most(3, raw.get()).unwrap().unwrap();
                let entries: Vec<MessageEntry> =
                    members.into_iter().map(|raw| MessageEntry::parse(raw, &Dispatcher::default())).collect();
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
            let once = read_once(text.as_bytes(), &Dispatcher::default(), 3).unwrap();
            assert_eq!(alloc::format!("{once:?}"), by_member(&text), "{text}");
        }
    }
    let empty = read_once(b" [ ] ", &Dispatcher::default(), 3);
    assert!(matches!(empty, Some((MessageForm::Batch, entries)) if entries.is_empty()));
    let faults = ["", "5", "[5]", "[{}", "{} {}", "[{},]", "[{},{},{},{}]", "{\"id\":01}", "\u{c}{}"];
    for text in faults {
        assert!(read_once(text.as_bytes(), &Dispatcher::default(), 3).is_none(), "{text}");
    }
    assert!(read_once(b"{\"a\":\"\xff\"}", &Dispatcher::default(), 3).is_none());
}

#[test]
fn a_batch_keeps_its_order_and_its_invalid_members() {
    assert!(matches!(parse(b"[]", 50), Ok((MessageForm::Batch, entries)) if entries.is_empty()));
    let Ok((MessageForm::Batch, members)) = parse(br#"[{"id":1,"method":"m"},[],7]"#, 50) else { panic!() };
    assert_eq!(members.iter().map(code).collect::<Vec<_>>(), [0, -32600, -32600]);
    let too_many = parse(br#"[{"id":1},{"id":2},{"id":3}]"#, 2).unwrap_err();
    assert_eq!(
        too_many.to_string(),
        "Cannot dispatch batch requests. 2 is the max number of supported batch requests"
    );
}
