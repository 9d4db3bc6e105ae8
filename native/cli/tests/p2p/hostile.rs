//! Light clients among honest and hostile peers drawn from seeds. A failure prints the seed; `ROOTLIGHT_SEED` runs that one
//! alone, `ROOTLIGHT_SCENARIOS` sets how many are run.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alloy_primitives::{hex, keccak256};
use fastrand::Rng;
use flate2::read::GzDecoder;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use rootlight::consensus::{Checkpoint, Network};
use rootlight::light::UpstreamRequest;
use rootlight_node::light::{LightOptions, LightService};
use rootlight_node::peer_server::PeerChain as _;
use rootlight_upstream::p2p::{Identity, PeerUpstream, StateNodes};
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, unreserved};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::chain::RecordedChain;
use crate::common::ask;
use crate::hostile_peer::{HostilePeer, PeerTrick, trick};

/// Scenarios of an ordinary run.
const SCENARIOS: u64 = 16;

/// Scenarios that run side by side: most of the time is waiting for peers that say nothing.
const TOGETHER: usize = 64;

/// The head of all honest peers. The recording has the states of this block and of block 60.
const HEAD: u64 = 400;

/// Questions that are drawn for each scenario.
const QUESTIONS: u64 = 8;

/// Ends a scenario that hangs. An honest peer among liars is found much earlier.
const LIMIT: Duration = Duration::from_secs(900);

type TrueAnswer = (&'static str, Value, Value);

/// Accounts, codes and cells, present and absent, with the answers of the recorded node; blocks with transactions and
/// uncles; logs that the blooms of all blocks exclude.
fn questions(chain: &RecordedChain) -> Vec<TrueAnswer> {
    let path = crate::common::shared("vectors/p2p/chain/keys.json.gz").unwrap();
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let states: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut all = Vec::new();
    for state in states.iter().filter(|state| [60, HEAD].contains(&state["block"].as_u64().unwrap())) {
        let block = format!("{:#x}", state["block"].as_u64().unwrap());
        for key in state["keys"].as_array().unwrap() {
            let (address, rpc) = (format!("0x{}", key["address"].as_str().unwrap()), &key["rpc"]);
            let slot = format!("0x{}", key["slot"].as_str().unwrap_or_default());
            let asked = match key["kind"].as_str().unwrap() {
                "account" => vec![
                    ("eth_getBalance", json!([address, block]), rpc["balance"].clone()),
                    ("eth_getTransactionCount", json!([address, block]), rpc["nonce"].clone()),
                ],
                "code" => vec![("eth_getCode", json!([address, block]), rpc["code"].clone())],
                "slot" => vec![("eth_getStorageAt", json!([address, slot, block]), rpc["word"].clone())],
                _ => Vec::new(),
            };
            all.extend(asked.into_iter().filter(|(.., truth)| truth.is_string()));
        }
    }
    for number in [1, 60, 68, 70, 72, 74, 200, HEAD] {
        let number = format!("{number:#x}");
        let hash = chain.hash_at(u64::from_str_radix(&number[2..], 16).unwrap()).unwrap();
        all.push(("eth_getBlockByNumber", json!([number, true]), json!(hash)));
    }
    let nobody = json!({ "fromBlock": "0x1", "toBlock": "0x190", "address": "0x00000000000000000000000000000000000e1e1e" });
    all.push(("eth_getLogs", json!([nobody]), json!([])));
    all
}

/// Compares an answer with the truth: code by its hash if that was recorded, a block by its hash and its numbers of entries.
fn compared(question: &TrueAnswer, result: &Value, chain: &RecordedChain) -> bool {
    let (method, _, truth) = question;
    match (*method, truth.as_str()) {
        ("eth_getCode", Some(truth)) if truth.starts_with("keccak:") => {
            let code = result.as_str().and_then(|code| hex::decode(code).ok()).unwrap_or_default();
            truth == format!("keccak:{}", hex::encode(keccak256(code)))
        }
        ("eth_getBlockByNumber", Some(hash)) => {
            let Some(known) = hash.parse().ok().and_then(|hash| chain.block(hash)) else { return false };
            let count = |name: &str| result[name].as_array().map(Vec::len);
            result["hash"] == *truth
                && count("transactions") == Some(known.transactions.len())
                && count("uncles") == Some(known.uncles.len())
                && known.transactions.iter().zip(result["transactions"].as_array().unwrap()).all(
                    |(known, shown)| {
                        shown["hash"] == json!(known.hash()) && shown["value"] == json!(known.value)
                    },
                )
        }
        _ => result == truth,
    }
}

/// An upstream that speaks JSON-RPC: what an honest peer gives, some digits changed.
struct Digits {
    inner: SharedUpstream,
    percent: u64,
    seed: AtomicU64,
}

impl Upstream for Digits {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            let answers = self.inner.request(requests).await;
            let mut random = Rng::with_seed(self.seed.fetch_add(0x5bd1, Ordering::Relaxed));
            answers.into_iter().map(|answer| answer.map(|raw| self.change(raw, &mut random))).collect()
        }))
    }

    fn name(&self) -> &str {
        "digits"
    }
}

impl Digits {
    fn change(&self, raw: Box<RawValue>, random: &mut Rng) -> Box<RawValue> {
        let mut text = raw.get().as_bytes().to_vec();
        let digits: Vec<usize> = (0..text.len()).filter(|place| text[*place].is_ascii_digit()).collect();
        if random.u64(..100) < self.percent && !digits.is_empty() {
            text[digits[random.usize(..digits.len())]] = b'0' + random.u8(..10);
        }
        let text = String::from_utf8(text).unwrap();
        RawValue::from_string(text).unwrap_or(raw)
    }
}

/// The peers of a scenario, and a light client that knows nothing but them and block 0.
struct Cast {
    peers: Vec<HostilePeer>,
    light: LightService,
}

impl Cast {
    async fn new(chain: &Arc<RecordedChain>, random: &mut Rng, honest: bool) -> Self {
        let count = 1 + random.u64(..4);
        let place = random.u64(..count);
        let mut peers = Vec::new();
        for index in 0..count {
            let trick = if honest && index == place { PeerTrick::Honest } else { trick(random) };
            peers.push(HostilePeer::start(chain.clone(), trick, random.u64(..)).await);
        }
        let (network, genesis) = (Arc::new(Network::regtest()), chain.hash_at(0).unwrap());
        let identity = Arc::new(Identity::open(&network, genesis, None).unwrap());
        let nodes = Arc::new(StateNodes::default());
        let upstream = |peer: &HostilePeer| -> SharedUpstream {
            let address = peer.address.clone();
            Arc::new(PeerUpstream::new(identity.clone(), address, network.clone(), nodes.clone()))
        };
        let mut upstreams: Vec<SharedUpstream> = peers.iter().map(upstream).collect();
        if honest && random.u64(..100) < 30 {
            let honest = &peers[usize::try_from(place).unwrap()];
            let inner = upstream(honest);
            let (percent, seed) = (1 + random.u64(..100), AtomicU64::new(random.u64(..)));
            upstreams.push(Arc::new(Digits { inner, percent, seed }));
        }
        let checkpoint = Checkpoint { number: 0, hash: genesis, total_difficulty: None };
        let options = LightOptions { max_age: 0, ..LightOptions::default() };
        Self { peers, light: LightService::start(Network::regtest(), checkpoint, upstreams, options) }
    }

    fn tricks(&self) -> Vec<PeerTrick> {
        self.peers.iter().map(|peer| peer.trick).collect()
    }

    async fn head(&self) -> u64 {
        let head = ask(&self.light, "eth_blockNumber", json!([])).await;
        head["result"].as_str().map_or(0, |head| u64::from_str_radix(&head[2..], 16).unwrap())
    }

    /// Whether an honest peer was held to be a liar.
    async fn blamed(&self) -> Vec<Value> {
        let all = ask(&self.light, "rootlight_upstreams", json!([])).await;
        let all = all["result"].as_array().unwrap_or_else(|| panic!("{all}")).clone();
        let peers = self.peers.iter().zip(all).filter(|(peer, _)| peer.trick == PeerTrick::Honest);
        peers.map(|(_, status)| status).filter(|status| status["lies"] != json!(0)).collect()
    }
}

#[derive(Default)]
struct AnswerTally {
    proven: AtomicU64,
    refused: AtomicU64,
}

/// Asks until the answer is proven if there is an honest peer, else once. An answer that counts as proven is the true one.
async fn examine(
    cast: &Cast,
    question: &TrueAnswer,
    honest: bool,
    chain: &RecordedChain,
    tally: &AnswerTally,
) -> Result<(), String> {
    let (method, params, _) = question;
    loop {
        let answer = ask(&cast.light, method, params.clone()).await;
        match answer.get("result").filter(|_| answer.get("level").is_none()) {
            Some(result) => {
                // A head below the block is possible only if no peer showed the rest of the chain.
                let above = !honest && *method == "eth_getBlockByNumber" && result.is_null();
                let below = !honest && *method == "eth_getLogs" && *result == json!([]);
                if !(above || below || compared(question, result, chain)) {
                    return Err(format!("{method} {params}: {answer}"));
                }
                tally.proven.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            None if answer.get("result").is_some() => return Err(format!("{method} {params}: {answer}")),
            None if !honest => {
                tally.refused.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            None => {
                if std::env::var_os("ROOTLIGHT_SEED").is_some() {
                    println!("{method} {params}: {answer}");
                }
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn scenario(chain: Arc<RecordedChain>, all: Arc<Vec<TrueAnswer>>, seed: u64, tally: Arc<AnswerTally>) {
    let mut random = Rng::with_seed(seed);
    let honest = random.u64(..100) < 70;
    let cast = Cast::new(&chain, &mut random, honest).await;
    let tricks = cast.tricks();
    let run = async {
        if honest {
            while cast.head().await < HEAD {
                sleep(Duration::from_millis(100)).await;
            }
        } else {
            cast.light.settled(Duration::from_secs(2)).await;
        }
        for _ in 0..QUESTIONS {
            let question = random.choice(all.iter()).unwrap();
            let examined = examine(&cast, question, honest, &chain, &tally).await;
            examined.unwrap_or_else(|wrong| panic!("seed {seed}: {tricks:?} {wrong}"));
        }
        let blamed = cast.blamed().await;
        assert!(blamed.is_empty(), "seed {seed}: {tricks:?} {blamed:?}");
    };
    if timeout(LIMIT, run).await.is_err() {
        let (head, status) = (cast.head().await, ask(&cast.light, "rootlight_upstreams", json!([])).await);
        panic!("seed {seed}: {tricks:?} not done after {LIMIT:?}, head {head}: {status}");
    }
}

/// No value at a level that it does not have, no honest peer blamed; with an honest peer, every true value.
#[tokio::test(flavor = "multi_thread")]
async fn mixtures_of_peers() {
    let Some(chain) = RecordedChain::read(HEAD) else { return };
    let all = Arc::new(questions(&chain));
    assert!(all.len() > 100);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("ROOTLIGHT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ROOTLIGHT_SCENARIOS").unwrap_or(SCENARIOS),
    };
    let (tally, began, count) = (Arc::new(AnswerTally::default()), Instant::now(), seeds.end - seeds.start);
    let runs = futures::stream::iter(seeds).map(|seed| {
        let run = tokio::spawn(scenario(chain.clone(), all.clone(), seed, tally.clone()));
        async move { run.await.map_err(|error| (seed, error)) }
    });
    let failed: Vec<_> =
        runs.buffer_unordered(TOGETHER).filter_map(|run| async { run.err() }).collect().await;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{count} scenarios in {:.1} s: {} answers as proven, {} refused",
        began.elapsed().as_secs_f64(),
        of(&tally.proven),
        of(&tally.refused)
    );
    assert!(
        failed.is_empty(),
        "{} failed: {:?}",
        failed.len(),
        failed.iter().map(|failed| failed.0).collect::<Vec<_>>()
    );
    assert!(of(&tally.proven) > 2 * count);
}
