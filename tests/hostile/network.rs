//! A light client among upstreams under a simulated clock.

use std::sync::Arc;

use rootlight::{
    consensus::{Checkpoint, Network},
    light::{
        ClientConfig, Now, RequestFailure, SyncOptions, SyncStep, UnprovenPolicy, UpstreamRequest,
        UpstreamResponse,
    },
    rpc::{Client, SessionStep},
};
use serde_json::{Value, json};

use crate::actor::Actor;

/// Answers later than this (milliseconds) count as none, as in the hosts.
const TIMEOUT: u64 = 10_000;

pub struct HostileNetwork<'a> {
    pub client: Client,
    pub actors: Vec<Actor<'a>>,
    /// Milliseconds since the start.
    pub now: u64,
    /// Wall clock at the start, in seconds.
    pub epoch: u64,
    due: Vec<(u64, Option<Vec<UpstreamRequest>>)>,
}

impl<'a> HostileNetwork<'a> {
    pub fn new(network: Network, checkpoint: Checkpoint, actors: Vec<Actor<'a>>) -> Self {
        Self::with_identity(network, checkpoint, actors, ClientConfig::default())
    }

    /// A client that refuses young blocks.
    pub fn with_min_depth(
        network: Network,
        checkpoint: Checkpoint,
        actors: Vec<Actor<'a>>,
        min_depth: u64,
    ) -> Self {
        Self::with_identity(
            network,
            checkpoint,
            actors,
            ClientConfig { min_depth, ..ClientConfig::default() },
        )
    }

    /// From a later block of the recorded development chain, without what is below it.
    pub fn regtest_above(number: u64, actors: Vec<Actor<'a>>) -> Self {
        let block =
            UpstreamRequest::new("eth_getBlockByNumber", json!([format!("{number:#x}"), true]).to_string());
        let block: Value = serde_json::from_str(&actors[0].trunk.answer(&block).unwrap()).unwrap();
        let hash = block["hash"].as_str().unwrap().parse().unwrap();
        let checkpoint = Checkpoint { number, hash, total_difficulty: None };
        let options = SyncOptions { backfill: 0, ..SyncOptions::default() };
        Self::with_options(Network::regtest(), checkpoint, actors, ClientConfig::default(), options)
    }

    fn with_identity(
        network: Network,
        checkpoint: Checkpoint,
        actors: Vec<Actor<'a>>,
        config: ClientConfig,
    ) -> Self {
        Self::with_options(network, checkpoint, actors, config, SyncOptions::default())
    }

    fn with_options(
        network: Network,
        checkpoint: Checkpoint,
        actors: Vec<Actor<'a>>,
        config: ClientConfig,
        options: SyncOptions,
    ) -> Self {
        let config = ClientConfig {
            version: "Rootlight/test".into(),
            upstreams: (0..actors.len()).map(|index| format!("actor {index}")).collect(),
            ..config
        };
        let client = Client::with_upstreams(Arc::new(network), checkpoint, config, options);
        let due = actors.iter().map(|_| (0, None)).collect();
        Self { client, actors, now: 0, epoch: 0, due }
    }

    /// From the genesis of the recorded development chain.
    pub fn regtest(actors: Vec<Actor<'a>>) -> Self {
        Self::regtest_with(actors, UnprovenPolicy::Refuse)
    }

    /// The same, with a policy for answers that no upstream proves.
    pub fn regtest_with(actors: Vec<Actor<'a>>, unproven: UnprovenPolicy) -> Self {
        let network = Network::regtest();
        let total_difficulty = Some(alloy_primitives::U256::from(1));
        let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty };
        Self::with_identity(network, checkpoint, actors, ClientConfig { unproven, ..ClientConfig::default() })
    }

    fn moment(&self) -> Now {
        Now { unix: self.epoch + self.now / 1_000, millis: self.now }
    }

    fn ask(&mut self, upstream: usize, calls: &[UpstreamRequest]) -> Vec<UpstreamResponse> {
        let actor = &mut self.actors[upstream];
        if actor.latency > TIMEOUT {
            let late = || Err(RequestFailure::Transport("timed out".into()));
            return calls.iter().map(|_| late()).collect();
        }
        calls.iter().map(|call| actor.answer(call)).collect()
    }

    /// Lets the next upstream take its turn; false past the limit.
    fn turn(&mut self, limit: u64) -> bool {
        let index = (0..self.due.len()).min_by_key(|index| self.due[*index].0).unwrap();
        let (time, pending) = std::mem::take(&mut self.due[index]);
        if time > limit {
            self.due[index] = (time, pending);
            self.now = limit;
            return false;
        }
        self.now = self.now.max(time);
        if let Some(calls) = pending {
            let answers = self.ask(index, &calls);
            self.client.sync_feed(index, answers, self.moment());
        }
        self.due[index] = match self.client.sync_next(index, self.moment()) {
            SyncStep::Fetch(calls) => (self.now + self.actors[index].latency.min(TIMEOUT), Some(calls)),
            SyncStep::Wait(millis) => (self.now + millis.clamp(1, 1_000), None),
        };
        true
    }

    /// Runs for some simulated milliseconds.
    pub fn run(&mut self, millis: u64) {
        let limit = self.now + millis;
        while self.turn(limit) {}
    }

    /// Runs until the head is reached; whether it was within the limit (milliseconds).
    pub fn sync(&mut self, limit: u64) -> bool {
        let limit = self.now + limit;
        while !self.client.sync().is_synced() {
            if !self.turn(limit) {
                return false;
            }
        }
        true
    }

    pub fn head(&self) -> u64 {
        self.client.sync().chain().map_or(0, |chain| chain.head().number)
    }

    /// Asks the client; the `error` object comes back as it is. The clock goes on meanwhile.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let mut answer = self.send(method, params);
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// The whole answer to a request.
    pub fn send(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut session = self.client.open(message.as_bytes(), self.moment());
        for _ in 0..1_000 {
            let round = match self.client.step(&mut session, &|| false) {
                SessionStep::Done(reply) => {
                    self.client.close(session);
                    return serde_json::from_str(&reply.into_text().unwrap()).unwrap();
                }
                SessionStep::Fetch(round) => round,
            };
            let slowest = round.parts.iter().map(|q| self.actors[q.upstream].latency.min(TIMEOUT)).max();
            self.now += slowest.unwrap_or(0);
            let answers = round.answered(|part| {
                part.requests
                    .iter()
                    .map(|request| self.ask(part.upstream, std::slice::from_ref(request)).remove(0))
                    .collect()
            });
            self.client.feed(&mut session, answers);
        }
        panic!("no end to {method} {params}");
    }

    pub fn lies(&self, upstream: usize) -> Vec<String> {
        let state = self.client.sync().upstreams().remove(upstream);
        let lies = state.record.evidence.iter().filter(|evidence| evidence.lie);
        lies.map(|evidence| {
            format!("{} {}: {}", evidence.request.method, evidence.request.params, evidence.rule)
        })
        .collect()
    }

    pub fn is_resting(&self, upstream: usize) -> bool {
        self.client.sync().upstreams().remove(upstream).resting.is_some()
    }
}
