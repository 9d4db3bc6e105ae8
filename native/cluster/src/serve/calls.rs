//! Finds filters and sent transactions in messages and in replies: the state of callers that front ends share.

use std::collections::BTreeSet;

use alloy_primitives::B256;
use rootlight::rpc::{Effect, Marks, Message, Method, Reply, RpcError};

/// What a message has made: new filters and sent transactions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MessageEffects {
    /// The ids of the new filters.
    pub(super) filters: Vec<u128>,
    /// The hashes of the transactions that were sent.
    pub(super) sent: BTreeSet<B256>,
}

impl MessageEffects {
    /// Reads them off a reply.
    pub(super) fn of(reply: &Reply) -> Self {
        let mut effects = Self::default();
        for effect in reply.effects() {
            match effect {
                Effect::Filter(id) => effects.filters.push(id),
                Effect::Sent(hash) => drop(effects.sent.insert(hash)),
                Effect::Uninstalled(_)
                | Effect::Subscribed(_)
                | Effect::Unsubscribed(_)
                | Effect::About(_) => {}
            }
        }
        effects
    }
}

/// Whether a message uses filters or sends transactions, which front ends share.
pub(super) fn is_shared(message: &Message) -> bool {
    message.calls().filter_map(|call| call.row).any(|row| row.is_about_filters() || row.sends())
}

/// The ids of the filters that a message polls, reads or removes.
pub(super) fn used_filters(message: &Message) -> BTreeSet<u128> {
    message.calls().filter_map(|call| call.filter()).collect()
}

/// Replaces each response about filters by an error. The other responses stay, so that the caller learns of their results.
pub(super) fn refuse_filters(reply: &mut Reply, (code, text): (i32, &str)) {
    for response in reply.responses_mut() {
        if response.row.is_some_and(Method::is_about_filters) {
            response.outcome = Err(RpcError::Host { code, text: text.to_owned(), data: None });
            (response.effect, response.marks) = (None, Marks::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use rootlight::rpc::Response;
    use rootlight::rpc::envelope::Outcome;
    use rootlight_server::methods::{dispatcher, methods};
    use serde_json::value::RawValue;

    use super::*;
    use crate::serve::read;

    #[test]
    fn filters_and_transactions_of_a_message_and_of_its_reply_are_found() {
        let message = read(
            br#"[{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["0x00ff"]},
            {"jsonrpc":"2.0","id":2,"method":"eth_newBlockFilter","params":[]},
            {"jsonrpc":"2.0","id":3,"method":"eth_uninstallFilter","params":["0xff"]},
            {"jsonrpc":"2.0","id":4,"method":"eth_sendRawTransaction","params":["0x12"]}]"#,
        );
        assert!(is_shared(&message));
        assert_eq!(used_filters(&message), BTreeSet::from([0xff]));
        let sent = B256::repeat_byte(7);
        let mut reply = Reply::to_one(read(br#"{"id":1}"#).single_id(), Err(RpcError::Internal));
        assert_eq!(MessageEffects::of(&reply), MessageEffects::default());
        reply.responses_mut()[0].effect = Some(Effect::Sent(sent));
        assert_eq!(
            MessageEffects::of(&reply),
            MessageEffects { filters: Vec::new(), sent: BTreeSet::from([sent]) }
        );
        reply.responses_mut()[0].effect = Some(Effect::Filter(0xabc));
        assert_eq!(MessageEffects::of(&reply).filters, [0xabc]);
    }

    #[test]
    fn an_error_replaces_the_responses_about_filters_only() {
        let response = |method: &str, outcome: &str| {
            let outcome: Outcome = Ok(RawValue::from_string(outcome.to_owned()).unwrap());
            let mut reply = Reply::to_one(read(br#"{"id":1.50}"#).single_id(), outcome);
            let Response { row, .. } = &mut reply.responses_mut()[0];
            *row = dispatcher().find(method);
            refuse_filters(&mut reply, (-32002, "later"));
            reply.into_text().unwrap()
        };
        let refused = r#"{"jsonrpc":"2.0","id":1.50,"error":{"code":-32002,"message":"later"}}"#;
        let given = r#"{"jsonrpc":"2.0","id":1.50,"result":"0x2"}"#;
        for method in ["eth_getFilterChanges", "eth_newFilter"] {
            assert_eq!(response(method, "\"0x2\""), refused, "{method}");
        }
        for method in ["eth_sendRawTransaction", "eth_unsubscribe", "eth_chainId", "none"] {
            assert_eq!(response(method, "\"0x2\""), given, "{method}");
        }
    }

    #[test]
    fn other_messages_use_no_filters() {
        for message in [
            &b"{"[..],
            b"[]",
            br#"{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["0x+1"]}"#,
            br#"{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":[7]}"#,
            br#"{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["0x1ffffffffffffffffffffffffffffffff"]}"#,
            br#"{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":["0x1"]}"#,
        ] {
            assert!(used_filters(&read(message)).is_empty());
        }
        assert!(!is_shared(&read(br#"{"method":"eth_call"}"#)));
    }

    #[test]
    fn names_with_escapes_are_read_as_the_envelope_reads_them() {
        let message = |method: &str, param: &str| {
            read(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{param}]}}"#).as_bytes())
        };
        for name in methods().filter(|row| row.is_about_filters() || row.sends()).map(|row| row.name) {
            let plain = used_filters(&message(name, "\"0x12\""));
            for at in 0..name.len() {
                let (before, rest) = name.split_at(at);
                let (escaped, after) = rest.split_at(1);
                let spelt = format!("{before}\\u{:04x}{after}", escaped.as_bytes()[0]);
                let message = message(&spelt, r#""0\u00781\u0032""#);
                assert!(is_shared(&message), "{spelt}");
                assert_eq!(used_filters(&message), plain, "{spelt}");
            }
        }
    }
}
