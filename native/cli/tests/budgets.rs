//! Tests of used-up budgets. This file is a program of its own, because some tests watch the memory of the process.

mod common;
#[path = "budgets/largest.rs"]
mod largest;
#[path = "budgets/pages.rs"]
mod pages;
#[path = "budgets/peer.rs"]
mod peer;
#[path = "budgets/sources.rs"]
mod sources;
#[path = "budgets/watch.rs"]
mod watch;
#[path = "budgets/websocket.rs"]
mod websocket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{RunningServer, client, config, start, start_service};
use futures::future::BoxFuture;
use futures::{SinkExt as _, StreamExt as _};
use reqwest::header::CONTENT_TYPE;
use rootlight::light::UpstreamRequest;
use rootlight::rpc::{Message as Request, Reply};
use rootlight_limits::Limits;
use rootlight_server::service::{Caller, ReservedReply, Service};
use rootlight_upstream::{HttpConfig, HttpUpstream, Upstream, UpstreamError};
use serde_json::value::to_raw_value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio_tungstenite::tungstenite::Message;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Held by tests of long responses of upstreams: some watch the memory of the process and the waiting times of its tasks.
static UPSTREAMS: Mutex<()> = Mutex::const_new(());

/// The settings of an upstream whose responses count in these limits.
fn within(limits: &Arc<Limits>) -> HttpConfig {
    HttpConfig { limits: limits.clone(), ..HttpConfig::default() }
}

#[tokio::test]
async fn upstream_responses_count_against_the_budget_until_they_are_dropped() {
    let _alone = UPSTREAMS.lock().await;
    let (server, limits) = (start_service(config(), Arc::new(largest::Long)).await, Limits::new());
    let upstream = HttpUpstream::new(&server.url("/"), within(&limits)).unwrap();
    let call = || vec![UpstreamRequest::new("eth_call", "[]".into())];
    let all = limits.upstreams().size();
    let (answers, reserved) = upstream.request_reserved(call()).await;
    assert!(answers[0].is_ok());
    let bytes = reserved.bytes();
    assert!(bytes > 0 && limits.upstreams().try_take(all).is_none(), "{bytes}");
    drop(reserved);
    let spent = limits.upstreams().try_take(all).expect("all is free again");
    let started = Instant::now();
    assert_eq!(upstream.request(call()).await[0].as_ref().unwrap_err(), &UpstreamError::BudgetUsedUp);
    assert!(started.elapsed() >= Duration::from_secs(5), "the request waits for room first");
    // A waiting request gets the bytes as soon as they are free.
    let waiting = upstream.request(call());
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(Duration::from_secs(2), waiting.as_mut()).await.is_err());
    drop(spent);
    assert!(waiting.await[0].is_ok());
}

#[tokio::test]
async fn a_long_body_waits_for_room_and_then_gets_503() {
    let mut brief = config();
    brief.limits.body_timeout = Duration::from_millis(500);
    let server = start(brief).await;
    let ask = |bytes: usize| {
        let body = common::call_of(bytes);
        client().post(server.url("/")).header(CONTENT_TYPE, "application/json").body(body).send()
    };
    // One address gets half of the budget, and all requests of this test come from one address.
    let owner = rootlight_limits::caller_id::CallerId::new(server.address.ip()).quota_owner();
    let spent = server.limits.requests().take_within(owner, 16 << 20, Duration::from_secs(1)).await.unwrap();
    let refused = ask(1 << 20).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.text().await.unwrap().contains("-32005"));
    assert_eq!(ask(1_000).await.unwrap().status(), 200, "short bodies need no room");
    drop(spent);
    assert_eq!(ask(1 << 20).await.unwrap().status(), 200);
}

#[tokio::test]
async fn answers_wait_while_others_are_unsent_and_then_fail() {
    let limits = Limits::new();
    let all = limits.answers().size();
    assert_eq!(
        limits.reserve_answer(7.into(), 1_000).await.unwrap().bytes(),
        0,
        "short answers are not counted"
    );
    let spent = limits.answers().try_take(all).unwrap();
    let started = Instant::now();
    assert!(limits.reserve_answer(7.into(), 1 << 20).await.is_none());
    assert!(started.elapsed() >= Duration::from_secs(4) && !limits.answers().is_contended());
    drop(spent);
    assert_eq!(limits.reserve_answer(7.into(), 1 << 20).await.unwrap().bytes(), 1 << 20);
}

/// Answers with as many bytes as the message says, and takes nothing of the budget for them.
struct Careless;

impl Service for Careless {
    fn answer_message<'a>(&'a self, _: &'a Arc<Caller>, message: Request) -> BoxFuture<'a, ReservedReply> {
        let bytes = message.calls().next().and_then(|call| call.params[0].get().parse().ok()).unwrap_or(1);
        let result = to_raw_value(&"x".repeat(bytes)).unwrap();
        Box::pin(std::future::ready(ReservedReply::of(Reply::to(message, vec![Ok(result)]))))
    }
}

/// The message that asks for this many bytes.
fn of(bytes: usize) -> String {
    format!(r#"{{"id":1,"method":"m","params":[{bytes}]}}"#)
}

/// A server of [`Careless`] answers that gives its clients this time.
async fn careless(write_timeout: Duration) -> RunningServer {
    let mut config = config();
    config.limits.write_timeout = write_timeout;
    // So that the server goes on reading from a WebSocket with a long answer.
    config.limits.websocket_unsent = 64 << 20;
    start_service(config, Arc::new(Careless)).await
}

/// Connects from an address, with a small buffer for what the client does not read.
async fn connect(to: SocketAddr, from: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

async fn ask(stream: &mut TcpStream, bytes: usize) {
    let body = of(bytes);
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Waits until no answer holds bytes of the budget.
async fn freed(limits: &Limits) {
    let free = async {
        while limits.answers().taken() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.expect("the write limit ends the connections");
}

/// Answers that no service counts are counted on their way out. They leave room for the clients of other addresses, and
/// the write time limit ends the connections that do not read.
#[tokio::test]
async fn answers_that_nothing_else_counts_hold_bytes_of_the_budget_while_clients_do_not_read() {
    let server = careless(Duration::from_secs(3)).await;
    let mut unread = Vec::new();
    for _ in 0..30 {
        let mut stream = connect(server.address, "127.0.0.1").await;
        ask(&mut stream, 10 << 20).await;
        unread.push(stream);
    }
    let filled = async {
        while server.limits.answers().taken() < 30 << 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, filled).await.expect("unsent answers are counted");
    let mut other = connect(server.address, "127.0.0.2").await;
    ask(&mut other, 4 << 20).await;
    let mut answer = Vec::new();
    while answer.len() < 4 << 20 {
        let mut piece = [0; 4096];
        let read = tokio::time::timeout(PATIENCE, other.read(&mut piece)).await.unwrap().unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..read]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    freed(&server.limits).await;
}

/// The first 16 KiB of a connection are not counted, so that short answers cost nothing; a WebSocket queues many of them.
#[tokio::test]
async fn short_answers_that_a_websocket_queues_hold_bytes_of_the_budget() {
    let server = careless(Duration::from_secs(3)).await;
    let mut unread = Vec::new();
    for _ in 0..4 {
        let stream = connect(server.address, "127.0.0.1").await;
        let (mut socket, _) = tokio_tungstenite::client_async(server.ws("/"), stream).await.unwrap();
        socket.send(Message::text(of(8 << 20))).await.unwrap();
        for _ in 0..60 {
            socket.send(Message::text(of(15_000))).await.unwrap();
        }
        unread.push(socket);
    }
    let filled = async {
        while server.limits.answers().taken() <= 4 * (8 << 20) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, filled).await.expect("short answers are counted too");
    freed(&server.limits).await;
}

/// The library makes the responses to pings, which a client that does not read would make it keep.
#[tokio::test]
async fn pings_of_a_client_that_does_not_read_are_not_taken_without_end() {
    let server = careless(Duration::from_millis(500)).await;
    let stream = connect(server.address, "127.0.0.1").await;
    let (mut socket, _) = tokio_tungstenite::client_async(server.ws("/"), stream).await.unwrap();
    let mut sent = 0_usize;
    let endless = async {
        let ping = Message::Ping(vec![7; 125].into());
        while sent < 1_000_000 && socket.feed(ping.clone()).await.is_ok() {
            sent += 1;
        }
    };
    tokio::time::timeout(PATIENCE, endless).await.expect("the write limit ends the connection");
    assert!(sent < 1_000_000, "131 MB of pings were taken");
    // A client that reads is answered.
    let (mut socket, _) = tokio_tungstenite::connect_async(server.ws("/")).await.unwrap();
    for _ in 0..1_000 {
        socket.send(Message::Ping(vec![7; 125].into())).await.unwrap();
        let pong = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(pong, Message::Pong(vec![7; 125].into()));
    }
}
