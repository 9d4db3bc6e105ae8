//! The HTTP and WebSocket clients of attackers.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;

/// Longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);

/// An account without code or balance.
pub(crate) const TARGET: &str = "0x00000000000000000000000000000000000000aa";

/// The first account of a development chain, whose key the chain holds.
pub(crate) const OWNER: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// Builds a request.
pub(crate) fn call(id: usize, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Builds a batch of fifty calls.
pub(crate) fn batch(one: impl Fn(usize) -> Value) -> String {
    Value::from((0..50).map(one).collect::<Vec<_>>()).to_string()
}

/// Builds a call with 10 million gas of code in a state override.
pub(crate) fn call_of(id: usize, code: &str) -> Value {
    let overridden = json!({ (TARGET): {"code": code} });
    call(id, "eth_call", json!([{"to": TARGET, "gas": "0x989680"}, "latest", overridden]))
}

/// The address of the attackers, and another one. The well-behaved clients of the measurement are at 127.0.0.1.
const ATTACKER: &str = "127.0.0.2";
const ELSEWHERE: &str = "127.0.0.3";

pub(crate) async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    connect_from(ATTACKER, address).await
}

async fn connect_from(from: &str, address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{from}:0").parse().map_err(std::io::Error::other)?)?;
    socket.connect(address).await
}

/// Sends a message over a new connection; returns the HTTP response, or the part that arrived.
pub(crate) async fn post(address: SocketAddr, body: &str) -> String {
    String::from_utf8_lossy(&post_from(address, ATTACKER, "", body).await).into_owned()
}

/// Does what [`post`] does for a compressed response; returns its length only.
pub(crate) async fn post_compressed(address: SocketAddr, body: &str) -> usize {
    post_from(address, ATTACKER, "Accept-Encoding: gzip\r\n", body).await.len()
}

/// Does what [`post`] does, with the `Origin` header of a web page.
pub(crate) async fn post_as(address: SocketAddr, origin: &str, body: &str) -> String {
    let headers = format!("Origin: {origin}\r\n");
    String::from_utf8_lossy(&post_from(address, ATTACKER, &headers, body).await).into_owned()
}

/// Does what [`post`] does, from another address than the attackers'.
pub(crate) async fn from_elsewhere(address: SocketAddr, body: &str) -> String {
    String::from_utf8_lossy(&post_from(address, ELSEWHERE, "", body).await).into_owned()
}

async fn post_from(address: SocketAddr, from: &str, headers: &str, body: &str) -> Vec<u8> {
    let mut answer = Vec::new();
    let asking = async {
        let mut stream = connect_from(from, address).await?;
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{headers}Connection: close\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.read_to_end(&mut answer).await
    };
    let _ = tokio::time::timeout(PATIENCE, asking).await;
    answer
}

/// Returns the result of a call that must succeed.
///
/// # Panics
/// The response has no result.
pub(crate) async fn result(address: SocketAddr, method: &str, params: Value) -> Value {
    let answer = post(address, &call(1, method, params).to_string()).await;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let mut answer: Value = serde_json::from_str(body).unwrap_or_default();
    assert!(answer.get("result").is_some(), "{method}: {answer}");
    answer["result"].take()
}

/// Opens a WebSocket without client-side limits.
pub(crate) async fn socket(address: SocketAddr) -> Option<WebSocketStream<TcpStream>> {
    socket_at(address, "/").await
}

/// As [`socket`], at a path.
pub(crate) async fn socket_at(address: SocketAddr, path: &str) -> Option<WebSocketStream<TcpStream>> {
    let stream = connect(address).await.ok()?;
    let mut config = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default();
    (config.max_message_size, config.max_frame_size) = (None, None);
    let url = format!("ws://{address}{path}");
    let connecting = tokio_tungstenite::client_async_with_config(url, stream, Some(config));
    connecting.await.ok().map(|(socket, _)| socket)
}

/// Counts the connections that the server has closed, to which writing fails.
pub(crate) async fn ended(streams: &[&TcpStream]) -> usize {
    let mut ended = 0;
    for stream in streams {
        for _ in 0..3 {
            if stream.try_write(b"x").is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock) {
                ended += 1;
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    ended
}

/// Runs this many clients at the same time; returns their results.
pub(crate) async fn together<T: Send + 'static, F>(clients: usize, client: impl Fn(usize) -> F) -> Vec<T>
where
    F: std::future::Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = (0..clients).map(|index| tokio::spawn(client(index))).collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await);
    }
    all
}
