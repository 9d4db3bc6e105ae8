//! Keys of the store that were damaged, or written by another program.

use std::sync::Arc;
use std::time::Duration;

use rootlight_cluster::store::{HotStore, Script};
use serde_json::{Value, json};

use crate::common::outcome;
use crate::front_ends::{ALICE, FrontEndsFixture};
use crate::servers::Servers;

const HOUR: Duration = Duration::from_secs(3_600);

/// Commands that make a key of each kind.
const KINDS: [&[&str]; 5] = [
    &["SET", "text"],
    &["HSET", "field", "text"],
    &["LPUSH", "text"],
    &["ZADD", "1", "text"],
    &["XADD", "1-1", "field", "text"],
];

/// Puts a key of another kind, or other fields of it, there.
async fn put(store: &HotStore, key: &str, command: &[&str]) {
    store.remove(key).await.unwrap();
    let arguments: Vec<Vec<u8>> = command[1..].iter().map(|text| text.as_bytes().to_vec()).collect();
    store.command::<rootlight_cluster::store::Value>(command[0], key, &arguments).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_key_of_another_type_is_removed_by_scripts_and_commands() {
    let Some(servers) = Servers::single(&[]) else { return };
    let store = servers.connect("foreign").await;
    let script = |text: &'static str| Script::new(text);
    let hash = script("redis.call('HSET', KEYS[1], 'a', 'b') return redis.call('HGET', KEYS[1], 'a')");
    let text = script("return redis.call('GET', KEYS[1]) or 'none'");
    let fails = script("redis.call('HGETALL', KEYS[1]) return redis.call('NO_SUCH')");
    for kind in KINDS {
        put(&store, "k", kind).await;
        assert_eq!(store.script::<String>(&hash, "k", &[]).await.unwrap(), "b", "{kind:?}");
        if kind[0] != "SET" {
            put(&store, "k", kind).await;
            assert_eq!(store.script::<String>(&text, "k", &[]).await.unwrap(), "none", "{kind:?}");
            put(&store, "k", kind).await;
            assert_eq!(store.get("k").await.unwrap(), None, "{kind:?}");
        }
        if kind[0] != "HSET" {
            put(&store, "k", kind).await;
            let field = store.command::<Option<String>>("HGET", "k", &[b"field".to_vec()]).await;
            assert_eq!(field.unwrap(), None, "{kind:?}");
        }
        put(&store, "k", kind).await;
        assert!(store.set_unless_full("k", b"value", HOUR).await.unwrap(), "{kind:?}");
        assert_eq!(store.get("k").await.unwrap().unwrap(), b"value", "{kind:?}");
    }
    // Another error stays one, and removes nothing.
    put(&store, "k", &["HSET", "field", "text"]).await;
    store.script::<String>(&fails, "k", &[]).await.unwrap_err();
    let field = store.command::<Option<String>>("HGET", "k", &[b"field".to_vec()]).await;
    assert_eq!(field.unwrap().unwrap(), "text");
    assert!(store.is_up());
}

/// Sends a transaction of this nonce, and returns its hash.
async fn send(fixture: &FrontEndsFixture, nonce: u64) -> Value {
    let transaction = json!([{"from": ALICE, "to": ALICE, "value": "0x1", "gas": "0x5208",
        "gasPrice": "0x3938700", "nonce": format!("{nonce:#x}")}]);
    let raw = fixture.of_chain("eth_signTransaction", transaction).await;
    fixture.ask("eth_sendRawTransaction", json!([raw])).await
}

/// Polls a filter of pending transactions until it tells of one.
async fn assert_reported(fixture: &FrontEndsFixture, filter: &Value, hash: &Value, what: &str) {
    let mut found = Vec::new();
    fixture
        .until(what, async || {
            let polled = fixture.ask("eth_getFilterChanges", json!([filter])).await;
            found.extend(polled.as_array().unwrap().clone());
            found.contains(hash)
        })
        .await;
    assert_eq!(found.iter().filter(|other| *other == hash).count(), 1, "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_transactions_are_reported_after_their_stream_was_replaced() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "foreign-sent", 2).await;
    fixture.of_chain("evm_setAutomine", json!([false])).await;
    let old = fixture.ask("eth_newPendingTransactionFilter", json!([])).await;
    let first = send(&fixture, 1).await;
    assert_reported(&fixture, &old, &first, "the first").await;
    let (store, now) = (&fixture.stores[0], fixture.stores[0].time().await.unwrap().as_millis());
    let sealed: Vec<(String, Vec<Vec<u8>>)> =
        store.command("XRANGE", "sent:33", &["-", "+"].map(|end| end.into())).await.unwrap();
    let sealed = sealed[0].1[1].clone();
    let far = |at: u128| format!("{at}-7");
    let last = format!("{0}-{0}", u64::MAX);
    let mut nonce = 2;
    for (id, value) in [
        (last, b"x".to_vec()),
        (far(9_999_999_999_999), b"x".to_vec()),
        (far(9_999_999_999_999), sealed.clone()),
        (far(now + 55_000), sealed.clone()),
        (far(now + 58_000), vec![b'x'; 100_000]),
        ("1-1".to_owned(), sealed.clone()),
    ] {
        let what = format!("{id} {}", value.len());
        store.remove("sent:33").await.unwrap();
        let entry = [id.into_bytes(), b"hash".to_vec(), value];
        store.command::<String>("XADD", "sent:33", &entry).await.unwrap();
        // Time for the front ends to read it.
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        let new = fixture.ask("eth_newPendingTransactionFilter", json!([])).await;
        let hash = send(&fixture, nonce).await;
        nonce += 1;
        assert_reported(&fixture, &new, &hash, &what).await;
        assert_reported(&fixture, &old, &hash, &what).await;
        let left: Vec<(String, Vec<Vec<u8>>)> =
            store.command("XRANGE", "sent:33", &["-", "+"].map(|end| end.into())).await.unwrap();
        assert!(left.iter().all(|(_, fields)| fields[1].len() == sealed.len()), "{what}: it is removed");
    }
    for kind in KINDS[..4].iter().cycle().take(24) {
        put(store, "sent:33", kind).await;
        // This one is lost again before all front ends have read it.
        send(&fixture, nonce).await;
        nonce += 1;
        put(store, "sent:33", kind).await;
        let hash = send(&fixture, nonce).await;
        nonce += 1;
        assert_reported(&fixture, &old, &hash, kind[0]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_work_after_the_list_of_their_owner_was_replaced() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "foreign-own", 2).await;
    let (store, own) = (&fixture.stores[0], "own:33:7f000001");
    let kept = fixture.ask("eth_newBlockFilter", json!([])).await;
    assert_eq!(store.command::<u64>("HLEN", own, &[]).await.unwrap(), 1);
    let huge = "9".repeat(400);
    for value in
        [format!("1 {huge}"), format!("{huge} 1"), format!("{huge} {huge}"), "x".into(), "nan inf".into()]
    {
        store.command::<u64>("HSET", own, &[b"f".to_vec(), value.clone().into_bytes()]).await.unwrap();
        let id = fixture.ask("eth_newBlockFilter", json!([])).await;
        for id in [&id, &kept] {
            assert_eq!(fixture.ask("eth_getFilterChanges", json!([id])).await, json!([]), "{value}");
        }
    }
    // More than any front end writes.
    let many = Script::new("for at = 1, 5000 do redis.call('HSET', KEYS[1], at, '1 1') end return 1");
    assert_eq!(store.script::<u8>(&many, own, &[]).await.unwrap(), 1);
    let mut commands: Vec<&[&str]> = KINDS.to_vec();
    commands.remove(1);
    for kind in std::iter::once(None).chain(commands.into_iter().map(Some)) {
        if let Some(kind) = kind {
            put(store, own, kind).await;
        }
        let id = fixture.ask("eth_newBlockFilter", json!([])).await;
        assert_eq!(fixture.ask("eth_getFilterChanges", json!([id])).await, json!([]), "{kind:?}");
        let length = store.command::<u64>("HLEN", own, &[]).await.unwrap();
        assert!(length < 20, "{length} filters, {kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_learn_nothing_of_the_store_when_it_refuses() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "foreign-text", 1).await;
    let filter = fixture.ask("eth_newBlockFilter", json!([])).await;
    for setting in ["min-replicas-to-write 1", "maxmemory 1"] {
        let (name, _) = setting.split_once(' ').unwrap();
        assert_eq!(fixture.servers.ask(0, &format!("CONFIG SET {setting}")), "OK");
        for (method, params) in [("eth_newBlockFilter", json!([])), ("eth_getFilterChanges", json!([filter]))]
        {
            // The head is not agreed on either, so the light client says so first if its time has come.
            let refused = outcome(&*fixture.front_ends[0], method, params).await.unwrap_err();
            let text = refused["message"].as_str().unwrap().to_lowercase();
            let inside = ["noreplicas", "oom", "store", "redis", "script", "rootlight", "foreign", "command"];
            assert!(refused["code"] == -32002, "{refused}");
            assert!(inside.iter().all(|word| !text.contains(word)), "{setting} {method}: {text}");
        }
        assert_eq!(fixture.servers.ask(0, &format!("CONFIG SET {name} 0")), "OK");
        fixture
            .until("the store again", async || {
                outcome(&*fixture.front_ends[0], "eth_newBlockFilter", json!([])).await.is_ok()
            })
            .await;
    }
}
