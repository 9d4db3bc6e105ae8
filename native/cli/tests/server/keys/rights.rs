//! Rights of a key: methods, contracts, overrides, pages, addresses, filters.

use rootlight_server::Proxies;
use rootlight_server::keys::KeyChange;
use rootlight_server::methods::Profile;
use serde_json::{Value, json};

use super::{SHOP, call, keyed, keyed_with, number};

const OTHER: &str = "0x0000000000000000000000000000000001000008";

#[tokio::test]
async fn methods_and_contracts_that_a_key_does_not_allow_are_403() {
    let keyed = keyed().await;
    let methods = Some("eth_call,net_*".to_owned());
    let (key, id) = keyed.key(KeyChange { methods, contracts: Some(SHOP.into()), ..KeyChange::default() });
    let path = format!("/{key}");
    assert_eq!(keyed.post(&path, &call("net_version", json!([]))).await.status, 200);
    let allowed = keyed.post(&path, &call("eth_call", json!([{"to": SHOP}, "latest"]))).await;
    assert_eq!(allowed.status, 200, "{}", allowed.body);
    let seen = keyed.post(&path, &number()).await;
    let text = "Forbidden: method eth_blockNumber is not allowed for this key";
    assert_eq!(seen.error(), (403, -32016, text, &json!(7)));
    let seen = keyed.post(&path, &call("eth_call", json!([{"to": OTHER}, "latest"]))).await;
    let text = "Forbidden: eth_call: the contract is not allowed for this key";
    assert_eq!(seen.error(), (403, -32016, text, &json!(7)));
    // A batch with such a call is refused whole.
    let batch = json!([call("net_version", json!([])), number()]);
    let seen = keyed.post(&path, &batch).await;
    assert_eq!((seen.status, &seen.body["id"]), (403, &Value::Null));
    let mut socket = keyed.socket(&path).await;
    assert_eq!(socket.ask(&number()).await["error"]["code"], -32016);
    // A change holds for the open connection too.
    keyed.database.limit(&id, &KeyChange { methods: Some(String::new()), ..KeyChange::default() }).unwrap();
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
}

#[tokio::test]
async fn overrides_of_state_need_a_key_that_allows_them() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange::default());
    let path = format!("/{key}");
    let account = "0x00000000000000000000000000000000000000aa";
    // PUSH1 1, PUSH1 0, MSTORE8, PUSH1 1, PUSH1 0, RETURN
    let code = json!({account: {"code": "0x600160005360016000f3"}});
    let message = call("eth_call", json!([{"to": account}, "latest", code]));
    let seen = keyed.post(&path, &message).await;
    assert_eq!(seen.error(), (200, -32602, "State override is not allowed", &json!(7)));
    keyed.database.limit(&id, &KeyChange { state_override: Some(true), ..KeyChange::default() }).unwrap();
    assert_eq!(keyed.post(&path, &message).await.body["result"], "0x01");
}

#[tokio::test]
async fn the_hosted_profile_has_the_debug_methods_for_keys_that_allow_them() {
    let keyed = keyed_with(|config| config.admission.profile = Profile::Hosted).await;
    let (key, id) = keyed.key(KeyChange::default());
    let path = format!("/{key}");
    let trace = call("debug_traceBlockByNumber", json!(["0x0", {"tracer": "callTracer"}]));
    let allow = |debug| {
        keyed.database.limit(&id, &KeyChange { debug: Some(debug), ..KeyChange::default() }).unwrap();
    };
    let text = "the method debug_traceBlockByNumber does not exist/is not available";
    assert_eq!(keyed.post(&path, &trace).await.error(), (200, -32601, text, &json!(7)));
    allow(true);
    assert_eq!(keyed.post(&path, &trace).await.body["result"], json!([]));
    let mut socket = keyed.socket(&path).await;
    assert_eq!(socket.ask(&trace).await["result"], json!([]));
    // No other namespace, and the rows that the profile replaces.
    for method in ["personal_listAccounts", "evm_mine", "txpool_content"] {
        assert_eq!(
            keyed.post(&path, &call(method, json!([]))).await.body["error"]["code"],
            -32601,
            "{method}"
        );
    }
    assert_eq!(keyed.post(&path, &call("eth_accounts", json!([]))).await.body["result"], json!([]));
    allow(false);
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    assert_eq!(keyed.post(&path, &trace).await.error().1, -32601);
    let text = "Forbidden: the rights of the key have changed, connect again";
    assert_eq!(socket.ask(&number()).await["error"]["message"], text);
    allow(true);
    // The weight of a trace counts in the limit.
    let limit = KeyChange { per_second: Some(1), burst: Some(50), ..KeyChange::default() };
    keyed.database.limit(&id, &limit).unwrap();
    assert_eq!(keyed.post(&path, &trace).await.status, 200);
    assert_eq!(keyed.post(&path, &trace).await.status, 429);
}

#[tokio::test]
async fn pages_and_addresses_that_a_key_does_not_name_are_403() {
    let keyed = keyed().await;
    let (key, id) =
        keyed.key(KeyChange { origins: Some("https://shop.example".into()), ..KeyChange::default() });
    let path = format!("/{key}");
    let good = keyed.post_from(&path, Some("https://Shop.example"), &number()).await;
    assert_eq!((good.status, &good.headers["access-control-allow-origin"].to_str().unwrap()), (200, &"*"));
    for other in [None, Some("https://evil.example"), Some("null")] {
        let seen = keyed.post_from(&path, other, &number()).await;
        let text = "Forbidden: the origin is not allowed for this key";
        assert_eq!(seen.error(), (403, -32016, text, &json!(7)), "{other:?}");
        assert_eq!(keyed.upgrade_status(&path, other).await, 403, "{other:?}");
    }
    assert_eq!(keyed.upgrade_status(&path, Some("https://shop.example")).await, 101);
    let elsewhere = Some("10.0.0.0/8".to_owned());
    let change = KeyChange { origins: Some(String::new()), addresses: elsewhere, ..KeyChange::default() };
    keyed.database.limit(&id, &change).unwrap();
    let seen = keyed.post(&path, &number()).await;
    let text = "Forbidden: the client address is not allowed for this key";
    assert_eq!(seen.error(), (403, -32016, text, &json!(7)));
    let here = KeyChange { addresses: Some("10.0.0.0/8,127.0.0.1".into()), ..KeyChange::default() };
    keyed.database.limit(&id, &here).unwrap();
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
}

/// The networks of a key are compared with the whole address of a client, also of one that a proxy passes on.
#[tokio::test]
async fn a_key_of_one_ipv6_address_is_for_that_address() {
    let proxies = Proxies { networks: vec!["127.0.0.1/32".parse().unwrap()], unix: false };
    let keyed = keyed_with(|config| config.operations.proxies = proxies).await;
    let (key, id) = keyed.key(KeyChange::default());
    let path = format!("/{key}");
    for (addresses, inside, outside) in [
        (
            "2001:db8::7",
            &["2001:db8::7", "[2001:db8::7]:80"][..],
            &["2001:db8::8", "2001:db8::", "10.0.0.7"][..],
        ),
        ("2001:db8::100/120", &["2001:db8::1ff"], &["2001:db8::200", "2001:db8::1"]),
        ("2001:db8::/64", &["2001:db8::1"], &["2001:db8:0:1::1"]),
        ("::1", &["::1"], &["::2", "127.0.0.2"]),
        ("10.0.0.7", &["10.0.0.7", "::ffff:10.0.0.7"], &["10.0.0.8", "::ffff:10.0.0.8"]),
        ("::ffff:10.0.0.0/120", &["10.0.0.7"], &["10.0.1.7"]),
    ] {
        let change = KeyChange { addresses: Some(addresses.into()), ..KeyChange::default() };
        keyed.database.limit(&id, &change).unwrap();
        for (clients, status) in [(inside, 200), (outside, 403)] {
            for client in clients {
                let seen = keyed.post_through(&path, client, &number()).await;
                assert_eq!(seen.status, status, "{addresses}: {client}");
            }
        }
    }
}

#[tokio::test]
async fn a_filter_belongs_to_its_key() {
    let keyed = keyed().await;
    let (one, two) = (keyed.key(KeyChange::default()).0, keyed.key(KeyChange::default()).0);
    let (one, two) = (format!("/{one}"), format!("/{two}"));
    let id = keyed.post(&one, &call("eth_newBlockFilter", json!([]))).await.body["result"].take();
    keyed.post(&two, &call("evm_mine", json!([]))).await;
    let poll = call("eth_getFilterChanges", json!([id]));
    let refused = keyed.post(&two, &poll).await;
    assert_eq!(refused.error(), (200, -32000, "filter not found", &json!(7)));
    assert_eq!(keyed.post(&two, &call("eth_uninstallFilter", json!([id]))).await.body["result"], false);
    // Another connection with the same key may poll it.
    let mut socket = keyed.socket(&one).await;
    assert_eq!(socket.ask(&poll).await["result"].as_array().unwrap().len(), 1);
}
