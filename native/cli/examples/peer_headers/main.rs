//! The processor time of a light client that reads headers with their uncles from one peer, beside that of verifying the
//! same headers and uncles: `cargo run --release --example peer_headers`. The peer is another process of this program, over loopback; the chain has
//! the rules and sizes of the main network, and cheap proofs of work.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};
use rootlight::consensus::{Checkpoint, HeaderCandidate, HeaderChain, Network};
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

use chain::{BELOW, HeaderAndUncles, NETWORK, START};
use served::CountedChain;

/// Headers above the start.
const HEADERS: u64 = 12_000;

/// Times that the headers are synchronized and verified.
const ROUNDS: u32 = 5;

fn network() -> Network {
    served::network(NETWORK)
}

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
    let server = PeerServer::bind(identity, Arc::new(CountedChain::new(NETWORK, HEADERS)), place)
        .await
        .expect("a port");
    println!("{id}@{}", server.address());
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    let _ = ended.await;
}

/// A block's header and its uncles, encoded.
type EncodedBlock = (Vec<u8>, Vec<Vec<u8>>);

fn encoded((header, uncles): HeaderAndUncles) -> EncodedBlock {
    let encode = |header: &SealedHeader| header.encode(HeaderForm::Full);
    (encode(header.header()), uncles.iter().map(encode).collect())
}

/// Verifies all headers and uncles in this thread.
fn verify(blocks: &[EncodedBlock], below: &[SealedHeader]) {
    let network = Arc::new(network());
    let (first, ancestors) = below.split_last().expect("the start");
    let checkpoint = Checkpoint { number: first.number, hash: first.hash(), total_difficulty: None };
    let mut chain =
        HeaderChain::from_checkpoint(network.clone(), &checkpoint, first.clone()).expect("a chain");
    for ancestor in ancestors.iter().rev() {
        chain.prepend(ancestor.clone()).expect("an ancestor");
    }
    for (header, uncles) in blocks {
        let candidate = HeaderCandidate::decode(header, &network).expect("a header");
        let hash = candidate.header().hash();
        chain.insert(candidate, None).expect("a header by all rules");
        let decode = |uncle: &Vec<u8>| HeaderCandidate::decode(uncle, &network).expect("an uncle");
        let uncles = uncles.iter().map(|uncle| decode(uncle).into_header().into_header()).collect();
        chain.attach_uncles(&hash, uncles, None).expect("uncles by all rules");
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
    let chain = CountedChain::new(NETWORK, HEADERS);
    let program = std::env::current_exe().expect("this program");
    let server = Command::new(program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut server = server.expect("a process");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
    let peer: PeerAddress = line.trim().parse().expect("an address");
    let first = chain.at(START).expect("the start");
    let below: Vec<SealedHeader> =
        (START - BELOW..=START).map(|number| chain.at(number).expect("a header")).collect();
    let above = START + 1..=chain.newest();
    let blocks: Vec<EncodedBlock> =
        above.map(|number| encoded(chain.with_uncles(number).expect("a block"))).collect();
    drop(chain);
    let all = f64::from(ROUNDS) * blocks.len() as f64;
    let (mut verified, mut used, mut waited) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        let began = ThreadTime::now();
        verify(&blocks, &below);
        verified += began.elapsed();
        let (began, clock) = (ProcessTime::now(), Instant::now());
        synchronize(&identity(), &peer, &first).await;
        used += began.elapsed();
        waited += clock.elapsed();
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / all;
    println!(
        "{:.1} µs of processor time a block, {:.1} µs to verify header and uncles: {:.2}; {:.0} blocks a second",
        micros(used),
        micros(verified),
        used.as_secs_f64() / verified.as_secs_f64(),
        all / waited.as_secs_f64(),
    );
    drop(server.stdin.take());
    let _ = server.wait();
}
