//! A light client above an executing node answers what that node answers: every request of the recorded chain, and the
//! traces of a development chain.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight::engine::{FollowNode, Moment, Node};
use rootlight::exec::{CallPolicy, GenesisBlock};
use rootlight::local::LocalChain;
use rootlight::rpc::{methods, UNAVAILABLE};
use rootlight::types::B256;
use serde_json::{json, Value};
use support::{
    chain::{lines, text},
    light::{Light, Upstream},
    recording::Recording,
    shared,
};

/// Blocks of the recorded chain above genesis.
const HEAD: usize = 676;

/// Files of recorded requests; those about keys, pools and mining are a local chain's own.
const FILES: [&str; 22] = [
    "blocks",
    "blocks_byhash",
    "debug_callTracer",
    "debug_traceTransaction",
    "headers_raw",
    "hosted_like",
    "receipt_nodes",
    "receipts",
    "receipts_raw",
    "rpc_blocks",
    "rpc_call",
    "rpc_debug",
    "rpc_info",
    "rpc_logs",
    "rpc_misc",
    "rpc_override",
    "rpc_precompiles",
    "rpc_state",
    "rpc_trace",
    "rpc_txs",
    "trace_block",
    "trace_transaction",
];

/// Answers about the node itself, which differ by nature.
const OWN: [&str; 6] =
    ["web3_clientVersion", "rpc_modules", "rpc.discover", "eth_syncing", "net_peerCount", "net_peerList"];

/// A node that has executed the recorded chain.
fn follower() -> Option<(FollowNode, Recording)> {
    let recording = Recording::load(&shared()?.join("vectors/chain"), Network::regtest());
    let genesis = GenesisBlock::regtest();
    let chain = LocalChain::new(Arc::new(Network::regtest()), genesis.header, genesis.state, None).unwrap();
    let moment = Moment { now: 1_900_000_000, entropy: B256::repeat_byte(3) };
    let mut node = FollowNode::new(chain, "Rootlight/f", "recording", CallPolicy::default(), moment);
    for recorded in recording.up_to(HEAD as u64) {
        node.import(recorded.block(), None).unwrap_or_else(|error| panic!("{error}"));
    }
    Some((node, recording))
}

/// Which methods a light client refuses, whatever is asked: they change a chain, or list what no proof shows.
fn needs_a_local_chain(error: &Value) -> bool {
    error["code"] == -32601 || text(error, "message").contains("local chain")
}

/// docs/limits.md: a light client runs so many blocks again for one question.
fn is_documented(method: &str, error: &Value) -> bool {
    method == "trace_filter" && error["code"] == -32005
}

/// Of a block off the chain the header is proven, and what it builds on is not.
fn same_but_total_difficulty(ours: &Value, theirs: &Value) -> bool {
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    for value in [&mut ours, &mut theirs] {
        let Some(fields) = value.as_object_mut() else { return false };
        fields.remove("totalDifficulty");
    }
    ours == theirs
}

#[test]
fn the_recorded_requests() {
    let Some((node, _)) = follower() else { return };
    let mut light = Light::new(Network::regtest(), Upstream::new(node.snapshot()));
    let folder = shared().unwrap().join("vectors/chain");
    let (mut equal, mut errors, mut refused) =
        (BTreeMap::<String, u64>::new(), 0u64, BTreeMap::<String, u64>::new());
    let (mut different, mut limited, mut off_chain) = (Vec::new(), 0, 0);
    let (mut rounds, mut seen) = (BTreeMap::<String, (u64, u64)>::new(), std::collections::BTreeSet::new());
    for file in FILES {
        for line in lines(&folder.join(format!("{file}.jsonl"))) {
            let Some(method) = line["request"]["method"].as_str() else { continue };
            let params = line["request"].get("params").cloned().unwrap_or(json!([]));
            if OWN.contains(&method)
                || UNAVAILABLE.contains(&method)
                || !seen.insert(format!("{method} {params}"))
            {
                continue;
            }
            let theirs = light.upstream.call(method, &params);
            let (ours, took) = light.count(method, &params);
            let counted = rounds.entry(method.to_owned()).or_default();
            *counted = (counted.0 + 1, counted.1 + took as u64);
            match (&ours, &theirs) {
                (Ok(a), Ok(b)) if a == b => *equal.entry(method.to_owned()).or_default() += 1,
                (Err(a), Err(b)) if a["code"] == b["code"] => errors += 1,
                (Err(error), _) if needs_a_local_chain(error) => {
                    *refused.entry(method.to_owned()).or_default() += 1
                }
                (Err(error), Ok(_)) if is_documented(method, error) => limited += 1,
                (Ok(a), Ok(b)) if same_but_total_difficulty(a, b) => off_chain += 1,
                _ => {
                    let cut = |answer: &Result<Value, Value>| {
                        format!("{answer:?}").chars().take(400).collect::<String>()
                    };
                    different.push(format!(
                        "{file} {method} {params}\n  ours   {}\n  theirs {}",
                        cut(&ours),
                        cut(&theirs)
                    ));
                }
            }
        }
    }
    let total: u64 = equal.values().sum();
    println!("{total} equal, {errors} equal errors, {limited} beyond the limits, {off_chain} side blocks, refused {refused:?}");
    println!("{equal:?}");
    println!("round trips: {rounds:?}");
    let mut kinds = BTreeMap::<&str, u64>::new();
    different.iter().for_each(|text| *kinds.entry(text.split(' ').nth(1).unwrap()).or_default() += 1);
    assert!(limited <= 3 && off_chain <= 3, "{limited} {off_chain}");
    let shown: Vec<_> = different.iter().take(12).cloned().collect();
    assert!(different.is_empty(), "{} differ {kinds:?}:\n{}", different.len(), shown.join("\n"));
    assert!(total > 6_000, "{total}");
    // What the table promises as a reading method is not refused as a whole.
    let writes = |name: &String| {
        methods().any(|row| (row.name == name || row.aliases.contains(&name.as_str())) && !row.writes())
    };
    let refused_reads: Vec<_> = refused.keys().filter(|name| writes(name)).collect();
    assert!(refused_reads.is_empty(), "{refused_reads:?}");
}

/// Without witnesses the same traces come from plain proofs.
#[test]
fn traces_from_plain_proofs() {
    let Some((node, _)) = follower() else { return };
    let mut upstream = Upstream::new(node.snapshot());
    upstream.without = vec!["rootlight_getWitness", "rootlight_getBlockWitness"];
    let mut light = Light::new(Network::regtest(), upstream);
    let (mut traces, mut most) = (0, 0);
    for number in [3u64, 60, 73, 100, 130, 155, 200, 300, 420, 500, 642] {
        let params = json!([format!("{number:#x}")]);
        let theirs = light.upstream.call("trace_block", &params).unwrap();
        let (ours, rounds) = light.count("trace_block", &params);
        assert_eq!(ours, Ok(theirs.clone()), "block {number}");
        traces += theirs.as_array().unwrap().len();
        most = most.max(rounds);
    }
    println!("{traces} traces, at most {most} round trips for a block");
    assert!(traces > 20 && most <= 12, "{traces} {most}");
}

/// A block that the header does not commit to is no trace: here the upstream gives the nodes of another state.
#[test]
fn witnesses_of_other_states_make_no_traces() {
    let Some((node, recording)) = follower() else { return };
    let mut light = Light::new(Network::regtest(), Upstream::new(node.snapshot()));
    let busy = recording.blocks[1..=HEAD].iter().max_by_key(|block| block.transactions.len()).unwrap();
    let params = json!([format!("{:#x}", busy.header.number)]);
    let theirs = light.upstream.call("trace_block", &params).unwrap();
    let other = recording.blocks[busy.header.number as usize - 1].header.hash();
    let swapped = light.upstream.call("rootlight_getBlockWitness", &json!([other])).unwrap();
    light.upstream.change = Some(Box::new(move |call, answer| match call.method {
        "rootlight_getBlockWitness" => {
            Ok(serde_json::value::RawValue::from_string(swapped.to_string()).unwrap())
        }
        _ => answer,
    }));
    let (ours, rounds) = light.count("trace_block", &params);
    assert_eq!(ours, Ok(theirs.clone()));
    light.upstream.change = None;
    let mut honest = Light::new(Network::regtest(), Upstream::new(node.snapshot()));
    let (ours, few) = honest.count("trace_block", &params);
    assert_eq!(ours, Ok(theirs));
    println!("{} transactions: {few} round trips, {rounds} with a useless witness", busy.transactions.len());
    // The body, then the witness; while nobody knows whether there are any, parties are asked for beside it.
    assert!(few <= 3 && few < rounds, "{few} {rounds}");
}
