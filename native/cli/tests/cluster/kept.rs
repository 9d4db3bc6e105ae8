//! Answers about final blocks, which front ends keep for each other.

use std::sync::atomic::Ordering;

use rootlight_server::service::Service;
use serde_json::{Value, json};

use crate::common::outcome;
use crate::front_ends::FrontEndsFixture;

/// Blocks until a block is final, and a few more.
const LATER: usize = 125;

/// An account whose balance changes.
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

async fn mine(fixture: &FrontEndsFixture, blocks: usize) {
    for _ in 0..blocks {
        fixture.of_chain("evm_mine", json!([])).await;
    }
    fixture.reached().await;
}

fn asked(fixture: &FrontEndsFixture) -> [usize; 2] {
    [0, 1].map(|index| fixture.asked[index].load(Ordering::SeqCst))
}

/// Waits until the first front end has written so many answers to the store.
async fn written(fixture: &FrontEndsFixture, count: u64) {
    crate::servers::wait_until("the answers in the store", || async {
        fixture.metric(0, "kept_answers_written") >= count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_a_final_block_is_made_once_for_all_front_ends() {
    let Some(fixture) = FrontEndsFixture::new("kept", 2).await else { return };
    fixture.log().await;
    let block = fixture.of_chain("eth_getBlockByNumber", json!(["latest", false])).await;
    let receipt = ("eth_getTransactionReceipt", json!([block["transactions"][0]]));
    let balance = ("eth_getBalance", json!([BOB, block["number"]]));
    fixture.reached().await;
    // While the block is not final nothing is kept.
    for front_end in &fixture.front_ends {
        for (method, params) in [&receipt, &balance] {
            outcome(&**front_end, method, params.clone()).await.unwrap();
        }
    }
    let before = asked(&fixture);
    assert!(before[1] > 0, "the second front end has asked for proofs of its own");
    mine(&fixture, LATER).await;
    let code = ("eth_getCode", json!([BOB, "0x1"]));
    let expected = outcome(&*fixture.front_ends[0], code.0, code.1.clone()).await.unwrap();
    written(&fixture, 1).await;
    let before = asked(&fixture);
    for _ in 0..3 {
        assert_eq!(outcome(&*fixture.front_ends[1], code.0, code.1.clone()).await.unwrap(), expected);
    }
    assert_eq!(asked(&fixture), before, "nothing is proven again");
    let found = ["kept_answers_store", "kept_answers_memory"].map(|name| fixture.metric(1, name));
    assert_eq!(found, [1, 2]);
    // Ids are those of the message, and notifications have no answer.
    let message = json!({"jsonrpc": "2.0", "id": "mine", "method": code.0, "params": code.1});
    let body = fixture.front_ends[1].answer(message.to_string().into_bytes()).await.into_text().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["id"], "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_a_transaction_is_kept_with_the_block_that_has_it() {
    let Some(fixture) = FrontEndsFixture::new("kept-transaction", 1).await else { return };
    fixture.log().await;
    let block = fixture.of_chain("eth_getBlockByNumber", json!(["latest", false])).await;
    mine(&fixture, LATER).await;
    let (mined, unknown) = (json!([block["transactions"][0]]), json!([block["hash"]]));
    let mut found = 0;
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt", "trace_transaction"] {
        for (params, kept) in [(&mined, 1), (&unknown, 0)] {
            let expected = outcome(&*fixture.front_ends[0], method, params.clone()).await.unwrap();
            assert_eq!(expected.is_null(), kept == 0, "{method}: {expected}");
            assert_eq!(outcome(&*fixture.front_ends[0], method, params.clone()).await.unwrap(), expected);
            found += kept;
            assert_eq!(fixture.metric(0, "kept_answers_memory"), found, "{method}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unsealed_answers_in_the_store_are_ignored() {
    let Some(fixture) = FrontEndsFixture::new("forged", 2).await else { return };
    mine(&fixture, LATER).await;
    let code = json!([BOB, "0x1"]);
    let expected = outcome(&*fixture.front_ends[0], "eth_getCode", code.clone()).await.unwrap();
    written(&fixture, 1).await;
    // The answers in the store are replaced by another one of the service, and by nonsense.
    let answers = || -> Vec<String> {
        let pattern = format!("KEYS {}:answer:*", fixture.prefix);
        let keys = fixture.servers.masters().into_iter().map(|server| fixture.servers.ask(server, &pattern));
        keys.flat_map(|keys| keys.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let first = answers();
    assert_eq!(first.len(), 1, "{first:?}");
    let server = fixture.servers.server_of(&first[0]);
    assert_eq!(fixture.servers.ask(server, &format!("SET {} nonsense", first[0])), "OK");
    let before = asked(&fixture);
    assert_eq!(outcome(&*fixture.front_ends[1], "eth_getCode", code).await.unwrap(), expected);
    assert_eq!(fixture.metric(1, "kept_answers_store"), 0);
    assert!(asked(&fixture)[1] > before[1], "the second front end has proven it itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deep_reorganisation_brings_back_no_answer_of_the_other_branch() {
    let Some(fixture) = FrontEndsFixture::new("kept-branch", 2).await else { return };
    let start = fixture.of_chain("evm_snapshot", json!([])).await;
    let send = json!([{"from": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "to": BOB, "value": "0x5"}]);
    fixture.of_chain("eth_sendTransaction", send).await;
    let number = fixture.of_chain("eth_blockNumber", json!([])).await;
    mine(&fixture, LATER).await;
    let balance = json!([BOB, number]);
    let paid = outcome(&*fixture.front_ends[0], "eth_getBalance", balance.clone()).await.unwrap();
    assert_eq!(paid, fixture.of_chain("eth_getBalance", balance.clone()).await);
    fixture.of_chain("evm_revert", json!([start])).await;
    mine(&fixture, LATER + 20).await;
    let unpaid = fixture.of_chain("eth_getBalance", balance.clone()).await;
    assert_ne!(paid, unpaid);
    for front_end in &fixture.front_ends {
        assert_eq!(outcome(&**front_end, "eth_getBalance", balance.clone()).await.unwrap(), unpaid);
    }
}
