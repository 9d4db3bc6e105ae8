//! The client's reports about itself, and headers served to other clients.

use std::{collections::BTreeSet, sync::Arc};

use rootlight::{
    consensus::{Checkpoint, Network},
    light::{ClientConfig, Now, RequestFailure, SyncOptions, SyncStep, UpstreamResponse, decode_headers},
    rpc::Client,
};
use serde_json::{Value, json, value::RawValue};

use crate::{
    actor::{Actor, ActorTrick},
    network::HostileNetwork,
    recording,
};

const HEAD: u64 = 90;

fn checkpoint() -> Checkpoint {
    let total_difficulty = Some(alloy_primitives::U256::from(1));
    Checkpoint { number: 0, hash: Network::regtest().genesis_hash, total_difficulty }
}

#[test]
fn headers_served_in_binary_are_enough_for_another_client() {
    let Some(recording) = recording(HEAD) else { return };
    let mut server = HostileNetwork::regtest(vec![Actor::new(&recording, ActorTrick::Honest)]);
    assert!(server.sync(60_000));
    server.run(10_000);
    let text = server.call("rootlight_getHeaders", &json!(["0x40", "0x100"])).unwrap();
    let headers = decode_headers(text.as_str().unwrap(), 256, &Network::regtest()).unwrap();
    assert_eq!(headers.len() as u64, HEAD - 0x40 + 1, "to the head");
    assert!(headers.iter().any(|(_, uncles)| uncles.as_ref().is_some_and(|uncles| !uncles.is_empty())));
    assert_eq!(
        server.call("rootlight_getHeaders", &json!(["0x5b", "0x1"])),
        Ok("ARDA".into()),
        "the empty list"
    );

    let config = ClientConfig { upstreams: vec!["server".into()], ..ClientConfig::default() };
    let options = SyncOptions::default();
    let client = Client::with_upstreams(Arc::new(Network::regtest()), checkpoint(), config, options);
    let mut methods = BTreeSet::new();
    while let SyncStep::Fetch(calls) = client.sync_next(0, Now::default()) {
        let answers: Vec<UpstreamResponse> = calls
            .iter()
            .map(|call| {
                methods.insert(call.method);
                let params: Value = serde_json::from_str(&call.params).unwrap();
                let answer = server.call(call.method, &params);
                let answer = answer.map_err(|error| RequestFailure::Transport(error.to_string()))?;
                Ok(RawValue::from_string(answer.to_string()).unwrap())
            })
            .collect();
        client.sync_feed(0, answers, Now::default());
    }
    let (theirs, ours) =
        (server.client.sync().chain().unwrap().clone(), client.sync().chain().unwrap().clone());
    assert_eq!(ours.head(), theirs.head());
    assert_eq!(ours.total_difficulty(&ours.head().hash()), theirs.total_difficulty(&ours.head().hash()));
    assert!(ours.total_difficulty(&ours.head().hash()).is_some(), "uncles came along");
    assert_eq!(methods, BTreeSet::from(["eth_blockNumber", "rootlight_getHeaders"]));
}

#[test]
fn a_liar_is_listed_with_the_evidence() {
    let Some(recording) = recording(HEAD) else { return };
    let actors =
        vec![Actor::new(&recording, ActorTrick::CopiedWork), Actor::new(&recording, ActorTrick::Honest)];
    let mut network = HostileNetwork::regtest(actors);
    assert!(network.sync(120_000));
    let listed = network.call("rootlight_upstreams", &json!([])).unwrap();
    assert_eq!((listed[0]["name"].as_str(), listed[1]["name"].as_str()), (Some("actor 0"), Some("actor 1")));
    let proof = &listed[0]["misbehaviour"][0];
    assert!(proof["lie"] == true && proof["method"] == "eth_getBlockByNumber", "{listed}");
    assert!(proof["rule"].as_str().unwrap().contains("bitcoinMergedMining"), "{listed}");
    assert!(listed[0]["resting"].is_string() && listed[1]["misbehaviour"] == json!([]), "{listed}");
    let status = network.call("rootlight_syncStatus", &json!([])).unwrap();
    assert_eq!((&status["synced"], &status["currentBlock"]), (&json!(true), &json!("0x5a")));
    assert_eq!(network.call("rootlight_checkpoint", &json!([])).unwrap()["number"], "0x0");
}

#[test]
fn every_block_carries_depth_and_work_on_top() {
    let Some(recording) = recording(HEAD) else { return };
    let mut network = HostileNetwork::regtest(vec![Actor::new(&recording, ActorTrick::Honest)]);
    assert!(network.sync(60_000));
    network.run(10_000);
    let tip = network.call("rootlight_verification", &json!([])).unwrap();
    assert_eq!(
        (&tip["blockNumber"], &tip["depth"], &tip["workOnTop"]),
        (&json!("0x5a"), &json!("0x0"), &json!("0x0"))
    );
    let older = network.call("rootlight_verification", &json!(["0x50"])).unwrap();
    assert_eq!(
        (&older["level"], &older["origin"], &older["depth"]),
        (&json!("verified"), &json!("mined"), &json!("0xa"))
    );
    assert_ne!(older["workOnTop"], "0x0");
    assert_eq!(network.call("rootlight_verification", &json!(["0x0"])).unwrap()["origin"], "checkpoint");
}

/// An invalid state mined by a real miner has no blocks on top of it for long: who asks for depth does not see it.
#[test]
fn young_blocks_are_refused_where_depth_is_asked_for() {
    let Some(recording) = recording(HEAD) else { return };
    let actors = vec![Actor::new(&recording, ActorTrick::Honest)];
    let mut network = HostileNetwork::with_min_depth(Network::regtest(), checkpoint(), actors, 12);
    assert!(network.sync(60_000));
    network.run(10_000);
    for params in [json!(["latest", false]), json!(["0x4f", false])] {
        let error = network.call("eth_getBlockByNumber", &params).unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("blocks on top, at least 12"), "{error}");
    }
    for params in [json!(["safe", false]), json!(["0x4e", false])] {
        assert_eq!(network.call("eth_getBlockByNumber", &params).unwrap()["number"], "0x4e");
    }
}

#[test]
fn transactions_of_young_blocks_are_refused_where_depth_is_asked_for() {
    let Some(recording) = recording(130) else { return };
    let hash = json!(["0xe60832eaa5ee0abcd6ef05fa33f378dbd2998e8ce1dbcf91ca2a3bf9d5ec78cb"]);
    let at_depth = |min_depth: u64, method: &str| {
        let actors = vec![Actor::new(&recording, ActorTrick::Honest)];
        let mut network = HostileNetwork::with_min_depth(Network::regtest(), checkpoint(), actors, min_depth);
        assert!(network.sync(60_000));
        network.call(method, &hash)
    };
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        let found = at_depth(0, method).unwrap();
        let depth = 130 - crate::support::u64_of(found["blockNumber"].as_str().unwrap());
        assert!(at_depth(depth, method).is_ok(), "{method}");
        let error = at_depth(depth + 1, method).unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("blocks on top, at least"), "{error}");
    }
}
