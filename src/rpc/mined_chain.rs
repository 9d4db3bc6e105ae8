//! A chain that is mined for a test ([`Mined`]), and that responds as the only upstream of the client under test.
#![allow(clippy::new_without_default, reason = "nothing needs a default")]
#![cfg_attr(
    not(test),
    allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used,
        reason = "only tests use it, which may panic"
    )
)]

use alloc::{
    format,
    string::{String, ToString as _},
    sync::Arc,
    vec,
    vec::Vec,
};

use alloy_primitives::hex;
use serde_json::{Value, json, value::RawValue};

use super::{Client, Session, SessionStep};
use crate::{
    consensus::{
        Checkpoint, Network, Rule, difficulty,
        testing::{child, easy_network, header, mine},
    },
    light::{
        ClientConfig, Now, RequestFailure, SyncOptions, SyncStep, UnprovenPolicy, UpstreamRequest,
        UpstreamResponse, encode_headers,
    },
    trie,
    types::{
        B256, Header, HeaderForm, SealedHeader, U256,
        json::{BlockParts, RpcBlock, RpcTransactions},
        uncles_hash,
    },
};

/// The number of the checkpoint's block, above zero so that blocks below the checkpoint can be missing.
pub const START: u64 = 5_000;

/// The difficulty of the checkpoint's block.
pub const BASE_DIFFICULTY: u64 = 800;

/// The total difficulty of the checkpoint's block.
pub const BASE_TOTAL: u64 = 1_000;

/// How the upstream responds to a request for binary headers (`rootlight_getHeaders`).
#[derive(Clone, Copy, PartialEq)]
pub enum HeaderAnswers {
    /// The requested headers.
    Exact,
    /// All headers, however few are requested.
    Generous,
    /// The same number of headers, each one above the requested one.
    Shifted,
    /// At most three.
    Short,
    /// No headers below the checkpoint.
    Forgetful,
}

/// A chain as its only upstream serves it, in binary, each block with its uncles.
pub struct Mined {
    /// The network, whose difficulty is so low that blocks are mined at once.
    pub network: Network,
    /// The blocks from the checkpoint's on, each with its uncles.
    pub blocks: Vec<(SealedHeader, Vec<SealedHeader>)>,
    /// The requests that the upstream has received.
    pub asked: Vec<UpstreamRequest>,
    /// How the upstream responds to requests for binary headers.
    pub header_answers: HeaderAnswers,
    /// Whether binary headers are served without uncles.
    pub omits_uncles: bool,
    /// A client that answers requests for single uncles (`eth_getUncleByBlock...`); the flag selects an error instead of
    /// `null` where there is no uncle.
    pub family: Option<(Client, bool)>,
    /// Headers off the chain, which are served by hash.
    pub side: Vec<SealedHeader>,
    /// The uncles of one such header.
    pub side_uncles: Option<(SealedHeader, Vec<SealedHeader>)>,
    /// How many blocks above its head the upstream announces without having them.
    pub announced_ahead: u64,
    /// Whether raw headers of uncles are served by hash (`rsk_getRawBlockHeaderByHash`).
    pub raw: bool,
    /// The block in which every transaction is reported; `None` for the newest one.
    pub transaction_block: Option<(u64, B256)>,
    /// How the first upstream changes the blocks that it serves by hash.
    pub disguise: Option<fn(&mut Value)>,
}

impl Mined {
    /// A chain of the checkpoint's block alone.
    pub fn new() -> Self {
        Self::under(&[])
    }

    /// As [`Self::new`], with these rules active from these heights on.
    pub fn under(rules: &[(Rule, u64)]) -> Self {
        // RSKIP-110 is never active: its fork-detection data need ancestors below the first block, which this chain does not have.
        Self::from(START, easy_network(&[], &[&[(Rule::Rskip110, u64::MAX)], rules].concat()))
    }

    /// A chain of this network that begins with a block of this number.
    pub fn from(number: u64, network: Network) -> Self {
        let base = mine(Header { difficulty: BASE_DIFFICULTY.into(), ..header(&network, number) });
        let (blocks, asked, header_answers) = (vec![(base, Vec::new())], Vec::new(), HeaderAnswers::Exact);
        let (side, side_uncles, announced_ahead) = (Vec::new(), None, 0);
        Self {
            network,
            blocks,
            asked,
            header_answers,
            omits_uncles: false,
            family: None,
            side,
            side_uncles,
            announced_ahead,
            raw: false,
            transaction_block: None,
            disguise: None,
        }
    }

    /// The next block, which follows all rules, with a change of its header before it is mined.
    pub fn next(&self, change: impl FnOnce(&mut Header)) -> SealedHeader {
        let parent = &self.blocks.last().unwrap().0;
        let mut header = child(&self.network, parent);
        change(&mut header);
        header.difficulty = difficulty::expected(&header, parent, &self.network).into();
        mine(header)
    }

    /// Adds blocks with this many seconds between them.
    pub fn grow(&mut self, blocks: usize, seconds: u64) {
        for _ in 0..blocks {
            // `child` puts 14 seconds between a block and its parent.
            let next = self.next(|header| header.timestamp = header.timestamp - 14 + seconds);
            self.blocks.push((next, Vec::new()));
        }
    }

    /// Mines a branch of this many blocks, which ends one below the head and is served by hash. Its state is empty.
    pub fn fork(&mut self, blocks: usize) -> Vec<SealedHeader> {
        let mut parent = self.blocks[self.blocks.len() - 2 - blocks].0.clone();
        let mut branch = Vec::new();
        for _ in 0..blocks {
            let state_root = trie::EMPTY_ROOT;
            // The gas makes the blocks differ from those of the chain.
            let mut header = Header { gas_used: 9, state_root, ..child(&self.network, &parent) };
            header.difficulty = difficulty::expected(&header, &parent, &self.network).into();
            parent = mine(header);
            branch.push(parent.clone());
        }
        self.side.extend(branch.iter().cloned());
        branch
    }

    /// Adds a block that names an uncle and states this uncle count.
    pub fn adopt(&mut self, count: u32, uncle: SealedHeader) {
        let list = [uncle.header().clone()];
        let next = self.next(|header| (header.uncle_count, header.uncles_hash) = (count, uncles_hash(&list)));
        self.blocks.push((next, vec![uncle]));
    }

    /// The newest block.
    pub fn head(&self) -> &SealedHeader {
        &self.blocks.last().unwrap().0
    }

    /// The response of one of several upstreams. The first one changes blocks served by hash with `disguise`.
    fn answer_of(&mut self, upstream: usize, request: &UpstreamRequest) -> UpstreamResponse {
        let answer = self.answer(request)?;
        match self.disguise {
            Some(disguise) if upstream == 0 && request.method == "eth_getBlockByHash" => {
                let mut block: Value = serde_json::from_str(answer.get()).unwrap();
                disguise(&mut block);
                Ok(RawValue::from_string(block.to_string()).unwrap())
            }
            _ => Ok(answer),
        }
    }

    /// The response to a request.
    pub fn answer(&mut self, request: &UpstreamRequest) -> UpstreamResponse {
        self.asked.push(request.clone());
        let params: Vec<Value> = serde_json::from_str(&request.params).unwrap();
        let number = |index: usize| {
            let text = params[index].as_str().unwrap().trim_start_matches("0x");
            u64::from_str_radix(text, 16).unwrap()
        };
        let text = match request.method {
            "eth_blockNumber" => format!("\"{:#x}\"", self.head().number + self.announced_ahead),
            "eth_getBlockByHash" => {
                let hash = params[0].as_str().unwrap();
                let all = self.blocks.iter().map(|(header, _)| header).chain(&self.side);
                let mut found = all.filter(|header| header.hash().to_string() == hash);
                found.next().map_or_else(|| "null".into(), block_json)
            }
            "eth_getTransactionReceipt" => {
                let (number, hash) =
                    self.transaction_block.unwrap_or((self.head().number, self.head().hash()));
                let number = format!("{number:#x}");
                json!({ "blockNumber": number, "blockHash": hash, "transactionIndex": "0x0" }).to_string()
            }
            "rootlight_getHeaders" => self.binary_headers(number(0), number(1)),
            method if method.starts_with("eth_getUncleByBlock") && self.family.is_some() => {
                let (family, errors) = self.family.as_mut().unwrap();
                let uncle = &ask_alone(family, method, json!(params))["result"];
                if uncle.is_null() && *errors {
                    return Err(RequestFailure::Rpc { code: -32000, message: "no such uncle".into() });
                }
                uncle.to_string()
            }
            "eth_getUncleByBlockHashAndIndex" if self.side_uncles.is_some() => {
                let (block, uncles) = self.side_uncles.as_ref().unwrap();
                let uncle = uncles.get(number(1) as usize).filter(|_| params[0] == json!(block.hash()));
                uncle.map_or_else(|| "null".into(), block_json)
            }
            "rsk_getRawBlockHeaderByHash" if self.raw => {
                let mut uncles = self.blocks.iter().flat_map(|(_, uncles)| uncles);
                let uncle = uncles.find(|uncle| params[0] == json!(uncle.hash()));
                let raw = uncle.map(|uncle| hex::encode_prefixed(uncle.header().encode(HeaderForm::Raw)));
                json!(raw).to_string()
            }
            _ => return Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() }),
        };
        Ok(RawValue::from_string(text).unwrap())
    }

    /// The response to a request for binary headers, as [`HeaderAnswers`] selects.
    fn binary_headers(&self, first: u64, count: u64) -> String {
        let range = match self.header_answers {
            HeaderAnswers::Exact => first..first + count,
            HeaderAnswers::Generous => 0..u64::MAX,
            HeaderAnswers::Shifted => first + 1..first + 1 + count,
            HeaderAnswers::Short => first..first + count.min(3),
            HeaderAnswers::Forgetful => first.max(START)..first + count,
        };
        let blocks = self.blocks.iter().filter(|(header, _)| range.contains(&header.number));
        let served_uncles = |all: &'_ [SealedHeader]| if self.omits_uncles { 0 } else { all.len() };
        let served = blocks.map(|(header, all)| (header.header(), Some(&all[..served_uncles(all)])));
        format!("\"{}\"", encode_headers(served))
    }

    /// First number and count of each request for binary headers.
    pub fn windows(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let asked = self.asked.iter().filter(|call| call.method == "rootlight_getHeaders");
        asked.map(|call| {
            let params: [String; 2] = serde_json::from_str(&call.params).unwrap();
            let [first, count] = params.map(|text| u64::from_str_radix(&text[2..], 16).unwrap());
            (first, count)
        })
    }

    /// A client that trusts the first block and has this chain as its only upstream.
    pub fn start(&self) -> Client {
        self.start_with(1)
    }

    /// As [`Self::start`], with this many upstreams.
    pub fn start_with(&self, upstreams: usize) -> Client {
        // Unproven answers are trusted where there is no proof; this lifts no other refusal.
        let unproven = UnprovenPolicy::Trust;
        self.start_as(ClientConfig {
            upstreams: vec!["miner".into(); upstreams],
            unproven,
            ..ClientConfig::default()
        })
    }

    /// As [`Self::start`], with another configuration.
    pub fn start_as(&self, config: ClientConfig) -> Client {
        let base = &self.blocks.iter().find(|(header, _)| header.number == START).unwrap().0;
        let checkpoint =
            Checkpoint { number: START, hash: base.hash(), total_difficulty: Some(U256::from(BASE_TOTAL)) };
        let network = Arc::new(self.network.clone());
        Client::with_upstreams(network, checkpoint, config, SyncOptions::default())
    }

    /// The answer to a request, after fetching everything that it needs.
    pub fn ask(&mut self, client: &mut Client, method: &str, params: Value) -> Value {
        let now = client.sync().now();
        self.ask_at(client, method, params, now)
    }

    /// The answer to a request that arrives at `now`.
    pub fn ask_at(&mut self, client: &mut Client, method: &str, params: Value, now: Now) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut session = client.open(message.as_bytes(), now);
        self.answers(client, &mut session)
    }

    /// The answer to an open message, after fetching everything that it needs.
    pub fn answers(&mut self, client: &mut Client, session: &mut Session) -> Value {
        loop {
            match client.step(session, &|| false) {
                SessionStep::Done(answer) => {
                    return serde_json::from_str(&answer.into_text().unwrap()).unwrap();
                }
                SessionStep::Fetch(round) => {
                    let answers = round.answered(|part| {
                        part.requests.iter().map(|request| self.answer_of(part.upstream, request)).collect()
                    });
                    client.feed(session, answers);
                }
            }
        }
    }

    /// The time of the latest block.
    pub fn now(&self) -> Now {
        let latest = self.blocks.iter().map(|(header, _)| header.timestamp).max();
        Now { unix: latest.unwrap(), millis: 0 }
    }

    /// A client that is synchronized at the time of the latest block.
    pub fn client(&mut self) -> Client {
        let mut client = self.start();
        self.follow(&mut client);
        client
    }

    /// Responds until synchronization requests nothing more.
    pub fn follow(&mut self, client: &mut Client) {
        self.follow_at(client, 0);
    }

    /// As [`Self::follow`], this many milliseconds later.
    pub fn follow_at(&mut self, client: &mut Client, millis: u64) {
        self.follow_of(client, 0, millis);
    }

    /// As [`Self::follow_at`], as one of several upstreams.
    pub fn follow_of(&mut self, client: &mut Client, upstream: usize, millis: u64) {
        let now = Now { millis, ..self.now() };
        // Many more steps than any test needs.
        for _ in 0..1_000 {
            let SyncStep::Fetch(calls) = client.sync_next(upstream, now) else { return };
            let answers = calls.iter().map(|call| self.answer(call)).collect();
            client.sync_feed(upstream, answers, now);
        }
        panic!("synchronization does not end");
    }
}

/// A block object as nodes return it.
pub fn block_json(header: &SealedHeader) -> String {
    let transactions = RpcTransactions::Hashes(Vec::new());
    let parts = BlockParts { transactions, uncles: None, total_difficulty: None, size: None };
    serde_json::to_string(&RpcBlock::new(header, parts)).unwrap()
}

/// The first step of a request: its answer, or what has to be fetched first.
pub fn first_step(client: &mut Client, method: &str, params: Value) -> SessionStep {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut session = client.open(message.as_bytes(), client.sync().now());
    client.step(&mut session, &|| false)
}

/// The answer to a request that needs nothing from an upstream.
pub fn ask(client: &mut Client, method: &str, params: Value) -> Value {
    match first_step(client, method, params) {
        SessionStep::Done(answer) => serde_json::from_str(&answer.into_text().unwrap()).unwrap(),
        SessionStep::Fetch(round) => panic!("{round:?}"),
    }
}

/// The answer to a request, with upstreams that respond `null` to everything.
fn ask_alone(client: &mut Client, method: &str, params: Value) -> Value {
    ask_with(client, method, params, &mut |_| Ok(RawValue::from_string("null".into()).unwrap()))
}

/// The answer to a request of a caller, with `upstream` responding to each request to an upstream.
fn ask_with(
    client: &mut Client,
    method: &str,
    params: Value,
    upstream: &mut dyn FnMut(&UpstreamRequest) -> UpstreamResponse,
) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut session = client.open(message.as_bytes(), client.sync().now());
    loop {
        match client.step(&mut session, &|| false) {
            SessionStep::Done(answer) => return serde_json::from_str(&answer.into_text().unwrap()).unwrap(),
            SessionStep::Fetch(round) => {
                let answers = round.answered(|part| part.requests.iter().map(&mut *upstream).collect());
                client.feed(&mut session, answers);
            }
        }
    }
}

/// A chain, and a header that the next block may name as an uncle.
pub fn family() -> (Mined, SealedHeader) {
    let mut mined = Mined::new();
    mined.grow(10, 14);
    let uncle = {
        let parent = mined.blocks[9].0.clone();
        let mut uncle = Header { gas_used: 1, ..child(&mined.network, &parent) };
        uncle.difficulty = difficulty::expected(&uncle, &parent, &mined.network).into();
        mine(uncle)
    };
    (mined, uncle)
}
