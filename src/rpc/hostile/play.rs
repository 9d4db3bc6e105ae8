//! A light client among the upstreams of a scenario, under a simulated clock.

use serde_json::{Value, json};

use super::upstream::{ScenarioData, SimulatedUpstream};
use crate::{
    light::{
        ClientConfig, HeaderStoreFault, Now, RequestFailure, SyncOptions, SyncStep, UpstreamRequest,
        UpstreamResponse,
    },
    rpc::{Client, SessionStep},
    types::B256,
};

/// Milliseconds after which a response counts as missing, as in the hosts.
const TIMEOUT: u64 = 10_000;

pub(super) struct Play {
    pub(super) client: Client,
    pub(super) data: ScenarioData,
    pub(super) upstreams: Vec<SimulatedUpstream>,
    /// Milliseconds since the start.
    pub(super) now: u64,
    /// Wall clock at the start, in seconds.
    pub(super) epoch: u64,
    /// The last wall-clock time that was passed to the client, in seconds.
    pub(super) last_unix: u64,
    due: Vec<(u64, Option<Vec<UpstreamRequest>>)>,
    /// Whether an upstream got a request while the client's head was not its own.
    apart: Vec<bool>,
}

impl Play {
    pub(super) fn new(
        data: ScenarioData,
        upstreams: Vec<SimulatedUpstream>,
        config: ClientConfig,
        epoch: u64,
    ) -> Self {
        let names = (0..upstreams.len()).map(|index| format!("upstream {index}")).collect();
        let config = ClientConfig { version: "Rootlight/test".into(), upstreams: names, ..config };
        let network = super::chain::network().clone();
        let checkpoint = data.chains.checkpoint();
        let options = SyncOptions { backfill: super::chain::BELOW, ..SyncOptions::default() };
        let client = Client::with_upstreams(network, checkpoint, config, options);
        let due = upstreams.iter().map(|_| (0, None)).collect();
        let apart = vec![false; upstreams.len()];
        Self { client, data, upstreams, now: 0, epoch, last_unix: 0, due, apart }
    }

    pub(super) fn restore(&mut self, pages: &[Vec<u8>]) -> Result<Option<u64>, HeaderStoreFault> {
        self.client.restore(pages.len() as u64, &mut |index| Ok(pages.get(index as usize).cloned()))
    }

    /// Checks the rest of the restored store; returns whether it is valid.
    pub(super) fn prove(&mut self, pages: &[Vec<u8>]) -> bool {
        for _ in 0..1_000 {
            let more = self.client.prove_restored(&mut |index| Ok(pages.get(index as usize).cloned()));
            if !matches!(more, Ok(true)) {
                return more.is_ok();
            }
        }
        panic!("no end");
    }

    fn moment(&mut self) -> Now {
        self.last_unix = self.epoch + self.now / 1_000;
        Now { unix: self.last_unix, millis: self.now }
    }

    fn ask(&mut self, upstream: usize, calls: &[UpstreamRequest]) -> Vec<UpstreamResponse> {
        let who = &mut self.upstreams[upstream];
        if who.latency > TIMEOUT {
            let late = || Err(RequestFailure::Transport("timed out".into()));
            return calls.iter().map(|_| late()).collect();
        }
        calls.iter().map(|call| who.answer(&self.data, call)).collect()
    }

    /// Lets the next of the first `among` upstreams take its turn. Returns `false` past the limit.
    fn turn(&mut self, limit: u64, among: usize) -> bool {
        let index = (0..among).min_by_key(|index| self.due[*index].0).unwrap();
        let (time, pending) = std::mem::take(&mut self.due[index]);
        if time > limit {
            self.due[index] = (time, pending);
            self.now = limit;
            return false;
        }
        self.now = self.now.max(time);
        if let Some(calls) = pending {
            let answers = self.ask(index, &calls);
            let now = self.moment();
            self.client.sync_feed(index, answers, now);
        }
        let now = self.moment();
        self.due[index] = match self.client.sync_next(index, now) {
            SyncStep::Fetch(calls) => (self.now + self.upstreams[index].latency.min(TIMEOUT), Some(calls)),
            SyncStep::Wait(millis) => (self.now + millis.clamp(1, 1_000), None),
        };
        true
    }

    /// Runs for some simulated milliseconds.
    pub(super) fn run(&mut self, millis: u64) {
        let limit = self.now + millis;
        while self.turn(limit, self.upstreams.len()) {}
    }

    /// As [`Self::run`], while the last upstream does not respond at all.
    pub(super) fn run_without_last(&mut self, millis: u64) {
        let limit = self.now + millis;
        while self.turn(limit, self.upstreams.len() - 1) {}
    }

    /// Runs until the head is reached. Returns whether that was within the limit (milliseconds).
    pub(super) fn sync(&mut self, limit: u64) -> bool {
        let limit = self.now + limit;
        while !self.client.sync().is_synced() {
            if !self.turn(limit, self.upstreams.len()) {
                return false;
            }
        }
        true
    }

    pub(super) fn head(&self) -> Option<B256> {
        self.client.sync().chain().map(|chain| chain.head().hash())
    }

    /// The complete answer to a request. The clock advances meanwhile.
    pub(super) fn send(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut session = self.client.open(message.as_bytes(), self.client.sync().now());
        let head = self.head();
        for _ in 0..1_000 {
            let round = match self.client.step(&mut session, &|| false) {
                SessionStep::Done(answer) => {
                    self.client.close(session);
                    return serde_json::from_str(&answer.into_text().unwrap()).unwrap();
                }
                SessionStep::Fetch(round) => round,
            };
            let slowest = round.parts.iter().map(|q| self.upstreams[q.upstream].latency.min(TIMEOUT)).max();
            self.now += slowest.unwrap_or(0);
            let answers = round.answered(|part| {
                let upstream = part.upstream;
                self.apart[upstream] |= self.upstreams[upstream].chain.last() != head.as_ref();
                part.requests
                    .iter()
                    .map(|request| self.ask(upstream, std::slice::from_ref(request)).remove(0))
                    .collect()
            });
            self.client.feed(&mut session, answers);
        }
        panic!("no end to {method} {params}");
    }

    /// A fault recorded against an honest upstream, if there is one. It must never count as a liar. If it was asked
    /// about another branch than its own, it lacks some of the requested data, which may count as a failure to
    /// respond.
    pub(super) fn blame(&self, tip: B256) -> Option<String> {
        let states = self.client.sync().upstreams();
        let honest = self.upstreams.iter().zip(states).zip(&self.apart);
        for ((upstream, state), apart) in honest.filter(|((upstream, _), _)| upstream.is_honest()) {
            let record = &state.record;
            let same = !apart && upstream.chain.last() == Some(&tip) && self.head() == Some(tip);
            let heard = upstream.latency <= TIMEOUT;
            let liar = state.resting.as_ref().is_some_and(|(_, fault)| fault.cause.is_lie());
            let silent = same && heard && (record.demerits > 0 || state.resting.is_some());
            if record.lies > 0 || liar || silent {
                return Some(format!("{:?} {record:?} {:?}", upstream.binary, state.resting));
            }
        }
        None
    }
}
