//! Records the responses of an upstream to a request, and sends the same request again to the recording: a run
//! is a function of the upstream's responses, so a recorded bug happens again, with no network.
//!
//!     cargo run --example record_and_replay
//!
//! `rootlight record` and `--upstream replay:PATH` do the same for whole ranges of blocks.

use std::collections::HashMap;

use rootlight::light::{RequestFailure, UpstreamRequest, UpstreamResponse};
use serde_json::json;

mod common;
use common::Transport;

/// Passes calls on and keeps what came.
struct RecordingTransport<'a> {
    upstream: &'a mut dyn Transport,
    answers: HashMap<(String, String), UpstreamResponse>,
}

impl Transport for RecordingTransport<'_> {
    fn ask(&mut self, call: &UpstreamRequest) -> UpstreamResponse {
        let answer = self.upstream.ask(call);
        self.answers.insert((call.method.into(), call.params.to_string()), answer.clone());
        answer
    }
}

/// Answers from what was kept.
struct RecordedAnswers(HashMap<(String, String), UpstreamResponse>);

impl Transport for RecordedAnswers {
    fn ask(&mut self, call: &UpstreamRequest) -> UpstreamResponse {
        let recorded = self.0.get(&(call.method.into(), call.params.to_string()));
        recorded.cloned().unwrap_or_else(|| Err(RequestFailure::Transport("not recorded".into())))
    }
}

fn main() {
    let mut node = common::ExampleNode::start();
    let accounts = node.request("eth_accounts", &json!([])).expect("accounts");
    node.request("evm_mine", &json!([])).expect("a block");
    let params = json!([accounts[0], "latest"]);

    let mut recorder = RecordingTransport { upstream: &mut node, answers: HashMap::new() };
    let client = common::synchronized(&mut recorder);
    let first = common::ask(&client, &mut recorder, "eth_getBalance", &params);
    let recorded = recorder.answers;
    println!("{} responses recorded, {first}", recorded.len());

    // Another client, and no node.
    drop(node);
    let mut replay = RecordedAnswers(recorded);
    let client = common::synchronized(&mut replay);
    let again = common::ask(&client, &mut replay, "eth_getBalance", &params);
    println!("replayed, {again}");
    assert_eq!(first, again);
}
