//! An upstream that pads its answers.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::target::Target;

/// Bytes of padding in each answer to a message.
const PADDING: usize = 28 << 20;

/// What the upstreams answer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Padding {
    /// Blocks with a list of transactions that are none.
    Transactions,
    /// Many more answers than there were questions.
    Members,
    /// Proofs of many nodes that are empty.
    Nodes,
}

/// Each way to pad, with the name of its abuse.
pub(crate) const ALL: [(&str, Padding); 3] = [
    ("upstream", Padding::Transactions),
    ("upstream-members", Padding::Members),
    ("upstream-nodes", Padding::Nodes),
];

/// A light client with three such upstreams, which somebody asks meanwhile, also for the logs of 600 blocks.
pub(crate) async fn attack(binary: &str, padding: Padding) -> (Target, String) {
    let mut upstreams = Vec::new();
    for _ in 0..3 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        upstreams.push(listener.local_addr().expect("its address"));
        tokio::spawn(serve(listener, padding));
    }
    let urls: Vec<String> =
        upstreams.iter().map(|address: &SocketAddr| format!("http://{address}/")).collect();
    let mut arguments = vec!["light", "--network", "mainnet"];
    urls.iter().for_each(|url| arguments.extend(["--upstream", url]));
    let target = Target::start(binary, &arguments);
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let address = target.address;
        tasks.push(tokio::spawn(async move {
            for id in 0..10 {
                let hash = format!("0x{id:064x}");
                let (method, params) = match id % 3 {
                    0 => ("eth_getBlockByHash", serde_json::json!([hash, true])),
                    1 => {
                        ("eth_getLogs", serde_json::json!([{"fromBlock": "0x895440", "toBlock": "0x895698"}]))
                    }
                    _ => ("eth_getBalance", serde_json::json!([format!("0x{id:040x}"), "latest"])),
                };
                let call =
                    serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
                let call = call.to_string();
                let asked = crate::target::post(address, None, &call);
                let _ = tokio::time::timeout(Duration::from_secs(10), asked).await;
            }
        }));
    }
    tokio::time::sleep(Duration::from_secs(25)).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    (target, format!("three upstreams that pad answers to {} MiB", PADDING >> 20))
}

async fn serve(listener: TcpListener, padding: Padding) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection(stream, padding));
    }
}

async fn connection(mut stream: TcpStream, padding: Padding) -> Option<()> {
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
        let body = answer(&question, padding);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        stream.write_all(body.as_bytes()).await.ok()?;
    }
}

/// Objects that look like blocks of a far higher chain, or proofs, padded.
fn answer(question: &Value, padding: Padding) -> String {
    let calls: Vec<&Value> =
        question.as_array().map_or_else(|| vec![question], |calls| calls.iter().collect());
    let share = PADDING / calls.len().max(1);
    let one = |call: &&Value| {
        let result = match (call["method"].as_str(), padding) {
            (Some("eth_blockNumber"), _) => "\"0x900000\"".to_owned(),
            (Some("net_version" | "eth_chainId"), _) => "\"0x1e\"".to_owned(),
            (_, Padding::Nodes) => {
                let nodes = "\"\",".repeat(share / 3);
                format!("{{\"accountProof\":[{nodes}\"\"],\"number\":\"0x900000\"}}")
            }
            (_, Padding::Transactions) => {
                format!("{{\"number\":\"0x900000\",\"transactions\":[{}0]}}", "0,".repeat(share / 2))
            }
            (_, Padding::Members) => "null".to_owned(),
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", call["id"])
    };
    let answers: Vec<String> = calls.iter().map(one).collect();
    match padding {
        Padding::Members => format!("[{}{}]", "0,".repeat(PADDING / 2), answers.join(",")),
        _ if question.is_array() => format!("[{}]", answers.join(",")),
        _ => answers.concat(),
    }
}
