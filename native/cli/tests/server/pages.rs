//! The methods that a web page may call on a development chain, by its origin; programs may call all.

use crate::common;

use common::{RunningServer, client, config, dev_chain, start_service};
use futures::{SinkExt, StreamExt};
use reqwest::header::{CONTENT_TYPE, HOST, ORIGIN};
use rootlight::dev::Mining;
use rootlight_node::local::LocalOptions;
use rootlight_server::{Operations, Origins, ServerConfig, TrustedProxy};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// An account whose key is publicly known, and the key.
const ACCOUNT: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

async fn dev(config: ServerConfig) -> RunningServer {
    start_service(config, dev_chain(Mining::Instant, LocalOptions::default())).await
}

fn call(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

async fn ask(server: &RunningServer, origin: Option<&str>, message: &Value) -> (u16, Value) {
    let request = client().post(server.url("/")).header(CONTENT_TYPE, "application/json");
    let request = match origin {
        Some(origin) => request.header(ORIGIN, origin),
        None => request,
    };
    let response = request.body(message.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

fn dump() -> Value {
    call(1, "personal_dumpRawKey", json!([ACCOUNT]))
}

#[tokio::test]
async fn a_foreign_page_does_not_get_a_key() {
    let server = dev(config()).await;
    for foreign in ["https://evil.example", "null", "http://localhost.evil.example", "chrome-extension://abc"]
    {
        let (status, answer) = ask(&server, Some(foreign), &dump()).await;
        assert_eq!((status, answer["error"]["code"].as_i64()), (200, Some(4100)), "{foreign}: {answer}");
        assert!(!answer.to_string().contains(&KEY[2..]), "{answer}");
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(text.contains("personal_dumpRawKey"), "{text}");
        // Every page can make a frame whose origin is null.
        assert_eq!(text.contains(&format!("--cors {foreign}")), foreign != "null", "{text}");
    }
    for own in [None, Some("http://localhost:3000"), Some("http://127.0.0.1"), Some("https://[::1]:8443")] {
        let (_, answer) = ask(&server, own, &dump()).await;
        assert_eq!(answer["result"], KEY, "{own:?}");
    }
}

#[tokio::test]
async fn a_foreign_page_may_read_and_send_signed_transactions_but_not_change_the_chain_by_hand() {
    let server = dev(config()).await;
    let page = Some("https://evil.example");
    let transaction = json!({"from": ACCOUNT, "to": ACCOUNT, "value": "0x1"});
    let refused = [
        call(1, "eth_sendTransaction", json!([transaction])),
        call(2, "eth_sign", json!([ACCOUNT, "0x00"])),
        call(3, "anvil_setBalance", json!([ACCOUNT, "0x0"])),
        call(4, "evm_mine", json!([])),
        call(5, "personal_listAccounts", json!([])),
        call(6, "hardhat_reset", json!([])),
    ];
    for message in &refused[..5] {
        let (_, answer) = ask(&server, page, message).await;
        assert_eq!(answer["error"]["code"], 4100, "{answer}");
    }
    // An engine of scripts is for the chain's own callers.
    let trace = |tracer: &str| {
        let call_object = json!({ "to": ACCOUNT });
        let block = json!([call_object, "latest", { "tracer": tracer }]);
        let hash = json!([format!("0x{}", "00".repeat(32)), { "tracer": tracer }]);
        [call(1, "debug_traceCall", block), call(2, "debug_traceTransaction", hash)]
    };
    for message in trace("{fault: function() {}, result: function() {}}") {
        assert_eq!(ask(&server, page, &message).await.1["error"]["code"], 4100);
        assert_ne!(ask(&server, None, &message).await.1["error"]["code"], 4100);
    }
    for message in trace("callTracer") {
        assert_eq!(ask(&server, page, &message).await.1["error"], Value::Null);
    }
    // Each call of a batch is judged by itself.
    let mut batch = refused[..5].to_vec();
    batch.push(call(7, "eth_blockNumber", json!([])));
    let (_, answers) = ask(&server, page, &Value::from(batch)).await;
    let answers = answers.as_array().unwrap();
    assert!(answers[..5].iter().all(|answer| answer["error"]["code"] == 4100), "{answers:?}");
    assert_eq!(answers[5]["result"], "0x0", "nothing was mined");
    let raw =
        ask(&server, None, &call(8, "eth_signTransaction", json!([transaction]))).await.1["result"].take();
    let (_, sent) = ask(&server, page, &call(9, "eth_sendRawTransaction", json!([raw]))).await;
    assert!(sent["result"].is_string(), "{sent}");
    assert_eq!(ask(&server, page, &call(10, "eth_blockNumber", json!([]))).await.1["result"], "0x1");
}

#[tokio::test]
async fn origins_named_by_cors_may_call_everything_and_others_nothing() {
    let named = ServerConfig { origins: Origins::parse("https://remix.ethereum.org"), ..config() };
    let server = dev(named).await;
    for own in ["https://remix.ethereum.org", "http://localhost:3000"] {
        assert_eq!(ask(&server, Some(own), &dump()).await.1["result"], KEY, "{own}");
    }
    let (status, answer) = ask(&server, Some("https://evil.example"), &dump()).await;
    assert_eq!(status, 403);
    assert!(answer["error"]["message"].as_str().unwrap().contains("--cors https://evil.example"), "{answer}");
    let all = dev(ServerConfig { origins: Origins::parse("*"), ..config() }).await;
    assert_eq!(ask(&all, Some("https://any.example"), &dump()).await.1["result"], KEY);
}

#[tokio::test]
async fn a_foreign_page_does_not_see_the_upstreams_the_accounts_or_the_pool() {
    let (server, all) =
        (dev(config()).await, dev(ServerConfig { origins: Origins::parse("*"), ..config() }).await);
    let named = dev(ServerConfig { origins: Origins::parse("https://own.example"), ..config() }).await;
    let shown = [
        "net_peerList",
        "rootlight_upstreams",
        "eth_pendingTransactions",
        "txpool_content",
        "txpool_inspect",
    ];
    let page = Some("https://evil.example");
    for method in shown {
        let message = call(1, method, json!([]));
        for (server, page) in [(&server, page), (&server, Some("null")), (&all, page)] {
            let (_, answer) = ask(server, page, &message).await;
            assert_eq!(answer["error"]["code"], 4100, "{method}: {answer}");
            let text = answer["error"]["message"].as_str().unwrap();
            assert!(text.contains(method) && text.contains("the upstreams or the pool"), "{text}");
        }
        for (server, own) in [
            (&server, None),
            (&server, Some("http://localhost:3000")),
            (&all, None),
            (&named, Some("https://own.example")),
        ] {
            let (_, answer) = ask(server, own, &message).await;
            assert!(answer["result"].is_array() || answer["result"].is_object(), "{method}: {answer}");
        }
    }
    let accounts = call(1, "eth_accounts", json!([]));
    assert_eq!(ask(&server, page, &accounts).await.1["error"]["code"], 4100);
    // An operator that lets every page use the keys lets it see the accounts.
    assert!(ask(&all, page, &accounts).await.1["result"].is_array());
    for method in ["net_peerCount", "txpool_status", "eth_blockNumber", "rootlight_syncStatus"] {
        let (_, answer) = ask(&server, page, &call(1, method, json!([]))).await;
        assert!(!answer["result"].is_null(), "{method}: {answer}");
    }
    let bans = call(1, "sco_bannedAddresses", json!([]));
    assert_eq!(ask(&all, page, &bans).await.1["error"]["code"], -32601, "no page of others is the operator");
}

#[tokio::test]
async fn the_origin_of_a_websocket_holds_for_all_its_messages() {
    let server = dev(config()).await;
    for (origin, allowed) in [("https://evil.example", false), ("http://localhost:3000", true)] {
        let mut request = server.ws("/").into_client_request().unwrap();
        request.headers_mut().insert("origin", origin.parse().unwrap());
        let mut socket = tokio_tungstenite::connect_async(request).await.unwrap().0;
        let subscribe = call(2, "eth_subscribe", json!(["newHeads"]));
        for message in [dump(), Value::from(vec![subscribe, dump()])] {
            socket.send(Message::text(message.to_string())).await.unwrap();
            let text = socket.next().await.unwrap().unwrap().into_text().unwrap().to_string();
            assert_eq!(text.contains(&KEY[2..]), allowed, "{text}");
            assert_eq!(text.contains("4100"), !allowed, "{text}");
        }
    }
}

/// Rules of a server: its pages, host names and trusted proxies.
type PageRules = (Origins, &'static str, &'static str);

fn operations((_, _, proxy): &PageRules) -> Operations {
    let proxies = proxy.parse::<TrustedProxy>().into_iter().collect();
    Operations { proxies, ..Operations::default() }
}

/// Opens a WebSocket with a header under the first rules, changes the rules, and asks for a key: the texts that come
/// then, and the code of the close frame.
async fn after_a_change(
    before: &PageRules,
    header: (&'static str, &str),
    after: &PageRules,
) -> (String, Option<u16>) {
    let hosts = |rules: &PageRules| vec![rules.1.to_owned()];
    let server = ServerConfig { origins: before.0.clone(), hosts: hosts(before), ..config() };
    let server = dev(ServerConfig { operations: operations(before), ..server }).await;
    let mut request = server.ws("/").into_client_request().unwrap();
    request.headers_mut().insert(header.0, header.1.parse().unwrap());
    let mut socket = tokio_tungstenite::connect_async(request).await.unwrap().0;
    let subscribe = call(2, "eth_subscribe", json!(["newHeads"]));
    socket.send(Message::text(subscribe.to_string())).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().to_text().unwrap().contains("result"));
    server.control.set_rules(before.0.clone(), hosts(before), operations(before).proxies);
    server.control.set_rules(after.0.clone(), hosts(after), operations(after).proxies);
    socket.send(Message::text(dump().to_string())).await.unwrap();
    let mut texts = String::new();
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => texts.push_str(&text),
            Some(Ok(Message::Close(frame))) => return (texts, frame.map(|frame| frame.code.into())),
            other => panic!("{other:?} after {texts}"),
        }
        if texts.contains(KEY) || texts.contains("4100") {
            return (texts, None);
        }
    }
}

#[tokio::test]
async fn a_websocket_ends_when_the_rules_would_not_admit_it_with_the_same_rights() {
    let list = Origins::parse;
    let page = ("origin", "https://a.example");
    let (refused, changed) = ("origin not allowed", "rules of this server have changed");
    let ends: [(PageRules, (&str, &str), PageRules, &str); 8] = [
        ((list("https://a.example"), "", ""), page, (list("https://b.example"), "", ""), refused),
        ((Origins::Unnamed, "", ""), page, (list("https://b.example"), "", ""), refused),
        ((Origins::Any, "", ""), page, (list(""), "", ""), refused),
        ((list("https://a.example"), "", ""), page, (Origins::Unnamed, "", ""), changed),
        ((list("https://a.example"), "", ""), page, (Origins::Any, "", ""), changed),
        ((Origins::Any, "", ""), page, (Origins::Unnamed, "", ""), changed),
        (
            (Origins::Unnamed, "node.example", ""),
            ("host", "node.example"),
            (Origins::Unnamed, "other.example", ""),
            "host not allowed",
        ),
        (
            (Origins::Unnamed, "", "127.0.0.1"),
            ("x-forwarded-for", "203.0.113.9"),
            (Origins::Unnamed, "", "192.0.2.1"),
            changed,
        ),
    ];
    for (before, header, after, why) in ends {
        let (texts, code) = after_a_change(&before, header, &after).await;
        assert!(texts.contains(why) && !texts.contains(&KEY[2..]), "{before:?} {after:?}: {texts}");
        assert_eq!(code, Some(1008), "{before:?} {after:?}");
    }
    let stays: [(PageRules, (&str, &str), PageRules); 4] = [
        ((list("https://a.example"), "", ""), page, (list("https://b.example,https://A.example"), "x", "")),
        ((list("https://a.example"), "", ""), ("x-none", "1"), (list("https://b.example"), "", "")),
        ((list("https://a.example"), "", ""), ("origin", "http://localhost"), (Origins::Any, "", "")),
        ((Origins::Unnamed, "node.example", ""), ("host", "node.example"), (Origins::Any, "*", "")),
    ];
    for (before, header, after) in stays {
        let (texts, code) = after_a_change(&before, header, &after).await;
        assert!(texts.contains(KEY) && code.is_none(), "{before:?} {after:?}: {texts}");
    }
}

#[tokio::test]
async fn a_server_for_other_machines_checks_the_host_too() {
    let server = dev(ServerConfig { host: "0.0.0.0".into(), ..config() }).await;
    let port = server.address.port();
    let ask = |port: u16, host: &'static str| async move {
        let url = format!("http://127.0.0.1:{port}/");
        let request = client().post(url).header(CONTENT_TYPE, "application/json").header(HOST, host);
        request.body(call(1, "eth_chainId", json!([])).to_string()).send().await.unwrap()
    };
    assert_eq!(ask(port, "10.0.0.7:4444").await.status(), 200);
    let refused = ask(port, "rebound.evil.example").await;
    assert_eq!(refused.status(), 403);
    assert!(refused.text().await.unwrap().contains("--allow-host"));
    let named = ServerConfig { host: "0.0.0.0".into(), hosts: vec!["node.example".into()], ..config() };
    let server = dev(named).await;
    assert_eq!(ask(server.address.port(), "node.example:4444").await.status(), 200);
}

/// All pages in a browser, and all programs of this machine, have one address.
#[tokio::test]
async fn a_foreign_page_sees_its_own_waiting_transactions_alone() {
    let server = start_service(config(), dev_chain(Mining::Manual, LocalOptions::default())).await;
    let pages = [None, Some("https://one.example"), Some("https://other.example")];
    let mut hashes = Vec::new();
    for (page, nonce) in pages.into_iter().zip(["0x0", "0x1", "0x2"]) {
        let transaction = json!({"from": ACCOUNT, "to": ACCOUNT, "value": "0x1", "nonce": nonce});
        let raw = ask(&server, None, &call(1, "eth_signTransaction", json!([transaction]))).await.1["result"]
            .take();
        let (_, sent) = ask(&server, page, &call(2, "eth_sendRawTransaction", json!([raw]))).await;
        hashes.push(sent["result"].clone());
    }
    for (asker, page) in pages.into_iter().enumerate() {
        let sees_all = page.is_none();
        for (sender, hash) in hashes.iter().enumerate() {
            let found = ask(&server, page, &call(3, "eth_getTransactionByHash", json!([hash]))).await.1;
            let expected = if sees_all || asker == sender { hash } else { &Value::Null };
            assert_eq!(found["result"]["hash"], *expected, "{page:?}");
        }
        let status = ask(&server, page, &call(4, "txpool_status", json!([]))).await.1;
        assert_eq!(status["result"]["pending"], if sees_all { 3 } else { 1 }, "{page:?}");
        // The transaction of REMASC is in the pending block too.
        let count = call(5, "eth_getBlockTransactionCountByNumber", json!(["pending"]));
        let count = ask(&server, page, &count).await.1;
        assert_eq!(count["result"], if sees_all { "0x4" } else { "0x0" }, "{page:?}");
    }
}

/// A filter tells the same of a transaction that waits, that is mined before the filter is asked, and that is gone by then.
#[tokio::test]
async fn a_filter_of_a_foreign_page_reports_only_its_own_transactions() {
    let server = start_service(config(), dev_chain(Mining::Manual, LocalOptions::default())).await;
    let get = async |page, method: &str, params: Value| {
        let mut response = ask(&server, page, &call(1, method, params)).await.1;
        assert_eq!(response["error"], Value::Null, "{method}: {response}");
        response["result"].take()
    };
    let pages = [None, Some("https://one.example"), Some("https://other.example")];
    let mut filters = Vec::new();
    for page in pages {
        filters.push(get(page, "eth_newPendingTransactionFilter", json!([])).await);
    }
    let snapshot = get(None, "evm_snapshot", json!([])).await;
    for (method, params) in
        [("eth_chainId", json!([])), ("evm_mine", json!([])), ("evm_revert", json!([snapshot]))]
    {
        let nonce = get(None, "eth_getTransactionCount", json!([ACCOUNT, "pending"])).await;
        let transaction = json!({"from": ACCOUNT, "to": ACCOUNT, "value": "0x1", "nonce": nonce});
        let raw = get(None, "eth_signTransaction", json!([transaction])).await;
        let sent = get(pages[1], "eth_sendRawTransaction", json!([raw])).await;
        assert!(sent.is_string(), "{sent}");
        get(None, method, params).await;
        for ((page, filter), is_notified) in pages.into_iter().zip(&filters).zip([true, true, false]) {
            let changes = get(page, "eth_getFilterChanges", json!([filter])).await;
            assert_eq!(
                changes,
                if is_notified { json!([sent]) } else { json!([]) },
                "{page:?} after {method}"
            );
        }
    }
}
