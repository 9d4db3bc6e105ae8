//! Real mainnet headers served in binary: the clock, the fork window, work that means something.

use rootlight::{
    consensus::{Checkpoint, HeaderCandidate, Network},
    light::{
        ClientConfig, Now, RequestFailure, SyncOptions, SyncStep, UpstreamRequest, UpstreamResponse,
        encode_headers,
    },
    rpc::Client,
};
use serde_json::{Value, value::RawValue};
use std::{collections::BTreeSet, sync::Arc};

use crate::support::{bytes, shared, u64_of};

/// The 1,200 consecutive mainnet headers from 4,479,841 on.
pub(crate) fn headers() -> Option<Vec<HeaderCandidate>> {
    let path = shared()?.join("realdata/headers/mainnet_4479841_iris_run1200.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let network = Network::mainnet();
    let headers = file["headers"].as_array().unwrap();
    Some(
        headers
            .iter()
            .map(|value| HeaderCandidate::decode(&bytes(value["rlp"].as_str().unwrap()), &network).unwrap())
            .collect(),
    )
}

pub(crate) fn client(headers: &[HeaderCandidate], start: usize) -> Client {
    let header = headers[start].header();
    let checkpoint = Checkpoint { number: header.number, hash: header.hash(), total_difficulty: None };
    let config = ClientConfig { upstreams: vec!["real".into()], ..ClientConfig::default() };
    Client::with_upstreams(Arc::new(Network::mainnet()), checkpoint, config, SyncOptions::default())
}

pub(crate) fn answer(headers: &[HeaderCandidate], call: &UpstreamRequest) -> UpstreamResponse {
    let (first, last) = (headers[0].header().number, headers[headers.len() - 1].header().number);
    let params: Value = serde_json::from_str(&call.params).unwrap();
    let text = match call.method {
        "eth_blockNumber" => format!("\"{last:#x}\""),
        "rootlight_getHeaders" => {
            let from = u64_of(params[0].as_str().unwrap());
            let count = u64_of(params[1].as_str().unwrap());
            let wanted = headers.iter().map(|header| header.header());
            let wanted =
                wanted.filter(|header| header.number >= from.max(first) && header.number < from + count);
            format!("\"{}\"", encode_headers(wanted.map(|header| (header.header(), Some(&[][..])))))
        }
        _ => return Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() }),
    };
    Ok(RawValue::from_string(text).unwrap())
}

/// Runs for some seconds of the simulated clock; gives the bytes that came.
pub(crate) fn run(
    client: &mut Client,
    headers: &[HeaderCandidate],
    unix: u64,
    from: u64,
    seconds: u64,
) -> usize {
    let (mut bytes, mut millis) = (0, from * 1_000);
    while millis < (from + seconds) * 1_000 {
        let now = Now { unix: unix + millis / 1_000, millis };
        match client.sync_next(0, now) {
            SyncStep::Wait(pause) => millis += pause.max(1),
            SyncStep::Fetch(calls) => {
                millis += 30;
                let answers: Vec<UpstreamResponse> = calls.iter().map(|call| answer(headers, call)).collect();
                bytes += answers.iter().flatten().map(|raw| raw.get().len()).sum::<usize>();
                client.sync_feed(0, answers, Now { unix: unix + millis / 1_000, millis });
            }
        }
    }
    bytes
}

#[test]
fn real_headers_from_the_checkpoint_before_them() {
    let Some(headers) = headers() else { return };
    let last = headers[1_199].header();
    let mut client = client(&headers, 0);
    let bytes = run(&mut client, &headers, last.timestamp, 0, 60);
    assert!(client.sync().is_synced());
    assert_eq!(client.sync().chain().unwrap().head().hash(), last.hash());
    assert!(client.sync().low_work().is_none(), "{:?}", client.sync().low_work());
    println!("{} bytes per header", bytes / 1_199);
    assert!(bytes / 1_199 <= 1_200, "{bytes}");
}

/// More than a thousand of these blocks have uncles.
#[test]
fn what_an_upstream_has_no_method_for_is_not_asked_for_again_and_again() {
    let Some(headers) = headers() else { return };
    let now = Now { unix: headers[1_199].header().timestamp, millis: 0 };
    let (client, mut uncles) = (client(&headers, 0), BTreeSet::new());
    while let SyncStep::Fetch(calls) = client.sync_next(0, now) {
        uncles.extend(
            calls.iter().filter(|call| call.method.contains("Uncle")).map(|call| call.params.clone()),
        );
        client.sync_feed(0, calls.iter().map(|call| answer(&headers, call)).collect(), now);
    }
    assert!(client.sync().uncles_complete());
    assert!((64..64 * 20).contains(&uncles.len()), "of the first 64 blocks only: {}", uncles.len());
}

#[test]
fn the_window_below_the_checkpoint_completes_fork_detection() {
    let Some(headers) = headers() else { return };
    let last = headers[1_199].header();
    let mut client = client(&headers, 500);
    run(&mut client, &headers, last.timestamp, 0, 60);
    let chain = client.sync().chain().unwrap().clone();
    assert_eq!(chain.head().hash(), last.hash());
    assert_eq!(chain.view().lowest(), headers[500].header().number - 449);
    for header in &headers[501..] {
        let kept = chain.by_hash(&header.header().hash()).unwrap();
        assert!(kept.evidence().fork_detection.is_complete(), "{}", kept.number);
    }
}

#[test]
fn a_skewed_clock_bans_nobody() {
    let Some(headers) = headers() else { return };
    let last = headers[1_199].header();
    let behind = headers[600].header().timestamp;
    let mut client = client(&headers, 0);
    run(&mut client, &headers, behind, 0, 120);
    let state = client.sync().upstreams().remove(0);
    assert!(state.resting.is_none() && state.record.lies == 0, "{state:?}");
    let head = client.sync().chain().unwrap().head().number;
    assert!((headers[590].header().number..=headers[620].header().number).contains(&head), "{head}");
    // The clock is put right: the rest follows.
    run(&mut client, &headers, last.timestamp, 200, 60);
    assert_eq!(client.sync().chain().unwrap().head().hash(), last.hash());
}
