//! Open WebSockets of a key: how many there may be, and what ends them.

use std::time::Duration;

use rootlight_server::keys::KeyChange;
use serde_json::{Value, json};

use super::{SHOP, call, keyed, keyed_with, number};

#[tokio::test]
async fn a_revoked_key_closes_its_open_websockets_and_no_others() {
    let keyed = keyed().await;
    let ((key, id), (other, _)) = (keyed.key(KeyChange::default()), keyed.key(KeyChange::default()));
    let mut socket = keyed.socket(&format!("/{key}")).await;
    let mut stays = keyed.socket(&format!("/{other}")).await;
    let subscription = socket.ask(&call("eth_subscribe", json!(["newHeads"]))).await;
    assert!(subscription["result"].is_string(), "{subscription}");
    keyed.database.limit(&id, &KeyChange { name: Some("shop".into()), ..KeyChange::default() }).unwrap();
    stays.ask(&call("evm_mine", json!([]))).await;
    assert_eq!(socket.json().await["method"], "eth_subscription", "a change of its name closes nothing");
    keyed.database.revoke(&id).unwrap();
    let (error, code) = socket.ended().await;
    assert_eq!((&error["error"]["code"], &error["id"], code), (&json!(-32016), &Value::Null, 1008));
    assert_eq!(stays.ask(&number()).await["result"], "0x1");
}

#[tokio::test]
async fn narrower_rights_reach_open_subscriptions_and_filters() {
    let methods = "eth_blockNumber,eth_newFilter,eth_getFilterChanges,eth_getFilterLogs,eth_uninstallFilter";
    for narrower in [
        KeyChange { contracts: Some(SHOP.into()), ..KeyChange::default() },
        KeyChange { methods: Some(methods.into()), ..KeyChange::default() },
    ] {
        let keyed = keyed().await;
        let (key, id) = keyed.key(KeyChange::default());
        let path = format!("/{key}");
        let mut socket = keyed.socket(&path).await;
        assert!(socket.ask(&call("eth_subscribe", json!(["logs", {}]))).await["result"].is_string());
        let all = call("eth_newFilter", json!([{"fromBlock": "earliest"}]));
        let filter = keyed.post(&path, &all).await.body["result"].take();
        let poll = |method: &str| call(method, json!([filter]));
        assert_eq!(keyed.post(&path, &poll("eth_getFilterLogs")).await.body["result"], json!([]));
        keyed.database.limit(&id, &narrower).unwrap();
        let (error, code) = socket.ended().await;
        let text = "Forbidden: the rights of the key have changed, connect again";
        assert_eq!((error["error"]["message"].as_str().unwrap(), code), (text, 1008));
        for method in ["eth_getFilterChanges", "eth_getFilterLogs"] {
            let polled = keyed.post(&path, &poll(method)).await;
            assert_eq!(polled.error(), (200, -32000, "filter not found", &json!(7)), "{method}");
        }
        assert_eq!(keyed.post(&path, &poll("eth_uninstallFilter")).await.body["result"], false);
        let own = call("eth_newFilter", json!([{"address": SHOP}]));
        let filter = keyed.post(&path, &own).await.body["result"].take();
        let polled = keyed.post(&path, &call("eth_getFilterChanges", json!([filter]))).await;
        assert_eq!(polled.body["result"], json!([]), "a filter within the rights");
    }
}

#[tokio::test]
async fn a_key_has_a_limited_number_of_websockets() {
    let keyed = keyed_with(|config| config.limits.websockets_per_key = 2).await;
    let (key, other) = (keyed.key(KeyChange::default()).0, keyed.key(KeyChange::default()).0);
    let (path, other) = (format!("/{key}"), format!("/{other}"));
    let (one, _two) = (keyed.socket(&path).await, keyed.socket(&path).await);
    assert_eq!(keyed.upgrade_status(&path, None).await, 429);
    assert_eq!(keyed.upgrade_status(&other, None).await, 101);
    drop(one);
    for _ in 0..50 {
        if keyed.upgrade_status(&path, None).await == 101 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the place of a closed WebSocket is not free");
}

#[tokio::test]
async fn a_key_that_ends_closes_its_open_websockets() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange::default());
    let mut socket = keyed.socket(&format!("/{key}")).await;
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    keyed.database.limit(&id, &KeyChange { expires: Some(now + 2), ..KeyChange::default() }).unwrap();
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
    let (error, code) = socket.ended().await;
    assert_eq!(
        (error["error"]["message"].as_str().unwrap(), code),
        ("Unauthorized: the API key has expired", 1008)
    );
}
