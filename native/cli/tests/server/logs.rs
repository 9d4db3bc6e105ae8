//! Long answers to `eth_getLogs`, which are sent while they are made.

use crate::common;

use common::{RunningServer, client, config, dev_chain, start_service};
use futures::{SinkExt, StreamExt};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use rootlight::dev::Mining;
use rootlight_node::local::LocalOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

const EMITTER: &str = "0x00000000000000000000000000000000000000aa";
/// Blocks with one log of 400,000 bytes each, which take 24 MB of JSON.
const BLOCKS: u64 = 30;

async fn start() -> RunningServer {
    let server = start_service(config(), dev_chain(Mining::Instant, LocalOptions::default())).await;
    // PUSH3 400,000, PUSH1 0, LOG0.
    call(&server, "anvil_setCode", json!([EMITTER, "0x62061a806000a0"])).await;
    let from = call(&server, "eth_accounts", json!([])).await["result"][0].clone();
    for _ in 0..BLOCKS {
        let write = json!([{ "from": from, "to": EMITTER, "gas": "0x5b8d80" }]);
        assert!(call(&server, "eth_sendTransaction", write).await["error"].is_null());
    }
    server
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "an id", "method": method, "params": params })
}

async fn post(server: &RunningServer, body: &Value) -> reqwest::Response {
    let request = client().post(server.url("/")).header(CONTENT_TYPE, "application/json");
    request.body(body.to_string()).send().await.unwrap()
}

async fn call(server: &RunningServer, method: &str, params: Value) -> Value {
    serde_json::from_str(&post(server, &request(method, &params)).await.text().await.unwrap()).unwrap()
}

fn logs(from: u64, to: u64) -> Value {
    json!([{ "fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}"), "address": EMITTER }])
}

#[tokio::test]
async fn logs_of_few_blocks_have_no_size_limit_over_http() {
    let server = start().await;
    let response = post(&server, &request("eth_getLogs", &logs(0, BLOCKS))).await;
    assert_eq!((response.status().as_u16(), response.headers().get(CONTENT_LENGTH)), (200, None));
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    let text = response.text().await.unwrap();
    assert!(text.len() > 24_000_000, "{}", text.len());
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    let mut parts = Vec::new();
    for number in 1..=BLOCKS {
        let one = call(&server, "eth_getLogs", logs(number, number)).await;
        parts.extend(one["result"].as_array().unwrap().clone());
    }
    assert_eq!(parts.len() as u64, BLOCKS);
    assert_eq!(answer["result"].take(), Value::Array(parts));
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "an id", "result": null }));
}

/// A batch and a WebSocket message are one text: the error proposes a range that works.
#[tokio::test]
async fn elsewhere_the_error_proposes_a_range_within_the_limit() {
    let server = start().await;
    let whole = request("eth_getLogs", &logs(0, BLOCKS));
    let text = post(&server, &json!([whole])).await.text().await.unwrap();
    let batch: Value = serde_json::from_str(&text).unwrap();
    let mut socket = connect_async(server.ws("/")).await.unwrap().0;
    socket.send(Message::text(whole.to_string())).await.unwrap();
    let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
    let message: Value = serde_json::from_str(&answer).unwrap();
    for answer in [&batch[0], &message] {
        assert_eq!(answer["error"]["code"], -32011);
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(text.ends_with("Try with this block range [0x0, 0xd]."), "{text}");
    }
    socket.send(Message::text(request("eth_getLogs", &logs(0, 13)).to_string())).await.unwrap();
    let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["result"].as_array().unwrap().len(), 13);
}

/// A client that does not read holds the bytes of a few pieces, not those of its answer.
#[tokio::test]
async fn an_unread_answer_holds_a_few_pieces() {
    let server = start().await;
    let body = request("eth_getLogs", &logs(0, BLOCKS)).to_string();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let mut first = [0; 64];
    stream.read_exact(&mut first).await.unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200 OK"));
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert!(server.limits.answers().taken() < 16 << 20, "less than 16 MiB are held");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() > 24_000_000 && rest.ends_with(b"0\r\n\r\n"), "{}", rest.len());
}
