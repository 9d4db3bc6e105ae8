//! The upstream, which serves headers in binary form and the height, also to web pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::post;
use rootlight::light::encode_headers;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::chain::BlockFile;

/// The method that returns the upstream's counters. It is not counted itself.
const FIGURES: &str = "cold_figures";

/// The upstream's address, and counters of what it received and of the bodies that it sent.
pub(crate) struct HeaderServer {
    pub(crate) address: SocketAddr,
    pub(crate) headers: Arc<AtomicU64>,
    pub(crate) bytes: Arc<AtomicU64>,
    pub(crate) questions: Arc<AtomicU64>,
}

impl HeaderServer {
    pub(crate) async fn start(chain: Arc<BlockFile>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let (headers, bytes, questions) = Default::default();
        let upstream = Self { address, headers, bytes, questions };
        let counters = (upstream.headers.clone(), upstream.bytes.clone(), upstream.questions.clone());
        let router = Router::new().route("/", post(respond).options(preflight)).with_state((chain, counters));
        tokio::spawn(async move { axum::serve(listener, router).await });
        upstream
    }
}

type TrafficCounters = (Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicU64>);

/// The type of responses, and the headers of CORS: a page sends a preflight request before it posts JSON.
const ALLOWED: [(&str, &str); 4] = [
    ("content-type", "application/json"),
    ("access-control-allow-origin", "*"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-max-age", "7200"),
];

async fn preflight() -> impl IntoResponse {
    (StatusCode::NO_CONTENT, ALLOWED)
}

async fn respond(
    State((chain, (headers, bytes, questions))): State<(Arc<BlockFile>, TrafficCounters)>,
    question: String,
) -> impl IntoResponse {
    let question: Value = serde_json::from_str(&question).unwrap_or_default();
    if question["method"] == FIGURES {
        let [headers, bytes] = [&headers, &bytes].map(|count| count.load(Ordering::Relaxed));
        return (ALLOWED, json!({"headers": headers, "bytes": bytes}).to_string());
    }
    questions.fetch_add(1, Ordering::Relaxed);
    let answered = tokio::task::spawn_blocking(move || match question.as_array() {
        Some(calls) => calls.iter().map(|call| answer(call, &chain, &headers)).collect::<Value>().to_string(),
        None => answer(&question, &chain, &headers).to_string(),
    });
    let body = answered.await.expect("an answer");
    bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
    (ALLOWED, body)
}

fn answer(call: &Value, chain: &BlockFile, headers: &AtomicU64) -> Value {
    let number = |index: usize| {
        let text = call["params"][index].as_str().unwrap_or_default();
        u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
    };
    let result = match call["method"].as_str() {
        Some("eth_blockNumber") => json!(format!("{:#x}", chain.head())),
        Some("rootlight_getHeaders") => {
            let found: Vec<_> = (number(0)..number(0) + number(1)).map_while(|n| chain.block(n)).collect();
            headers.fetch_add(found.len() as u64, Ordering::Relaxed);
            json!(encode_headers(
                found.iter().map(|(header, uncles)| (header.header().header(), Some(&uncles[..])))
            ))
        }
        _ => {
            let error = json!({"code": -32601, "message": "method not found"});
            return json!({"jsonrpc": "2.0", "id": call["id"], "error": error});
        }
    };
    json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
}
