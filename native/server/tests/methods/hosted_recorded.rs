//! The recorded exchanges with a reference node that is set up as a hosted service (no wallet, no miner, few modules, no
//! overrides), compared with the hosted profile.

use crate::support;

use std::collections::BTreeSet;
use std::sync::Arc;

use rootlight::dev::{DevConfig, Mining};
use rootlight::engine::{DevNode, FollowNode, HostInput};
use rootlight::exec::CallPolicy;
use rootlight::local::LocalChain;
use rootlight::rpc::{Caller, LocalClient, MessageProgress};
use rootlight::types::B256;
use rootlight_server::methods::{Profile, dispatcher};
use serde_json::{Value, json};
use support::chain::{lines, text};
use support::shared;
use support::tally::RecordedTally;

/// Fields of a pending block that its miner chooses, that depend on the time, or that the specification wants otherwise
/// (docs/differences.md). They are only compared for being there.
const OF_THE_MINER: [&str; 9] = [
    "cumulativeDifficulty",
    "difficulty",
    "extraData",
    "hashForMergedMining",
    "miner",
    "nonce",
    "size",
    "timestamp",
    "totalDifficulty",
];

/// Fields of a pending transaction that name a block, which is never mined.
const OF_THE_BLOCK: [&str; 3] = ["blockHash", "blockNumber", "transactionIndex"];

/// Replaces fields by whether they are there.
fn hide(object: &mut Value, names: &[&str]) {
    let Some(object) = object.as_object_mut() else { return };
    for name in names {
        object.insert((*name).to_owned(), json!(object.contains_key(*name)));
    }
}

/// Methods that need a pool. A follower has none, so that a development chain without miner answers them.
const OF_THE_POOL: [&str; 4] =
    ["eth_pendingTransactions", "eth_sendRawTransaction", "txpool_content", "txpool_status"];

/// A follower and a development chain at the same genesis, both without keys and overrides.
struct Hosted {
    follower: LocalClient,
    dev: LocalClient,
}

const MOMENT: HostInput = HostInput { now: 1_800_000_000, entropy: B256::repeat_byte(9) };

impl Hosted {
    fn new() -> Self {
        let policy = CallPolicy { overrides: false, ..CallPolicy::default() };
        let config = DevConfig { mining: Mining::Manual, keys: Vec::new(), policy, ..DevConfig::reference() };
        let (network, genesis) = (config.network.clone(), config.genesis.clone());
        let chain = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
        let follower = FollowNode::new(chain, "Rootlight/1/test/Rust/follow", "node", policy, MOMENT);
        let dev = DevNode::new(config, MOMENT).unwrap();
        let client = |node| LocalClient::new(node).with_dispatcher(dispatcher().clone());
        Self { follower: client(Box::new(follower)), dev: client(Box::new(dev)) }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let pool = OF_THE_POOL.contains(&method) || params[0] == json!("pending");
        let client = if pool { &mut self.dev } else { &mut self.follower };
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let caller = Caller::new(1, 1).with_operator(false).with_selection(Profile::Hosted.selection(false));
        let message = MessageProgress::read_from(&client.dispatcher(), Arc::new(caller), message.as_bytes());
        let answer = client.answer(message, MOMENT, &|| false).into_text().unwrap();
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }
}

/// An answer with the fields that are compared in part only: those of [`OF_THE_MINER`] and [`OF_THE_BLOCK`] in a pending
/// block, and the name and version of the client, of which the number of parts counts.
fn normalised(method: &str, params: &Value, mut answer: Value) -> Value {
    if method == "web3_clientVersion" {
        return json!(answer.as_str().unwrap().split('/').count());
    }
    if params[0] == json!("pending") {
        hide(&mut answer, &OF_THE_MINER);
        let transactions = answer.get_mut("transactions").and_then(Value::as_array_mut);
        transactions.into_iter().flatten().for_each(|transaction| hide(transaction, &OF_THE_BLOCK));
    }
    answer
}

/// The row of docs/differences.md that says why an answer differs; `None` if it should be equal.
fn row(method: &str, params: &Value) -> Option<&'static str> {
    Some(match method {
        "eth_sendTransaction" | "eth_sign" => {
            "| `eth_sign`, `eth_sendTransaction`, `personal_*` without keys (`--profile hosted`) |"
        }
        "net_peerCount" => "| `net_peerCount` |",
        "rpc_modules"
        | "rsk_flush"
        | "rsk_getStorageBytesAt"
        | "rsk_shutdown"
        | "trace_block"
        | "trace_filter" => "| modules and methods of a hosted service (`--profile hosted`) |",
        "eth_call" if params[2].is_null() => "| `eth_call`: `null` for the overrides |",
        "txpool_content" => "| `txpool_content`: numbers; `to` of a creation |",
        _ => return None,
    })
}

#[test]
fn the_hosted_profile_answers_as_a_reference_node_that_is_set_up_so() {
    let Some(shared) = shared() else { return };
    let differences = include_str!("../../../../docs/differences.md");
    let (mut hosted, mut tally, mut rows) = (Hosted::new(), RecordedTally::default(), BTreeSet::new());
    for mut line in lines(&shared.join("vectors/chain/hosted_like.jsonl")) {
        let request = line["request"].clone();
        let (method, params) = (text(&request, "method"), &request["params"]);
        let ours = hosted.ask(method, params).map(|answer| normalised(method, params, answer));
        if let Some(theirs) = line["response"].get_mut("result") {
            *theirs = normalised(method, params, theirs.take());
        }
        let reason = row(method, params);
        rows.extend(reason);
        tally.add(&line, &ours, || reason);
    }
    for row in rows {
        assert!(differences.contains(row), "docs/differences.md has no row {row:?}");
    }
    tally.check(23, 9);
}
