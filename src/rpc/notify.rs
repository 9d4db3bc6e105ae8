//! Notifications of subscriptions (`eth_subscription`). A host that polls a subscription sends the engine a message
//! made here, as any caller would, and forwards the results of the answer.

use alloc::{format, string::String, vec::Vec};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{RpcError, exchange::Answer};

/// The message that asks for the news of a subscription.
pub fn poll_message(subscription: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":"eth_getFilterChanges","params":["{subscription}"]}}"#)
}

/// The notifications in the answer to [`poll_message`], each as JSON text. An answer without results, such as a
/// refusal while the chain is not proven yet, has none: the next poll asks again.
pub fn notifications<'a>(subscription: &'a str, answer: &'a Answer) -> impl Iterator<Item = String> + 'a {
    #[derive(Deserialize)]
    struct Polled<'a> {
        #[serde(borrow, default)]
        result: Vec<&'a RawValue>,
    }
    let results = serde_json::from_str::<Polled<'_>>(&answer.body).map(|answer| answer.result);
    results.unwrap_or_default().into_iter().map(move |result| notification(subscription, result.get()))
}

/// The notification of a subscription with this result, in JSON.
pub fn notification(subscription: &str, result: &str) -> String {
    let parts = [
        r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":""#,
        subscription,
        r#"","result":"#,
        result,
        "}}",
    ];
    parts.concat()
}

/// Whether the answer to [`poll_message`] says that the subscription does not exist, or that it missed something: it was
/// polled too late, or one block has more news than an answer can hold.
pub fn is_gone(answer: &Answer) -> bool {
    let missed = |error: &RpcError| matches!(error, RpcError::FilterNotFound | RpcError::ResponseSize(_));
    answer.failed.as_ref().is_some_and(|failed| missed(&failed.1))
}

/// Number of notifications of one poll from which on there may be more: the host polls again at once.
pub const MORE_NOTIFICATIONS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_of_a_poll_becomes_a_notification() {
        let answer = |body: &str| Answer { body: body.into(), ..Answer::default() };
        let of = |body: &str| notifications("0x1f", &answer(body)).collect::<Vec<_>>();
        let notification = |result: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"0x1f","result":{result}}}}}"#
            )
        };
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":[{"a": 1.50},true]}"#;
        assert_eq!(of(answer), [notification(r#"{"a": 1.50}"#), notification("true")]);
        for none in [r#"{"id":0,"result":[]}"#, r#"{"id":0,"error":{"code":-32000,"message":"m"}}"#, ""] {
            assert!(of(none).is_empty(), "{none}");
        }
    }
}
