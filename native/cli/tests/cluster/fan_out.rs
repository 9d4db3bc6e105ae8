//! New blocks: one front end asks the backends, and the others are told.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::common::outcome;
use crate::front_ends::FrontEndsFixture;

/// The front end that has the lead, when exactly one has it.
async fn lead(fixture: &FrontEndsFixture) -> usize {
    let count = fixture.front_ends.len();
    let leads = || (0..count).filter(|at| fixture.metric(*at, "fan_out_lead") == 1).collect::<Vec<_>>();
    fixture.until("one lead", async || leads().len() == 1).await;
    leads()[0]
}

/// Mines a block with a log, and waits until all front ends have its contents.
async fn one_block(fixture: &FrontEndsFixture) -> serde_json::Value {
    let count = fixture.front_ends.len();
    let known = |at: usize| {
        fixture.metric(at, "fan_out_contents_told") + fixture.metric(at, "fan_out_contents_taken")
    };
    let before: Vec<u64> = (0..count).map(known).collect();
    fixture.log().await;
    fixture.reached().await;
    fixture.until("the contents", async || (0..count).all(|at| known(at) > before[at])).await;
    fixture.ask("eth_getBlockByNumber", json!(["latest", false])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_front_end_asks_for_the_contents_of_new_blocks() {
    let Some(mut fixture) = FrontEndsFixture::new("fan-out", 3).await else { return };
    let leader = lead(&fixture).await;
    let asked = |fixture: &FrontEndsFixture| -> Vec<usize> {
        fixture.asked.iter().map(|asked| asked.load(Ordering::SeqCst)).collect()
    };
    let before = asked(&fixture);
    let headers: Vec<u64> = (0..3).map(|at| fixture.metric(at, "fan_out_headers_taken")).collect();
    let blocks = 6;
    for _ in 0..blocks {
        let block = one_block(&fixture).await;
        for front_end in &fixture.front_ends {
            let logs =
                outcome(&**front_end, "eth_getLogs", json!([{"blockHash": block["hash"]}])).await.unwrap();
            assert_eq!(logs.as_array().unwrap().len(), 1);
            let receipts =
                outcome(&**front_end, "eth_getBlockReceipts", json!([block["hash"]])).await.unwrap();
            assert_eq!(receipts.as_array().unwrap().len(), 2);
        }
    }
    let after = asked(&fixture);
    for at in 0..3 {
        let requests = after[at] - before[at];
        let taken = fixture.metric(at, "fan_out_headers_taken") - headers[at];
        if at == leader {
            assert_eq!(requests, 2 * blocks, "each receipt once");
        } else {
            assert_eq!((requests, taken as usize), (0, blocks), "front end {at} is told");
        }
    }
    // The others go on without the one that had the lead.
    drop(fixture.front_ends.remove(leader));
    lead(&fixture).await;
    let block = one_block(&fixture).await;
    let logs = fixture.ask("eth_getLogs", json!([{"blockHash": block["hash"]}])).await;
    assert_eq!(logs.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn unsealed_announcements_of_blocks_are_ignored() {
    let Some(fixture) = FrontEndsFixture::new("fan-out-forged", 2).await else { return };
    let leader = lead(&fixture).await;
    one_block(&fixture).await;
    let taken = fixture.metric(1 - leader, "fan_out_headers_taken");
    let store = fixture.servers.connect(&fixture.prefix).await;
    for message in [&b""[..], b"h", &[0; 32], &[b'h'; 200], &[b'c'; 65]] {
        store.publish("blocks:33", message).await.unwrap();
    }
    // Another front end pretends to have the lead, again and again, because no lead lasts long, and tells nothing.
    let pretender = tokio::spawn(async move {
        loop {
            // On a busy machine the store may not answer.
            let _ = store.set("lead:33", b"nobody", std::time::Duration::from_secs(2)).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    fixture.until("no lead", async || (0..2).all(|at| fixture.metric(at, "fan_out_lead") == 0)).await;
    for _ in 0..3 {
        fixture.log().await;
        fixture.reached().await;
        let block = fixture.ask("eth_getBlockByNumber", json!(["latest", false])).await;
        for front_end in &fixture.front_ends {
            let logs =
                outcome(&**front_end, "eth_getLogs", json!([{"blockHash": block["hash"]}])).await.unwrap();
            assert_eq!(logs.as_array().unwrap().len(), 1);
        }
    }
    assert_eq!(fixture.metric(1 - leader, "fan_out_headers_taken"), taken);
    pretender.abort();
}
