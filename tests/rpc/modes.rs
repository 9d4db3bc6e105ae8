//! The engine answers in each mode as the method table says.

use std::sync::Arc;

use crate::fixture::{Fixture, block_of};
use crate::support::light::{ExecutedUpstream, Light};
use rootlight::dev::{DevAccounts, DevConfig};
use rootlight::engine::{FollowNode, HostInput, LocalNode as _};
use rootlight::exec::CallPolicy;
use rootlight::local::LocalChain;
use rootlight::rpc::{Caller, Handler, LocalClient, MessageProgress, Method, Mode, Support, methods};
use rootlight::types::{B256, keccak256};
use serde_json::{Value, json, value::RawValue};

/// Methods that need a caller that receives notifications: the light client of these tests has none.
fn subscribes(method: &Method) -> bool {
    matches!(method.handler, Handler::Subscribe(_) | Handler::Unsubscribe(_))
}

fn compare(method: &Method, mode: Mode, answer: &Value) {
    let error = &answer["error"];
    match method.support(mode) {
        Support::Works | Support::Partly(_) => {
            assert!(error.is_null() && answer.get("result").is_some(), "{} {mode:?}: {answer}", method.name);
        }
        Support::Refused(refused) => {
            let stated = json!({"code": refused.code(), "message": refused.to_string()});
            assert_eq!(*error, stated, "{} {mode:?}", method.name);
        }
    }
}

#[test]
fn the_development_chain_answers_every_method() {
    let mut fixture = Fixture::new();
    for method in methods() {
        if method.writes() {
            fixture = Fixture::new();
        }
        let arguments = fixture.arguments(method.name);
        let answer = fixture.ask(method.name, &arguments);
        compare(method, Mode::Dev, &answer);
    }
}

/// A follower that has executed the fixture's blocks.
fn follower(fixture: &mut Fixture) -> LocalClient {
    let DevConfig { network, genesis, .. } = DevConfig::new(&DevAccounts::default());
    let chain = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
    let host_input = HostInput { now: fixture.dev.now, entropy: B256::repeat_byte(3) };
    let mut node = FollowNode::new(chain, "Rootlight/f", "node", CallPolicy::default(), host_input);
    for number in 1..=fixture.dev.chain().view().head().number {
        node.import(block_of(&mut fixture.dev, number), None).unwrap();
    }
    LocalClient::new(Box::new(node))
}

#[test]
fn a_follower_answers_as_the_table_says() {
    let mut fixture = Fixture::new();
    let mut client = follower(&mut fixture);
    let caller = Arc::new(Caller::new(1, 1).with_subscriptions(8));
    for method in methods() {
        let mut arguments = fixture.arguments(method.name);
        let mut ask = |name: &str, params: &Value| -> Value {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}).to_string();
            let message =
                MessageProgress::read_from(&client.dispatcher(), caller.clone(), message.as_bytes());
            let host_input = HostInput { now: fixture.dev.now, entropy: B256::repeat_byte(9) };
            serde_json::from_str(&client.answer(message, host_input, &|| false).into_text().unwrap()).unwrap()
        };
        // Filters and subscriptions are the follower's own.
        if ["eth_getFilterChanges", "eth_getFilterLogs"].contains(&method.name) {
            arguments = json!([ask("eth_newFilter", &json!([{}]))["result"]]);
        }
        let answer = ask(method.name, &arguments);
        compare(method, Mode::Follow, &answer);
    }
}

#[test]
fn a_light_client_answers_as_the_table_says() {
    let mut fixture = Fixture::new();
    let network = fixture.dev.chain().view().network().clone();
    let mut light = Light::new(network, ExecutedUpstream::new(fixture.dev.client.snapshot()));
    // A snapshot takes no transactions; an upstream does.
    light.upstream.change = Some(Box::new(|call, honest| match call.method {
        "eth_sendRawTransaction" => {
            let [raw]: [String; 1] = serde_json::from_str(&call.params).unwrap();
            let hash = keccak256(hex::decode(&raw[2..]).unwrap());
            Ok(RawValue::from_string(json!(hash.to_string()).to_string()).unwrap())
        }
        _ => honest,
    }));
    for method in methods().filter(|method| !subscribes(method)) {
        let mut arguments = fixture.arguments(method.name);
        if ["eth_getFilterChanges", "eth_getFilterLogs"].contains(&method.name) {
            arguments = json!([light.send("eth_newFilter", &json!([{}]))["result"]]);
        }
        let answer = light.send(method.name, &arguments);
        compare(method, Mode::Light, &answer);
    }
}
