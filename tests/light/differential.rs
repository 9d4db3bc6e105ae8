//! A light client of an executing node gives the answers of that node: for every request of the recorded chain, and
//! for traces.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use rootlight::consensus::Network;
use rootlight::engine::LocalNode;
use rootlight::rpc::UNAVAILABLE;
use rootlight::rpc::methods;
use serde_json::{Value, json};
use support::{
    chain::{lines, text},
    light::{Change, ExecutedUpstream, FOLLOWED, Light, follower},
    recording::RECORDED_FILES,
    shared,
};

/// Methods about the node itself, whose answers differ.
const OWN: [&str; 10] = [
    "web3_clientVersion",
    "rpc_modules",
    "rpc.discover",
    "eth_syncing",
    "net_peerCount",
    "net_peerList",
    "sco_banAddress",
    "sco_bannedAddresses",
    "sco_peerList",
    "sco_unbanAddress",
];

/// Whether the error is that of a method that a light client always refuses: it changes a chain, or lists data that
/// no proof covers.
fn needs_a_local_chain(error: &Value) -> bool {
    error["code"] == -32601 || text(error, "message").contains("local chain")
}

/// The limit of replayed blocks for one request, as in docs/limits.md.
fn is_documented(method: &str, error: &Value) -> bool {
    method == "trace_filter" && error["code"] == -32005
}

/// The differences for side blocks in docs/differences.md: receipts are requested by transaction, so those of a side
/// block cannot be fetched if the transaction was mined again on the chain; and the payments of such a block depend
/// on other side blocks.
fn is_off_chain(file: &str, method: &str, error: &Value) -> bool {
    let methods = ["eth_getLogs", "rsk_getTransactionReceiptNodesByHash", "trace_block"];
    file == "side_blocks" && methods.contains(&method) && error["code"] == -32002
}

/// Of a side block the header is proven, but not its total difficulty.
fn same_but_total_difficulty(ours: &Value, theirs: &Value) -> bool {
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    for value in [&mut ours, &mut theirs] {
        let Some(fields) = value.as_object_mut() else { return false };
        fields.remove("totalDifficulty");
    }
    ours == theirs
}

#[test]
fn recorded_requests_have_the_answers_of_the_upstream() {
    let Some((node, _)) = follower() else { return };
    let mut light = Light::new(Network::regtest(), ExecutedUpstream::new(node.snapshot()));
    let folder = shared().unwrap().join("vectors/chain");
    let (mut equal, mut errors, mut refused) =
        (BTreeMap::<String, u64>::new(), 0u64, BTreeMap::<String, u64>::new());
    let (mut different, mut limited, mut off_chain, mut side) = (Vec::new(), 0, 0, 0);
    let (mut rounds, mut seen) = (BTreeMap::<String, (u64, u64)>::new(), BTreeSet::new());
    // The requests of `instant_mode` send transactions, which the tests over peers leave out.
    for file in RECORDED_FILES.into_iter().chain(["instant_mode"]) {
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
                (Err(error), Ok(_)) if is_off_chain(file, method, error) => side += 1,
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
    println!(
        "{total} equal, {errors} equal errors, {limited} beyond the limits, {off_chain} side blocks, {side} requests for their receipts and fees, refused {refused:?}"
    );
    println!("{equal:?}");
    println!("round trips: {rounds:?}");
    let mut kinds = BTreeMap::<&str, u64>::new();
    different.iter().for_each(|text| *kinds.entry(text.split(' ').nth(1).unwrap()).or_default() += 1);
    assert!(limited <= 3 && off_chain <= 36 && side <= 25, "{limited} {off_chain} {side}");
    let shown: Vec<_> = different.iter().take(12).cloned().collect();
    assert!(different.is_empty(), "{} differ {kinds:?}:\n{}", different.len(), shown.join("\n"));
    assert!(total > 8_000, "{total}");
    // A method that the table lists as reading is not always refused.
    let writes = |name: &String| {
        methods().any(|row| (row.name == name || row.aliases.contains(&name.as_str())) && !row.writes())
    };
    let refused_reads: Vec<_> = refused.keys().filter(|name| writes(name)).collect();
    assert!(refused_reads.is_empty(), "{refused_reads:?}");
}

/// Recorded uncles, including some with uncles of their own, by their blocks and by their own hashes: from the node
/// that executes the chain, and proven by a client of it.
#[test]
fn uncles_equal_the_recorded_ones() {
    let Some((node, _)) = follower() else { return };
    let mut light = Light::new(Network::regtest(), ExecutedUpstream::new(node.snapshot()));
    let (mut seen, mut parents) = (0, 0);
    for line in lines(&shared().unwrap().join("vectors/chain/uncles.jsonl")) {
        let method = text(&line["request"], "method");
        if !method.starts_with("eth_getUncleBy") || line["response"]["result"].is_null() {
            continue;
        }
        let (params, mut theirs) = (&line["request"]["params"], line["response"]["result"].clone());
        let shown = light.upstream.call(method, params).unwrap();
        // Neither shows a body, and the size is that of the header (docs/differences.md).
        theirs["transactions"] = json!([]);
        theirs["size"] = shown["size"].clone();
        assert_eq!(shown, theirs, "{method} {params}");
        assert_eq!(light.call(method, params), Ok(shown), "{method} {params}");
        let by_hash = json!([theirs["hash"], false]);
        let (block, proven) =
            (light.upstream.call("eth_getBlockByHash", &by_hash), light.call("eth_getBlockByHash", &by_hash));
        assert_eq!(proven, block, "{by_hash}");
        for field in ["uncles", "totalDifficulty", "cumulativeDifficulty"] {
            assert_eq!(block.as_ref().unwrap()[field], theirs[field], "{field} of {by_hash}");
        }
        parents += u64::from(theirs["uncles"] != json!([]));
        seen += 1;
    }
    println!("{seen} uncles, {parents} with uncles of their own");
    assert!(seen >= 40 && parents > 0, "{seen} {parents}");
}

/// If no upstream has the uncle's block, its own uncles stay unknown: an empty list would contradict its header.
#[test]
fn uncles_of_an_uncle_are_null_if_no_upstream_has_its_block() {
    let Some((node, _)) = follower() else { return };
    let mut light = Light::new(Network::regtest(), ExecutedUpstream::new(node.snapshot()));
    light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_getBlockByHash" => Ok(serde_json::value::RawValue::from_string("null".into()).unwrap()),
        _ => answer,
    }));
    let none = format!("{}", rootlight::types::EMPTY_UNCLES_HASH);
    let mut open = 0;
    for line in lines(&shared().unwrap().join("vectors/chain/uncles.jsonl")) {
        let (method, params) = (text(&line["request"], "method"), &line["request"]["params"]);
        if method != "eth_getUncleByBlockNumberAndIndex" || line["response"]["result"].is_null() {
            continue;
        }
        let shown = light.call(method, params).unwrap();
        let known = shown["sha3Uncles"] == json!(none);
        for field in ["uncles", "totalDifficulty", "cumulativeDifficulty"] {
            assert_eq!(shown[field].is_null(), !known, "{field} of {params}");
        }
        open += u64::from(!known);
    }
    assert!(open > 0);
}

/// Proofs of every recorded account with its slots, present and absent.
#[test]
fn proofs_of_recorded_accounts_equal_those_of_the_upstream() {
    let Some((node, _)) = follower() else { return };
    let mut light = Light::new(Network::regtest(), ExecutedUpstream::new(node.snapshot()));
    let mut wanted = BTreeMap::<(u64, String), BTreeSet<String>>::new();
    let lines = lines(&shared().unwrap().join("vectors/chain/state_proofs.jsonl"));
    for line in lines.iter().filter(|line| line["kind"] != "raw") {
        let slots =
            wanted.entry((line["block"].as_u64().unwrap(), text(line, "address").into())).or_default();
        slots.extend(line["slot"].as_str().map(String::from));
    }
    let mut slots = 0;
    for ((number, address), keys) in &wanted {
        let params = json!([address, keys, format!("{number:#x}")]);
        let theirs = light.upstream.call("eth_getProof", &params).unwrap();
        assert_eq!(light.call("eth_getProof", &params), Ok(theirs), "{params}");
        slots += keys.len();
    }
    println!("{} accounts, {slots} slots, of {} recorded proofs", wanted.len(), lines.len());
    assert!(wanted.len() > 100 && slots > 200, "{} {slots}", wanted.len());
}

/// Without witnesses, plain proofs give the same traces.
#[test]
fn traces_need_no_witnesses() {
    let Some((node, _)) = follower() else { return };
    let mut upstream = ExecutedUpstream::new(node.snapshot());
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

/// geth's tracers run over proven state too: the state that they show and the code whose size they show is proven.
#[test]
fn the_tracers_of_geth_need_no_local_chain() {
    let Some((node, _)) = follower() else { return };
    let mut upstream = ExecutedUpstream::new(node.snapshot());
    upstream.without = vec!["rootlight_getWitness", "rootlight_getBlockWitness"];
    let mut light = Light::new(Network::regtest(), upstream);
    let options = [
        json!({"tracer": "prestateTracer"}),
        json!({"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}}),
        json!({"tracer": "flatCallTracer"}),
        json!({"tracer": "4byteTracer"}),
        json!({"tracer": "erc7562Tracer"}),
        json!({"tracer": "structLogger", "enableMemory": true}),
        json!({"tracer": "muxTracer", "tracerConfig": {"callTracer": {}, "prestateTracer": {}}}),
    ];
    let mut traces = 0;
    for number in [3u64, 60, 73, 100, 130, 155, 200, 300, 420, 500, 642] {
        for options in &options {
            let params = json!([format!("{number:#x}"), options]);
            let theirs = light.upstream.call("debug_traceBlockByNumber", &params);
            let ours = light.call("debug_traceBlockByNumber", &params);
            assert_eq!(ours, theirs, "{params}");
            traces += ours.map_or(0, |traces| traces.as_array().map_or(0, Vec::len));
        }
    }
    assert!(traces >= 140, "{traces}");
}

/// A side block is connected to the chain, and replayed on the state that its own ancestors left.
#[test]
fn traces_off_the_chain_are_those_of_their_own_branch() {
    let Some((node, _)) = follower() else { return };
    let mut light = Light::new(Network::regtest(), ExecutedUpstream::new(node.snapshot()));
    let mut equal = 0;
    for line in lines(&shared().unwrap().join("vectors/chain/side_blocks.jsonl")) {
        if line["request"]["method"] != "trace_block" {
            continue;
        }
        let hash = &line["request"]["params"][0];
        for method in ["trace_block", "debug_traceBlockByHash"] {
            let params = json!([hash]);
            match light.call(method, &params) {
                Ok(ours) => {
                    assert_eq!(Ok(ours), light.upstream.call(method, &params), "{method} {hash}");
                    equal += 1;
                }
                // As for canonical blocks, if no upstream proves the whole storage.
                Err(error) => assert!(text(&error, "message").contains("lists the whole storage"), "{error}"),
            }
        }
    }
    assert!(equal > 50, "{equal}");
}

/// A block right above the checkpoint reads blocks below it.
#[test]
fn traces_that_need_headers_below_the_checkpoint_are_refused() {
    let Some((node, _)) = follower() else { return };
    let mut light = Light::since(Network::regtest(), ExecutedUpstream::new(node.snapshot()), 600);
    let error = light.call("trace_block", &json!(["0x25a"])).unwrap_err();
    let words = text(&error, "message");
    assert!(words.contains("is older than block 600") && error["code"] == -32002, "{words}");
    let above = json!(["0x280"]);
    assert_eq!(light.call("trace_block", &above), light.upstream.call("trace_block", &above));
}

/// A run reads headers of ancestors, whose merged-mining fields the block's hash does not cover (RSKIP-92): the proof
/// of work of each such ancestor must have been checked. Here the upstream changes the coinbase of the checkpoint.
#[test]
fn a_trace_that_reads_a_header_without_its_proof_of_work_is_refused() {
    let Some((node, _)) = follower() else { return };
    let light = |change: Option<Change>| {
        let mut upstream = ExecutedUpstream::new(node.snapshot());
        (upstream.without, upstream.change) = (vec!["rootlight_getHeaders"], change);
        Light::since(Network::regtest(), upstream, 600)
    };
    let mut honest = light(None);
    let mut swapped = light(Some(Box::new(|call, answer| {
        if call.method != "eth_getBlockByNumber" || !call.params.contains("0x258") {
            return answer;
        }
        let mut block: Value = serde_json::from_str(answer?.get()).unwrap();
        let coinbase = text(&block, "bitcoinMergedMiningCoinbaseTransaction").to_owned() + &"00".repeat(64);
        block["bitcoinMergedMiningCoinbaseTransaction"] = json!(coinbase);
        Ok(serde_json::value::RawValue::from_string(block.to_string()).unwrap())
    })));
    let mut refused = 0;
    for number in 0x259..0x280 {
        let params = json!([format!("{number:#x}")]);
        let (expected, given) = (honest.call("trace_block", &params), swapped.call("trace_block", &params));
        let words = given.as_ref().err().map_or("", |error| text(error, "message"));
        if words.contains("the proof of work of block 600 was not shown") && expected.is_ok() {
            refused += 1;
        } else {
            assert_eq!(given, expected, "block {number}");
        }
    }
    assert!(refused > 0);
}

/// The outcome of a replay is compared with the header. Under other gas rules the outcome differs.
#[test]
fn a_replay_whose_outcome_differs_from_the_header_is_refused() {
    let Some((node, recording)) = follower() else { return };
    let other = Network::from_json(r#"{"name":"other","rules":{"rskip400":-1}}"#).unwrap();
    let mut light = Light::new(other, ExecutedUpstream::new(node.snapshot()));
    let data = |block: &&support::recording::RecordedBlock| {
        block.transactions.iter().map(|transaction| transaction.data.len()).sum::<usize>()
    };
    // A block with one transaction beside REMASC's, so that nothing else runs out of gas.
    let alone = recording.blocks[1..=FOLLOWED].iter().filter(|block| block.transactions.len() == 2);
    let block = alone.max_by_key(data).unwrap();
    let params = json!([format!("{:#x}", block.header.number)]);
    assert!(light.upstream.call("trace_block", &params).is_ok());
    let error = light.call("trace_block", &params).unwrap_err();
    assert_eq!(error["code"], -32002, "{error}");
    assert!(text(&error, "message").contains("receiptsRoot"), "{error}");
}

/// A trace is never made from state that the header does not commit to: here the upstream serves a witness of another
/// state.
#[test]
fn witnesses_of_other_states_make_no_traces() {
    let Some((node, recording)) = follower() else { return };
    let mut light = Light::new(Network::regtest(), ExecutedUpstream::new(node.snapshot()));
    let busy = recording.blocks[1..=FOLLOWED].iter().max_by_key(|block| block.transactions.len()).unwrap();
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
    let mut honest = Light::new(Network::regtest(), ExecutedUpstream::new(node.snapshot()));
    let (ours, few) = honest.count("trace_block", &params);
    assert_eq!(ours, Ok(theirs));
    println!("{} transactions: {few} round trips, {rounds} with a useless witness", busy.transactions.len());
    // One round for the body and one for the witness. While witnesses are untested, the accounts of the block are
    // requested beside them.
    assert!(few <= 3 && few < rounds, "{few} {rounds}");
}
