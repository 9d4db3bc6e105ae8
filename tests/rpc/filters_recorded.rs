//! The recorded session of polled filters, replayed on a node whose chain grows as it did then.

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight::engine::{HostInput, LocalNode, NodeParts, Snapshot};
use rootlight::exec::{GenesisBlock, Interrupts};
use rootlight::local::{BlockState, ChainSnapshot, ImportError, Imported, LocalChain};
use rootlight::rpc::LocalClient;
use rootlight::types::Block;
use serde_json::{Value, json};
use support::chain::{lines, text};
use support::executed::{AtHead, Executed};
use support::shared;
use support::tally::RecordedTally;

/// Head of the chain when the session began, and after "two blocks".
const HEAD: usize = 0x284;
const LATER: usize = 0x286;

#[derive(Clone)]
struct TestNode {
    chain: Arc<Executed>,
    head: Arc<AtomicUsize>,
    parts: NodeParts,
    /// Required by the interface and not used: readers see the recorded chain.
    local: LocalChain,
}

impl LocalNode for TestNode {
    fn parts(&self) -> &NodeParts {
        &self.parts
    }

    fn parts_mut(&mut self) -> &mut NodeParts {
        &mut self.parts
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        Arc::new(AtHead { chain: self.chain.clone(), head: self.head.load(Ordering::Relaxed) })
    }

    fn local(&self) -> &ChainSnapshot {
        self.local.view()
    }

    fn import(&mut self, block: Block, now: Option<u64>) -> Result<Imported, ImportError> {
        self.local.import(block, now)
    }

    fn interrupt_by(&mut self, _: Interrupts) {}

    fn copy(&self) -> Box<dyn LocalNode> {
        Box::new(self.clone())
    }

    fn take_block_states(&mut self) -> Vec<BlockState> {
        self.local.take_block_states()
    }
}

fn genesis() -> LocalChain {
    let GenesisBlock { header, state } = GenesisBlock::regtest();
    LocalChain::new(Arc::new(Network::regtest()), header, state, None).unwrap()
}

fn call(client: &mut LocalClient, method: &str, params: &Value) -> Result<Value, Value> {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let message = client.open(message.as_bytes());
    let host_input = HostInput { now: 0, entropy: B256::ZERO };
    let reply = client.answer(message, host_input, &|| false).into_text().unwrap();
    let mut answer: Value = serde_json::from_str(&reply).unwrap();
    match answer.get_mut("error") {
        Some(error) => Err(error.take()),
        None => Ok(answer["result"].take()),
    }
}

/// The answer without the field `removed`, which the reference node leaves out.
fn unmarked(mut answer: Value) -> Value {
    for log in answer.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        assert_eq!(log.remove("removed"), Some(false.into()));
    }
    answer
}

/// The reason why an answer differs deliberately; `None` if it should be equal.
fn intended(line: &Value, ours: &Result<Value, Value>) -> Option<&'static str> {
    let (request, response) = (&line["request"], &line["response"]);
    let label = line["label"].as_str().unwrap_or_default();
    let method = text(request, "method");
    match ours {
        Err(error) if error["message"] == "filter not found" && method == "eth_getFilterLogs" => {
            ["blk", "pend"]
                .iter()
                .any(|kind| label.starts_with(kind))
                .then_some("a filter of hashes has no logs")
        }
        Err(error) if error["code"] == -32602 && response["error"]["code"] == -32603 => {
            Some("null is an invalid parameter")
        }
        Err(error) if error["code"] == -32602 && request["params"] == json!(["x"]) => {
            Some("a filter that is not an object is refused")
        }
        Err(error) if error["code"] == -32602 && request["params"][0]["fromBlock"] == "0x9" => {
            Some("a range that ends before it starts is refused")
        }
        Err(error) if error["code"] == -32602 && request["params"] == json!([null]) => {
            Some("null is an invalid parameter")
        }
        Ok(_) if ["log2 after two blocks", "log3 after two blocks"].contains(&label) => {
            Some("no log is lost between polls")
        }
        _ => None,
    }
}

#[test]
fn the_recorded_filter_session_has_equal_answers() {
    let Some(shared) = shared() else { return };
    let chain = Arc::new(Executed::chain(&shared, Network::regtest(), LATER));
    let head = Arc::new(AtomicUsize::new(HEAD));
    let parts = NodeParts::new("test", HostInput { now: 0, entropy: B256::repeat_byte(3) });
    let node = TestNode { chain: chain.clone(), head: head.clone(), parts, local: genesis() };
    let mut client = LocalClient::new(Box::new(node));
    let mut ids = BTreeMap::<String, Value>::new();
    let (mut tally, mut pending) = (RecordedTally::default(), 0);
    for line in lines(&shared.join("vectors/chain/rpc_filters.jsonl")) {
        let (request, response) = (&line["request"], &line["response"]);
        let (method, label) = (text(request, "method"), line["label"].as_str().unwrap_or_default());
        if label.ends_with("after two blocks") {
            head.store(LATER, Ordering::Relaxed);
        }
        // The recorded answer names the transactions that entered the pool at this point.
        if label.starts_with("pend ") && method == "eth_getFilterChanges" {
            for hash in response["result"].as_array().into_iter().flatten() {
                client.node().filters().pending(hash.as_str().unwrap().parse().unwrap(), 0.into());
                pending += 1;
            }
        }
        let mut params = request["params"].clone();
        if let Some(id) = params[0].as_str().and_then(|id| ids.get(id)) {
            params[0] = id.clone();
        }
        let ours = call(&mut client, method, &params).map(unmarked);
        if let (true, Ok(id)) = (method.starts_with("eth_new"), &ours) {
            let text = id.as_str().unwrap();
            assert!(text.len() == 34 && !text.starts_with("0x0"), "{text}");
            ids.insert(response["result"].as_str().unwrap().to_owned(), id.clone());
            tally.equal += 1;
            continue;
        }
        tally.add(&line, &ours, || intended(&line, &ours));
    }
    tally.check(54, 38);
    assert_eq!(pending, 2);
}
