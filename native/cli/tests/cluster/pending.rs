//! Transactions that callers send: filters and subscriptions of pending ones at all front ends.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rootlight_limits::caller_id::CallerId;
use rootlight_server::service::{Caller, Service as _};
use serde_json::{Value, json};

use crate::common;
use crate::front_ends::{ALICE, FrontEndsFixture};

/// A caller with a key of these rights, who can receive notifications.
pub(crate) fn caller(key: u32, rights: u64) -> Arc<Caller> {
    let id = CallerId::new(IpAddr::V4(Ipv4Addr::LOCALHOST)).of_key(key);
    Arc::new(id.caller(None).with_rights(rights).for_socket(8))
}

/// What a front end answers to a caller: a result or an error.
pub(crate) async fn ask(
    fixture: &FrontEndsFixture,
    at: usize,
    caller: &Arc<Caller>,
    method: &str,
    params: Value,
) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = fixture.front_ends[at]
        .answer_message(caller, common::read_message(message.to_string().as_bytes()))
        .await;
    let mut answer: Value = serde_json::from_str(&answer.into_text().unwrap()).unwrap();
    let part = if answer.get("error").is_some() { "error" } else { "result" };
    answer[part].take()
}

/// A caller's filter, and one of its subscriptions at each front end.
struct Listener {
    caller: Arc<Caller>,
    filter: Value,
    subscriptions: Vec<u128>,
    by_filter: Vec<Value>,
    by_subscription: Vec<Vec<Value>>,
}

impl Listener {
    async fn new(fixture: &FrontEndsFixture, key: u32) -> Self {
        let caller = caller(key, 0);
        let filter = ask(fixture, 0, &caller, "eth_newPendingTransactionFilter", json!([])).await;
        let mut subscriptions = Vec::new();
        for at in 0..fixture.front_ends.len() {
            let id = ask(fixture, at, &caller, "eth_subscribe", json!(["newPendingTransactions"])).await;
            subscriptions.push(u128::from_str_radix(&id.as_str().unwrap()[2..], 16).unwrap());
        }
        let by_subscription = vec![Vec::new(); subscriptions.len()];
        Self { caller, filter, subscriptions, by_filter: Vec::new(), by_subscription }
    }

    /// Asks for the news of all, the filter at this front end.
    async fn poll(&mut self, fixture: &FrontEndsFixture, at: usize) {
        let found = ask(fixture, at, &self.caller, "eth_getFilterChanges", json!([self.filter])).await;
        self.by_filter.extend(found.as_array().unwrap_or_else(|| panic!("{found}")).clone());
        for (at, subscription) in self.subscriptions.iter().enumerate() {
            let news = fixture.front_ends[at].notifications(&self.caller, *subscription).await.0;
            assert!(!news.is_gone);
            let read =
                |text: &String| serde_json::from_str::<Value>(text).unwrap()["params"]["result"].take();
            self.by_subscription[at].extend(news.texts.iter().map(read));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_transactions_are_announced_at_all_front_ends_once_and_to_their_sender_only() {
    let Some(fixture) = FrontEndsFixture::new("pending", 3).await else { return };
    fixture.of_chain("evm_setAutomine", json!([false])).await;
    let mut listeners = [Listener::new(&fixture, 1).await, Listener::new(&fixture, 2).await];
    let mut sent = [Vec::new(), Vec::new()];
    for nonce in 1..=6_usize {
        let transaction = json!([{"from": ALICE, "to": ALICE, "value": "0x1", "gas": "0x5208",
            "gasPrice": "0x3938700", "nonce": format!("{nonce:#x}")}]);
        let raw = fixture.of_chain("eth_signTransaction", transaction).await;
        let sender = nonce % 2;
        let hash =
            ask(&fixture, nonce % 3, &listeners[sender].caller, "eth_sendRawTransaction", json!([raw])).await;
        assert!(hash.is_string(), "{hash}");
        sent[sender].push(hash);
    }
    let mut at = 0;
    let all = |listener: &Listener, sent: &[Value]| {
        listener.by_filter.len() >= sent.len()
            && listener.by_subscription.iter().all(|notified| notified.len() >= sent.len())
    };
    fixture
        .until("the announcements", async || {
            at = (at + 1) % 3;
            for listener in &mut listeners {
                listener.poll(&fixture, at).await;
            }
            listeners.iter().zip(&sent).all(|(listener, sent)| all(listener, sent))
        })
        .await;
    // Nothing is told twice, at any front end.
    for at in 0..3 {
        for listener in &mut listeners {
            listener.poll(&fixture, at).await;
        }
    }
    for (listener, sent) in listeners.iter().zip(&sent) {
        assert_eq!(listener.by_filter, *sent, "by the filter");
        for (at, notified) in listener.by_subscription.iter().enumerate() {
            assert_eq!(notified, sent, "by the subscription at front end {at}");
        }
    }
}
