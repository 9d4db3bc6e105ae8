//! The upstream: headers in binary, and the height.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rootlight::light::encode_headers;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::chain::Chain;

/// What was asked of it and sent.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) headers: Arc<AtomicU64>,
    pub(crate) bytes: Arc<AtomicU64>,
    pub(crate) questions: Arc<AtomicU64>,
}

impl Upstream {
    pub(crate) async fn start(chain: Arc<Chain>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let (headers, bytes, questions) = Default::default();
        let upstream = Self { address, headers, bytes, questions };
        let counters = (upstream.headers.clone(), upstream.bytes.clone(), upstream.questions.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, chain.clone(), counters.clone()));
            }
        });
        upstream
    }
}

type Counters = (Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicU64>);

async fn connection(mut stream: TcpStream, chain: Arc<Chain>, counters: Counters) -> Option<()> {
    let (headers, bytes, questions) = counters;
    let mut read = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&piece[..count]);
        let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if read.len() < end + 4 + length {
            continue;
        }
        let question: Value = serde_json::from_slice(&read[end + 4..end + 4 + length]).ok()?;
        read.drain(..end + 4 + length);
        questions.fetch_add(1, Ordering::Relaxed);
        let (chain, headers) = (chain.clone(), headers.clone());
        let body = tokio::task::spawn_blocking(move || respond(&question, &chain, &headers)).await.ok()?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        bytes.fetch_add((head.len() + body.len()) as u64, Ordering::Relaxed);
        stream.write_all(head.as_bytes()).await.ok()?;
        stream.write_all(body.as_bytes()).await.ok()?;
    }
}

fn respond(question: &Value, chain: &Chain, headers: &AtomicU64) -> String {
    match question.as_array() {
        Some(calls) => {
            Value::Array(calls.iter().map(|call| answer(call, chain, headers)).collect()).to_string()
        }
        None => answer(question, chain, headers).to_string(),
    }
}

fn answer(call: &Value, chain: &Chain, headers: &AtomicU64) -> Value {
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
                found.iter().map(|(header, uncles)| (header.header().header(), &uncles[..]))
            ))
        }
        _ => {
            let error = json!({"code": -32601, "message": "method not found"});
            return json!({"jsonrpc": "2.0", "id": call["id"], "error": error});
        }
    };
    json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
}
