//! Notifications of subscriptions (`eth_subscription`). A host polls a subscription with a message of its own
//! ([`poll_message`]) and sends each element of the result to the subscriber as a notification.

use alloc::{format, string::String, vec::Vec};

use super::{
    envelope::Outcome,
    error::RpcError,
    message::{Dispatcher, Message, id_text, text_param},
};
use crate::types::json::for_each_member;

/// The new notifications of a subscription.
#[derive(Debug, Default)]
pub struct Notifications {
    /// The notifications in JSON.
    pub texts: Vec<String>,
    /// Whether the subscription does not exist any more, or missed notifications: it was polled too late, or those of one poll are
    /// longer than an answer may be (`ResponseSize`; on a light client a poll takes fewer blocks instead).
    pub is_gone: bool,
}

/// The message that polls a subscription: a call of `eth_getFilterChanges`.
pub fn poll_message(subscription: u128, dispatcher: &Dispatcher) -> Message {
    let id = text_param(&id_text(subscription)).ok();
    Message::of_host("eth_getFilterChanges", id.into_iter().collect(), dispatcher)
}

/// The notifications in the outcome of a poll. A poll that fails for another reason, such as a refusal while the chain is not
/// proven yet, has none, and the next poll returns them.
pub(super) fn notifications(subscription: u128, outcome: &Outcome) -> Notifications {
    let mut notifications = Notifications::default();
    match outcome {
        Ok(list) => {
            // This client has written the list, so that it is valid JSON.
            let _ = for_each_member(list.get(), &mut |result| {
                notifications.texts.push(notification(subscription, result.get()));
                true
            });
        }
        Err(error) => {
            notifications.is_gone = matches!(error, RpcError::FilterNotFound | RpcError::ResponseSize(_));
        }
    }
    notifications
}

/// The notification of a subscription with this result, in JSON.
pub fn notification(subscription: u128, result: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"{subscription:#x}","result":{result}}}}}"#
    )
}

/// Number of notifications of one poll from which on there may be more, because a poll has at most as many headers: the host
/// polls again at once.
pub const MORE_NOTIFICATIONS: usize = 1_000;

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned as _;

    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn each_result_of_a_poll_becomes_a_notification() {
        let of = |list: &str| notifications(0x1f, &Ok(RawValue::from_string(list.to_owned()).unwrap()));
        let notification = |result: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"0x1f","result":{result}}}}}"#
            )
        };
        assert_eq!(of(r#"[{"a": 1.50},true]"#).texts, [notification(r#"{"a": 1.50}"#), notification("true")]);
        assert!(of("[]").texts.is_empty());
        for (error, is_gone) in
            [(RpcError::Internal, false), (RpcError::FilterNotFound, true), (RpcError::ResponseSize(1), true)]
        {
            let notifications = notifications(0x1f, &Err(error));
            assert!(notifications.texts.is_empty() && notifications.is_gone == is_gone);
        }
    }
}
