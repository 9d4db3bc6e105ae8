//! A light client of a development chain that begins anew.

use crate::common;
use crate::follow_branches::DevUpstream;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::dev::{DevAccounts, DevConfig};
use rootlight::light::{SyncOptions, UpstreamRequest};
use rootlight_node::light::{LightOptions, LightService, LightStart, first_block};
use rootlight_server::service::Service;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, of_network, unreserved};
use serde_json::json;
use serde_json::value::RawValue;

/// Bound for what takes some seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// An address at which one development chain takes the place of another.
struct Address(Mutex<Arc<DevUpstream>>, ChainIdQuestions);

/// The chain id that is told instead of the chain's own, and how often it was.
#[derive(Default)]
struct ChainIdQuestions {
    told: Mutex<Option<&'static str>>,
    asked: AtomicUsize,
}

impl Address {
    fn chain(&self) -> Arc<DevUpstream> {
        self.0.lock().unwrap().clone()
    }
}

impl Upstream for Address {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        let chain = self.chain();
        Box::pin(unreserved(async move {
            let methods: Vec<&str> = calls.iter().map(|call| call.method).collect();
            let mut results = chain.request(calls).await;
            for (method, result) in methods.into_iter().zip(&mut results) {
                let told = *self.1.told.lock().unwrap();
                if let Some(told) = told.filter(|_| method == "eth_chainId") {
                    self.1.asked.fetch_add(1, Ordering::Relaxed);
                    *result = Ok(RawValue::from_string(told.to_owned()).unwrap());
                }
            }
            results
        }))
    }

    fn name(&self) -> &str {
        "dev"
    }
}

/// A chain whose block 0 has this time.
fn chain_of(time: u64) -> Arc<DevUpstream> {
    DevUpstream::new(DevConfig::on_at(Network::regtest(), &DevAccounts::default(), time))
}

/// A light client that starts at the block 0 that is shown at an address, or at that block as one that its operator names.
async fn light(address: &Arc<Address>, shown_start: bool) -> LightService {
    let network = Network::regtest();
    let upstreams: Vec<SharedUpstream> = vec![of_network(address.clone(), network.chain_id)];
    let block = first_block(&network, &upstreams).await.unwrap();
    let sync = SyncOptions { poll: 50, retry: 50, longest_retry: 100, shown_start, ..SyncOptions::default() };
    let options = LightOptions { sync, max_age: 0, ..LightOptions::default() };
    LightService::start(network, LightStart::At(block), upstreams, options)
}

/// Waits until the newest verified block is the chain's.
async fn follows(service: &LightService, address: &Address) {
    let (number, hash) = address.chain().head().await;
    let reached = async {
        loop {
            let block = common::outcome(service, "eth_getBlockByNumber", json!(["latest", false])).await;
            if block.is_ok_and(|block| block["hash"] == hash.as_str()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "block {number} {hash} was not reached: {:?}", service.health());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_begins_anew_with_another_block_0_is_followed_from_there() {
    let address = Arc::new(Address(Mutex::new(chain_of(5)), ChainIdQuestions::default()));
    address.chain().mine(3).await;
    let service = light(&address, true).await;
    follows(&service, &address).await;
    for blocks in [0, 3, 5] {
        let next = chain_of(6 + blocks);
        next.mine(blocks).await;
        *address.0.lock().unwrap() = next;
        follows(&service, &address).await;
        assert!(service.health().ready);
    }
    address.chain().mine(1).await;
    follows(&service, &address).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_goes_back_is_followed() {
    let address = Arc::new(Address(Mutex::new(chain_of(5)), ChainIdQuestions::default()));
    let chain = address.chain();
    chain.mine(1).await;
    let snapshot = chain.ask("evm_snapshot", "[]").await;
    chain.mine(3).await;
    let service = light(&address, true).await;
    follows(&service, &address).await;
    chain.ask("evm_revert", &json!([snapshot]).to_string()).await;
    assert_eq!(chain.head().await.0, 1);
    follows(&service, &address).await;
}

/// Only the operator may replace the block that the operator trusts.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_the_operator_names_is_never_left() {
    let address = Arc::new(Address(Mutex::new(chain_of(5)), ChainIdQuestions::default()));
    address.chain().mine(3).await;
    let (named, shown) = (light(&address, false).await, light(&address, true).await);
    follows(&named, &address).await;
    let trusted = address.chain().head().await.1;
    *address.0.lock().unwrap() = chain_of(6);
    follows(&shown, &address).await;
    let evidence = common::outcome(&named, "rootlight_verification", json!(["latest"])).await.unwrap();
    assert_eq!(evidence["blockHash"], trusted.as_str());
}

/// A chain of another network does not begin anew here, whatever its block 0 is.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_turns_to_another_network_is_refused_with_both_chain_ids() {
    let address = Arc::new(Address(Mutex::new(chain_of(5)), ChainIdQuestions::default()));
    address.chain().mine(3).await;
    let service = light(&address, true).await;
    follows(&service, &address).await;
    let trusted = address.chain().head().await.1;
    let other = chain_of(6);
    other.mine(5).await;
    *address.1.told.lock().unwrap() = Some("\"0x1f\"");
    *address.0.lock().unwrap() = other;
    // The watch over the upstreams asks before it would begin anew.
    let asked = async {
        while address.1.asked.load(Ordering::Relaxed) < 3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok());
    let evidence = common::outcome(&service, "rootlight_verification", json!(["latest"])).await.unwrap();
    assert_eq!(evidence["blockHash"], trusted.as_str());
    let unread = json!(["0x00000000000000000000000000000000000000aa", "latest"]);
    let error = common::outcome(&service, "eth_getBalance", unread).await.unwrap_err().to_string();
    assert!(error.contains("chain id 31, not 33"), "{error}");
}
