//! Clients that learn Bitcoin's chain from upstreams, some of which show its true headers and say that they have other heights.

use std::sync::Arc;

use fastrand::Rng;
use serde_json::{json, value::RawValue};

use super::mine::{Block, CHECKPOINT, network};
use crate::{
    consensus::{
        Checkpoint,
        bitcoin::{BitcoinChain, BitcoinCheckpoint, BitcoinNetwork, CoinbaseProofBuf, HEADER_LEN},
    },
    light::{
        HeaderSync, Now, RequestFailure, SyncOptions, SyncStep, UpstreamRequest, UpstreamResponse,
        bitcoin::{
            BitcoinFollower, decode_coinbases, encode_bitcoin_headers, encode_coinbase_proofs,
            encode_coinbases,
        },
    },
};

const PERIOD: u32 = 2_016;
/// Simulated time between two exchanges with an upstream, in milliseconds: longer than any pause.
const PAUSE: u64 = 3_600_000;
/// Exchanges with each upstream.
const ROUNDS: u64 = 12;

/// A trick with the coinbases that state a height.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stated {
    Shown,
    Withheld,
    /// Changed so that they state the upstream's heights.
    Forged,
}

#[derive(Debug)]
struct Source {
    /// Blocks that the upstream adds to all heights.
    shift: i64,
    stated: Stated,
    served: BitcoinFollower,
}

/// Bitcoin's network, with a trusted block two periods below the one of the other scenarios.
fn bitcoin_network() -> BitcoinNetwork {
    let checkpoint = BitcoinCheckpoint { height: CHECKPOINT.height - 2 * PERIOD, ..CHECKPOINT };
    BitcoinNetwork { checkpoint, ..network().bitcoin.unwrap() }
}

fn client(upstreams: usize) -> HeaderSync {
    let mut network = (**network()).clone();
    network.bitcoin = Some(bitcoin_network());
    let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    let mut sync =
        HeaderSync::with_upstreams(Arc::new(network), checkpoint, upstreams, SyncOptions::default());
    sync.follow_bitcoin_of_upstreams(Now::default());
    sync
}

impl Source {
    fn new(blocks: &[Block], shift: i64, stated: Stated, now: u64) -> Self {
        let headers: Vec<[u8; HEADER_LEN]> = blocks.iter().map(|block| block.header).collect();
        let at = |height: u32| u32::try_from(i64::from(height) + shift).unwrap();
        let chain = BitcoinChain::begin(bitcoin_network(), at(blocks[0].height), &headers, now).unwrap();
        let mut served = BitcoinFollower::resume(chain);
        for block in &blocks[blocks.len() - 100..] {
            served.insert_coinbase_to_serve(at(block.height), &block.coinbase_proof()).unwrap();
        }
        Self { shift, stated, served }
    }

    fn is_honest(&self) -> bool {
        self.shift == 0 && self.stated == Stated::Shown
    }

    fn coinbase(&self, height: u32, proof: CoinbaseProofBuf) -> Option<CoinbaseProofBuf> {
        if proof.is_cut || self.stated == Stated::Shown {
            return Some(proof);
        }
        let mut coinbase = proof.coinbase;
        coinbase[43..46].copy_from_slice(&height.to_le_bytes()[..3]);
        (self.stated == Stated::Forged).then_some(CoinbaseProofBuf { coinbase, ..proof })
    }

    fn answer(&self, request: &UpstreamRequest) -> UpstreamResponse {
        let [from, count]: [String; 2] = serde_json::from_str(&request.params).unwrap();
        let number = |text: &str| u32::from_str_radix(&text[2..], 16).unwrap();
        let (from, count) = (number(&from), number(&count));
        let text = if request.method == "rootlight_getBitcoinHeaders" {
            encode_bitcoin_headers(self.served.chain(), from, count)
        } else {
            let held = decode_coinbases(&encode_coinbases(&self.served, from, count), count as usize);
            let shown = (from..).zip(held.unwrap()).map(|(height, proof)| self.coinbase(height, proof?));
            encode_coinbase_proofs(shown.collect::<Vec<_>>().iter().map(Option::as_ref))
        };
        Ok(RawValue::from_string(json!(text).to_string()).unwrap())
    }
}

/// Lets upstreams answer in turn what they are asked of Bitcoin's chain, and nothing else.
fn exchange(sync: &mut HeaderSync, sources: &[Source], unix: u64) {
    for round in 0..ROUNDS {
        for (upstream, source) in sources.iter().enumerate() {
            let now = Now { unix, millis: round * PAUSE };
            let SyncStep::Fetch(requests) = sync.next(upstream, now) else { continue };
            let silence = || Err(RequestFailure::Transport("gone".into()));
            let responses = requests.iter().map(|request| match request.method {
                "rootlight_getBitcoinHeaders" | "rootlight_getBitcoinTags" => source.answer(request),
                _ => silence(),
            });
            let responses = responses.collect();
            sync.feed(upstream, responses, now);
        }
    }
}

/// Draws upstreams, and checks that the client follows the true headers at their heights, and blames no honest upstream.
/// Returns what is wrong.
pub(super) fn check(seed: u64, blocks: &[Block], unix: u64) -> Result<(), String> {
    if blocks.len() < PERIOD as usize {
        return Ok(());
    }
    let mut random = Rng::with_seed(seed);
    let sources: Vec<Source> = (0..random.usize(1..=3))
        .map(|_| {
            let shift = i64::from(PERIOD) * *random.choice(&[0, 0, -1, 1, 2, 50]).unwrap();
            let forms = [Stated::Shown, Stated::Withheld, Stated::Forged];
            let stated = if shift == 0 { Stated::Shown } else { *random.choice(&forms).unwrap() };
            Source::new(blocks, shift, stated, unix)
        })
        .collect();
    let mut sync = client(sources.len());
    exchange(&mut sync, &sources, unix);
    let drawn = || sources.iter().map(|source| (source.shift, source.stated)).collect::<Vec<_>>();
    let is_honest = sources.iter().any(Source::is_honest);
    let newest = blocks.last().map(|block| (block.height, block.hash));
    let tip = sync.bitcoin().and_then(|follower| follower.tip()).map(|tip| (tip.height, tip.hash));
    if tip != newest.filter(|_| is_honest) {
        return Err(format!("Bitcoin's tip is {tip:?} instead of {newest:?} by upstreams {:?}", drawn()));
    }
    let states = sync.upstreams();
    let blamed =
        states.iter().zip(&sources).any(|(state, source)| source.is_honest() && state.record.lies > 0);
    if blamed { Err(format!("an honest upstream is blamed: {:?}", drawn())) } else { Ok(()) }
}
