//! Two servers in one process share nothing that one of them could use up or show of the other.

use crate::common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use common::{client, config, dev_chain};
use reqwest::header::CONTENT_TYPE;
use rootlight::dev::Mining;
use rootlight_limits::Limits;
use rootlight_node::local::LocalOptions;
use rootlight_server::keys::{KeyChange, KeyDatabase};
use rootlight_server::{AdmissionRules, KeyAccess, Operations, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Most bans of a server.
const MAX_BANS: usize = 1_024;

/// A development chain behind a server with keys and metrics.
struct Served {
    address: SocketAddr,
    metrics: SocketAddr,
    limits: Arc<Limits>,
    /// The key of an operator, and one with a limit of its rate.
    operator: String,
    limited: String,
    _folder: TempDir,
}

impl Served {
    async fn start(limits: &Arc<Limits>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
        let key = |change: KeyChange| database.create(&change).unwrap().0.reveal();
        let operator = key(KeyChange { operator: Some(true), ..KeyChange::default() });
        let limited = key(KeyChange { per_second: Some(1), burst: Some(1), ..KeyChange::default() });
        let mut config = config();
        config.admission =
            AdmissionRules { keys: Some(KeyAccess::embedded(&database)), ..AdmissionRules::default() };
        config.operations =
            Operations { metrics: Some("127.0.0.1:0".parse().unwrap()), ..Operations::default() };
        config.limits.body_timeout = Duration::from_millis(500);
        config.limits.batch = 2 * MAX_BANS;
        let options = LocalOptions { limits: limits.clone(), ..LocalOptions::default() };
        let server = Server::bind(config, dev_chain(Mining::Instant, options)).await.unwrap();
        let (address, metrics) = (server.address(), server.metrics_address().unwrap());
        tokio::spawn(server.run(std::future::pending()));
        Self { address, metrics, limits: limits.clone(), operator, limited, _folder: folder }
    }

    async fn post(&self, key: &str, message: &Value) -> (u16, Value) {
        let request = client().post(format!("http://{}/{key}", self.address));
        let request = request.header(CONTENT_TYPE, "application/json").body(message.to_string());
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }

    /// The status and the answer to a call of the operator.
    async fn call(&self, method: &str, params: Value) -> (u16, Value) {
        self.post(&self.operator, &call(method, params)).await
    }

    async fn metrics(&self) -> String {
        let response = client().get(format!("http://{}/metrics", self.metrics)).send().await.unwrap();
        response.text().await.unwrap()
    }
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// A text of so many bytes to hash; the answer needs room in the budget of answers from 64 KiB on.
fn text(bytes: usize) -> Value {
    json!([format!("0x{}", "00".repeat(bytes / 2))])
}

fn bans(count: usize) -> Value {
    let of = |number: usize| format!("10.{}.{}.1", number / 256, number % 256);
    (0..count).map(|number| call("sco_banAddress", json!([of(number)]))).collect()
}

#[tokio::test]
async fn a_server_that_has_used_up_all_its_limits_leaves_another_as_if_alone() {
    let [first, second] = [Limits::new(), Limits::new()];
    let (first, second) = (Served::start(&first).await, Served::start(&second).await);

    let (_, banned) = first.post(&first.operator, &bans(MAX_BANS)).await;
    assert!(banned.as_array().unwrap().iter().all(|answer| answer.get("error").is_none()), "{banned}");
    let refused = first.call("sco_banAddress", json!(["192.0.2.7"])).await;
    assert_eq!(refused.1["error"]["code"], -32005, "{refused:?}");
    let spent = first.limits.answers().try_take(first.limits.answers().size()).unwrap();
    let refused = first.call("web3_sha3", text(80 << 10)).await;
    assert_eq!(refused.1["error"]["code"], -32005, "{refused:?}");
    let requests = first.limits.requests().all();
    let spent = [spent, requests.try_take(requests.size()).unwrap()];
    assert_eq!(first.call("web3_sha3", text(1 << 20)).await.0, 503);
    let number = call("eth_blockNumber", json!([]));
    assert_eq!(first.post(&first.limited, &number).await.0, 200);
    assert_eq!(first.post(&first.limited, &number).await.0, 429);
    let counted = first.metrics().await;
    let sha3 = "rootlight_rpc_duration_seconds_count{method=\"web3_sha3\",";
    let full = "rootlight_http_responses_total{status=\"503\"} 1\n";
    assert!(counted.contains(sha3) && counted.contains(full), "{counted}");

    let counted = second.metrics().await;
    assert!(!counted.contains("rootlight_rpc_duration_seconds_count{"), "{counted}");
    let names = ["rootlight_http_responses_total{", "rootlight_rejected_requests_total{"];
    for line in counted.lines().filter(|line| names.iter().any(|name| line.starts_with(name))) {
        assert!(line.ends_with(" 0"), "{line}");
    }
    assert_eq!((second.limits.answers().taken(), second.limits.requests().all().taken()), (0, 0));
    assert_eq!(second.post(&second.limited, &number).await.0, 200);
    for bytes in [80 << 10, 1 << 20] {
        let answer = second.call("web3_sha3", text(bytes)).await;
        assert!(answer.0 == 200 && answer.1["result"].is_string(), "{answer:?}");
    }
    assert_eq!(second.call("sco_bannedAddresses", json!([])).await.1["result"], json!([]));
    assert!(second.call("sco_banAddress", json!(["192.0.2.7"])).await.1["result"].is_null());
    let counted = second.metrics().await;
    assert!(counted.contains("{method=\"web3_sha3\",outcome=\"ok\"} 2\n"), "{counted}");
    drop(spent);
}

/// The test above would fail like this if the limits belonged to the process.
#[tokio::test]
async fn servers_with_the_same_limits_use_them_up_together() {
    let limits = Limits::new();
    let (first, second) = (Served::start(&limits).await, Served::start(&limits).await);
    let requests = first.limits.requests().all();
    let spent = requests.try_take(requests.size()).unwrap();
    assert_eq!(second.call("web3_sha3", text(1 << 20)).await.0, 503);
    drop(spent);
    assert_eq!(second.call("web3_sha3", text(1 << 20)).await.0, 200);
}
