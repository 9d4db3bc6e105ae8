//! A store that stalls while a front end polls a filter for its caller, and one that is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rootlight_cluster::store::Script;
use rootlight_server::service::Service as _;
use serde_json::{Value, json};

use crate::common::outcome;
use crate::front_ends::{ALICE, FrontEndsFixture, number};
use crate::servers::Servers;

/// Longer than a front end tries to put a filter back.
const STALL: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_failed_while_the_store_stalled_loses_no_event() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "stall", 1).await;
    let filter = fixture.ask("eth_newBlockFilter", json!([])).await;
    fixture.of_chain("evm_mine", json!([])).await;
    fixture.reached().await;
    let new = fixture.of_chain("eth_getBlockByNumber", json!(["latest", false])).await["hash"].clone();

    // The message takes the filter, then waits for a proof, and the store stalls before it is put back.
    let servers = fixture.servers.clone();
    *fixture.before_proof.lock().unwrap() = Some(Box::new(move || servers.signal(0, "STOP")));
    let account = "0x00000000000000000000000000000000000000a1";
    let message = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "eth_getFilterChanges", "params": [filter]},
        {"jsonrpc": "2.0", "id": 2, "method": "eth_getBalance", "params": [account, "latest"]},
    ]);
    let answer = fixture.front_ends[0].answer(message.to_string().into_bytes());
    let resume = async {
        tokio::time::sleep(STALL).await;
        assert!(fixture.before_proof.lock().unwrap().is_none(), "a proof was asked for");
        fixture.servers.signal(0, "CONT");
    };
    let (answer, ()) = tokio::join!(answer, resume);
    let answer: Value = serde_json::from_str(&answer.into_text().unwrap()).unwrap();
    assert!(answer.to_string().contains("ask again"), "{answer}");

    // The caller asks again, as it was told.
    fixture
        .until("a poll", async || {
            let answer = outcome(&*fixture.front_ends[0], "eth_getFilterChanges", json!([filter])).await;
            match answer {
                Ok(found) => {
                    assert_eq!(found, json!([new]));
                    true
                }
                Err(error) => {
                    assert!(error["message"].as_str().unwrap().contains("ask again"), "{error}");
                    false
                }
            }
        })
        .await;
    assert_eq!(fixture.ask("eth_getFilterChanges", json!([filter])).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn front_ends_rest_between_reports_while_the_store_is_away() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "away", 1).await;
    fixture.servers.kill(0);
    let store = &fixture.stores[0];
    fixture.until("the store is down", async || store.metrics().refused() > 0).await;
    let before = store.metrics().refused();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let reports = store.metrics().refused() - before;
    assert!(reports < 100, "{reports} reports in two seconds");
    // The front end goes on alone, with the newest block.
    fixture.of_chain("evm_mine", json!([])).await;
    fixture.reached().await;
}

/// Asks about the next block half a second before it is there. Returns whether it was answered; on a busy machine it may come
/// too late.
async fn waits_for_the_next_block(fixture: &FrontEndsFixture) -> bool {
    let front_end = &*fixture.front_ends[0];
    let next = number(&outcome(front_end, "eth_blockNumber", json!([])).await.unwrap()) + 1;
    let block = |number: u64| json!([format!("{number:#x}"), false]);
    let range = json!([{"fromBlock": format!("{next:#x}"), "toBlock": format!("{next:#x}")}]);
    let mined = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        fixture.log().await;
    };
    let (found, logs, far, ()) = tokio::join!(
        outcome(front_end, "eth_getBlockByNumber", block(next)),
        outcome(front_end, "eth_getLogs", range),
        outcome(front_end, "eth_getBlockByNumber", block(next + 100)),
        mined
    );
    assert_eq!(far, Ok(Value::Null));
    fixture.reached().await;
    let (Ok(found), Ok(logs)) = (found, logs) else { return false };
    let came = !found.is_null() && logs.as_array().is_some_and(|logs| !logs.is_empty());
    if came {
        assert_eq!(found["hash"], fixture.of_chain("eth_getBlockByNumber", block(next)).await["hash"]);
        assert_eq!(logs.as_array().unwrap().len(), 1);
    }
    came
}

/// How often a test tries again on a busy machine.
const TRIES: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_messages_wait_for_blocks_that_other_front_ends_may_show() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "ahead", 1).await;
    // All front ends show the same block while the store works.
    assert!(!waits_for_the_next_block(&fixture).await);
    fixture.servers.kill(0);
    let store = &fixture.stores[0];
    fixture.until("the store is down", async || store.metrics().refused() > 0).await;
    let is_alone = async || outcome(&*fixture.front_ends[0], "eth_blockNumber", json!([])).await.is_ok();
    fixture.until("it goes on alone", is_alone).await;
    for attempt in 1.. {
        if waits_for_the_next_block(&fixture).await {
            break;
        }
        assert!(attempt < TRIES, "no message waited for a block");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_wait_for_the_next_blocks_after_the_store_was_emptied_or_a_front_end_left() {
    let Some(servers) = Servers::single(&[]) else { return };
    let mut fixture = FrontEndsFixture::with(Arc::new(servers), "emptied", 2).await;
    for event in ["emptied", "left"] {
        for attempt in 1.. {
            match event {
                "emptied" => drop(fixture.servers.ask(0, "FLUSHALL")),
                _ if fixture.front_ends.len() > 1 => drop(fixture.front_ends.pop()),
                _ => {}
            }
            // The front end hears of it with its next report, and of one that is gone when its last report has ended.
            tokio::time::sleep(Duration::from_secs(2)).await;
            if waits_for_the_next_block(&fixture).await {
                break;
            }
            assert!(attempt < TRIES, "no message waited for a block: {event}");
        }
    }
}

/// Makes the agreement go on with a front end that does not exist, which has shown a block that no other front end has.
/// Its report is written again and again, because none counts for long.
const GHOST: &str = "redis.call('HDEL', KEYS[1], 'm:f0', 'm:f1')
local shown = string.rep('7', 64) .. ':9'
local ends, clock = '9999999999999', redis.call('TIME')
redis.call('HSET', KEYS[1], 'shown', shown, 'lost', clock[1] .. '000', 'm:ghost',
  table.concat({ends, shown, '1', '0', string.rep('f', 64), shown .. ','}, ' '))
return 1";

#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_that_refuses_messages_refuses_those_about_next_blocks_at_once() {
    let Some(fixture) = FrontEndsFixture::new("shut", 2).await else { return };
    let store = fixture.stores[0].clone();
    let ghost = tokio::spawn(async move {
        loop {
            // On a busy machine the store may not answer.
            let _ = store.script::<u64>(&Script::new(GHOST), "heads:33", &[]).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let front_end = &*fixture.front_ends[0];
    let refused = async || outcome(front_end, "eth_blockNumber", json!([])).await;
    fixture.until("it is left out", async || refused().await.is_err()).await;
    // On a busy machine an answer may take as long as the wait for a block; not each time.
    for attempt in 1.. {
        let asked = Instant::now();
        let error = outcome(front_end, "eth_getBlockByNumber", json!(["0x2", false])).await.unwrap_err();
        assert_eq!(error["code"], -32002, "{error}");
        if asked.elapsed() < Duration::from_millis(1_500) {
            break;
        }
        assert!(attempt < TRIES, "messages wait for the block");
    }
    ghost.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_transaction_is_reported_although_its_batch_polls_a_filter_of_a_stalled_store() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "sent-stall", 1).await;
    let filter = fixture.ask("eth_newBlockFilter", json!([])).await;
    let signed = json!([{"from": ALICE, "to": ALICE, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x1"}]);
    let raw = fixture.of_chain("eth_signTransaction", signed).await;
    let servers = fixture.servers.clone();
    *fixture.before_proof.lock().unwrap() = Some(Box::new(move || servers.signal(0, "STOP")));
    let account = "0x00000000000000000000000000000000000000a1";
    let message = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "eth_getFilterChanges", "params": [filter]},
        {"jsonrpc": "2.0", "method": "eth_chainId"},
        {"jsonrpc": "2.0", "id": "two", "method": "eth_sendRawTransaction", "params": [raw]},
        {"jsonrpc": "2.0", "id": 3, "method": "eth_getBalance", "params": [account, "0x1"]},
        {"jsonrpc": "2.0", "id": 4, "method": "eth_newBlockFilter", "params": []},
    ]);
    let answer = fixture.front_ends[0].answer(message.to_string().into_bytes()).await;
    assert!(fixture.before_proof.lock().unwrap().is_none(), "a proof was asked for");
    fixture.servers.signal(0, "CONT");
    let answer: Value = serde_json::from_str(&answer.into_text().unwrap()).unwrap();
    assert_eq!(answer.as_array().map(Vec::len), Some(4), "{answer}");
    assert_eq!((&answer[0]["id"], &answer[0]["error"]["code"]), (&json!(1), &json!(-32002)), "{answer}");
    let hash = &answer[1]["result"];
    assert_eq!(answer[1]["id"], "two");
    assert_eq!(fixture.of_chain("eth_getTransactionByHash", json!([hash])).await["hash"], *hash, "{answer}");
    assert_eq!(answer[2]["result"], "0x0", "{answer}");
    assert_eq!((&answer[3]["id"], &answer[3]["error"]["code"]), (&json!(4), &json!(-32002)), "{answer}");
}
