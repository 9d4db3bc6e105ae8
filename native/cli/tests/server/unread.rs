//! Refusals: a client that does not read them holds next to nothing, and its connection ends.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::{RunningServer, client, config, start_service};
use futures::{SinkExt as _, StreamExt as _};
use reqwest::header::CONTENT_TYPE;
use rootlight_server::keys::{KeyChange, KeyDatabase};
use rootlight_server::{AdmissionRules, KeyAccess};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest refusal: its head and body repeat no more than a short id.
const LONGEST: usize = 2048;

/// A message of nearly 5 MiB, most of which is its id.
fn long_id(method: &str, params: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"{method}","params":{params}}}"#,
        "x".repeat((5 << 20) - 500)
    )
}

/// A server with keys that refuse for each reason, by what they refuse.
async fn refusing() -> (RunningServer, Vec<(&'static str, String, String)>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
    let key = |change: KeyChange| database.create(&change).unwrap().0.reveal();
    let other = "0x0000000000000000000000000000000001000008";
    let overridden = json!([{"to": other}, "latest", {(other): {"balance": "0x1"}}]);
    let none = json!([]);
    let keys = vec![
        ("limit", key(KeyChange { per_day: Some(1), ..KeyChange::default() }), long_id("eth_chainId", &none)),
        (
            "method",
            key(KeyChange { methods: Some("eth_call".into()), ..KeyChange::default() }),
            long_id("eth_chainId", &none),
        ),
        (
            "contract",
            key(KeyChange {
                contracts: Some("0x0000000000000000000000000000000001000006".into()),
                ..KeyChange::default()
            }),
            long_id("eth_call", &json!([{"to": other}, "latest"])),
        ),
        ("override", key(KeyChange::default()), long_id("eth_call", &overridden)),
    ];
    let mut config = config();
    config.limits.write_timeout = Duration::from_secs(2);
    config.admission =
        AdmissionRules { keys: Some(KeyAccess::embedded(&database)), ..AdmissionRules::default() };
    let options = rootlight_node::local::LocalOptions::default();
    let service = common::dev_chain(rootlight::dev::Mining::Instant, options);
    let server = start_service(config, service).await;
    // The only request of the day.
    let url = server.url(&format!("/{}", keys[0].1));
    let short = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
    client().post(url).header(CONTENT_TYPE, "application/json").body(short).send().await.unwrap();
    (server, keys, folder)
}

fn check(name: &str, text: &str) {
    assert!(text.len() < LONGEST, "{name}: {} bytes", text.len());
    let answer: Value = serde_json::from_str(text).unwrap();
    assert!(answer["id"].is_null() && answer["error"]["code"].is_i64(), "{name}: {answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("1024 bytes"), "{name}: {answer}");
}

#[tokio::test]
async fn no_refusal_repeats_a_long_id() {
    let (server, keys, _folder) = refusing().await;
    for (name, key, message) in &keys {
        let request = client().post(server.url(&format!("/{key}"))).header(CONTENT_TYPE, "application/json");
        let response = request.body(message.clone()).send().await.unwrap();
        check(name, &response.text().await.unwrap());
        let (mut socket, _) = tokio_tungstenite::connect_async(server.ws(&format!("/{key}"))).await.unwrap();
        for part in parts(message.as_bytes()) {
            socket.send(part).await.unwrap();
        }
        let answer = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        check(name, answer.to_text().unwrap());
    }
}

/// A message in frames of the longest kind that the server takes.
fn parts(bytes: &[u8]) -> Vec<Message> {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let parts = bytes.chunks(1 << 20);
    let last = parts.len() - 1;
    let kind = |place| if place == 0 { Data::Text } else { Data::Continue };
    let frame = |(place, part): (usize, &[u8])| {
        Message::Frame(Frame::message(part.to_vec(), OpCode::Data(kind(place)), place == last))
    };
    parts.enumerate().map(frame).collect()
}

/// A socket whose system takes little of what the client does not read.
async fn deaf(server: &RunningServer) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// Refusals are short, but a client that asks for them without end and reads none is stopped like any other.
#[tokio::test]
async fn the_write_limit_ends_connections_that_do_not_read_refusals() {
    let (server, keys, _folder) = refusing().await;
    let key = &keys[0].1;
    let body = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"eth_chainId"}}"#, "x".repeat(900));
    let head = format!(
        "POST /{key} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let request = format!("{head}{body}").repeat(16);
    let mut stream = deaf(&server).await;
    let endless = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, endless).await.expect("the write limit ends the connection over HTTP");

    let stream = deaf(&server).await;
    let (mut socket, _) =
        tokio_tungstenite::client_async(server.ws(&format!("/{key}")), stream).await.unwrap();
    let endless = async { while socket.send(Message::text(body.clone())).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, endless).await.expect("the limit ends the WebSocket");
    // Other keys are answered.
    let free = format!("/{}", keys[3].1);
    let short = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
    let request = client().post(server.url(&free)).header(CONTENT_TYPE, "application/json").body(short);
    assert!(request.send().await.unwrap().text().await.unwrap().contains("0x21"));
}
