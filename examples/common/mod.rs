//! Shared parts of the examples: a development chain in this process that plays the upstream, and the loop in which a host
//! drives the light client.
// Each example uses its part of this module.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use rootlight::consensus::{Checkpoint, Network};
use rootlight::dev::{DevAccounts, DevConfig};
use rootlight::engine::{DevNode, HostInput};
use rootlight::light::{
    ClientConfig, Now, RequestFailure, SyncOptions, SyncStep, UpstreamRequest, UpstreamResponse,
};
use rootlight::rpc::{Client, LocalClient, SessionStep};
use serde_json::{Value, json, value::RawValue};

/// Seconds since 1970 in these examples: the core never reads a clock.
pub const NOW: u64 = 1_900_000_000;

/// A development chain that answers JSON-RPC.
pub struct ExampleNode {
    client: LocalClient,
    messages: u64,
}

impl ExampleNode {
    /// A chain at its genesis block with ten funded accounts; it mines a block for each transaction.
    pub fn start() -> Self {
        let config = DevConfig::new(&DevAccounts::default());
        let node = DevNode::new(config, host_input(0)).expect("a valid configuration");
        Self { client: LocalClient::new(Box::new(node)), messages: 0 }
    }

    /// The network whose rules the chain follows, with its genesis hash.
    pub fn network() -> Arc<Network> {
        DevConfig::new(&DevAccounts::default()).network
    }

    /// Answers one request. The error is the `error` object of the response.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.messages += 1;
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let message = self.client.open(message.as_bytes());
        let answer = self.client.answer(message, host_input(self.messages), &|| false);
        let text = answer.into_text().expect("a request gets a response");
        let mut response: Value = serde_json::from_str(&text).expect("JSON");
        match response.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(response["result"].take()),
        }
    }
}

/// A host passes the time and fresh randomness with every message.
fn host_input(message: u64) -> HostInput {
    HostInput { now: NOW, entropy: alloy_primitives::keccak256(message.to_be_bytes()) }
}

/// How a light client reaches its upstream. A real host sends the call over HTTP or WebSocket.
pub trait Transport {
    /// Asks the upstream.
    fn ask(&mut self, call: &UpstreamRequest) -> UpstreamResponse;
}

impl Transport for ExampleNode {
    fn ask(&mut self, call: &UpstreamRequest) -> UpstreamResponse {
        let params: Value = serde_json::from_str(&call.params).expect("JSON");
        match self.request(call.method, &params) {
            Ok(result) => Ok(RawValue::from_string(result.to_string()).expect("JSON")),
            Err(error) => Err(RequestFailure::Rpc {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().into(),
            }),
        }
    }
}

/// A light client of the development chain that trusts its genesis block, synchronized over `transport`.
pub fn synchronized(transport: &mut dyn Transport) -> Client {
    let network = ExampleNode::network();
    let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    let config = ClientConfig { upstreams: vec!["node".into()], ..ClientConfig::default() };
    let client = Client::with_upstreams(network, checkpoint, config, SyncOptions::default());
    let mut millis = 0;
    while !client.sync().is_synced() {
        // The client says what to fetch, or how long to wait. This host does both at once.
        match client.sync_next(0, Now { unix: NOW, millis }) {
            SyncStep::Wait(pause) => millis += pause.max(1),
            SyncStep::Fetch(calls) => {
                let answers = calls.iter().map(|call| transport.ask(call)).collect();
                client.sync_feed(0, answers, Now { unix: NOW, millis });
            }
        }
        assert!(millis < 60_000, "not synchronized: {:?}", client.sync().fault());
    }
    client
}

/// Answers one request of a caller from proven data: the client lists what it has to fetch, proves what comes, and goes on.
pub fn ask(client: &Client, transport: &mut dyn Transport, method: &str, params: &Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut session = client.open(message.as_bytes(), Now { unix: NOW, millis: 60_000 });
    let answer = loop {
        match client.step(&mut session, &|| false) {
            SessionStep::Fetch(round) => {
                let answers = round
                    .answered(|part| part.requests.iter().map(|request| transport.ask(request)).collect());
                client.feed(&mut session, answers);
            }
            SessionStep::Done(answer) => break answer.into_text().expect("a request gets a response"),
        }
    };
    client.close(session);
    serde_json::from_str(&answer).expect("JSON")
}
