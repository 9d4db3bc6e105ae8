//! The HTTP upstream with servers that respond in every possible way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use rootlight::light::UpstreamRequest;
use rootlight_upstream::{HttpConfig, HttpUpstream, Upstream, UpstreamError};
use serde_json::{Value, json};

/// The fake node's reaction to one message.
#[derive(Clone)]
enum Act {
    /// Responds properly; members of a batch in reverse order.
    UpstreamResponse,
    Status(u16, &'static [(&'static str, &'static str)], String),
    Hang,
}

#[derive(Clone, Default)]
struct FakeHttpNode {
    script: Arc<Mutex<VecDeque<Act>>>,
    seen: Arc<Mutex<Vec<Value>>>,
    /// Longest batch that the node accepts.
    batch: Option<usize>,
}

fn answer_message(request: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": request["params"][0]})
}

async fn handle(State(node): State<FakeHttpNode>, headers: HeaderMap, body: String) -> Response {
    assert_eq!(headers["content-type"], "application/json");
    let message: Value = serde_json::from_str(&body).unwrap();
    node.seen.lock().unwrap().push(message.clone());
    let act = node.script.lock().unwrap().pop_front().unwrap_or(Act::UpstreamResponse);
    match act {
        Act::Hang => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            StatusCode::OK.into_response()
        }
        Act::Status(code, extra, text) => {
            let mut response = (StatusCode::from_u16(code).unwrap(), text).into_response();
            for (name, value) in extra {
                response.headers_mut().insert(*name, value.parse().unwrap());
            }
            response
        }
        Act::UpstreamResponse => match &message {
            Value::Array(members) if node.batch.is_some_and(|most| members.len() > most) => {
                let text = json!({"error": {"code": -32600, "message": "Cannot dispatch batch requests"}})
                    .to_string();
                (StatusCode::BAD_REQUEST, text).into_response()
            }
            Value::Array(members) => {
                Value::from(members.iter().rev().map(answer_message).collect::<Vec<_>>())
                    .to_string()
                    .into_response()
            }
            single => answer_message(single).to_string().into_response(),
        },
    }
}

async fn serve(node: FakeHttpNode) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret-key", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handle).with_state(node)).await });
    url
}

fn config() -> HttpConfig {
    HttpConfig {
        pause: Duration::from_millis(20),
        timeout: Duration::from_millis(500),
        ..HttpConfig::default()
    }
}

fn node(script: impl IntoIterator<Item = Act>) -> FakeHttpNode {
    FakeHttpNode { script: Arc::new(Mutex::new(script.into_iter().collect())), ..FakeHttpNode::default() }
}

async fn upstream(node: &FakeHttpNode, config: HttpConfig) -> HttpUpstream {
    HttpUpstream::new(&serve(node.clone()).await, config).unwrap()
}

fn calls(count: u64) -> Vec<UpstreamRequest> {
    (0..count).map(|n| UpstreamRequest::new("m", json!([n]).to_string())).collect()
}

async fn one(upstream: &HttpUpstream) -> Result<String, UpstreamError> {
    upstream.request(calls(1)).await.remove(0).map(|raw| raw.get().to_owned())
}

fn status(code: u16) -> Act {
    Act::Status(code, &[], String::new())
}

#[tokio::test]
async fn batches_keep_the_order_of_the_calls() {
    let node = node([]);
    let upstream = upstream(&node, HttpConfig { batch: 10, ..config() }).await;
    let results = upstream.request(calls(25)).await;
    let numbers: Vec<String> = results.into_iter().map(|result| result.unwrap().get().to_owned()).collect();
    assert_eq!(numbers, (0..25).map(|n| n.to_string()).collect::<Vec<_>>());
    let sizes: Vec<usize> =
        node.seen.lock().unwrap().iter().map(|message| message.as_array().unwrap().len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 25);
    assert_eq!(sizes.iter().max(), Some(&10));
    assert!(upstream.request(Vec::new()).await.is_empty());
}

#[tokio::test]
async fn a_refused_batch_is_halved_and_later_batches_stay_short() {
    let node = FakeHttpNode { batch: Some(3), ..node([]) };
    let upstream = upstream(&node, HttpConfig { batch: 8, ..config() }).await;
    assert!(upstream.request(calls(8)).await.iter().all(Result::is_ok));
    node.seen.lock().unwrap().clear();
    assert!(upstream.request(calls(8)).await.iter().all(Result::is_ok));
    let seen = node.seen.lock().unwrap();
    assert!(
        seen.iter().all(|message| message.as_array().is_none_or(|members| members.len() <= 3)),
        "later batches are short from the start"
    );
}

#[tokio::test]
async fn temporary_http_errors_are_retried() {
    let node = node([status(503), status(502), status(429), Act::UpstreamResponse]);
    let upstream = upstream(&node, config()).await;
    assert_eq!(one(&upstream).await, Ok("0".into()));
    assert_eq!(node.seen.lock().unwrap().len(), 4);
}

/// Status 413 means that the batch is too large for this node, so halves are sent. A single call is not split
/// further.
#[tokio::test]
async fn a_batch_with_status_413_is_halved() {
    let node = node([status(413), Act::UpstreamResponse, status(413), Act::UpstreamResponse, status(413)]);
    let upstream = upstream(&node, HttpConfig { batch: 8, parallel: 1, ..config() }).await;
    let answers = upstream.request(calls(4)).await;
    let sizes: Vec<usize> =
        node.seen.lock().unwrap().iter().map(|message| message.as_array().map_or(1, Vec::len)).collect();
    assert_eq!(sizes, [4, 2, 2, 1, 1]);
    assert!(answers[..3].iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(answers[3].as_ref().err(), Some(&UpstreamError::Status(413)));
}

#[tokio::test]
async fn the_number_of_tries_is_limited() {
    let node = node([status(503), status(503), status(503), status(503), Act::UpstreamResponse]);
    let upstream = upstream(&node, config()).await;
    assert_eq!(one(&upstream).await, Err(UpstreamError::Status(503)));
    assert_eq!(node.seen.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn retry_after_is_respected_and_bounded() {
    let wait = Act::Status(429, &[("retry-after", "1")], String::new());
    let first = node([wait]);
    let started = Instant::now();
    assert!(one(&upstream(&first, config()).await).await.is_ok());
    assert!(started.elapsed() >= Duration::from_secs(1));
    let second = node([Act::Status(503, &[("retry-after", "86400")], String::new())]);
    let started = Instant::now();
    let config = HttpConfig { longest_pause: Duration::from_millis(50), ..config() };
    assert!(one(&upstream(&second, config).await).await.is_ok());
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn permanent_http_errors_are_not_retried() {
    for (act, expected) in [
        (status(401), UpstreamError::Status(401)),
        (Act::Status(302, &[("location", "http://127.0.0.1:1/")], String::new()), UpstreamError::Status(302)),
        (Act::Status(404, &[], "<html>".into()), UpstreamError::Status(404)),
    ] {
        let node = node([act]);
        assert_eq!(one(&upstream(&node, config()).await).await, Err(expected));
        assert_eq!(node.seen.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn json_rpc_errors_are_returned_with_any_http_status() {
    let body = json!({"id": 1, "error": {"code": -32602, "message": "bad", "data": [1]}}).to_string();
    for code in [200, 400] {
        let node = node([Act::Status(code, &[], body.clone())]);
        let expected = UpstreamError::Rpc { code: -32602, message: "bad".into(), data: Some(json!([1])) };
        assert_eq!(one(&upstream(&node, config()).await).await, Err(expected));
    }
}

#[tokio::test]
async fn bodies_that_are_not_json_rpc_are_malformed() {
    for body in ["", "{", "[]", "7", "{\"id\":1}", "\u{1}"] {
        let node = node([Act::Status(200, &[], body.into())]);
        let error = one(&upstream(&node, config()).await).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Malformed(_)), "{body}: {error}");
    }
}

#[tokio::test]
async fn responses_above_the_size_limit_are_refused() {
    let body = format!("{{\"id\":1,\"result\":\"{}\"}}", "x".repeat(5000));
    let exact = body.len();
    for (limit, fits) in [(exact, true), (exact - 1, false)] {
        let node = node([Act::Status(200, &[], body.clone())]);
        let answer = one(&upstream(&node, HttpConfig { answer_bytes: limit, ..config() }).await).await;
        assert_eq!(answer.is_ok(), fits);
        if !fits {
            assert_eq!(answer, Err(UpstreamError::TooLarge(limit)));
        }
    }
}

#[tokio::test]
async fn a_missing_response_times_out() {
    let node = node([Act::Hang, Act::Hang]);
    let config = HttpConfig { attempts: 2, timeout: Duration::from_millis(200), ..config() };
    assert_eq!(one(&upstream(&node, config).await).await, Err(UpstreamError::Timeout(200)));
}

#[tokio::test]
async fn a_refused_connection_is_an_error_without_secrets() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret-key", listener.local_addr().unwrap());
    drop(listener);
    let upstream = HttpUpstream::new(&url, HttpConfig { attempts: 1, ..config() }).unwrap();
    let error = one(&upstream).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Transport(_)));
    assert!(!error.to_string().contains("secret") && !upstream.name().contains("secret"), "{error}");
}
