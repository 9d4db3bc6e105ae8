//! What a message asks of the filters and of the pool, and what its answer says of them.

use std::collections::BTreeSet;

use alloy_primitives::{B256, keccak256};
use data_encoding::HEXLOWER_PERMISSIVE;
use memchr::{memchr, memmem};
use rootlight::rpc::envelope::{Call, Entry, Id, MAX_BATCH, Message};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// Parts of the names of all methods that concern filters or the pool.
const WORDS: [&[u8]; 2] = [b"Filter", b"sendRaw"];

/// Methods that poll, read or remove a filter.
const USES: [&str; 3] = ["eth_getFilterChanges", "eth_getFilterLogs", "eth_uninstallFilter"];
/// Methods that make one.
const MAKES: [&str; 3] = ["eth_newFilter", "eth_newBlockFilter", "eth_newPendingTransactionFilter"];

/// What a message asks of the filters and of the pool.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Calls {
    /// The filters that it polls, reads or removes.
    pub(super) used: BTreeSet<u128>,
    /// Whether it makes filters.
    makes: bool,
    /// The hashes of the transactions that it sends.
    sends: BTreeSet<B256>,
}

/// What an answer says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// What may be ids of new filters.
    pub(super) filters: Vec<u128>,
    /// The transactions that were sent.
    pub(super) sent: BTreeSet<B256>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

impl Calls {
    /// Whether a message must be read to know if it concerns filters or the pool. A name with an escape has a backslash.
    pub(super) fn may_be(message: &[u8]) -> bool {
        memchr(b'\\', message).is_some() || WORDS.iter().any(|word| memmem::find(message, word).is_some())
    }

    /// Reads a message. One that is not JSON-RPC asks for nothing.
    pub(super) fn read(message: &[u8]) -> Self {
        let mut calls = Self::default();
        for call in entries(message).iter().filter_map(|entry| entry.call.as_ref().ok()) {
            match call.method.as_str() {
                name if USES.contains(&name) => {
                    calls.used.extend(text(call).and_then(|text| number(&text)));
                }
                name if MAKES.contains(&name) => calls.makes = true,
                "eth_sendRawTransaction" => calls.sends.extend(text(call).and_then(|text| hash(&text))),
                _ => {}
            }
        }
        calls
    }

    /// Whether there is nothing of the kind.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the answer.
    pub(super) fn made(&self, answer: &str) -> Made {
        let mut made = Made::default();
        if !self.makes && self.sends.is_empty() {
            return made;
        }
        let responses = match serde_json::from_str::<Vec<Response<'_>>>(answer) {
            Ok(batch) => batch,
            Err(_) => serde_json::from_str::<Response<'_>>(answer).into_iter().collect(),
        };
        for result in responses.into_iter().filter_map(|response| response.result) {
            let Ok(text) = serde_json::from_str::<&str>(result.get()) else { continue };
            if let Ok(hash) = text.parse()
                && self.sends.contains(&hash)
            {
                made.sent.insert(hash);
            } else if self.makes {
                made.filters.extend(number(text));
            }
        }
        made
    }
}

/// The answer to a batch with an error in place of each response about filters, so that the caller learns what the other
/// requests did. `None` if the message is no batch with other requests, or the answer is not one to it.
pub(super) fn without_filters(message: &[u8], answer: &str, (code, text): (i32, &str)) -> Option<String> {
    let entries: Vec<Entry> =
        entries(message).into_iter().filter(|entry| !matches!(entry.id, Id::Absent)).collect();
    let responses = serde_json::from_str::<Vec<&RawValue>>(answer).ok()?;
    if entries.len() != responses.len() || entries.iter().all(is_about_filters) {
        return None;
    }
    let error = json!({"code": code, "message": text});
    let mut batch = String::from("[");
    for (entry, response) in entries.iter().zip(responses) {
        if batch.len() > 1 {
            batch.push(',');
        }
        match &entry.id {
            Id::Given(id) if is_about_filters(entry) => {
                batch.push_str(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
            }
            _ => batch.push_str(response.get()),
        }
    }
    batch.push(']');
    Some(batch)
}

fn is_about_filters(entry: &Entry) -> bool {
    entry.call.as_ref().is_ok_and(|call| USES.iter().chain(&MAKES).any(|name| call.method == **name))
}

/// The requests of a message; none of one that is not JSON-RPC.
pub(super) fn entries(message: &[u8]) -> Vec<Entry> {
    match Message::parse(message, MAX_BATCH) {
        Ok(Message::Single(entry)) => vec![entry],
        Ok(Message::Batch(entries)) => entries,
        Ok(Message::EmptyBatch) | Err(_) => Vec::new(),
    }
}

/// The first parameter, if it is a text.
fn text(call: &Call) -> Option<String> {
    serde_json::from_str(call.params.first()?.get()).ok()
}

/// The number of a filter id; leading zeros do not matter, as in the engine.
fn number(text: &str) -> Option<u128> {
    let digits = text.strip_prefix("0x")?;
    u128::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

/// The hash of a raw transaction.
fn hash(text: &str) -> Option<B256> {
    HEXLOWER_PERMISSIVE.decode(text.strip_prefix("0x")?.as_bytes()).ok().map(keccak256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_transactions_of_a_message_and_of_its_answer_are_found() {
        let sent = keccak256([0x12]);
        let message = br#"[{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["0x00ff"]},
            {"jsonrpc":"2.0","id":2,"method":"eth_newBlockFilter","params":[]},
            {"jsonrpc":"2.0","id":3,"method":"eth_uninstallFilter","params":["0xff"]},
            {"jsonrpc":"2.0","id":4,"method":"eth_sendRawTransaction","params":["0x12"]},
            {"jsonrpc":"2.0","id":6,"method":"eth_sendRawTransaction","params":["0x13"]},
            {"jsonrpc":"2.0","id":5,"method":"eth_newFilter","params":[{"fromBlock":"bad"}]}]"#;
        assert!(Calls::may_be(message));
        let calls = Calls::read(message);
        assert_eq!(calls.used, BTreeSet::from([0xff]));
        let answer = format!(
            r#"[{{"jsonrpc":"2.0","id":1,"result":["0x1"]}},{{"jsonrpc":"2.0","id":2,"result":"0xabc"}},
            {{"jsonrpc":"2.0","id":3,"result":true}},{{"jsonrpc":"2.0","id":4,"result":"{sent}"}},
            {{"jsonrpc":"2.0","id":6,"result":"{}"}},{{"jsonrpc":"2.0","id":5,"error":{{"code":-32602,"message":""}}}}]"#,
            keccak256([0x14])
        );
        assert_eq!(calls.made(&answer), Made { filters: vec![0xabc], sent: BTreeSet::from([sent]) });
    }

    #[test]
    fn an_error_replaces_the_responses_about_filters_only() {
        let call = |id: &str, method: &str| format!(r#"{{{id}"method":"{method}","params":["0x1"]}}"#);
        let polls = call(r#""id":1.50,"#, "eth_getFilterChanges");
        let sends = call(r#""id":"a","#, "eth_sendRawTransaction");
        let silent = call("", "eth_sendRawTransaction");
        let error = (-32002, "later");
        let batch = format!("[{polls},{silent},{sends},7]");
        let sent = r#"{"jsonrpc":"2.0","id":"a","result":"0x2"}"#;
        let wrong = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":""}}"#;
        let refused = r#"{"jsonrpc":"2.0","id":1.50,"error":{"code":-32002,"message":"later"}}"#;
        let answer = format!(r#"[{{"jsonrpc":"2.0","id":1.50,"result":["0x1"]}}, {sent}, {wrong}]"#);
        assert_eq!(
            without_filters(batch.as_bytes(), &answer, error).unwrap(),
            format!("[{refused},{sent},{wrong}]")
        );
        for (message, answer) in [
            (polls.clone(), r#"{"jsonrpc":"2.0","id":1.50,"result":[]}"#.to_owned()),
            (format!("[{polls}]"), format!("[{sent}]")),
            (batch.clone(), format!("[{sent}]")),
            (batch, String::new()),
        ] {
            assert_eq!(without_filters(message.as_bytes(), &answer, error), None, "{message}");
        }
    }

    #[test]
    fn what_is_not_a_filter_or_not_a_message_asks_for_nothing() {
        for message in [
            &b"{"[..],
            b"[]",
            br#"{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["0x+1"]}"#,
            br#"{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":[7]}"#,
            br#"{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["0x1ffffffffffffffffffffffffffffffff"]}"#,
        ] {
            assert!(Calls::read(message).is_empty());
        }
        let single = Calls::read(br#"{"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{}]}"#);
        assert_eq!(single.made(r#"{"jsonrpc":"2.0","id":1,"result":"0x7"}"#).filters, [7]);
        assert_eq!(single.made("no JSON"), Made::default());
        assert!(!Calls::may_be(br#"{"method":"eth_call"}"#));
    }

    #[test]
    fn names_with_escapes_are_read_as_the_envelope_reads_them() {
        let message = |method: &str, param: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{param}]}}"#).into_bytes()
        };
        for name in USES.iter().chain(&MAKES).chain(&["eth_sendRawTransaction"]) {
            let plain = Calls::read(&message(name, "\"0x12\""));
            for at in 0..name.len() {
                let (before, rest) = name.split_at(at);
                let (escaped, after) = rest.split_at(1);
                let spelt = format!("{before}\\u{:04x}{after}", escaped.as_bytes()[0]);
                let message = message(&spelt, r#""0\u00781\u0032""#);
                assert!(Calls::may_be(&message), "{spelt}");
                assert_eq!(Calls::read(&message), plain, "{spelt}");
            }
            assert!(!plain.is_empty(), "{name}");
        }
        let other = message("eth_call", r#""\n""#);
        assert!(Calls::may_be(&other) && Calls::read(&other).is_empty());
    }
}
