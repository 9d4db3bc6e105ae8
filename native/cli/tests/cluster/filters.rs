//! Limits of the bytes that filters take in the store.

use std::sync::Arc;
use std::time::Duration;

use rootlight_server::service::Service as _;
use serde_json::{Value, json};

use crate::common::outcome;
use crate::front_ends::FrontEndsFixture;
use crate::pending::{ask, caller};
use crate::servers::Servers;

/// Most bytes of the filters of one owner.
const OWN_BYTES: u64 = 1 << 20;

/// A filter with nearly as many topics as there may be: some 125 KiB in the store.
fn large() -> Value {
    let topics: Vec<String> = (0..3_900).map(|topic| format!("{topic:#066x}")).collect();
    json!([{"topics": [topics]}])
}

/// The bytes that a filter has in the store.
async fn bytes(fixture: &FrontEndsFixture, id: &Value) -> u64 {
    let number = u128::from_str_radix(id.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap();
    let value = [b"value".to_vec()];
    fixture.stores[0].command("HSTRLEN", &format!("filter:33:{number:x}"), &value).await.unwrap()
}

async fn total(fixture: &FrontEndsFixture, ids: &[Value]) -> u64 {
    let mut total = 0;
    for id in ids {
        total += bytes(fixture, id).await;
    }
    total
}

#[tokio::test(flavor = "multi_thread")]
async fn the_filters_of_one_owner_take_no_more_than_their_budget_of_bytes() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "budget", 1).await;
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.push(fixture.ask("eth_newFilter", large()).await);
        let total = total(&fixture, &ids).await;
        assert!(total <= OWN_BYTES, "{total} bytes");
    }
    // The oldest had to go, and the newest are there.
    let first = outcome(&*fixture.front_ends[0], "eth_getFilterChanges", json!([ids[0]])).await;
    assert_eq!(first.unwrap_err()["code"], -32000);
    for id in &ids[6..] {
        assert!(bytes(&fixture, id).await > 120_000);
        assert_eq!(fixture.ask("eth_getFilterChanges", json!([id])).await, json!([]));
    }
    // A removed filter makes room at once.
    assert_eq!(fixture.ask("eth_uninstallFilter", json!([ids[6]])).await, true);
    ids.push(fixture.ask("eth_newFilter", large()).await);
    assert_eq!(fixture.ask("eth_getFilterChanges", json!([ids[7]])).await, json!([]));

    let many: Vec<Value> = (0..12)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "eth_newFilter", "params": large()}))
        .collect();
    let answer = fixture.front_ends[0].answer(Value::from(many).to_string().into_bytes()).await;
    let answer: Value = serde_json::from_str(&answer.into_text().unwrap()).unwrap();
    let is_refused = |response: &Value| response["error"]["code"] == -32005;
    let responses = answer.as_array().unwrap();
    assert!(responses.len() == 12 && responses.iter().all(is_refused), "more than the budget: {answer}");
    assert_eq!(fixture.ask("eth_getFilterChanges", json!([ids[7]])).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_nearly_full_takes_no_new_filters_and_goes_on_otherwise() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "nearly-full", 1).await;
    let filter = fixture.ask("eth_newBlockFilter", json!([])).await;
    let info = fixture.servers.ask(0, "INFO memory");
    let used = info.lines().find_map(|line| line.trim().strip_prefix("used_memory:")).unwrap();
    let most = used.parse::<u64>().unwrap() * 5 / 4;
    assert_eq!(fixture.servers.ask(0, &format!("CONFIG SET maxmemory {most}")), "OK");
    let refused = outcome(&*fixture.front_ends[0], "eth_newBlockFilter", json!([])).await.unwrap_err();
    assert!(
        refused["code"] == -32002 && refused["message"].as_str().unwrap().contains("no room"),
        "{refused}"
    );
    fixture.stores[0].set("limit", b"1", Duration::from_secs(60)).await.unwrap();
    assert_eq!(fixture.ask("eth_getFilterChanges", json!([filter])).await, json!([]));
    assert_eq!(fixture.servers.ask(0, "CONFIG SET maxmemory 0"), "OK");
    fixture.ask("eth_newBlockFilter", json!([])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_have_connections_of_their_own() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "connections", 1).await;
    let commands = || fixture.metric(0, "store_command_seconds_count");
    let filter = fixture.ask("eth_newBlockFilter", json!([])).await;
    let before = commands();
    for _ in 0..100 {
        assert_eq!(fixture.ask("eth_getFilterChanges", json!([filter])).await, json!([]));
    }
    // Each poll has three commands.
    let during = commands() - before;
    assert!(during < 200, "{during} commands by the connections of limits");
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_other_rights_or_of_another_key_do_not_exist_at_any_front_end() {
    let Some(fixture) = FrontEndsFixture::new("rights", 3).await else { return };
    let (wide, narrow, other) = (caller(1, 1), caller(1, 2), caller(2, 1));
    let mut ids = Vec::new();
    for (method, params) in [
        ("eth_newFilter", json!([{"fromBlock": "earliest"}])),
        ("eth_newBlockFilter", json!([])),
        ("eth_newPendingTransactionFilter", json!([])),
    ] {
        ids.push(ask(&fixture, 0, &wide, method, params).await);
    }
    for at in 0..3 {
        for (id, stranger) in ids.iter().flat_map(|id| [(id, &narrow), (id, &other)]) {
            for method in ["eth_getFilterChanges", "eth_getFilterLogs"] {
                let answer = ask(&fixture, at, stranger, method, json!([id])).await;
                assert_eq!(answer["code"], -32000, "{method} at {at}: {answer}");
            }
            assert_eq!(
                ask(&fixture, at, stranger, "eth_uninstallFilter", json!([id])).await,
                false,
                "at {at}"
            );
        }
        // The filters still exist for callers with the rights under which they were made.
        for id in &ids {
            let answer = ask(&fixture, (at + 1) % 3, &wide, "eth_getFilterChanges", json!([id])).await;
            assert_eq!(answer, json!([]), "at {at}");
        }
    }
    // A filter of the new rights is polled everywhere.
    let id = ask(&fixture, 1, &narrow, "eth_newBlockFilter", json!([])).await;
    for at in 0..3 {
        assert_eq!(ask(&fixture, at, &narrow, "eth_getFilterChanges", json!([id])).await, json!([]));
        assert_eq!(ask(&fixture, at, &wide, "eth_getFilterChanges", json!([id])).await["code"], -32000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_not_remove_the_filters_of_another_key_whose_ids_it_knows() {
    let Some(fixture) = FrontEndsFixture::new("foreign-ids", 2).await else { return };
    let (owner, stranger) = (caller(1, 1), caller(2, 1));
    let id = ask(&fixture, 0, &owner, "eth_newFilter", large()).await;
    for at in 0..2 {
        assert_eq!(ask(&fixture, at, &stranger, "eth_getFilterChanges", json!([id])).await["code"], -32000);
    }
    // So many filters of the stranger that its oldest ones are removed.
    for _ in 0..2 * OWN_BYTES / 125_000 {
        ask(&fixture, 1, &stranger, "eth_newFilter", large()).await;
    }
    for at in 0..2 {
        assert_eq!(
            ask(&fixture, at, &owner, "eth_getFilterChanges", json!([id])).await,
            json!([]),
            "at {at}"
        );
    }
}
