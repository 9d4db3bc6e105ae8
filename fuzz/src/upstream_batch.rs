//! An upstream's answer to a message of a light client.

use rootlight::light::{MAX_ERROR_TEXT, RequestFailure, UpstreamRequest, decode_batch, encode_batch};
use serde_json::Value;

use crate::input::Input;
use crate::limit::with_at_most;

/// Most questions of one message.
const MAX_COUNT: usize = 64;
/// Bytes for each question, whatever the answer: its place in the list, a failure.
const PER_QUESTION: usize = 256;
/// The answers that are handed out, and the one error object that is being read with its text in full.
const PER_BYTE: usize = 4;

/// First bytes: the first id and the number of questions. Then the answer.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (first, count) = (u64::from(input.byte() % 4), input.below(MAX_COUNT));
    let bytes = input.rest();
    let allowed = bytes.len() * PER_BYTE + count * PER_QUESTION;
    let answers = with_at_most(allowed, || decode_batch(bytes, first, count));
    assert_eq!(answers.len(), count);
    let general = serde_json::from_slice::<Value>(bytes).ok();
    for (answer, id) in answers.iter().zip(first..) {
        match answer {
            Ok(raw) => {
                assert!(bytes.windows(raw.get().len()).any(|window| window == raw.get().as_bytes()));
                let Some(general) = &general else { continue };
                let result: Value = serde_json::from_str(raw.get()).expect("a part of JSON");
                assert!(named(general, id, count).any(|member| member["result"] == result), "id {id}");
            }
            Err(RequestFailure::Rpc { message, .. }) => {
                assert!(message.chars().count() <= MAX_ERROR_TEXT && !message.chars().any(char::is_control));
            }
            Err(failure) => assert!(!failure.to_string().is_empty()),
        }
    }
    check_own(first, count, bytes);
}

/// The members of an answer that are about this id, by a general parser.
fn named(general: &Value, id: u64, count: usize) -> impl Iterator<Item = &Value> {
    let members = general.as_array().map_or(std::slice::from_ref(general), Vec::as_slice);
    members.iter().filter(move |member| {
        let given = &member["id"];
        given.as_u64() == Some(id) || (given.is_null() && count == 1)
    })
}

/// An honest answer to a message is read whole, in any order.
fn check_own(first: u64, count: usize, bytes: &[u8]) {
    let calls: Vec<UpstreamRequest> = (0..count).map(|_| UpstreamRequest::new("m", "[1]".into())).collect();
    let message = encode_batch(&calls, first);
    let sent: Value = serde_json::from_str(&message).expect("our own JSON");
    assert_eq!(sent.is_array(), count != 1);
    let turn = bytes.first().map_or(0, |byte| usize::from(*byte) % count.max(1));
    let mut answers: Vec<String> =
        (first..first + count as u64).map(|id| format!(r#"{{"id":{id},"result":[{id}]}}"#)).collect();
    answers.rotate_left(turn);
    let text = match answers.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(",")),
    };
    let read = decode_batch(text.as_bytes(), first, count);
    for (answer, id) in read.iter().zip(first..) {
        assert_eq!(answer.as_ref().map(|raw| raw.get()), Ok(format!("[{id}]").as_str()));
    }
}
