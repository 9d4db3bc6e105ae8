//! The light service with upstreams that are slow, broken or changing.

use crate::common::recording;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::light::{SyncOptions, UpstreamRequest};
use rootlight_node::light::{LightOptions, LightService, start_checkpoint};
use rootlight_server::service::Service;
use rootlight_upstream::replay::Replay;
use rootlight_upstream::{ReservedResults, Upstream, UpstreamError, unreserved};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The recording in this repository as an upstream that can fail or hang.
struct Moody {
    replay: Replay,
    down: AtomicBool,
    hanging: AtomicBool,
    asked: AtomicUsize,
    heads: Option<Arc<Notify>>,
}

impl Upstream for Moody {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            self.asked.fetch_add(calls.len(), Ordering::SeqCst);
            if self.hanging.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if self.down.load(Ordering::SeqCst) {
                return calls.iter().map(|_| Err(UpstreamError::Transport("gone".into()))).collect();
            }
            self.replay.request(calls).await
        }))
    }

    fn name(&self) -> &str {
        "moody"
    }

    fn head_signal(&self) -> Option<Arc<Notify>> {
        self.heads.clone()
    }
}

fn moody() -> Arc<Moody> {
    announcing(None)
}

fn announcing(heads: Option<Arc<Notify>>) -> Arc<Moody> {
    Arc::new(Moody { replay: recording(), down: false.into(), hanging: false.into(), asked: 0.into(), heads })
}

fn options() -> LightOptions {
    LightOptions {
        sync: SyncOptions { poll: 50, retry: 50, longest_retry: 100, ..SyncOptions::default() },
        message_timeout: Duration::from_secs(20),
        ..LightOptions::default()
    }
}

fn start(upstream: &Arc<Moody>, options: LightOptions) -> LightService {
    let (genesis, _) = upstream.replay.block(0).unwrap();
    let network = Network::regtest();
    let checkpoint = start_checkpoint(Some(&format!("0:{genesis}")), &network).unwrap();
    LightService::start(network, checkpoint, vec![upstream.clone()], options)
}

async fn ask(service: &LightService, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params});
    let answer = service.answer(message.to_string().into_bytes()).await;
    assert!(answer.reply.as_ref().is_some_and(|reply| !reply.is_unusable()));
    let value: Value = serde_json::from_str(&answer.into_text().unwrap()).unwrap();
    assert_eq!(value["id"], "q");
    value
}

/// Waits until the head is reached, regardless of earlier errors.
async fn synced(service: &LightService) {
    let reached = async {
        while !service.is_synced() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect("not synchronized in a minute");
}

const COW: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";

#[tokio::test(flavor = "multi_thread")]
async fn answers_follow_an_upstream_that_fails_and_recovers() {
    let upstream = moody();
    upstream.down.store(true, Ordering::SeqCst);
    let service = start(&upstream, options());
    service.settled(Duration::from_secs(20)).await;
    assert!(!service.health().ready && service.health().reason.unwrap().contains("gone"));
    assert_eq!(ask(&service, "eth_blockNumber", json!([])).await["error"]["code"], -32002);
    assert_eq!(ask(&service, "eth_chainId", json!([])).await["result"], "0x21", "constants need no chain");

    upstream.down.store(false, Ordering::SeqCst);
    synced(&service).await;
    assert_eq!(ask(&service, "eth_blockNumber", json!([])).await["result"], "0x4b");
    assert!(ask(&service, "eth_getBalance", json!([COW, "latest"])).await["result"].is_string());

    upstream.down.store(true, Ordering::SeqCst);
    let refused = ask(&service, "eth_getBalance", json!([COW, "0x5"])).await;
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    assert_eq!(
        ask(&service, "eth_blockNumber", json!([])).await["result"],
        "0x4b",
        "the verified head stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn proven_facts_are_not_requested_again() {
    let upstream = moody();
    let service = start(
        &upstream,
        LightOptions { sync: SyncOptions { poll: 600_000, ..SyncOptions::default() }, ..options() },
    );
    service.settled(Duration::from_secs(60)).await;
    let first = ask(&service, "eth_getBalance", json!([COW, "0x4b"])).await;
    let asked = upstream.asked.load(Ordering::SeqCst);
    assert_eq!(ask(&service, "eth_getBalance", json!([COW, "0x4b"])).await, first);
    assert_eq!(upstream.asked.load(Ordering::SeqCst), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_upstream_gives_a_timeout_error_with_the_request_id() {
    let upstream = moody();
    let service = start(&upstream, LightOptions { message_timeout: Duration::from_millis(300), ..options() });
    synced(&service).await;
    upstream.hanging.store(true, Ordering::SeqCst);
    let answer = ask(&service, "eth_getBalance", json!([COW, "0x7"])).await;
    assert_eq!(answer["error"]["code"], -32011, "{answer}");
    assert_eq!(
        ask(&service, "eth_blockNumber", json!([])).await["result"],
        "0x4b",
        "other requests are answered"
    );
}

/// The head is not reached and no fault is known: the service is not ready and says why.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_not_ready_before_it_is_synchronized() {
    let upstream = moody();
    upstream.hanging.store(true, Ordering::SeqCst);
    let service = start(&upstream, options());
    service.settled(Duration::from_millis(100)).await;
    let health = service.health();
    let reason = health.reason.unwrap_or_default();
    assert!(!health.ready && reason.contains("still synchronizing"), "{reason}");
}

/// A run that exceeds its time limit ends with an error.
#[tokio::test(flavor = "multi_thread")]
async fn runs_have_a_time_limit() {
    let upstream = moody();
    let limited = start(&upstream, LightOptions { run_timeout: Duration::ZERO, ..options() });
    let free = start(&upstream, options());
    let range = json!([{ "fromBlock": "0x1", "toBlock": "0x4b", "address": COW }]);
    for (service, code) in [(&free, Value::Null), (&limited, json!(-32011))] {
        service.settled(Duration::from_secs(60)).await;
        let answer = ask(service, "eth_getLogs", range.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_not_json_rpc_are_errors_and_notifications_have_no_response() {
    let upstream = moody();
    let service = start(&upstream, options());
    for message in ["", "{", "5", "\"x\"", "null", "{}x"] {
        let answer = service.answer(message.into()).await.reply;
        assert!(answer.is_some_and(|reply| reply.is_unusable()), "{message}");
    }
    let notification = r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#;
    assert_eq!(service.answer(notification.into()).await.into_text(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_concurrent_messages_are_answered() {
    let upstream = moody();
    let service = Arc::new(start(&upstream, options()));
    service.settled(Duration::from_secs(60)).await;
    let asks = (0..200_u64).map(|n| {
        let service = service.clone();
        tokio::spawn(async move {
            let block = format!("{:#x}", n % 76);
            ask(&service, "eth_getBlockByNumber", json!([block, n % 2 == 0])).await["result"]["number"]
                .clone()
        })
    });
    for (answer, n) in futures::future::join_all(asks).await.into_iter().zip(0_u64..) {
        assert_eq!(answer.unwrap(), json!(format!("{:#x}", n % 76)));
    }
}

/// One upstream never responds. The chain and facts of the other one are enough for every answer.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_upstreams_may_fail() {
    let (dead, alive) = (moody(), moody());
    dead.down.store(true, Ordering::SeqCst);
    let (genesis, _) = alive.replay.block(0).unwrap();
    let network = Network::regtest();
    let checkpoint = start_checkpoint(Some(&format!("0:{genesis}")), &network).unwrap();
    let service = LightService::start(network, checkpoint, vec![dead.clone(), alive.clone()], options());
    service.settled(Duration::from_secs(60)).await;
    assert_eq!(ask(&service, "eth_blockNumber", json!([])).await["result"], "0x4b");

    // The upstreams swap roles: a call that the first one cannot serve goes to the second.
    dead.down.store(false, Ordering::SeqCst);
    alive.down.store(true, Ordering::SeqCst);
    let answer = ask(&service, "eth_getBalance", json!([COW, "0x4b"])).await;
    assert!(answer["result"].is_string(), "{answer}");
    let listed = ask(&service, "rootlight_upstreams", json!([])).await;
    assert_eq!(listed["result"].as_array().unwrap().len(), 2);
}

/// An upstream announces blocks without end but has no new ones. Each announcement may cost only a few calls.
#[tokio::test(flavor = "multi_thread")]
async fn false_announcements_of_blocks_cause_few_calls() {
    let heads = Arc::new(Notify::new());
    let upstream = announcing(Some(heads.clone()));
    let seldom = SyncOptions { poll: 600_000, ..options().sync };
    let service = start(&upstream, LightOptions { sync: seldom, ..options() });
    service.settled(Duration::from_secs(20)).await;
    let (before, began) = (upstream.asked.load(Ordering::SeqCst), std::time::Instant::now());
    for _ in 0..1_000 {
        heads.notify_one();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // At most five checks per second. Each asks for the height, the newest header and the header above it,
    // some of them in several forms, because a recording may hold any of these.
    let looks = began.elapsed().as_millis() as usize / 200 + 2;
    let asked = upstream.asked.load(Ordering::SeqCst) - before;
    assert!((3..=looks * 7).contains(&asked), "{asked} calls in {looks} checks");
    assert_eq!(ask(&service, "eth_blockNumber", json!([])).await["result"], "0x4b");
}
