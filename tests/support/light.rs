//! A light client whose upstreams are executing nodes in this process.

use std::any::Any;
use std::sync::Arc;

use alloy_primitives::B256;
use rootlight::consensus::{Checkpoint, Network};
use rootlight::engine::{FollowNode, HostInput, LocalNode, Snapshot};
use rootlight::exec::trace::ScriptEngine;
use rootlight::exec::{CallPolicy, GenesisBlock};
use rootlight::light::{
    ClientConfig, Now, RequestFailure, SyncOptions, SyncStep, UnprovenPolicy, UpstreamRequest,
    UpstreamResponse,
};
use rootlight::local::LocalChain;
use rootlight::rpc::{Caller, Client, Dispatcher, MessageProgress, SessionStep};
use serde_json::{Value, json, value::RawValue};

use super::{recording::Recording, shared};

/// Number of recorded blocks above genesis.
pub const FOLLOWED: usize = 676;

/// A node that has executed the recorded chain.
pub fn follower() -> Option<(FollowNode, Recording)> {
    let recording = Recording::load(&shared()?.join("vectors/chain"), Network::regtest());
    let genesis = GenesisBlock::regtest();
    let chain = LocalChain::new(Arc::new(Network::regtest()), genesis.header, genesis.state, None).unwrap();
    let host_input = HostInput { now: 1_900_000_000, entropy: B256::repeat_byte(3) };
    let mut node = FollowNode::new(chain, "Rootlight/f", "recording", CallPolicy::default(), host_input);
    for recorded in recording.up_to(FOLLOWED as u64) {
        node.import(recorded.block(), None).unwrap_or_else(|error| panic!("{error}"));
    }
    Some((node, recording))
}

/// Changes the honest response of an upstream.
pub type Change = Box<dyn FnMut(&UpstreamRequest, UpstreamResponse) -> UpstreamResponse>;

/// An upstream with an executed chain, which may lack some methods.
pub struct ExecutedUpstream {
    pub chain: Arc<dyn Snapshot>,
    dispatcher: Arc<Dispatcher>,
    pub without: Vec<&'static str>,
    pub change: Option<Change>,
    pub asked: Vec<UpstreamRequest>,
    /// Bytes of all responses.
    pub bytes: usize,
}

impl ExecutedUpstream {
    pub fn new(chain: Arc<dyn Snapshot>) -> Self {
        Self {
            chain,
            dispatcher: Arc::default(),
            without: Vec::new(),
            change: None,
            asked: Vec::new(),
            bytes: 0,
        }
    }

    /// The honest answer; an error is returned as its `error` object.
    pub fn call(&self, method: &str, params: &Value) -> Result<Value, Value> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let message = MessageProgress::read_from(&self.dispatcher, Arc::default(), message.as_bytes());
        let reply = message.read(&*self.chain, 1_900_000_000, &|| false).into_text().unwrap();
        let mut answer: Value = serde_json::from_str(&reply).unwrap();
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    pub fn answer(&mut self, call: &UpstreamRequest) -> UpstreamResponse {
        self.asked.push(call.clone());
        let unknown = || Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() });
        let honest = if self.without.contains(&call.method) {
            unknown()
        } else {
            match self.call(call.method, &serde_json::from_str(&call.params).unwrap()) {
                Ok(value) => Ok(RawValue::from_string(value.to_string()).unwrap()),
                Err(error) => Err(RequestFailure::Rpc {
                    code: error["code"].as_i64().unwrap(),
                    message: error["message"].as_str().unwrap().into(),
                }),
            }
        };
        let answer = match &mut self.change {
            Some(change) => change(call, honest),
            None => honest,
        };
        self.bytes += answer.as_ref().map_or(0, |raw| raw.get().len());
        answer
    }
}

/// A light client that counts its round trips.
pub struct Light {
    pub client: Client,
    pub upstream: ExecutedUpstream,
    pub others: Vec<ExecutedUpstream>,
    /// Rounds of fetching for messages of callers.
    pub rounds: usize,
    /// Most bytes of facts and fetches of one message.
    pub most_bytes: usize,
    /// The caller that messages come from, if not that of the host itself.
    pub caller: Option<Arc<Caller>>,
    now: u64,
}

impl Light {
    /// A synchronized client that trusts the chain's first block.
    pub fn new(network: Network, upstream: ExecutedUpstream) -> Self {
        Self::among(network, vec![("node", upstream)], UnprovenPolicy::Refuse)
    }

    /// A client that trusts a later block and has no headers below it.
    pub fn since(network: Network, upstream: ExecutedUpstream, number: u64) -> Self {
        let options = SyncOptions { backfill: 0, ..SyncOptions::default() };
        Self::start(network, vec![("node", upstream)], UnprovenPolicy::Refuse, (number, options), |_| {})
    }

    /// A synchronized client with these options.
    pub fn with_options(network: Network, upstream: ExecutedUpstream, options: SyncOptions) -> Self {
        Self::start(network, vec![("node", upstream)], UnprovenPolicy::Refuse, (0, options), |_| {})
    }

    /// A client whose host has an engine for scripts.
    pub fn with_scripts(
        network: Network,
        upstream: ExecutedUpstream,
        scripts: Arc<dyn ScriptEngine>,
    ) -> Self {
        let at = (0, SyncOptions::default());
        let set = |config: &mut ClientConfig| config.scripts = Some(scripts);
        Self::start(network, vec![("node", upstream)], UnprovenPolicy::Refuse, at, set)
    }

    /// A client of several named upstreams.
    pub fn among(
        network: Network,
        upstreams: Vec<(&str, ExecutedUpstream)>,
        unproven: UnprovenPolicy,
    ) -> Self {
        Self::start(network, upstreams, unproven, (0, SyncOptions::default()), |_| {})
    }

    /// A client whose host has rows of the method table of its own.
    pub fn hosted(
        network: Network,
        upstream: ExecutedUpstream,
        host: Arc<dyn Any + Send + Sync>,
        dispatcher: Arc<Dispatcher>,
    ) -> Self {
        let at = (0, SyncOptions::default());
        let set = |config: &mut ClientConfig| config.host = Some(host);
        let light = Self::start(network, vec![("node", upstream)], UnprovenPolicy::Refuse, at, set);
        Self { client: light.client.with_dispatcher(dispatcher), ..light }
    }

    fn start(
        network: Network,
        upstreams: Vec<(&str, ExecutedUpstream)>,
        unproven: UnprovenPolicy,
        (number, options): (u64, SyncOptions),
        set: impl FnOnce(&mut ClientConfig),
    ) -> Self {
        let names = upstreams.iter().map(|(name, _)| (*name).into()).collect();
        let mut others: Vec<ExecutedUpstream> = upstreams.into_iter().map(|(_, upstream)| upstream).collect();
        let upstream = others.remove(0);
        let first = upstream.call("eth_getBlockByNumber", &json!([format!("{number:#x}"), false])).unwrap();
        let hash: B256 = first["hash"].as_str().unwrap().parse().unwrap();
        // The total difficulty of the genesis block is known.
        let total_difficulty = (number > 0).then(|| super::u256(first["totalDifficulty"].as_str().unwrap()));
        let checkpoint = Checkpoint { number, hash, total_difficulty };
        let version = "Rootlight/t".into();
        let mut config = ClientConfig { version, upstreams: names, unproven, ..ClientConfig::default() };
        set(&mut config);
        let client = Client::with_upstreams(Arc::new(network), checkpoint, config, options);
        let mut light = Self { client, upstream, others, rounds: 0, most_bytes: 0, caller: None, now: 0 };
        light.sync();
        light
    }

    fn ask(&mut self, upstream: usize, call: &UpstreamRequest) -> UpstreamResponse {
        match upstream {
            0 => self.upstream.answer(call),
            other => self.others[other - 1].answer(call),
        }
    }

    /// Synchronizes to the present head.
    pub fn sync(&mut self) {
        self.now += 60_000;
        self.client.sync_poll();
        let mut waiting = 0;
        for turn in 0..100_000 {
            let upstream = turn % (1 + self.others.len());
            match self.client.sync_next(upstream, Now { unix: 0, millis: self.now }) {
                SyncStep::Wait(_) => {
                    assert_eq!(self.client.sync().fault(), None);
                    waiting += 1;
                    if waiting > 3 * self.others.len() {
                        return;
                    }
                }
                SyncStep::Fetch(calls) => {
                    waiting = 0;
                    let answers = calls.iter().map(|call| self.ask(upstream, call)).collect();
                    self.client.sync_feed(upstream, answers, Now { unix: 0, millis: self.now });
                }
            }
        }
        panic!("synchronization does not end");
    }

    /// What synchronization with the first upstream needs now.
    pub fn next(&self) -> SyncStep {
        self.client.sync_next(0, Now { unix: 0, millis: self.now })
    }

    /// Synchronizes with the first upstream as far as is due now; returns the pause until more is due, in milliseconds.
    pub fn turn(&mut self) -> u64 {
        for _ in 0..1_000 {
            match self.next() {
                SyncStep::Wait(pause) => return pause,
                SyncStep::Fetch(calls) => {
                    let answers = calls.iter().map(|call| self.ask(0, call)).collect();
                    self.client.sync_feed(0, answers, Now { unix: 0, millis: self.now });
                }
            }
        }
        panic!("synchronization does not end");
    }

    /// Lets time pass, in milliseconds.
    pub fn wait(&mut self, millis: u64) {
        self.now += millis;
    }

    /// The whole answer to a call.
    pub fn send(&mut self, method: &str, params: &Value) -> Value {
        self.message(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    }

    /// The answer to a message: a call or a batch.
    pub fn message(&mut self, message: &Value) -> Value {
        let (text, now) = (message.to_string(), Now { unix: 0, millis: self.now });
        let mut session = match &self.caller {
            Some(caller) => {
                let message = self.client.read(text.as_bytes(), caller);
                self.client.open_from(caller.clone(), message, now)
            }
            None => self.client.open(text.as_bytes(), now),
        };
        for _ in 0..1_000 {
            match self.client.step(&mut session, &|| false) {
                SessionStep::Done(reply) => {
                    self.client.close(session);
                    return serde_json::from_str(&reply.into_text().unwrap()).unwrap();
                }
                SessionStep::Fetch(round) => {
                    self.rounds += 1;
                    self.most_bytes = self.most_bytes.max(session.fact_bytes());
                    let answers = round.answered(|part| {
                        part.requests.iter().map(|asked| self.ask(part.upstream, asked)).collect()
                    });
                    self.client.feed(&mut session, answers);
                }
            }
        }
        panic!("no end to {message}");
    }

    /// The answer to a call; an error is returned as its `error` object.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let mut answer = self.send(method, params);
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// As [`Self::call`], with the number of round trips.
    pub fn count(&mut self, method: &str, params: &Value) -> (Result<Value, Value>, usize) {
        let before = self.rounds;
        let answer = self.call(method, params);
        (answer, self.rounds - before)
    }

    /// The methods of the requests since the last call, in order.
    pub fn asked(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.upstream.asked).into_iter().map(|call| call.method).collect()
    }
}
