//! Every method of the table, and every recorded request, asked of a light client that lives on one peer alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use rootlight::consensus::Network;
use rootlight::engine::{FollowNode, LocalNode as _};
use rootlight::exec::{CallPolicy, GenesisBlock};
use rootlight::rpc::UNAVAILABLE;
use rootlight_node::light::LightService;
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_node::peer_server::{LocalChain, PeerServer};
use rootlight_p2p::session::RateLimits;
use rootlight_server::methods::methods;
use rootlight_server::service::Service;
use serde_json::{Value, json};

use crate::chain::serve_within;
use crate::common::{self, ask};
use crate::recorded::light_within;
use crate::support::arguments::{Named, reading};
use crate::support::recording::{RECORDED_FILES, Recording};

/// Methods about the node itself, whose answers differ.
const ABOUT_THE_NODE: [&str; 10] = [
    "web3_clientVersion",
    "rpc_modules",
    "eth_syncing",
    "net_peerCount",
    "net_peerList",
    "sco_banAddress",
    "sco_bannedAddresses",
    "sco_peerList",
    "sco_unbanAddress",
    "debug_wireProtocolQueueSize",
];

/// Methods that need a filter or a subscription.
const OF_FILTERS: [&str; 5] =
    ["eth_getFilterChanges", "eth_getFilterLogs", "eth_subscribe", "eth_uninstallFilter", "eth_unsubscribe"];

/// How a request may be refused.
struct RefusalPattern {
    code: i64,
    words: &'static str,
    /// The methods that may be refused so; all if it is empty.
    methods: &'static [&'static str],
}

/// Methods that name a transaction by its hash. Older ones than the newest blocks are not found.
const BY_TRANSACTION_HASH: &[&str] = &[
    "debug_traceTransaction",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    "ext_getRawTransactionReceiptByHash",
    "rsk_getRawTransactionReceiptByHash",
    "trace_get",
    "trace_transaction",
];

const REFUSALS: [RefusalPattern; 6] = [
    RefusalPattern {
        code: -32002,
        words: "ask about its block, or add a JSON-RPC upstream",
        methods: BY_TRANSACTION_HASH,
    },
    // An unknown hash.
    RefusalPattern { code: -32002, words: "a peer says nothing about what it lacks", methods: &[] },
    // The state of a side block.
    RefusalPattern { code: -32002, words: "peers give states of their own branch only", methods: &[] },
    RefusalPattern {
        code: -32005,
        words: "ask for fewer at a time",
        methods: &["eth_getLogs", "trace_filter"],
    },
    RefusalPattern {
        code: -32601,
        words: "ask a chain that is executed",
        methods: &["debug_storageRangeAt"],
    },
    RefusalPattern { code: -32601, words: "which a light client does not have", methods: &[] },
];

/// Requests of a method that an ordinary run asks, at most.
const OF_A_METHOD: usize = 40;

/// Requests about what does not exist that an ordinary run asks. Peers say nothing about it.
const OF_NOTHING: usize = 8;

/// Requests at a time.
const TOGETHER: usize = 16;

/// An account of the genesis block.
const COW: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";

/// The node that has executed the recorded chain, its server, and the light client.
struct MethodsFixture {
    node: Arc<LocalService>,
    light: LightService,
    _server: PeerServer,
}

async fn setting() -> Option<MethodsFixture> {
    let folder = common::shared("vectors/chain")?;
    let node = executed(&folder);
    // All nodes of this network take more messages a minute than stock ones.
    let limits = RateLimits { sent: 1 << 20, received: 1 << 21, received_bytes: 1 << 34 };
    let (server, address) = serve_within(Arc::new(LocalChain::new(node.clone())), limits).await;
    let light = light_within(&[address], Network::regtest().genesis_hash, limits).await;
    assert!(light.is_synced(), "{:?}", light.health());
    Some(MethodsFixture { node, light, _server: server })
}

/// Executes the recorded chain with its side blocks.
fn executed(folder: &Path) -> Arc<LocalService> {
    let recording = Recording::load(folder, Network::regtest());
    let (genesis, network) = (GenesisBlock::regtest(), Arc::new(Network::regtest()));
    let chain = rootlight::local::LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
    let entropy = Entropy::from_system().unwrap();
    let mut node =
        FollowNode::new(chain, "Rootlight/t", "recording", CallPolicy::default(), host_input(&entropy));
    for recorded in recording.up_to(u64::MAX) {
        node.import(recorded.block(), None).unwrap_or_else(|error| panic!("{error}"));
    }
    Arc::new(LocalService::new(Box::new(node), LocalOptions::follower(), entropy, None))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A recorded request, and the recorded result.
struct RecordedCase {
    file: &'static str,
    method: String,
    params: Value,
    result: Value,
}

/// Every recorded request once, by method.
fn recorded(folder: &Path) -> BTreeMap<String, Vec<RecordedCase>> {
    let (mut seen, mut all) = (BTreeSet::new(), BTreeMap::<String, Vec<RecordedCase>>::new());
    for file in RECORDED_FILES {
        for line in lines(&folder.join(format!("{file}.jsonl"))) {
            let Some(method) = line["request"]["method"].as_str().map(str::to_owned) else { continue };
            let params = line["request"].get("params").cloned().unwrap_or(json!([]));
            let is_left_out = ABOUT_THE_NODE.contains(&&*method) || UNAVAILABLE.contains(&&*method);
            if !is_left_out && seen.insert(format!("{method} {params}")) {
                let result = line["response"]["result"].clone();
                all.entry(method.clone()).or_default().push(RecordedCase { file, method, params, result });
            }
        }
    }
    all
}

/// Whether a request names a block or a transaction that does not exist: peers say nothing about it for six seconds.
fn is_of_nothing(params: &Value, answer: &Value) -> bool {
    let text = params.to_string();
    let is_hash = |word: &str| word.trim_start_matches("0x").len() == 64;
    answer["result"].is_null() && text.split('"').any(is_hash)
}

/// What an answer of the light client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AnswerKind {
    Recorded,
    /// As the node that executed the chain answers, which other tests compare with the recording.
    Executed,
    SameError,
    /// Refused in the right words.
    Refused,
}

/// Judges an answer. The error is what is wrong with it.
fn judge(asked: &RecordedCase, ours: &Value, node: &Value) -> Result<AnswerKind, String> {
    let (error, result) = (&ours["error"], &ours["result"]);
    if !ours["level"].is_null() {
        return Err("not proven".into());
    }
    if error.is_null() {
        let known = [(&asked.result, AnswerKind::Recorded), (&node["result"], AnswerKind::Executed)];
        let same = |known: &Value| result == known || same_but_total_difficulty(asked, result, known);
        let found = known.into_iter().find(|(known, _)| same(known)).map(|(_, kind)| kind);
        return found.ok_or_else(|| format!("different: {node}"));
    }
    let (code, text) = (&error["code"], error["message"].as_str().unwrap_or_default());
    if *code == node["error"]["code"] {
        return Ok(AnswerKind::SameError);
    }
    let advised = REFUSALS.iter().any(|refusal| {
        *code == refusal.code
            && text.contains(refusal.words)
            && (refusal.methods.is_empty() || refusal.methods.contains(&&*asked.method))
    });
    if advised { Ok(AnswerKind::Refused) } else { Err("refused in other words".into()) }
}

/// Of a side block the header is proven, but not its total difficulty.
fn same_but_total_difficulty(asked: &RecordedCase, ours: &Value, theirs: &Value) -> bool {
    let without = |value: &Value| {
        let mut value = value.clone();
        value.as_object_mut().and_then(|fields| fields.remove("totalDifficulty"));
        value
    };
    asked.file == "side_blocks" && ours["totalDifficulty"].is_null() && without(ours) == without(theirs)
}

/// Answers equal the recorded ones, are proven, or are refused with the reason and what to do. An ordinary run asks a part
/// of the requests; with `ROOTLIGHT_SCENARIOS` all are asked.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_are_answered_or_refused_with_advice() {
    let Some(setting) = &setting().await else { return };
    let whole = std::env::var_os("ROOTLIGHT_SCENARIOS").is_some();
    let chosen = recorded(&common::shared("vectors/chain").unwrap()).into_values().flat_map(|of_method| {
        let step = if whole { 1 } else { of_method.len().div_ceil(OF_A_METHOD) };
        of_method.into_iter().step_by(step)
    });
    let (mut counts, mut wrong, waits) =
        (BTreeMap::<AnswerKind, usize>::new(), Vec::new(), AtomicUsize::new(0));
    let mut answers = futures::stream::iter(chosen)
        .map(|asked| async {
            let node = ask(&*setting.node, &asked.method, asked.params.clone()).await;
            let waiting = is_of_nothing(&asked.params, &node);
            if waiting && !whole && waits.fetch_add(1, Ordering::Relaxed) >= OF_NOTHING {
                return None;
            }
            let ours = ask(&setting.light, &asked.method, asked.params.clone()).await;
            Some((asked, ours, node))
        })
        .buffer_unordered(TOGETHER);
    while let Some(answer) = answers.next().await {
        let Some((asked, ours, node)) = answer else { continue };
        match judge(&asked, &ours, &node) {
            Ok(kind) => *counts.entry(kind).or_default() += 1,
            Err(why) => {
                wrong.push(format!("{} {} {}: {why}: {ours}", asked.file, asked.method, asked.params))
            }
        }
    }
    println!("{counts:?}");
    let shown: Vec<String> = wrong.iter().take(8).map(|text| text.chars().take(700).collect()).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), shown.join("\n"));
    assert!(counts.len() == 4 && counts[&AnswerKind::Recorded] > 300, "{counts:?}");
}

/// Every method of the table has an answer: those that change a chain are refused by name, the others are asked in the
/// recording or here.
#[tokio::test(flavor = "multi_thread")]
async fn every_method_of_the_table_is_answered_or_refused_by_name() {
    let Some(setting) = &setting().await else { return };
    let recorded = recorded(&common::shared("vectors/chain").unwrap());
    let block = ask(&*setting.node, "eth_getBlockByNumber", json!(["0x2a0", false])).await["result"].clone();
    let named = Named {
        contract: json!(COW),
        sender: json!(COW),
        block: (block["number"].clone(), block["hash"].clone()),
        transaction: block["transactions"][0].clone(),
        state: block["number"].clone(),
        call: json!([{"to": COW}, block["number"]]),
        signed: json!("0x00"),
        encoded: ask(&*setting.node, "debug_getRawBlock", json!([block["number"]])).await["result"].clone(),
        logs: json!({"fromBlock": block["number"], "topics": []}),
    };
    let (mut answered, mut refused) = (0, 0);
    for method in methods() {
        let asks = |name: &str| recorded.contains_key(name) || ABOUT_THE_NODE.contains(&name);
        let changes = method.writes();
        let elsewhere = asks(method.name) || OF_FILTERS.contains(&method.name);
        let asked = if elsewhere { None } else { reading(method.name, &named) };
        assert!(changes || asked.is_some() || elsewhere, "{}", method.name);
        let Some(params) = asked.or_else(|| changes.then(|| json!([]))) else { continue };
        let answer = ask(&setting.light, method.name, params.clone()).await;
        if answer["error"].is_null() {
            // This client follows no Bitcoin chain, and the account has no code.
            let is_null =
                method.name.starts_with("rootlight_getBitcoin") || method.name == "ots_getContractCreator";
            let result = &answer["result"];
            assert!(result.is_null() == is_null && answer["level"].is_null(), "{} {answer}", method.name);
            answered += 1;
            continue;
        }
        let node = ask(&*setting.node, method.name, params.clone()).await;
        let asked = RecordedCase { file: "", method: method.name.into(), params, result: Value::Null };
        let judged = judge(&asked, &answer, &node);
        assert!(
            matches!(judged, Ok(AnswerKind::Refused | AnswerKind::SameError)),
            "{} {answer}",
            method.name
        );
        refused += 1;
    }
    assert!(answered > 8 && refused > 40, "{answered} {refused}");
    let filter = ask(&setting.light, "eth_newBlockFilter", json!([])).await["result"].clone();
    for method in ["eth_getFilterChanges", "eth_uninstallFilter"] {
        let answer = ask(&setting.light, method, json!([filter])).await;
        assert!(answer["error"].is_null(), "{method}: {answer}");
    }
}
