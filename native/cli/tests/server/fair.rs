//! No client keeps others from their answers: not by long runs, by unused connections, or by unread answers.

use crate::common;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use common::{RunningServer, config, dev_chain, start, start_service};
use futures::{SinkExt, StreamExt};
use rootlight::dev::Mining;
use rootlight_node::local::LocalOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Time limit of one message in these tests.
const RUN: Duration = Duration::from_secs(1);

/// Time limit for an answer without queueing, even on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

async fn dev() -> RunningServer {
    let options = LocalOptions { run_timeout: RUN, ..LocalOptions::default() };
    start_service(config(), dev_chain(Mining::Instant, options)).await
}

fn call(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Connects from a given loopback address.
async fn connect(to: SocketAddr, from: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

async fn websocket(server: &RunningServer, from: &str) -> Option<WebSocketStream<TcpStream>> {
    let stream = connect(server.address, from).await;
    tokio_tungstenite::client_async(server.ws("/"), stream).await.ok().map(|(socket, _)| socket)
}

/// Sends a request over a new connection and returns the body of the answer.
async fn ask(server: &RunningServer, from: &str, message: &Value) -> Value {
    let mut stream = connect(server.address, from).await;
    let body = message.to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let text = String::from_utf8(answer).unwrap();
    serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

/// Fifty calls with 9.9 million rounds of BLAKE2 each. One takes a quarter of a second in an optimised build,
/// more in others.
fn long_batch() -> Message {
    let input = format!("0x{:08x}{}", 9_900_000, "00".repeat(209));
    let to = "0x0000000000000000000000000000000000000009";
    let long = |id| call(id, "eth_call", json!([{"to": to, "gas": "0x989680", "data": input}, "latest"]));
    Message::text(Value::from((0..50).map(long).collect::<Vec<_>>()).to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_runs_of_one_connection_do_not_delay_others() {
    let server = dev().await;
    let mut greedy = websocket(&server, "127.0.0.1").await.unwrap();
    let started = Instant::now();
    for _ in 0..8 {
        greedy.send(long_batch()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Neither a look-up nor a run of another connection waits for the queued runs.
    for _ in 0..5 {
        let asked = Instant::now();
        assert_eq!(ask(&server, "127.0.0.1", &call(1, "eth_chainId", json!([]))).await["result"], "0x21");
        assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
    }
    let asked = Instant::now();
    let short = call(1, "eth_call", json!([{"to": "0x00000000000000000000000000000000000000aa"}, "latest"]));
    assert_eq!(ask(&server, "127.0.0.1", &short).await["result"], "0x");
    assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
    // Each batch ends at its time limit: the running call is interrupted, and the others are not started.
    for _ in 0..8 {
        let text = greedy.next().await.unwrap().unwrap().into_text().unwrap().to_string();
        let answers: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(answers.len(), 50);
        assert_eq!(answers[49]["error"]["code"], -32011, "{}", answers[49]);
    }
    assert!(started.elapsed() < RUN * 8 + AT_ONCE * 3, "{:?}", started.elapsed());
}

#[tokio::test]
async fn idle_connections_are_closed_for_new_ones() {
    let mut small = config();
    small.limits.connections = 4;
    let server = start(small).await;
    let mut idle = Vec::new();
    for _ in 0..6 {
        idle.push(connect(server.address, "127.0.0.1").await);
    }
    tokio::time::sleep(Duration::from_millis(1200)).await;
    for from in ["127.0.0.2", "127.0.0.1"] {
        let asked =
            tokio::time::timeout(AT_ONCE * 2, ask(&server, from, &json!({"id": 1, "method": "m"}))).await;
        assert!(asked.is_ok(), "{from}");
    }
}

#[tokio::test]
async fn idle_websockets_of_one_address_are_closed_for_other_addresses() {
    let mut small = config();
    small.limits.websockets = 3;
    let server = start(small).await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        idle.push(websocket(&server, "127.0.0.1").await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(websocket(&server, "127.0.0.1").await.is_none(), "not for a connection of the same address");
    let mut other = websocket(&server, "127.0.0.2").await.expect("a place");
    other.send(Message::text(r#"{"id":1,"method":"m"}"#)).await.unwrap();
    assert!(other.next().await.unwrap().unwrap().is_text());
}

#[tokio::test]
async fn filters_of_one_address_leave_room_for_others() {
    let server = dev().await;
    // The filter kind that needs the least memory.
    let install = call(1, "eth_newPendingTransactionFilter", json!([]));
    let batch = Value::from(vec![install.clone(); 50]);
    let mut ids = Vec::new();
    for _ in 0..82 {
        let answers = ask(&server, "127.0.0.1", &batch).await;
        ids.extend(answers.as_array().unwrap().iter().map(|answer| answer["result"].clone()));
    }
    assert_eq!(ids.len(), 4_100);
    assert!(ids[4_095].is_string() && ids[4_096].is_null(), "4,096 filters");
    let other = ask(&server, "127.0.0.2", &install).await;
    assert!(other["result"].is_string(), "{other}");
    let gone = ask(&server, "127.0.0.1", &call(1, "eth_getFilterChanges", json!([ids[0]]))).await;
    assert_eq!(gone["error"]["message"], "filter not found", "the oldest made room");
    let kept = ask(&server, "127.0.0.2", &call(1, "eth_getFilterChanges", json!([other["result"]]))).await;
    assert!(kept["result"].is_array(), "{kept}");
}

/// The system's buffers take a few MiB of unread answers. The rest must not stay in the server's memory
/// forever.
#[tokio::test]
async fn a_client_that_does_not_read_http_answers_is_disconnected() {
    let mut impatient = config();
    impatient.limits.write_timeout = Duration::from_millis(500);
    impatient.limits.connections = 1;
    let server = start(impatient).await;
    let mut stream = connect(server.address, "127.0.0.1").await;
    let request = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n{\"id\":1,\"method\":\"large\"}";
    for _ in 0..8 {
        stream.write_all(request.as_bytes()).await.unwrap();
    }
    // The only place is free again.
    let asked = tokio::time::timeout(
        Duration::from_secs(20),
        ask(&server, "127.0.0.2", &json!({"id": 1, "method": "m"})),
    )
    .await;
    assert!(asked.is_ok(), "still held");
}

#[tokio::test]
async fn endless_bodies_are_not_read() {
    let server = start(config()).await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    // A body of announced length is refused before any byte arrives.
    let mut stream = connect(server.address, "127.0.0.1").await;
    stream.write_all(format!("{head}Content-Length: 10000000000\r\n\r\n").as_bytes()).await.unwrap();
    let mut status = [0; 12];
    tokio::time::timeout(AT_ONCE, stream.read_exact(&mut status)).await.unwrap().unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    // A body without announced length is cut off soon after the limit.
    let mut stream = connect(server.address, "127.0.0.1").await;
    stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
    let chunk = [b"100000\r\n".as_slice(), &vec![b'x'; 0x10_0000], b"\r\n"].concat();
    let mut taken = 0;
    while taken < 64 && stream.write_all(&chunk).await.is_ok() {
        taken += 1;
    }
    assert!(taken < 32, "{taken} MiB");
}
