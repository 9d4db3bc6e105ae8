//! An upstream is not blamed for lacking a block or account that a caller made up.

use crate::support;

use alloy_primitives::keccak256;
use rootlight::consensus::Network;
use rootlight::light::{RequestFailure, UnprovenPolicy, UpstreamRequest, UpstreamResponse};
use serde_json::{Value, json, value::RawValue};
use support::{
    dev::DevClient,
    light::{ExecutedUpstream, Light},
};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// A chain on which block 1 is older than the states that every upstream should have.
fn dev() -> DevClient {
    let mut dev = DevClient::instant();
    for value in 1..=80 {
        dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "value": value}]));
    }
    dev
}

/// An upstream that says this where `about` holds for a request.
fn saying(
    dev: &DevClient,
    failure: RequestFailure,
    about: impl Fn(&UpstreamRequest) -> bool + 'static,
) -> ExecutedUpstream {
    let mut upstream = ExecutedUpstream::new(dev.client.snapshot());
    upstream.change = Some(Box::new(move |asked: &UpstreamRequest, honest| -> UpstreamResponse {
        if about(asked) { Err(failure.clone()) } else { honest }
    }));
    upstream
}

/// A client of two upstreams that is at the head. They take turns at so many headers.
fn among(first: ExecutedUpstream, second: ExecutedUpstream) -> Light {
    let upstreams = vec![("first", first), ("second", second)];
    let mut light = Light::among(Network::regtest(), upstreams, UnprovenPolicy::Refuse);
    (0..3).for_each(|_| light.sync());
    light
}

/// A client of two upstreams: one that says this of all proofs, and an honest one.
fn light(dev: &DevClient, failure: RequestFailure) -> Light {
    let first = saying(dev, failure, |asked| asked.method.ends_with("getProof"));
    among(first, ExecutedUpstream::new(dev.client.snapshot()))
}

fn demerits(light: &Light) -> Vec<u32> {
    light.client.sync().upstreams().iter().map(|upstream| upstream.record.demerits).collect()
}

/// Asks about accounts that were never asked about.
fn ask(light: &mut Light, accounts: std::ops::Range<u32>, block: &str) -> Vec<Value> {
    accounts
        .map(|account| light.send("eth_getBalance", &json!([format!("{account:#042x}"), block])))
        .collect()
}

fn pruned() -> RequestFailure {
    RequestFailure::Rpc { code: -32000, message: "missing trie node".into() }
}

fn gone() -> RequestFailure {
    RequestFailure::Transport("timed out".into())
}

/// Otherwise any caller could move an upstream that lies to the front.
#[test]
fn an_upstream_without_the_old_states_that_a_caller_names_is_asked_first_still() {
    let dev = dev();
    let mut light = light(&dev, pruned());
    let answers = ask(&mut light, 1..40, "0x1");
    assert!(answers.iter().all(|answer| answer["result"] == "0x0"), "{answers:?}");
    assert_eq!(demerits(&light), [0, 0]);
    assert_eq!(light.client.sync().roster(), [0, 1]);
    // Every upstream that gives proofs has the states of the newest blocks.
    ask(&mut light, 1..5, "latest");
    assert!(demerits(&light)[0] > 0 && demerits(&light)[1] == 0, "{:?}", demerits(&light));
}

/// A proof of another upstream shows that the caller was not at fault.
#[test]
fn silence_about_what_a_caller_names_is_a_fault_only_if_another_upstream_proves_it() {
    let dev = dev();
    let mut proven = light(&dev, gone());
    ask(&mut proven, 1..5, "0x1");
    assert_eq!(demerits(&proven), [4, 0]);
    let silent = || saying(&dev, gone(), |asked| asked.method.ends_with("getProof"));
    let mut unproven = among(silent(), silent());
    let answers = ask(&mut unproven, 1..6, "0x1");
    assert!(answers.iter().all(|answer| answer["error"]["code"] == -32002), "{answers:?}");
    assert_eq!(demerits(&unproven), [0, 0]);
}

/// A caller can make up a transaction that no upstream takes.
#[test]
fn silence_about_a_transaction_is_a_fault_only_if_another_upstream_took_it() {
    let mut dev = dev();
    let fields = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x50"}]);
    let signed = dev.get("eth_signTransaction", fields);
    let signed = signed.get("raw").cloned().unwrap_or(signed);
    let hash = keccak256(support::bytes(signed.as_str().unwrap()));
    let taken = Ok(RawValue::from_string(format!("\"{hash}\"")).unwrap());
    let low = Err(RequestFailure::Rpc { code: -32010, message: "nonce too low".into() });
    for (other, expected) in [(taken, [1, 0]), (low, [0, 0])] {
        let first = saying(&dev, gone(), UpstreamRequest::sends);
        let mut second = ExecutedUpstream::new(dev.client.snapshot());
        second.change = Some(Box::new(
            move |asked: &UpstreamRequest, honest| {
                if asked.sends() { other.clone() } else { honest }
            },
        ));
        let mut light = among(first, second);
        light.send("eth_sendRawTransaction", &json!([signed]));
        assert_eq!(demerits(&light), expected);
    }
}
