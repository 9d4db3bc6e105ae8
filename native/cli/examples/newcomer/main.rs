//! Measures a newcomer's first start: from an empty folder to the first proven balance, and a restart after an hour.
//!
//! `cargo xtask bench newcomer`, or `cargo run --release -p rootlight-cli --example newcomer -- PROGRAM [ACCOUNTS]`. The servers are
//! on this machine, each behind a relay that makes round trips of 30 ms and counts bytes. The chain has headers with the sizes
//! of the main network, merge-mined on a Bitcoin chain with a block every ten minutes, at a difficulty that takes no time.

mod chain;
#[allow(dead_code)]
#[path = "../cold_start/chain.rs"]
mod cold;
mod relay;
mod serve;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use chain::{NETWORK, NewcomerChain, account, balance};
use relay::{Received, relay};
use rootlight_node::bitcoin_chain::BitcoinServers;
use serde_json::Value;
use serve::{NodeKind, ServedChain, serve_json, serve_peer};
use tokio::process::Command;

/// Headers up to now: more than those of a start and their ancestors.
const HEADERS: u64 = 6_500;
/// Accounts of the state.
const ACCOUNTS: u64 = 1_000_000;
/// Times that each start is measured.
const ROUNDS: usize = 5;

/// A way to start: the flags that name servers, and the bytes that the servers sent.
struct Sources {
    name: &'static str,
    flags: Vec<String>,
    received: Received,
}

impl Sources {
    fn of(name: &'static str) -> Self {
        Self { name, flags: Vec::new(), received: Received::default() }
    }

    async fn add(mut self, flag: &str, to: SocketAddr, text: impl Fn(SocketAddr) -> String) -> Self {
        let address = relay(to, self.received.clone()).await;
        self.flags.extend([flag.to_owned(), text(address)]);
        self
    }

    async fn node(self, chain: &Arc<ServedChain>, kind: NodeKind) -> Self {
        let address = serve_json(chain.clone(), kind).await;
        self.add("--upstream", address, |address| format!("http://{address}/")).await
    }
}

/// The time, the bytes and the answer of one run of `rootlight balance`.
struct Run {
    millis: u128,
    bytes: u64,
    answer: Value,
}

struct Newcomer {
    program: String,
    network: std::path::PathBuf,
}

impl Newcomer {
    /// Runs `rootlight balance` with the data in a folder.
    async fn run(&self, sources: &Sources, folder: &Path, index: u64) -> Run {
        let before = sources.received.load(Ordering::Relaxed);
        let began = Instant::now();
        let output = Command::new(&self.program)
            .args(["balance", &account(index).to_string(), "--json", "--checkpoint", "window"])
            .arg("--network")
            .arg(&self.network)
            .arg("--data-dir")
            .arg(folder)
            .args(&sources.flags)
            .stdin(Stdio::null())
            .output()
            .await
            .expect("the program runs");
        let millis = began.elapsed().as_millis();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", sources.name);
        let answer: Value = serde_json::from_slice(&output.stdout).expect("an object");
        assert_eq!(answer["wei"], balance(index).to_string(), "{answer}");
        Run { millis, bytes: sources.received.load(Ordering::Relaxed) - before, answer }
    }
}

fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}

fn tell(name: &str, runs: &[Run]) {
    let (millis, bytes) =
        (median(runs.iter().map(|run| run.millis)), median(runs.iter().map(|run| run.bytes)));
    let bitcoin = &runs[0].answer["bitcoin"];
    println!(
        "{name}: {millis} ms, {bytes} bytes; start {}, Bitcoin {}",
        runs[0].answer["start"], bitcoin["verdict"]
    );
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: newcomer PROGRAM [ACCOUNTS]");
        std::process::exit(2);
    };
    let accounts = arguments.next().map_or(ACCOUNTS, |text| text.parse().expect("a number of accounts"));
    let began = Instant::now();
    let chain = ServedChain::new(NewcomerChain::make(HEADERS, accounts));
    let (seconds, bytes) = (began.elapsed().as_secs_f64(), chain.chain.bytes_per_header());
    println!("{HEADERS} headers of {bytes} bytes and {accounts} accounts made in {seconds:.1} s");
    let folder = tempfile::tempdir().expect("a folder");
    let network = folder.path().join("network.json");
    std::fs::write(&network, NETWORK).expect("the network's file is written");
    let newcomer = Newcomer { program, network };
    let [now, later] = &chain.chain.bitcoin;
    let now = BitcoinServers::start(now.clone()).await.expect("ports");
    let later = BitcoinServers::start(later.clone()).await.expect("ports");
    let mut peers = Vec::new();
    let mut ways = vec![
        Sources::of("nodes with rootlight_getHeaders").node(&chain, NodeKind::Rootlight).await,
        Sources::of("stock nodes, proofs from elsewhere")
            .node(&chain, NodeKind::Stock)
            .await
            .node(&chain, NodeKind::Proofs)
            .await,
    ];
    let mut four = Sources::of("four peers");
    for _ in 0..4 {
        let (server, id, address) = serve_peer(chain.clone()).await;
        peers.push(server);
        four = four.add("--peer", address, |address| format!("{id}@{address}")).await;
    }
    ways.push(four);
    let mut later_ways = Vec::new();
    for way in ways {
        let electrum = |servers: &BitcoinServers| -> SocketAddr {
            servers.electrum()[0].trim_start_matches("tcp://").parse().expect("an address")
        };
        let mut again = Sources { name: way.name, flags: way.flags.clone(), received: way.received.clone() };
        again = again.add("--bitcoin", electrum(&later), |address| format!("tcp://{address}")).await;
        let way = way.add("--bitcoin", electrum(&now), |address| format!("tcp://{address}")).await;
        let mut runs = Vec::new();
        let mut folders = Vec::new();
        for round in 0..ROUNDS {
            let data = folder.path().join(format!("{}-{round}", folders.len() + later_ways.len() * ROUNDS));
            runs.push(newcomer.run(&way, &data, 1_000 * round as u64 + 7).await);
            folders.push(data);
        }
        tell(way.name, &runs);
        later_ways.push((again, folders));
    }
    chain.advance();
    for (way, folders) in &later_ways {
        let mut runs = Vec::new();
        for (round, data) in folders.iter().enumerate() {
            runs.push(newcomer.run(way, data, 1_000 * round as u64 + 8).await);
        }
        tell(&format!("{}, a restart after an hour", way.name), &runs);
    }
}
