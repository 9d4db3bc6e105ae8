//! Blocks whose execution calls a method of the Bridge that is not simulated: what a header commits to is served, what only
//! the execution shows is refused by name.

use rootlight::consensus::Network;
use rootlight::dev::{DevConfig, Mining};
use rootlight::engine::{FollowNode, HostInput, LocalNode as _};
use rootlight::exec::CallPolicy;
use rootlight::local::{ImportError, LocalChain};
use rootlight::types::{B256, Block, BlockBody};
use serde_json::{Value, json};

use crate::support::dev::DevClient;
use crate::support::light::{ExecutedUpstream, Light};

/// Deploys a contract that passes its data on to the Bridge, ignores whether this fails, and stores the outcome.
const DEPLOY: &str = "0x6013600c60003960136000f3365f5f375f5f365f5f63010000065af15f5500";

const METHOD: &str = "registerBtcCoinbaseTransaction";

/// The data of a call to [`METHOD`] with a tree without hashes, as far as the simulated checks go.
fn data() -> String {
    let words = [160u64, 0, 192, 0, 0, 0, 6, 0].map(|word| format!("{word:064x}"));
    format!("0xccf417ae{}", words.concat())
}

/// A development chain, and a transaction whose contract ignores that the method is not simulated.
struct UnsimulatedCall {
    dev: DevClient,
    /// The transaction that deploys the contract, in the block before.
    before: Value,
    transaction: Value,
    number: Value,
    block: Value,
}

impl UnsimulatedCall {
    /// With a call by the contract, or directly by the transaction.
    fn new(direct: bool) -> Self {
        Self::on(&DevConfig::reference(), direct)
    }

    fn on(config: &DevConfig, direct: bool) -> Self {
        let mut dev = DevClient::new(DevConfig { mining: Mining::Instant, ..config.clone() });
        let from = dev.get("eth_accounts", json!([]))[0].clone();
        let send = |dev: &mut DevClient, to: &Value, data: &str| {
            let transaction = json!({"from": from, "to": to, "data": data, "gas": "0x100000"});
            dev.get("eth_sendTransaction", json!([transaction]))
        };
        let before = send(&mut dev, &Value::Null, DEPLOY);
        let contract = dev.get("eth_getTransactionReceipt", json!([before]))["contractAddress"].clone();
        let to = if direct { json!("0x0000000000000000000000000000000001000006") } else { contract };
        let (code, words) = dev.refused("eth_call", json!([{"to": to, "data": data()}, "latest"]));
        assert!(code == -32004 && words.contains(METHOD), "{code} {words}");
        let transaction = send(&mut dev, &to, &data());
        let receipt = dev.get("eth_getTransactionReceipt", json!([transaction]));
        assert_eq!(receipt["status"], "0x1");
        let (number, block) = (receipt["blockNumber"].clone(), receipt["blockHash"].clone());
        Self { dev, before, transaction, number, block }
    }

    /// Every request whose answer rests on executing the block again.
    fn requests(&self) -> Vec<(&'static str, Value)> {
        let (transaction, number, block) = (&self.transaction, &self.number, &self.block);
        let calls = json!({"tracer": "callTracer"});
        vec![
            ("trace_transaction", json!([transaction])),
            ("trace_get", json!([transaction, ["0x0"]])),
            ("trace_block", json!([number])),
            ("trace_block", json!([block])),
            ("trace_filter", json!([{"fromBlock": number, "toBlock": number}])),
            ("debug_traceTransaction", json!([transaction])),
            ("debug_traceTransaction", json!([transaction, calls])),
            ("debug_traceBlockByNumber", json!([number, calls])),
            ("debug_traceBlockByHash", json!([block])),
            ("debug_traceBlockByHash", json!([block, calls])),
            ("rootlight_getBlockWitness", json!([block])),
            ("rootlight_getBlockWitness", json!([block, "0x0", true])),
        ]
    }

    fn upstream(&self) -> ExecutedUpstream {
        ExecutedUpstream::new(self.dev.client.snapshot())
    }

    /// A node that executes the blocks of the chain, and how many methods it could not simulate.
    fn follower(&mut self) -> (FollowNode, usize) {
        self.follower_on(DevConfig::reference()).unwrap()
    }

    fn follower_on(&mut self, config: DevConfig) -> Result<(FollowNode, usize), ImportError> {
        let (network, genesis) = (config.network, config.genesis);
        let chain = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
        let moment = HostInput { now: 1_900_000_000, entropy: B256::repeat_byte(3) };
        let mut node = FollowNode::new(chain, "Rootlight/f", "dev", CallPolicy::default(), moment);
        let view = self.dev.chain().view().clone();
        let mut unsimulated = 0;
        for number in 1..=view.head().number {
            let hash = view.headers().hash_at(number).unwrap();
            let header = view.headers().by_hash(&hash).unwrap().header().clone();
            let transactions = view.block(&hash).unwrap().body.transactions().to_vec();
            let block = Block { header, body: BlockBody { transactions }, uncles: Vec::new() };
            unsimulated += node.import(block, None)?.unsimulated.len();
        }
        Ok((node, unsimulated))
    }
}

fn assert_refused(answer: Result<Value, Value>, request: &(&str, Value)) {
    let error = answer.expect_err(&format!("{request:?}"));
    let words = error["message"].as_str().unwrap();
    assert_eq!(error["code"], -32004, "{request:?}: {error}");
    assert!(words.contains(METHOD) && words.contains("block 2") && words.contains("ask a node"), "{words}");
}

#[test]
fn a_light_client_refuses_traces_of_a_block_that_calls_a_method_that_is_not_simulated() {
    for direct in [false, true] {
        let calls = UnsimulatedCall::new(direct);
        let mut light = Light::new(Network::regtest(), calls.upstream());
        for request in calls.requests() {
            assert_refused(light.call(request.0, &request.1), &request);
        }
        let before = json!([calls.before]);
        assert_eq!(
            light.call("trace_transaction", &before),
            calls.upstream().call("trace_transaction", &before)
        );
    }
}

/// The receipts root proves receipts, whatever the execution could not simulate.
#[test]
fn receipts_of_such_a_block_are_proven() {
    let calls = UnsimulatedCall::new(false);
    let expected = calls.upstream().call("eth_getTransactionReceipt", &json!([calls.transaction]));
    for without in [vec![], vec!["eth_getTransactionReceipt"]] {
        let mut upstream = calls.upstream();
        upstream.without = without;
        let mut light = Light::new(Network::regtest(), upstream);
        assert_eq!(light.call("eth_getTransactionReceipt", &json!([calls.transaction])), expected);
    }
    assert!(expected.unwrap()["status"].is_string());
}

#[test]
fn a_follower_imports_such_a_block_and_refuses_its_traces() {
    for direct in [false, true] {
        let mut calls = UnsimulatedCall::new(direct);
        let (node, unsimulated) = calls.follower();
        assert_eq!((node.local().head().number, unsimulated), (2, 1));
        let follower = ExecutedUpstream::new(node.snapshot());
        for request in calls.requests() {
            assert_refused(follower.call(request.0, &request.1), &request);
        }
        for (method, params) in [
            ("trace_transaction", json!([calls.before])),
            ("eth_getTransactionReceipt", json!([calls.transaction])),
        ] {
            assert_eq!(follower.call(method, &params), calls.upstream().call(method, &params), "{method}");
        }
        // Without that node's witness, the block is executed on keys that are proven one by one.
        let mut light = Light::new(Network::regtest(), ExecutedUpstream::new(node.snapshot()));
        for request in calls.requests() {
            assert_refused(light.call(request.0, &request.1), &request);
        }
    }
}

/// Nothing would prove the state of such a block before RSKIP-126, where headers have the root of another trie.
#[test]
fn a_follower_takes_no_such_block_whose_header_does_not_commit_to_the_state() {
    let old = Network::from_json(r#"{"name":"old","rules":{"rskip126":-1}}"#).unwrap();
    let config = DevConfig::reference_on(old);
    for direct in [false, true] {
        let error = UnsimulatedCall::on(&config, direct).follower_on(config.clone()).unwrap_err().to_string();
        assert!(error.starts_with("block 2 ") && error.contains(METHOD), "{error}");
    }
}

/// A development chain makes its blocks by its own execution, whose traces it shows.
#[test]
fn a_development_chain_traces_what_it_has_executed() {
    let mut calls = UnsimulatedCall::new(false);
    for (method, params) in calls.requests() {
        let answer = calls.dev.get(method, params);
        assert!(!answer.is_null(), "{method}");
    }
}
