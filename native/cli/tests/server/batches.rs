//! Batches of the length that client libraries send by default, and their limits.

use crate::common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{RunningServer, client, config, dev_chain, start_service};
use reqwest::header::CONTENT_TYPE;
use rootlight::dev::Mining;
use rootlight_node::local::LocalOptions;
use rootlight_server::keys::{KeyChange, KeyDatabase};
use rootlight_server::{AdmissionRules, KeyAccess, ServerConfig};
use serde_json::{Value, json};

/// Time limit of one message in these tests.
const RUN: Duration = Duration::from_secs(1);

/// Time limit for an answer without queueing, even on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

async fn dev(change: impl FnOnce(&mut ServerConfig)) -> RunningServer {
    let mut config = config();
    change(&mut config);
    let options = LocalOptions { run_timeout: RUN, ..LocalOptions::default() };
    start_service(config, dev_chain(Mining::Instant, options)).await
}

fn chain_ids(count: usize) -> Value {
    (0..count).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "eth_chainId", "params": []})).collect()
}

async fn post(server: &RunningServer, path: &str, message: &Value) -> (u16, Value) {
    let request = client().post(server.url(path)).header(CONTENT_TYPE, "application/json");
    let response = request.body(message.to_string()).send().await.unwrap();
    (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

#[tokio::test]
async fn a_batch_of_a_thousand_calls_is_answered_in_order_and_a_longer_one_refused() {
    let server = dev(|_| {}).await;
    let (status, answers) = post(&server, "/", &chain_ids(1_000)).await;
    assert_eq!((status, answers.as_array().map(Vec::len)), (200, Some(1_000)));
    for (id, answer) in answers.as_array().unwrap().iter().enumerate() {
        assert_eq!((&answer["id"], &answer["result"]), (&json!(id), &json!("0x21")));
    }
    let (status, refused) = post(&server, "/", &chain_ids(1_001)).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32600)), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("1000 is the max"), "{refused}");
}

#[tokio::test]
async fn the_limit_of_batches_is_a_setting() {
    let server = dev(|config| config.limits.batch = 2).await;
    assert_eq!(post(&server, "/", &chain_ids(2)).await.0, 200);
    let (status, refused) = post(&server, "/", &chain_ids(3)).await;
    assert_eq!(status, 400);
    assert!(refused["error"]["message"].as_str().unwrap().contains("2 is the max"), "{refused}");
}

#[tokio::test]
async fn each_call_of_a_long_batch_is_charged_to_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
    let change = KeyChange { per_day: Some(1_100), ..KeyChange::default() };
    let key = database.create(&change).unwrap().0.reveal();
    let admission =
        AdmissionRules { keys: Some(KeyAccess::embedded(&database)), ..AdmissionRules::default() };
    let server = dev(|config| config.admission = admission).await;
    let path = format!("/{key}");
    assert_eq!(post(&server, &path, &chain_ids(1_000)).await.0, 200);
    let (status, refused) = post(&server, &path, &chain_ids(101)).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!(-32005)), "{refused}");
    assert_eq!(post(&server, &path, &chain_ids(100)).await.0, 200, "what is left");
}

/// The calls of a batch share the time of one message, whatever their number is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_batch_of_long_calls_ends_in_time_and_others_are_answered_meanwhile() {
    let server = Arc::new(dev(|_| {}).await);
    let input = format!("0x{:08x}{}", 9_900_000, "00".repeat(209));
    let to = "0x0000000000000000000000000000000000000009";
    let long = |id| json!({"jsonrpc": "2.0", "id": id, "method": "eth_call", "params": [{"to": to, "gas": "0x989680", "data": input}, "latest"]});
    let batch: Value = (0..1_000).map(long).collect();
    let asking = tokio::spawn({
        let server = server.clone();
        async move { post(&server, "/", &batch).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    for _ in 0..5 {
        let asked = Instant::now();
        assert_eq!(post(&server, "/", &chain_ids(1)).await.1[0]["result"], "0x21");
        assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
    }
    let (_, answers) = tokio::time::timeout(RUN + AT_ONCE * 3, asking).await.unwrap().unwrap();
    assert_eq!(answers.as_array().map(Vec::len), Some(1_000));
    assert_eq!(answers[999]["error"]["code"], -32011, "{}", answers[999]);
}
