//! Measures a cold start of the light client over as many headers as lie between the newest built-in
//! checkpoint and the head: time to the first answer, bytes received and memory, with an upstream on
//! loopback.
//!
//! `cargo xtask bench cold`, or `cargo run --release -p rootlight-cli --example cold_start -- PROGRAM [HEADERS]`.
//! The blocks are mined here: headers and uncles with main network rules, sizes and merged-mining proofs, at
//! difficulty 4. A file in the folder for temporary files keeps them for the next run. `--make` only creates
//! this file; `--serve` serves the blocks to another client (bench/compare/cold.mjs) until standard input ends.

#[path = "cold_start/chain.rs"]
mod chain;
#[path = "cold_start/serve.rs"]
mod serve;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chain::{BELOW, BlockFile, START};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Headers above the checkpoint: those of 9,000,000 up to November 2026.
const HEADERS: u64 = 440_000;

/// Longest cold start that the measurement waits for.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Interval at which the client is polled.
const LOOK: Duration = Duration::from_millis(50);

/// The client's process, which ends with this program.
struct ClientProcess(Child);

impl Drop for ClientProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ClientProcess {
    /// Returns a figure of the process in KiB from `/proc`.
    fn memory(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap_or(0)
    }
}

/// Sends one request over a new connection; returns `None` if nothing listens.
async fn ask(port: u16, method: &str) -> Option<serde_json::Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[]}}"#);
    let head = format!(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

async fn measure(program: &str, chain: Arc<BlockFile>, more: &[String]) {
    let network = std::env::temp_dir().join(format!("rootlight-cold-{}.json", std::process::id()));
    std::fs::write(&network, chain::NETWORK).expect("the network's file is written");
    let upstream = serve::HeaderServer::start(chain.clone()).await;
    let (port, checkpoint) = (free_port(), format!("{START}:{}", chain.hash(START)));
    let by_work = more.iter().any(|argument| argument == "--checkpoint");
    let mut command = Command::new(program);
    command.args(["light", "--max-age", "0", "--silent", "--host", "127.0.0.1"]);
    command.arg("--network").arg(&network).arg("--http-port").arg(port.to_string());
    command.arg("--upstream").arg(format!("http://{}/", upstream.address)).args(more);
    if !by_work {
        command.args(["--checkpoint", &checkpoint]);
    }
    let began = Instant::now();
    let mut client = ClientProcess(command.stdout(Stdio::null()).spawn().expect("the client starts"));
    let head = format!("{:#x}", chain.head());
    let mut reported = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        assert!(began.elapsed() < PATIENCE, "no answer within {PATIENCE:?}");
        assert!(matches!(client.0.try_wait(), Ok(None)), "the client has ended");
        if ask(port, "eth_blockNumber").await.is_some_and(|answer| answer["result"] == *head) {
            break;
        }
        let served = upstream.headers.load(Ordering::Relaxed);
        if served >= reported + 40_000 {
            reported = served;
            println!(
                "{served:>9} blocks {:>7.1} s {:>7} KiB resident",
                began.elapsed().as_secs_f64(),
                client.memory("VmRSS")
            );
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let (headers, bytes) = (upstream.headers.load(Ordering::Relaxed), upstream.bytes.load(Ordering::Relaxed));
    println!(
        "first answer after {seconds:.1} s: {headers} blocks, {:.0} per second",
        headers as f64 / seconds
    );
    println!(
        "received {bytes} bytes, {:.0} per block, {} requests",
        bytes as f64 / headers as f64,
        upstream.questions.load(Ordering::Relaxed)
    );
    println!("memory: peak {} KiB, now {} KiB", client.memory("VmHWM"), client.memory("VmRSS"));
    let _ = std::fs::remove_file(network);
}

/// Serves the chain and prints one line of JSON: the upstream's address, the network, the checkpoint, the head and its time.
async fn serve(chain: Arc<BlockFile>) {
    let (head, hash) = (chain.head(), chain.hash(START).to_string());
    let time = chain.block(head).expect("a head").0.header().timestamp;
    let upstream = serve::HeaderServer::start(chain).await;
    let network: serde_json::Value = serde_json::from_str(chain::NETWORK).expect("a network file");
    let checkpoint = serde_json::json!({ "number": START, "hash": hash });
    let url = format!("http://{}/", upstream.address);
    let line = serde_json::json!({
        "upstream": url, "network": network, "checkpoint": checkpoint, "head": head, "time": time
    });
    println!("{line}");
    let ended = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    let _ = ended.await;
}

#[tokio::main]
async fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| {
        let before = arguments.len();
        arguments.retain(|argument| argument != name);
        arguments.len() < before
    };
    let (only_make, serves) = (flag("--make"), flag("--serve"));
    let mut arguments = arguments.into_iter();
    if serves {
        let headers = arguments.next().map_or(HEADERS, |text| text.parse().expect("a number of headers"));
        return serve(Arc::new(BlockFile::open_or_make(chain::NETWORK, headers))).await;
    }
    let Some(program) = arguments.next() else {
        eprintln!("usage: cold_start PROGRAM [HEADERS [FLAGS OF rootlight light..]]");
        std::process::exit(2);
    };
    let headers = arguments.next().map_or(HEADERS, |text| text.parse().expect("a number of headers"));
    let chain = Arc::new(BlockFile::open_or_make(chain::NETWORK, headers));
    println!("{} blocks from {START} on and {BELOW} below, {} bytes each", headers, chain.bytes_per_block());
    if !only_make {
        measure(&program, chain, &arguments.collect::<Vec<_>>()).await;
    }
}
