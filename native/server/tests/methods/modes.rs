//! Each chain answers the server's methods as the table says.

use std::sync::Arc;

use rootlight::dev::{DevAccounts, DevConfig};
use rootlight::engine::{FollowNode, HostInput, LocalNode as _};
use rootlight::exec::CallPolicy;
use rootlight::local::LocalChain;
use rootlight::rpc::{self, Caller, LocalClient, MessageProgress, Method, Mode, Support};
use rootlight::types::B256;
use rootlight_server::bans::HostBans;
use rootlight_server::methods::{Profile, dispatcher, methods};
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::served;
use crate::support::light::{ExecutedUpstream, Light};

/// The rows that the core does not have.
fn own() -> impl Iterator<Item = &'static Method> {
    methods().filter(|method| rpc::methods().all(|other| !std::ptr::eq(other, *method)))
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    Fixture { dev: served(fixture.dev), ..fixture }
}

/// Every method of the server works in every mode.
fn check(method: &Method, mode: Mode, answer: &Value) {
    assert_eq!(method.support(mode), Support::Works, "{}", method.name);
    assert!(
        answer["error"].is_null() && answer.get("result").is_some(),
        "{} {mode:?}: {answer}",
        method.name
    );
}

#[test]
fn the_development_chain_of_a_server_answers_its_methods() {
    let mut fixture = fixture();
    assert_eq!(own().count(), 7);
    for method in own() {
        let arguments = fixture.arguments(method.name);
        check(method, Mode::Dev, &fixture.ask(method.name, &arguments));
    }
}

#[test]
fn a_follower_of_a_server_answers_its_methods() {
    let mut fixture = fixture();
    let DevConfig { network, genesis, .. } = DevConfig::new(&DevAccounts::default());
    let chain = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
    let host_input = HostInput { now: fixture.dev.now, entropy: B256::repeat_byte(3) };
    let mut node = FollowNode::new(chain, "Rootlight/f", "node", CallPolicy::default(), host_input);
    node.set_host(Arc::<HostBans>::default());
    let mut client = LocalClient::new(Box::new(node)).with_dispatcher(dispatcher().clone());
    for method in own() {
        let params = fixture.arguments(method.name);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method.name, "params": params}).to_string();
        let message = MessageProgress::read_from(dispatcher(), Arc::default(), message.as_bytes());
        let answer = client.answer(message, host_input, &|| false).into_text().unwrap();
        check(method, Mode::Follow, &serde_json::from_str(&answer).unwrap());
    }
}

#[test]
fn a_light_client_of_a_server_answers_its_methods() {
    let mut fixture = fixture();
    let network = fixture.dev.chain().view().network().clone();
    let upstream = ExecutedUpstream::new(fixture.dev.client.snapshot());
    let mut light = Light::hosted(network, upstream, Arc::<HostBans>::default(), dispatcher().clone());
    for method in own() {
        let answer = light.send(method.name, &fixture.arguments(method.name));
        check(method, Mode::Light, &answer);
    }
}

/// Other methods answer as those of the chain behind the profile, or with the specification's limits for hosted services.
#[test]
fn the_hosted_profile_lacks_the_methods_that_the_table_says() {
    let mut fixture = fixture();
    let mut lacked = 0;
    for method in methods() {
        let arguments = fixture.arguments(method.name);
        let node = fixture.caller.clone();
        let caller = Caller::new(1, 2).with_subscriptions(8).with_operator(false);
        fixture.caller = Arc::new(caller.with_selection(Profile::Hosted.selection(false)));
        let error = fixture.ask(method.name, &arguments)["error"].clone();
        fixture.caller = node;
        if Profile::Hosted.has(method) {
            assert_ne!(error["code"], json!(-32601), "{}: {error}", method.name);
            continue;
        }
        let text = format!("the method {} does not exist/is not available", method.name);
        assert_eq!(error, json!({"code": -32601, "message": text}));
        lacked += 1;
    }
    assert!(lacked > 50, "{lacked}");
    fixture.caller = Arc::new(Caller::new(1, 2).with_selection(Profile::Hosted.selection(false)));
    let document = fixture.ask("rpc.discover", &json!([]))["result"].to_string();
    assert!(document.contains("eth_call") && !document.contains("evm_mine"));
}
