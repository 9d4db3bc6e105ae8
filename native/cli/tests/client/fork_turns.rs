//! Forks whose messages read much: what is asked for at once has a limit, and other messages are answered meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::dev::Mining;
use rootlight::light::{UnprovenPolicy, UpstreamRequest};
use rootlight_limits::budget::Budget;
use rootlight_node::fork::{Fork, ForkBlock, ForkOptions, ForkSource};
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_upstream::{ReservedResults, Upstream};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::fork::{Node, ok, on};
use crate::common::dev_chain;

/// Bytes that the responses to each list take.
const ROOM: usize = 1_024;

/// A node that answers a list of requests for each permit.
struct SlowNode {
    node: Arc<Node>,
    is_slow: AtomicBool,
    permits: Semaphore,
    /// The longest list.
    most: AtomicUsize,
    /// The room of responses, and the most that was taken when a list came.
    budget: Budget,
    held: AtomicUsize,
}

impl Upstream for SlowNode {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            self.most.fetch_max(requests.len(), Ordering::SeqCst);
            if self.is_slow.load(Ordering::SeqCst) {
                self.permits.acquire().await.unwrap().forget();
            }
            self.held.fetch_max(self.budget.taken(), Ordering::SeqCst);
            let (results, _) = self.node.request_reserved(requests).await;
            (results, self.budget.try_take(ROOM).unwrap())
        })
    }

    fn name(&self) -> &str {
        "slow"
    }
}

fn account(number: u64) -> String {
    format!("{:#042x}", 0xbbbb_0000_0000 + number * 0x123_4567)
}

/// A fork of a chain with blocks and accounts, and its upstream.
async fn forked(blocks: u64) -> (Arc<LocalService>, Arc<SlowNode>) {
    let chain = dev_chain(Mining::Manual, LocalOptions::default());
    for number in 0..700 {
        ok(&chain, "anvil_setBalance", json!([account(number), "0x5"])).await;
    }
    ok(&chain, "evm_mine", json!([{ "blocks": blocks }])).await;
    let node = Arc::new(SlowNode {
        node: Node::of(chain, &[]),
        is_slow: AtomicBool::new(false),
        permits: Semaphore::new(0),
        most: AtomicUsize::new(0),
        budget: Budget::new(1 << 20),
        held: AtomicUsize::new(0),
    });
    let source = ForkSource::new(vec![node.clone()], UnprovenPolicy::Refuse);
    let options = ForkOptions::new(Network::regtest());
    let fork = Fork::open(source, options, vec!["http://node".into()], ForkBlock::Head).await.unwrap();
    let fork = on(fork).await.unwrap();
    node.most.store(0, Ordering::SeqCst);
    node.held.store(0, Ordering::SeqCst);
    (fork, node)
}

/// Reads a cell of each of 700 accounts.
async fn cells(fork: &LocalService) -> usize {
    let cells: Map<_, _> = (0..700).map(|number| (account(number), json!(["0x1"]))).collect();
    ok(fork, "eth_getStorageValues", json!([cells, "latest"])).await.as_object().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_that_a_message_reads_is_fetched_in_parts() {
    let (fork, node) = forked(300).await;
    assert_eq!(cells(&fork).await, 700);
    let most = node.most.load(Ordering::SeqCst);
    assert!((1..=512).contains(&most), "{most} requests for proofs and code at once");
}

/// The receipt that says where a transaction is stays until the headers down to its block are linked.
#[tokio::test(flavor = "multi_thread")]
async fn the_responses_that_a_message_holds_count_in_the_budget() {
    let (fork, node) = forked(300).await;
    let block = UpstreamRequest::new("eth_getBlockByNumber", r#"["0x2",false]"#.to_owned());
    let block = node.node.request(vec![block]).await.remove(0).unwrap();
    let block: Value = serde_json::from_str(block.get()).unwrap();
    let hash = &block["transactions"][0];
    let cells = cells(&fork);
    let (found, _) = tokio::join!(ok(&fork, "eth_getTransactionByHash", json!([hash])), cells);
    assert_eq!(found["blockNumber"], "0x2");
    // No other message reads below the fork meanwhile.
    assert_eq!((node.held.load(Ordering::SeqCst), node.budget.taken()), (ROOM, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_reads_much_below_the_fork_keeps_no_other_waiting() {
    let (fork, node) = forked(3).await;
    node.is_slow.store(true, Ordering::SeqCst);
    let (one, other) = (fork.clone(), fork.clone());
    let long = tokio::spawn(async move { cells(&one).await });
    let short =
        tokio::spawn(async move { ok(&other, "eth_getBalance", json!([account(701), "latest"])).await });
    // A list of the long message is under way when the short one comes.
    while !short.is_finished() && !long.is_finished() {
        tokio::time::sleep(Duration::from_millis(200)).await;
        node.permits.add_permits(1);
    }
    assert!(!long.is_finished(), "the short message has waited for the long one");
    assert_eq!(short.await.unwrap(), "0x0");
    node.is_slow.store(false, Ordering::SeqCst);
    node.permits.add_permits(1_000);
    assert_eq!(long.await.unwrap(), 700);
}
