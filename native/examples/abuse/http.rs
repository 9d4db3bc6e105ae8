//! What attackers send.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;

/// Longest time for which an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// An account without code or balance.
pub(crate) const TARGET: &str = "0x00000000000000000000000000000000000000aa";

/// The first account of a development chain, which it signs for.
pub(crate) const OWNER: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// A call.
pub(crate) fn call(id: usize, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A batch of as many calls as a message may have.
pub(crate) fn batch(one: impl Fn(usize) -> Value) -> String {
    Value::from((0..50).map(one).collect::<Vec<_>>()).to_string()
}

/// A call of code that the caller brings along, with 10 million gas.
pub(crate) fn call_of(id: usize, code: &str) -> Value {
    let overridden = json!({ (TARGET): {"code": code} });
    call(id, "eth_call", json!([{"to": TARGET, "gas": "0x989680"}, "latest", overridden]))
}

/// The address of the attackers, and another one. The well-behaved clients of the measurement are at 127.0.0.1.
const ATTACKER: &str = "127.0.0.2";
const ELSEWHERE: &str = "127.0.0.3";

/// A connection of an attacker.
pub(crate) async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    connect_from(ATTACKER, address).await
}

async fn connect_from(from: &str, address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{from}:0").parse().map_err(std::io::Error::other)?)?;
    socket.connect(address).await
}

/// Asks over a connection of its own; gives the whole HTTP answer, or as much as came.
pub(crate) async fn post(address: SocketAddr, body: &str) -> String {
    String::from_utf8_lossy(&post_from(address, ATTACKER, "", body).await).into_owned()
}

/// As [`post`], for an answer that is compressed; gives its length alone.
pub(crate) async fn post_compressed(address: SocketAddr, body: &str) -> usize {
    post_from(address, ATTACKER, "Accept-Encoding: gzip\r\n", body).await.len()
}

/// As [`post`], as a page of this origin does.
pub(crate) async fn post_as(address: SocketAddr, origin: &str, body: &str) -> String {
    let headers = format!("Origin: {origin}\r\n");
    String::from_utf8_lossy(&post_from(address, ATTACKER, &headers, body).await).into_owned()
}

/// As [`post`], from another address than the attackers'.
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

/// The result of a call of the server's own methods.
///
/// # Panics
/// There is none.
pub(crate) async fn result(address: SocketAddr, method: &str, params: Value) -> Value {
    let answer = post(address, &call(1, method, params).to_string()).await;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let mut answer: Value = serde_json::from_str(body).unwrap_or_default();
    assert!(answer.get("result").is_some(), "{method}: {answer}");
    answer["result"].take()
}

/// A WebSocket without limits of its own.
pub(crate) async fn socket(address: SocketAddr) -> Option<WebSocketStream<TcpStream>> {
    let stream = connect(address).await.ok()?;
    let mut config = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default();
    (config.max_message_size, config.max_frame_size) = (None, None);
    let url = format!("ws://{address}/");
    let connecting = tokio_tungstenite::client_async_with_config(url, stream, Some(config));
    connecting.await.ok().map(|(socket, _)| socket)
}

/// How many of these connections the server has ended: writing to them fails.
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

/// Runs as many clients at the same time, and gives what each came to.
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
