//! The processor time of a light client that reads headers from one peer, beside that of verifying the same headers:
//! `cargo run --release --example peer_headers`. The peer is another process of this program, over loopback; the headers
//! are 1,200 consecutive ones of the main network (`ROOTLIGHT_SHARED`).

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::{B256, U256, hex};
use cpu_time::{ProcessTime, ThreadTime};
use rootlight::consensus::{Checkpoint, HeaderCandidate, Network, verify_child};
use rootlight::light::SyncOptions;
use rootlight::trie::NodeSource;
use rootlight::types::{BlockRef, Header, SealedHeader};
use rootlight_native::light::{LightOptions, LightService};
use rootlight_native::p2p::{
    Identity, PeerAddress, PeerChain, PeerServer, PeerUpstream, ServedBlock, ServedHead, StateNodes,
};
use rootlight_p2p::session::RateLimits;
use tokio::sync::watch;

/// Times that the headers are synchronized and verified.
const ROUNDS: u32 = 30;

/// Consecutive headers, the first of which is the head's oldest known ancestor.
struct Headers(Vec<SealedHeader>);

fn headers() -> Headers {
    let default = || concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared").into();
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(default, std::path::PathBuf::from);
    let path = shared.join("realdata/headers/mainnet_4479841_iris_run1200.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let network = Network::mainnet();
    let decode = |row: &serde_json::Value| {
        let rlp = hex::decode(row["rlp"].as_str().expect("hex")).expect("hex");
        Header::decode(&rlp, &|number| network.header_shape(number)).expect("a header").seal()
    };
    Headers(file["headers"].as_array().expect("a list").iter().map(decode).collect())
}

impl Headers {
    fn first(&self) -> u64 {
        self.0[0].number
    }

    fn last(&self) -> &SealedHeader {
        &self.0[self.0.len() - 1]
    }
}

impl PeerChain for Headers {
    fn head(&self) -> Option<ServedHead> {
        let last = self.last();
        let block = BlockRef { number: last.number, hash: last.hash() };
        Some(ServedHead { block, parent: last.parent_hash, total_difficulty: U256::from(1) })
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        let index = usize::try_from(number.checked_sub(self.first())?).ok()?;
        self.0.get(index).map(SealedHeader::hash)
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        self.0.iter().find(|header| header.hash() == hash).cloned()
    }

    fn headers(&self, hash: B256, count: usize) -> Vec<SealedHeader> {
        let newest = self.0.iter().rev().skip_while(|header| header.hash() != hash);
        newest.take(count).cloned().collect()
    }

    fn block(&self, _: B256) -> Option<ServedBlock> {
        None
    }

    fn total_difficulty(&self, _: B256) -> Option<U256> {
        None
    }

    fn with_state(&self, _: u64, _: &mut dyn FnMut(B256, &dyn NodeSource)) {}

    fn submit(&self, _: Vec<Vec<u8>>) {}

    fn pending(&self, _: &mut u64) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}

/// The identity of either side. Without `stock`, more messages are sent than a stock node reads.
fn identity(stock: bool) -> Arc<Identity> {
    let network = Network::mainnet();
    let identity = Identity::open(&network, network.genesis_hash, None).expect("a key");
    let limits = RateLimits { sent: 1 << 30, received: 1 << 30, received_bytes: 1 << 50 };
    Arc::new(if stock { identity } else { identity.with_limits(limits) })
}

/// Serves the headers until standard input ends.
async fn serve() {
    let identity = identity(false);
    let id = *identity.id();
    let server = PeerServer::bind(identity, Arc::new(headers()), "127.0.0.1:0".parse().expect("an address"));
    let server = server.await.expect("a port");
    println!("{id}@{}", server.address());
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    let _ = ended.await;
}

/// Verifies all headers in this thread.
fn verify(rlps: &[Vec<u8>], first: &SealedHeader) {
    let (network, mut before) = (Network::mainnet(), None::<HeaderCandidate>);
    for rlp in rlps {
        let candidate = HeaderCandidate::decode(rlp, &network).expect("a header");
        let parent = before.as_ref().map_or(first, HeaderCandidate::header);
        verify_child(&candidate, parent, &network, None).expect("a real header");
        before = Some(candidate);
    }
}

/// Synchronizes from the peer with a new client.
async fn synchronize(identity: &Arc<Identity>, peer: &PeerAddress, first: &SealedHeader) {
    let (network, nodes) = (Arc::new(Network::mainnet()), Arc::new(StateNodes::default()));
    let upstream = Arc::new(PeerUpstream::new(identity.clone(), peer.clone(), network, nodes));
    let checkpoint = Checkpoint { number: first.number, hash: first.hash(), total_difficulty: None };
    let sync = SyncOptions { backfill: 0, work_floor: 0, ..SyncOptions::default() };
    let options = LightOptions { sync, max_age: 0, ..LightOptions::default() };
    let light = LightService::start(Network::mainnet(), checkpoint, vec![upstream], options);
    light.settled(Duration::from_secs(100)).await;
    assert!(light.is_synced());
}

#[tokio::main]
async fn main() {
    if std::env::args().nth(1).is_some_and(|mode| mode == "serve") {
        return serve().await;
    }
    let program = std::env::current_exe().expect("this program");
    let mut server = Command::new(program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let server = server.as_mut().expect("a process");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
    let peer: PeerAddress = line.trim().parse().expect("an address");
    let headers = headers();
    let rlps: Vec<Vec<u8>> =
        headers.0[1..].iter().map(|header| header.encode(rootlight::types::HeaderForm::Full)).collect();
    let first = &headers.0[0];
    let all = f64::from(ROUNDS) * rlps.len() as f64;
    for (name, stock) in [("a stock node's limits", true), ("no limits", false)] {
        let identity = identity(stock);
        synchronize(&identity, &peer, first).await;
        let (mut verified, mut used, mut waited) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        for _ in 0..ROUNDS {
            let began = ThreadTime::now();
            verify(&rlps, first);
            verified += began.elapsed();
            let (began, clock) = (ProcessTime::now(), Instant::now());
            synchronize(&identity, &peer, first).await;
            used += began.elapsed();
            waited += clock.elapsed();
        }
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / all;
        println!(
            "{name}: {:.1} µs of processor time a header, {:.1} µs to verify it: {:.2}; {:.0} headers a second",
            micros(used),
            micros(verified),
            used.as_secs_f64() / verified.as_secs_f64(),
            all / waited.as_secs_f64(),
        );
    }
    drop(server.stdin.take());
    let _ = server.wait();
}
