//! The processor time of a light client that reads headers from one peer, beside that of verifying the same headers:
//! `cargo run --release --example peer_headers`. The peer is another process of this program, over loopback; the chain has
//! the rules and sizes of the main network, and cheap proofs of work.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};
use rootlight::consensus::{Checkpoint, HeaderCandidate, verify_child};
use rootlight::light::SyncOptions;
use rootlight::types::{HeaderForm, SealedHeader};
use rootlight_node::light::{LightOptions, LightService};
use rootlight_node::peer_server::PeerServer;
use rootlight_p2p::session::RateLimits;
use rootlight_server::service::Service as _;
use rootlight_upstream::p2p::{Identity, PeerAddress, PeerUpstream, StateNodes};

#[allow(dead_code)]
#[path = "../cold_start/chain.rs"]
mod chain;
mod served;

use chain::START;
use served::{CountedChain, network};

/// Headers above the start.
const HEADERS: u64 = 12_000;

/// Times that the headers are synchronized and verified.
const ROUNDS: u32 = 5;

/// The identity of either side. More messages are sent than a stock node reads: uncles take a message for each block.
fn identity() -> Arc<Identity> {
    let network = network();
    let identity = Identity::open(&network, network.genesis_hash, None).expect("a key");
    let limits = RateLimits { sent: 1 << 30, received: 1 << 30, received_bytes: 1 << 50 };
    Arc::new(identity.with_limits(limits))
}

/// Serves the chain until standard input ends.
async fn serve() {
    let identity = identity();
    let id = *identity.id();
    let place = "127.0.0.1:0".parse().expect("an address");
    let server =
        PeerServer::bind(identity, Arc::new(CountedChain::new(HEADERS)), place).await.expect("a port");
    println!("{id}@{}", server.address());
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    let _ = ended.await;
}

/// Verifies all headers in this thread.
fn verify(rlps: &[Vec<u8>], first: &SealedHeader) {
    let (network, mut before) = (network(), None::<HeaderCandidate>);
    for rlp in rlps {
        let candidate = HeaderCandidate::decode(rlp, &network).expect("a header");
        let parent = before.as_ref().map_or(first, HeaderCandidate::header);
        verify_child(&candidate, parent, &network, None).expect("a header by all rules");
        before = Some(candidate);
    }
}

/// Synchronizes from the peer with a new client.
async fn synchronize(identity: &Arc<Identity>, peer: &PeerAddress, first: &SealedHeader) {
    let (network, nodes) = (Arc::new(network()), Arc::new(StateNodes::default()));
    let upstream = PeerUpstream::new(identity.clone(), peer.clone(), network.clone(), nodes);
    let checkpoint = Checkpoint { number: first.number, hash: first.hash(), total_difficulty: None };
    let sync = SyncOptions { backfill: 0, work_floor: 0, ..SyncOptions::default() };
    let options = LightOptions { sync, max_age: 0, ..LightOptions::default() };
    let light = LightService::start((*network).clone(), checkpoint, vec![Arc::new(upstream)], options);
    light.settled(Duration::from_secs(200)).await;
    assert!(light.is_synced(), "{:?}", light.health());
}

#[tokio::main]
async fn main() {
    if std::env::args().nth(1).is_some_and(|mode| mode == "serve") {
        return serve().await;
    }
    let chain = CountedChain::new(HEADERS);
    let program = std::env::current_exe().expect("this program");
    let server = Command::new(program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut server = server.expect("a process");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
    let peer: PeerAddress = line.trim().parse().expect("an address");
    let first = chain.at(START).expect("the start");
    let above = START + 1..=chain.newest();
    let rlps: Vec<Vec<u8>> =
        above.map(|number| chain.at(number).expect("a header").encode(HeaderForm::Full)).collect();
    drop(chain);
    let all = f64::from(ROUNDS) * rlps.len() as f64;
    let (mut verified, mut used, mut waited) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        let began = ThreadTime::now();
        verify(&rlps, &first);
        verified += began.elapsed();
        let (began, clock) = (ProcessTime::now(), Instant::now());
        synchronize(&identity(), &peer, &first).await;
        used += began.elapsed();
        waited += clock.elapsed();
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / all;
    println!(
        "{:.1} µs of processor time a header, {:.1} µs to verify it: {:.2}; {:.0} headers a second",
        micros(used),
        micros(verified),
        used.as_secs_f64() / verified.as_secs_f64(),
        all / waited.as_secs_f64(),
    );
    drop(server.stdin.take());
    let _ = server.wait();
}
