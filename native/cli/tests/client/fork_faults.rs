//! Errors of forks whose network does not give the data that a run needs. Nothing wrong is kept then.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight::dev::Mining;
use rootlight::light::{UnprovenPolicy, UpstreamRequest};
use rootlight_node::fork::{Fork, ForkBlock, ForkError, ForkOptions, ForkSource};
use rootlight_node::local::LocalOptions;
use rootlight_upstream::{UpstreamError, UpstreamResult, of_network};
use serde_json::json;
use serde_json::value::RawValue;

use super::fork::{
    Node, OTHER, PROOFS, TOKEN, WHALE, block_hash, forked, height, network, ok, on, open, open_with, tokens,
    transfer, trusted,
};
use crate::common::{dev_chain, outcome};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_proofs_is_refused_unless_that_is_wanted() {
    let node = Node::of(network().await, &PROOFS);
    let error =
        on(open(&[&node], None, UnprovenPolicy::Refuse, ForkBlock::Head).await.unwrap()).await.err().unwrap();
    assert!(matches!(error, ForkError::NoProofs { .. }), "{error}");
    assert!(error.to_string().contains("--unproven trust"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let block = trusted(&node.chain, height(&node.chain).await).await;
    let fork = open(&[&node], Some(folder.path()), UnprovenPolicy::Trust, block).await.unwrap();
    let chain = on(fork).await.unwrap();
    assert_eq!((tokens(&chain, WHALE).await, tokens(&chain, OTHER).await), (960, 40));
    ok(&chain, "anvil_impersonateAccount", json!([WHALE])).await;
    let before = node.asked();
    let hash = transfer(&chain, WHALE, OTHER, 60).await;
    assert!(node.asked() - before <= 3);
    assert_eq!(ok(&chain, "eth_getTransactionReceipt", json!([hash])).await["status"], "0x1");
    drop(chain);

    node.is_down.store(true, Ordering::SeqCst);
    let fork = open(&[&node], Some(folder.path()), UnprovenPolicy::Trust, block).await.unwrap();
    assert_eq!(tokens(&on(fork).await.unwrap(), OTHER).await, 40);
    node.is_down.store(false, Ordering::SeqCst);
    let proven = on(open(&[&node], Some(folder.path()), UnprovenPolicy::Refuse, block).await.unwrap()).await;
    assert!(proven.is_err(), "what was told without proof is not taken for proven");
}

/// Says another balance.
fn other_balance(request: &UpstreamRequest, result: UpstreamResult) -> UpstreamResult {
    match request.method {
        "eth_getBalance" => Ok(RawValue::from_string(r#""0x7""#.into()).unwrap()),
        _ => result,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quorum_takes_what_so_many_nodes_say() {
    let shared = network().await;
    let [one, two, three] = [0, 1, 2].map(|_| Node::of(shared.clone(), &PROOFS));
    *one.lie.lock().unwrap() = Some(other_balance);
    let block = trusted(&shared, height(&shared).await).await;
    let fork = open(&[&one, &two], None, UnprovenPolicy::Quorum(2), block).await.unwrap();
    let error = on(fork).await.err().unwrap();
    assert!(matches!(error, ForkError::Disagreement { wanted: 2, .. }), "{error}");
    let fork = open(&[&one, &two, &three], None, UnprovenPolicy::Quorum(2), block).await.unwrap();
    let chain = on(fork).await.unwrap();
    let whale = ok(&chain, "eth_getBalance", json!([WHALE, "latest"])).await;
    assert_eq!(whale, ok(&shared, "eth_getBalance", json!([WHALE, "latest"])).await);
}

/// Changes a nibble of the first node of each proof, and leaves out the nodes of slots, which begin with it too.
fn other_proof(request: &UpstreamRequest, result: UpstreamResult) -> UpstreamResult {
    if request.method != "eth_getProof" {
        return result;
    }
    let mut text = result?.get().to_owned();
    let at =
        text.find("accountProof").and_then(|from| text[from..].find("0x").map(|at| from + at + 60)).unwrap();
    let other = if text.as_bytes()[at] == b'0' { "1" } else { "0" };
    text.replace_range(at..=at, other);
    Ok(RawValue::from_string(text.replace("storageProof", "other")).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_proof_is_refused_and_nothing_of_it_is_kept() {
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, None, ForkBlock::Head).await;
    *node.lie.lock().unwrap() = Some(other_proof);
    let error = outcome(&*chain, "eth_getStorageAt", json!([TOKEN, WHALE, "latest"])).await.unwrap_err();
    assert_eq!(error["code"], -32002);
    assert!(error["message"].as_str().unwrap().contains("node, proof of account"), "{error}");
    *node.lie.lock().unwrap() = None;
    assert_eq!(tokens(&chain, WHALE).await, 960);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_in_the_middle_leaves_the_chain_as_it_was() {
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, None, ForkBlock::Head).await;
    let head = height(&chain).await;
    ok(&chain, "anvil_impersonateAccount", json!([WHALE])).await;
    node.is_down.store(true, Ordering::SeqCst);
    let sent = json!([{ "from": WHALE, "to": TOKEN, "gas": "0x186a0", "gasPrice": "0x1", "data": "0x" }]);
    let error = outcome(&*chain, "eth_sendTransaction", sent).await.unwrap_err();
    assert_eq!(error["code"], -32002, "{error}");
    assert!(error["message"].as_str().unwrap().contains("no program listens there"), "{error}");
    assert_eq!(height(&chain).await, head);
    node.is_down.store(false, Ordering::SeqCst);
    transfer(&chain, WHALE, OTHER, 60).await;
    assert_eq!((height(&chain).await, tokens(&chain, OTHER).await), (head + 1, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_never_answers_ends_the_message_at_its_time() {
    let node = Node::of(network().await, &[]);
    let run_time = Duration::from_secs(10);
    let options = ForkOptions { run_time, ..ForkOptions::new(Network::regtest()) };
    let chain = on(open_with(&[&node], UnprovenPolicy::Refuse, options, ForkBlock::Head).await.unwrap());
    let chain = chain.await.unwrap();
    let head = height(&chain).await;
    ok(&chain, "anvil_impersonateAccount", json!([WHALE])).await;
    node.is_silent.store(true, Ordering::SeqCst);
    let sent = json!([{ "from": WHALE, "to": TOKEN, "gas": "0x186a0", "gasPrice": "0x1", "data": "0x" }]);
    for (method, params) in [("eth_sendTransaction", sent), ("eth_getCode", json!([TOKEN, "latest"]))] {
        let error = outcome(&*chain, method, params).await.unwrap_err();
        assert_eq!(error["code"], -32002, "{error}");
        assert!(error["message"].as_str().unwrap().contains("within 10 s"), "{error}");
    }
    node.is_silent.store(false, Ordering::SeqCst);
    transfer(&chain, WHALE, OTHER, 60).await;
    assert_eq!((height(&chain).await, tokens(&chain, OTHER).await), (head + 1, 100));
}

/// A message that begins on another block has the time of a search for all that it reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_has_more_time_than_other_messages() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::of(network().await, &[]);
    let block = trusted(&node.chain, 10).await;
    // The next start finds on disk what this one reads.
    drop(forked(&node, Some(folder.path()), block).await);
    let options = ForkOptions {
        folder: Some(folder.path().into()),
        run_time: Duration::ZERO,
        ..ForkOptions::new(Network::regtest())
    };
    let chain = on(open_with(&[&node], UnprovenPolicy::Refuse, options, block).await.unwrap()).await.unwrap();
    node.is_silent.store(true, Ordering::SeqCst);
    let error = outcome(&*chain, "eth_getBlockByNumber", json!(["0x3", true])).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("within 0 s"), "{error}");
    node.is_silent.store(false, Ordering::SeqCst);
    let forking = json!([{ "forking": { "jsonRpcUrl": "http://node", "blockNumber": 5 } }]);
    ok(&chain, "hardhat_reset", forking).await;
    assert_eq!(height(&chain).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_the_network_does_not_have_are_refused() {
    let node = Node::of(network().await, &[]);
    let failure = async |block| open(&[&node], None, UnprovenPolicy::Refuse, block).await.unwrap_err();
    let beyond = failure(ForkBlock::Number(5_000)).await;
    assert!(matches!(beyond, ForkError::NoBlock { number: 5_000, .. }), "{beyond}");
    let unknown = alloy_primitives::B256::repeat_byte(7);
    let error = failure(ForkBlock::Trusted(5, unknown)).await;
    assert!(matches!(error, ForkError::NoBlockHash { hash, .. } if hash == unknown), "{error}");
    let ForkBlock::Trusted(_, hash) = trusted(&node.chain, 6).await else { unreachable!() };
    let error = failure(ForkBlock::Trusted(5, hash)).await;
    assert!(matches!(error, ForkError::OtherNumber { number: 5, found: 6, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_was_reorganised_away_is_refused() {
    let chain = network().await;
    let head = height(&chain).await;
    let saved = ok(&chain, "evm_snapshot", json!([])).await;
    ok(&chain, "evm_mine", json!([])).await;
    let old = block_hash(&chain, head + 1).await;
    let node = Node::of(chain, &[]);
    let block = trusted(&node.chain, head + 1).await;
    let fork = forked(&node, None, block).await;
    ok(&node.chain, "evm_revert", json!([saved])).await;
    ok(&node.chain, "anvil_setStorageAt", json!([TOKEN, OTHER, format!("{:#066x}", 7)])).await;
    ok(&node.chain, "evm_mine", json!([])).await;
    assert_ne!(block_hash(&node.chain, head + 1).await, old);
    // A chain that begins there cannot read on, and says so.
    let error = outcome(&*fork, "eth_getStorageAt", json!([TOKEN, WHALE, "latest"])).await.unwrap_err();
    assert_eq!(error["code"], -32002, "{error}");
    let error = open(&[&node], None, UnprovenPolicy::Refuse, block).await.unwrap_err();
    assert!(matches!(error, ForkError::NoBlockHash { .. } | ForkError::OffChain { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_was_pruned_is_named() {
    let chain = network().await;
    let node = Node::of(chain, &[]);
    *node.lie.lock().unwrap() = Some(|request, result| match request.method {
        "eth_getProof" => Err(rootlight_upstream::UpstreamError::Rpc {
            code: -32000,
            message: "missing trie node".into(),
            data: None,
        }),
        _ => result,
    });
    let error = on(open(&[&node], None, UnprovenPolicy::Refuse, ForkBlock::Number(5)).await.unwrap())
        .await
        .err()
        .unwrap();
    assert!(matches!(error, ForkError::State { .. }), "{error}");
    assert!(error.to_string().contains("missing trie node; it may have pruned this state"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_network_is_refused_in_the_middle_too() {
    let (one, two) = (network().await, dev_chain(Mining::Manual, LocalOptions::default()));
    ok(&two, "evm_mine", json!([{ "blocks": 30 }])).await;
    let node = Node::of(one, &PROOFS);
    let block = trusted(&node.chain, 5).await;
    let fork = open(&[&node, &Node::of(two, &PROOFS)], None, UnprovenPolicy::Quorum(2), block).await.unwrap();
    let error = on(fork).await.err().unwrap();
    assert!(matches!(error, ForkError::Disagreement { .. }), "{error}");
}

/// Its answers would look pruned, reorganised or false.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_turns_to_another_network_is_told_with_both_chain_ids() {
    let node = Node::of(network().await, &[]);
    let source = ForkSource::new(vec![of_network(node.clone(), 33)], UnprovenPolicy::Refuse);
    let options = ForkOptions::new(Network::regtest());
    let fork = Fork::open(source, options, vec!["http://node".into()], ForkBlock::Head).await.unwrap();
    let chain = on(fork).await.unwrap();
    *node.lie.lock().unwrap() = Some(|asked, result| match asked.method {
        "eth_chainId" => Ok(RawValue::from_string("\"0x1f\"".into()).unwrap()),
        "eth_getProof" => {
            let message = "Block not found".into();
            Err(UpstreamError::Rpc { code: -32600, message, data: None })
        }
        _ => result,
    });
    let reset = json!([{ "forking": { "jsonRpcUrl": "http://node" } }]);
    for (method, params) in [("eth_getCode", json!([TOKEN, "latest"])), ("hardhat_reset", reset)] {
        let error = outcome(&*chain, method, params).await.unwrap_err();
        assert_eq!(error["code"], -32002, "{method}: {error}");
        assert!(error["message"].as_str().unwrap().contains("chain id 31, not 33"), "{method}: {error}");
    }
}
