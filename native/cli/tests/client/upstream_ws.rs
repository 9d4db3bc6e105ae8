//! The WebSocket upstream with servers that respond, break and announce blocks in every possible way.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use rootlight::light::UpstreamRequest;
use rootlight_upstream::{self as upstream, HttpConfig, Upstream, UpstreamError, WsUpstream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

/// The fake node's reaction to one message.
#[derive(Clone, Copy)]
enum Act {
    /// Responds properly; members of a batch in reverse order.
    UpstreamResponse,
    /// Closes the connection instead.
    Break,
    /// Does not respond.
    Hang,
    /// Sends this many bytes.
    Flood(usize),
    /// Responds, and then announces a new block.
    Announce,
    /// Sends responses to unknown ids, and then responds properly.
    Foreign,
    /// Sends so many responses to unknown ids, and then responds properly.
    Strays(usize),
    /// Sends so many notifications, and then responds properly.
    Notices(usize),
    /// Sends so many pings, and then responds properly.
    Pings(usize),
}

#[derive(Default)]
struct FakeWsNode {
    script: Mutex<VecDeque<Act>>,
    connections: AtomicUsize,
    subscribed: AtomicUsize,
    /// Longest batch that the node accepts, if there is a limit.
    batch: Option<usize>,
}

impl FakeWsNode {
    fn with(script: &[Act]) -> Arc<Self> {
        Arc::new(Self { script: Mutex::new(script.iter().copied().collect()), ..Self::default() })
    }
}

fn answer_message(request: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": request["params"][0]})
}

fn answer(node: &FakeWsNode, message: &Value) -> String {
    match message {
        Value::Array(members) if node.batch.is_some_and(|most| members.len() > most) => {
            json!({"id": null, "error": {"code": -32600, "message": "Cannot dispatch batch requests"}})
                .to_string()
        }
        Value::Array(members) => {
            Value::from(members.iter().rev().map(answer_message).collect::<Vec<_>>()).to_string()
        }
        single => answer_message(single).to_string(),
    }
}

async fn run_session(node: Arc<FakeWsNode>, stream: tokio::net::TcpStream) -> Option<()> {
    let mut socket = tokio_tungstenite::accept_async(stream).await.ok()?;
    node.connections.fetch_add(1, Ordering::SeqCst);
    loop {
        let Message::Text(text) = socket.next().await?.ok()? else { continue };
        let message: Value = serde_json::from_str(text.as_str()).unwrap();
        if message["method"] == "eth_subscribe" {
            node.subscribed.fetch_add(1, Ordering::SeqCst);
            let answer = json!({"id": message["id"], "result": "0x1"}).to_string();
            socket.send(Message::text(answer)).await.ok()?;
            continue;
        }
        let act = node.script.lock().unwrap().pop_front().unwrap_or(Act::UpstreamResponse);
        match act {
            Act::Break => return None,
            Act::Hang => {}
            Act::Foreign => {
                for id in [999_999, u64::MAX] {
                    let answer = json!({"jsonrpc": "2.0", "id": id, "result": "0xbad"});
                    socket.send(Message::text(answer.to_string())).await.ok()?;
                }
                socket.send(Message::text(answer(&node, &message))).await.ok()?;
            }
            Act::Strays(count) | Act::Notices(count) | Act::Pings(count) => {
                for number in 0..count {
                    let text = match act {
                        Act::Strays(_) => json!({"jsonrpc": "2.0", "id": 999_999, "result": number}),
                        _ => json!({"method": "eth_subscription", "params": {"subscription": "0x1"}}),
                    };
                    let message = match act {
                        Act::Pings(_) => Message::Ping(vec![7].into()),
                        _ => Message::text(text.to_string()),
                    };
                    socket.feed(message).await.ok()?;
                }
                socket.send(Message::text(answer(&node, &message))).await.ok()?
            }
            Act::Flood(bytes) => socket.send(Message::text("x".repeat(bytes))).await.ok()?,
            Act::UpstreamResponse | Act::Announce => {
                socket.send(Message::text(answer(&node, &message))).await.ok()?
            }
        }
        if matches!(act, Act::Announce) {
            let head = json!({"method": "eth_subscription", "params": {"subscription": "0x1", "result": {}}});
            socket.send(Message::text(head.to_string())).await.ok()?;
        }
    }
}

async fn listen(node: Arc<FakeWsNode>, address: &str) -> SocketAddr {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(run_session(node.clone(), stream));
        }
    });
    address
}

fn config() -> HttpConfig {
    HttpConfig {
        pause: Duration::from_millis(20),
        timeout: Duration::from_millis(500),
        answer_bytes: 100_000,
        ..HttpConfig::default()
    }
}

async fn serve(node: &Arc<FakeWsNode>) -> WsUpstream {
    let address = listen(node.clone(), "127.0.0.1:0").await;
    WsUpstream::new(&format!("ws://{address}/secret-key"), config()).unwrap()
}

fn calls(count: usize) -> Vec<UpstreamRequest> {
    (0..count).map(|n| UpstreamRequest::new("echo", json!([format!("{n:#x}")]).to_string())).collect()
}

async fn all_answered(upstream: &WsUpstream, count: usize) {
    let results = upstream.request(calls(count)).await;
    assert_eq!(results.len(), count);
    for (n, result) in results.into_iter().enumerate() {
        assert_eq!(result.unwrap().get(), format!("\"{n:#x}\""));
    }
}

#[tokio::test]
async fn many_requests_share_one_connection() {
    let node = FakeWsNode::with(&[]);
    let upstream = serve(&node).await;
    let questions = (0..20).map(|_| all_answered(&upstream, 105));
    futures::future::join_all(questions).await;
    all_answered(&upstream, 1).await;
    assert_eq!(node.connections.load(Ordering::SeqCst), 1);
    assert_eq!(node.subscribed.load(Ordering::SeqCst), 1);
    assert!(!upstream.name().contains("secret"), "{}", upstream.name());
}

#[tokio::test]
async fn no_request_is_lost_when_the_connection_breaks_or_hangs() {
    let node =
        FakeWsNode::with(&[Act::UpstreamResponse, Act::Break, Act::UpstreamResponse, Act::Hang, Act::Break]);
    let upstream = serve(&node).await;
    for _ in 0..4 {
        all_answered(&upstream, 50).await;
    }
    assert!(node.connections.load(Ordering::SeqCst) >= 3);
    assert!(node.subscribed.load(Ordering::SeqCst) >= 3, "each connection subscribes again");
}

#[tokio::test]
async fn a_batch_that_is_too_long_is_halved() {
    let node = Arc::new(FakeWsNode { batch: Some(6), ..FakeWsNode::default() });
    let upstream = serve(&node).await;
    all_answered(&upstream, 20).await;
    all_answered(&upstream, 40).await;
}

/// Responses with ids of no call are ignored.
#[tokio::test]
async fn responses_to_unknown_ids_are_dropped() {
    let node = FakeWsNode::with(&[Act::Foreign, Act::Foreign]);
    let upstream = serve(&node).await;
    all_answered(&upstream, 1).await;
    all_answered(&upstream, 5).await;
    assert_eq!(node.connections.load(Ordering::SeqCst), 1);
}

/// Late answers, blocks of a chain that is mined in a burst, and pings are no flood.
#[tokio::test]
async fn messages_that_honest_upstreams_send_unasked_are_dropped() {
    for act in [Act::Strays(40), Act::Notices(2_000), Act::Pings(2_000)] {
        let node = FakeWsNode::with(&[act]);
        let upstream = serve(&node).await;
        all_answered(&upstream, 1).await;
        all_answered(&upstream, 5).await;
        assert_eq!(node.connections.load(Ordering::SeqCst), 1);
    }
}

/// The upstream answers too, so nothing but the count of what was not asked for tells that it is at fault.
#[tokio::test]
async fn a_flood_of_messages_that_were_not_asked_for_ends_the_connection_and_is_a_fault() {
    for act in [Act::Strays(200), Act::Notices(7_000), Act::Pings(7_000)] {
        let node = FakeWsNode::with(&[act]);
        let address = listen(node.clone(), "127.0.0.1:0").await;
        // The node writes what it writes at once, in debug builds too.
        let patient = HttpConfig { timeout: Duration::from_secs(20), ..config() };
        let upstream = WsUpstream::new(&format!("ws://{address}/"), patient).unwrap();
        for _ in 0..2 {
            let result = upstream.request(calls(1)).await.remove(0);
            assert!(
                matches!(&result, Err(UpstreamError::Malformed(reason)) if reason.contains("not asked for")),
                "{result:?}"
            );
        }
        assert_eq!(node.connections.load(Ordering::SeqCst), 1, "it is not dialled again for a while");
    }
}

#[tokio::test]
async fn the_number_of_tries_is_limited() {
    let node = FakeWsNode::with(&[Act::Break; 64]);
    let upstream = serve(&node).await;
    let result = upstream.request(calls(1)).await.remove(0);
    assert!(matches!(result, Err(UpstreamError::Transport(_))), "{result:?}");
    let tries = 64 - node.script.lock().unwrap().len();
    assert_eq!(tries, 4);
}

#[tokio::test]
async fn an_upstream_that_never_answers_ends_in_a_timeout() {
    let node = FakeWsNode::with(&[Act::Hang; 64]);
    let upstream = serve(&node).await;
    let result = upstream.request(calls(1)).await.remove(0);
    assert_eq!(result.unwrap_err(), UpstreamError::Timeout(500));
}

#[tokio::test]
async fn responses_above_the_size_limit_are_refused() {
    let node = FakeWsNode::with(&[Act::Flood(200_000)]);
    let upstream = serve(&node).await;
    let result = upstream.request(calls(1)).await.remove(0);
    assert_eq!(result.unwrap_err(), UpstreamError::TooLarge(100_000));
    all_answered(&upstream, 3).await;
}

#[tokio::test]
async fn a_batch_with_a_response_above_the_size_limit_is_halved() {
    let node = FakeWsNode::with(&[Act::Flood(200_000), Act::UpstreamResponse, Act::Flood(200_000)]);
    let upstream = serve(&node).await;
    all_answered(&upstream, 8).await;
    assert_eq!(node.connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn requests_to_a_dead_upstream_fail_at_once_until_it_returns() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let upstream = WsUpstream::new(&format!("ws://{free}"), config()).unwrap();
    assert!(matches!(upstream.request(calls(1)).await.remove(0), Err(UpstreamError::Transport(_))));
    let asked = Instant::now();
    assert!(upstream.request(calls(1)).await.remove(0).is_err());
    assert!(asked.elapsed() < Duration::from_millis(400), "other upstreams can be asked at once");
    listen(FakeWsNode::with(&[]), &free.to_string()).await;
    let since = Instant::now();
    while upstream.request(calls(1)).await.remove(0).is_err() {
        assert!(since.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_notification_signals_a_new_block() {
    let node = FakeWsNode::with(&[Act::Announce]);
    let upstream = serve(&node).await;
    let heads = upstream.head_signal().unwrap();
    all_answered(&upstream, 1).await;
    tokio::time::timeout(Duration::from_secs(5), heads.notified()).await.unwrap();
    let more = tokio::time::timeout(Duration::from_millis(50), heads.notified()).await;
    assert!(more.is_err(), "responses signal no block");
}

#[test]
fn unusable_urls_are_refused_and_names_hide_keys() {
    for text in ["ws://", "wss://", "ftp://node"] {
        assert!(upstream::open(text).is_err(), "{text}");
    }
    assert_eq!(upstream::open("wss://node.example/KEY").unwrap().name(), "wss://node.example");
    assert_eq!(upstream::open("WS://127.0.0.1:1/KEY").unwrap().name(), "ws://127.0.0.1:1");
}

/// The server accepts connections but never responds. With the default limits the request takes over a minute.
#[tokio::test]
async fn an_upstream_opened_with_limits_keeps_them_over_websocket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let limits = HttpConfig { attempts: 1, timeout: Duration::from_millis(200), ..config() };
    let upstream = upstream::open_with(&url, limits).unwrap();
    let request = upstream.request(calls(1));
    let results = tokio::time::timeout(Duration::from_secs(10), request).await.unwrap();
    assert!(results[0].is_err());
}
