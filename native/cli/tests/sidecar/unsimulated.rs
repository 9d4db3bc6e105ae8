//! A sidecar that executes, beside a development chain with a block that calls a method of the Bridge that is not simulated.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::{B256, Bytes};
use futures::future::BoxFuture;
use rootlight::dev::{DevConfig, Mining};
use rootlight::engine::DevNode;
use rootlight::light::UpstreamRequest;
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_node::sidecar::{SidecarOptions, SidecarService};
use rootlight_upstream::{ReservedResults, Upstream, unreserved};
use serde_json::{Value, json};

use crate::beside::MemoryStore;
use crate::common::{answers, ask, outcome};

/// Deploys a contract that passes its data on to the Bridge, ignores whether this fails, and stores the outcome.
const DEPLOY: &str = "0x6013600c60003960136000f3365f5f375f5f365f5f63010000065af15f5500";

/// A development chain as the node, which notes what it is asked.
struct DevNodeUpstream {
    service: LocalService,
    asked: Mutex<Vec<&'static str>>,
}

impl DevNodeUpstream {
    fn new() -> Self {
        let entropy = Entropy::from_system().unwrap();
        let config = DevConfig { mining: Mining::Instant, ..DevConfig::reference() };
        let node = DevNode::new(config, host_input(&entropy)).unwrap();
        let service = LocalService::new(Box::new(node), LocalOptions::default(), entropy, None);
        Self { service, asked: Mutex::default() }
    }

    async fn get(&self, method: &str, params: Value) -> Value {
        let result = outcome(&self.service, method, params).await;
        result.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// A store with the states of all blocks.
    fn store(&self) -> Arc<MemoryStore> {
        let mut nodes: Vec<(B256, Bytes)> = Vec::new();
        self.service
            .with_node(|node| {
                let chain = node.local();
                for number in 0..=chain.head().number {
                    let hash = chain.headers().hash_at(number).unwrap();
                    let state = chain.state(&hash).unwrap();
                    state.for_each_stored(&mut |hash, bytes| nodes.push((hash, bytes)));
                }
            })
            .unwrap();
        Arc::new(MemoryStore::of(nodes))
    }
}

impl Upstream for DevNodeUpstream {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        self.asked.lock().unwrap().extend(calls.iter().map(|call| call.method));
        Box::pin(unreserved(answers(&self.service, calls)))
    }

    fn name(&self) -> &str {
        "node"
    }
}

/// The node runs what is not simulated here, and the answer says that it is not proven; what only an execution here gives is
/// refused by name.
#[tokio::test(flavor = "multi_thread")]
async fn traces_of_a_block_that_is_not_simulated_come_from_the_node() {
    let chain = Arc::new(DevNodeUpstream::new());
    let from = chain.get("eth_accounts", json!([])).await[0].clone();
    let send = async |to: &Value, data: &str| {
        let transaction = json!({"from": from, "to": to, "data": data, "gas": "0x100000"});
        chain.get("eth_sendTransaction", json!([transaction])).await
    };
    let deployed = send(&Value::Null, DEPLOY).await;
    let contract = chain.get("eth_getTransactionReceipt", json!([deployed])).await["contractAddress"].clone();
    let words = [160u64, 0, 192, 0, 0, 0, 6, 0].map(|word| format!("{word:064x}"));
    let called = send(&contract, &format!("0xccf417ae{}", words.concat())).await;
    let block = chain.get("eth_getBlockByNumber", json!(["0x2", false])).await["hash"].clone();
    let options = SidecarOptions { executes: true, ..SidecarOptions::default() };
    let network = DevConfig::reference().network;
    let service =
        SidecarService::start((*network).clone(), chain.clone(), chain.store(), options).await.unwrap();
    service.settled(Duration::from_secs(60)).await;
    for (method, params) in [
        ("trace_transaction", json!([called])),
        ("trace_block", json!(["0x2"])),
        ("debug_traceTransaction", json!([called, {"tracer": "callTracer"}])),
        ("debug_traceBlockByHash", json!([block])),
    ] {
        chain.asked.lock().unwrap().clear();
        let answer = ask(&service, method, params.clone()).await;
        assert_eq!(answer["level"], "unproven", "{method}: {answer}");
        assert!(chain.asked.lock().unwrap().contains(&method), "{method}: the node was not asked");
    }
    for (method, params) in [
        ("trace_filter", json!([{"fromBlock": "0x2", "toBlock": "0x2"}])),
        ("rootlight_getBlockWitness", json!([block])),
    ] {
        let error = ask(&service, method, params).await["error"].clone();
        let words = error["message"].as_str().unwrap_or_default();
        assert!(
            words.contains("registerBtcCoinbaseTransaction") && words.contains("block 2"),
            "{method}: {error}"
        );
        assert_eq!(error["code"], -32004, "{method}");
    }
    // The block before is executed here.
    chain.asked.lock().unwrap().clear();
    let answer = ask(&service, "trace_transaction", json!([deployed])).await;
    assert!(answer["result"].is_array() && answer["level"].is_null(), "{answer}");
    assert!(!chain.asked.lock().unwrap().contains(&"trace_transaction"));
}
