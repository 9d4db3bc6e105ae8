//! The upstream, which serves headers in binary form and the height, also to web pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rootlight::light::encode_headers;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::chain::BlockFile;

/// CORS headers. A page sends a preflight request before it posts JSON.
const ALLOWED: &str = "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: content-type\r\n\
                       Access-Control-Max-Age: 7200\r\n";

/// The method that returns the upstream's counters. It is not counted itself.
const FIGURES: &str = "cold_figures";

/// The upstream's address, and counters of what it received and sent.
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
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, chain.clone(), counters.clone()));
            }
        });
        upstream
    }
}

type TrafficCounters = (Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicU64>);

async fn connection(mut stream: TcpStream, chain: Arc<BlockFile>, counters: TrafficCounters) -> Option<()> {
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
        if head.starts_with("options") {
            read.drain(..end + 4);
            let allowed = format!("HTTP/1.1 204 No Content\r\n{ALLOWED}\r\n");
            stream.write_all(allowed.as_bytes()).await.ok()?;
            continue;
        }
        let question: Value = serde_json::from_slice(&read[end + 4..end + 4 + length]).ok()?;
        read.drain(..end + 4 + length);
        let counted = question["method"] != FIGURES;
        let body = if counted {
            questions.fetch_add(1, Ordering::Relaxed);
            let (chain, headers) = (chain.clone(), headers.clone());
            tokio::task::spawn_blocking(move || respond(&question, &chain, &headers)).await.ok()?
        } else {
            let figures = [&headers, &bytes].map(|count| count.load(Ordering::Relaxed));
            json!({"headers": figures[0], "bytes": figures[1]}).to_string()
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{ALLOWED}Content-Length: {}\r\n\r\n",
            body.len()
        );
        bytes.fetch_add(if counted { (head.len() + body.len()) as u64 } else { 0 }, Ordering::Relaxed);
        stream.write_all(head.as_bytes()).await.ok()?;
        stream.write_all(body.as_bytes()).await.ok()?;
    }
}

fn respond(question: &Value, chain: &BlockFile, headers: &AtomicU64) -> String {
    match question.as_array() {
        Some(calls) => {
            Value::Array(calls.iter().map(|call| answer(call, chain, headers)).collect()).to_string()
        }
        None => answer(question, chain, headers).to_string(),
    }
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
