//! API keys over HTTP and WebSocket: every status, header and limit, changes while the server runs, hostile paths.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{RunningServer, client, config, dev_chain, start_service};
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use reqwest::header::{CONTENT_TYPE, HeaderMap, ORIGIN};
use reqwest::{Method, Response};
use rootlight::dev::Mining;
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_server::keys::{KeyChange, KeyLookup, KeyRecord, Registry, Unavailable};
use rootlight_server::methods::Profile;
use rootlight_server::{AdmissionRules, KeyAccess, Proxies, ServerConfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const SHOP: &str = "0x0000000000000000000000000000000001000006";
const OTHER: &str = "0x0000000000000000000000000000000001000008";

/// A development chain behind a server that needs keys.
struct Keyed {
    server: RunningServer,
    registry: Arc<Registry>,
    folder: TempDir,
}

fn dev() -> Arc<LocalService> {
    dev_chain(Mining::Instant, LocalOptions::default())
}

fn entry(registry: &Arc<Registry>) -> AdmissionRules {
    AdmissionRules { keys: Some(KeyAccess::embedded(registry)), ..AdmissionRules::default() }
}

async fn keyed_with(change: impl FnOnce(&mut ServerConfig)) -> Keyed {
    let folder = tempfile::tempdir().unwrap();
    let registry = Arc::new(Registry::open(&folder.path().join("keys.redb")).unwrap());
    let mut config = ServerConfig { admission: entry(&registry), ..config() };
    change(&mut config);
    let server = start_service(config, dev()).await;
    Keyed { server, registry, folder }
}

async fn keyed() -> Keyed {
    keyed_with(|_| {}).await
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn number() -> Value {
    call("eth_blockNumber", json!([]))
}

/// Keys whose place can be out of reach.
struct Away {
    registry: Arc<Registry>,
    away: AtomicBool,
}

impl KeyLookup for Away {
    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Arc<KeyRecord>>, Unavailable>> {
        if self.away.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(Unavailable)));
        }
        self.registry.find(id)
    }
}

/// A response as the tests look at it.
struct SeenResponse {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl SeenResponse {
    async fn new(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default();
        Self { status, headers, body }
    }

    fn header(&self, name: &str) -> Option<u64> {
        self.headers.get(name).map(|value| value.to_str().unwrap().parse().unwrap())
    }

    /// Status, code, message and id.
    fn error(&self) -> (u16, i64, &str, &Value) {
        let error = &self.body["error"];
        assert_eq!(self.body["jsonrpc"], "2.0", "{}", self.body);
        let text = error["message"].as_str().unwrap_or_else(|| panic!("{}", self.body));
        (self.status, error["code"].as_i64().unwrap(), text, &self.body["id"])
    }
}

impl Keyed {
    /// A new key: its text and id.
    fn key(&self, change: KeyChange) -> (String, String) {
        let (key, record) = self.registry.create(&change).unwrap();
        (key.reveal(), record.id.clone())
    }

    async fn post(&self, path: &str, message: &Value) -> SeenResponse {
        self.post_from(path, None, message).await
    }

    async fn post_from(&self, path: &str, origin: Option<&str>, message: &Value) -> SeenResponse {
        let request = client().post(self.server.url(path)).header(CONTENT_TYPE, "application/json");
        let request = match origin {
            Some(origin) => request.header(ORIGIN, origin),
            None => request,
        };
        SeenResponse::new(request.body(message.to_string()).send().await.unwrap()).await
    }

    /// A message of a client that a proxy passes on.
    async fn post_through(&self, path: &str, address: &str, message: &Value) -> SeenResponse {
        let request = client().post(self.server.url(path)).header(CONTENT_TYPE, "application/json");
        let request = request.header("x-forwarded-for", address);
        SeenResponse::new(request.body(message.to_string()).send().await.unwrap()).await
    }

    async fn socket(&self, path: &str) -> KeyedSocket {
        KeyedSocket(connect_async(self.server.ws(path)).await.unwrap().0)
    }

    /// The status of a refused upgrade.
    async fn upgrade_status(&self, path: &str, origin: Option<&str>) -> u16 {
        let mut request = self.server.ws(path).into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        match connect_async(request).await {
            Ok(_) => 101,
            Err(Error::Http(response)) => {
                let body: Value = serde_json::from_slice(response.body().as_ref().unwrap()).unwrap();
                assert!(body["error"]["code"].is_i64() && body["id"].is_null(), "{body}");
                response.status().as_u16()
            }
            Err(other) => panic!("{other}"),
        }
    }
}

struct KeyedSocket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl KeyedSocket {
    async fn next(&mut self) -> Message {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(10), self.0.next()).await;
            match next.expect("a message in time").expect("an open connection").unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }

    async fn json(&mut self) -> Value {
        serde_json::from_str(self.next().await.to_text().unwrap()).unwrap()
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.0.send(Message::text(message.to_string())).await.unwrap();
        self.json().await
    }

    /// The error and the close code with which the server ends the connection.
    async fn ended(&mut self) -> (Value, u16) {
        let error = self.json().await;
        match self.next().await {
            Message::Close(Some(frame)) => (error, frame.code.into()),
            other => panic!("no close frame but {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_key_in_the_path_opens_http_and_websocket() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange::default());
    for path in [format!("/{key}"), format!("/{key}/"), format!("/websocket/{key}")] {
        let seen = keyed.post(&path, &number()).await;
        assert_eq!((seen.status, &seen.body["result"]), (200, &json!("0x0")), "{path}");
        assert!(seen.headers.get("x-ratelimit-limit").is_none(), "the key has no limits");
        let mut socket = keyed.socket(&path).await;
        assert_eq!(socket.ask(&number()).await["result"], "0x0", "{path}");
    }
}

#[tokio::test]
async fn keys_that_cannot_be_asked_for_are_503_and_open_sockets_stay() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Arc::new(Registry::open(&folder.path().join("keys.redb")).unwrap());
    let keys = Arc::new(Away { registry: registry.clone(), away: AtomicBool::new(false) });
    let access = KeyAccess { keys: keys.clone(), ..KeyAccess::embedded(&registry) };
    let admission = AdmissionRules { keys: Some(access), ..AdmissionRules::default() };
    let server = start_service(ServerConfig { admission, ..config() }, dev()).await;
    let keyed = Keyed { server, registry, folder };
    let path = format!("/{}", keyed.key(KeyChange::default()).0);
    let mut socket = keyed.socket(&path).await;
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
    keys.away.store(true, Ordering::Relaxed);
    let text = "Service unavailable: API keys cannot be checked at the moment";
    let seen = keyed.post(&path, &number()).await;
    assert_eq!((seen.status, seen.header("retry-after")), (503, Some(1)));
    assert_eq!((&seen.body["error"]["code"], &seen.body["error"]["message"]), (&json!(-32603), &json!(text)));
    assert_eq!(keyed.upgrade_status(&path, None).await, 503);
    // Longer than the interval at which open sockets' keys are looked at.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(socket.ask(&number()).await["error"]["message"], text);
    keys.away.store(false, Ordering::Relaxed);
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
}

#[tokio::test]
async fn without_a_valid_key_the_answer_is_401_with_the_id_of_the_call() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange::default());
    let (secret, other) = (&key[9..], keyed.key(KeyChange::default()).0);
    for path in ["", "/", "/websocket", "/?key=x", &format!("/?{key}")] {
        let seen = keyed.post(path, &number()).await;
        assert_eq!(seen.error(), (401, -32016, "Unauthorized: missing API key", &json!(7)), "{path}");
        assert_eq!(seen.headers["www-authenticate"], "ApiKey");
    }
    for path in [
        format!("/{id}"),
        format!("/{secret}"),
        format!("/{id}.{}", &other[9..]),
        format!("/aaaaaaaa.{secret}"),
        format!("/{}", key.to_uppercase()),
        format!("/{key}A"),
        format!("/{}", key.replace('.', "%2E")),
        format!("/%00{key}"),
        format!("/{}", "k".repeat(8_000)),
    ] {
        let seen = keyed.post(&path, &number()).await;
        assert_eq!(seen.error(), (401, -32016, "Unauthorized: invalid API key", &json!(7)), "{path}");
    }
    for path in ["/", "/websocket", "/wrong", &format!("/{id}")] {
        assert_eq!(keyed.upgrade_status(path, None).await, 401, "{path}");
    }
    // A key elsewhere than in the path does not count.
    let request = client().post(keyed.server.url("/")).header(CONTENT_TYPE, "application/json");
    let request = request.header("authorization", format!("Bearer {key}")).header("x-api-key", &key);
    assert_eq!(request.body(number().to_string()).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn names_of_own_paths_and_further_segments_are_404() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange::default());
    for path in [
        "/livez".to_owned(),
        "/readyz".into(),
        "/health".into(),
        "/metrics".into(),
        "/admin".into(),
        "/assets".into(),
        "/websocket/health".into(),
        "/websocket/websocket".into(),
        format!("/{key}/more"),
        format!("/v1/{key}"),
        format!("//{key}"),
        format!("/{key}//"),
    ] {
        let seen = keyed.post(&path, &number()).await;
        assert_eq!((seen.status, &seen.body["error"]["code"]), (404, &json!(-32600)), "{path}");
        let text = seen.body["error"]["message"].as_str().unwrap();
        assert_eq!(text, "no service at this path: send JSON-RPC by POST to /API_KEY", "{path}");
    }
    let health = client().get(keyed.server.url("/health")).send().await.unwrap();
    assert_eq!(health.status(), 200, "probes need no key");
    let wrong = client().get(keyed.server.url(&format!("/{key}"))).send().await.unwrap();
    assert_eq!(wrong.status(), 405);
    let preflight = client().request(Method::OPTIONS, keyed.server.url("/any")).send().await.unwrap();
    assert_eq!(preflight.status(), 204, "browsers ask before they send a request with a key");
}

#[tokio::test]
async fn the_body_of_a_request_without_a_key_is_not_waited_for() {
    let keyed = keyed().await;
    for length in [10_000_000, 100] {
        let mut stream = TcpStream::connect(keyed.server.address).await.unwrap();
        let head = format!(
            "POST /wrong HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.starts_with("HTTP/1.1 401") && text.contains("connection: close"), "{text}");
        assert!(text.ends_with('}') && text.contains(r#""id":null"#), "{text}");
    }
}

#[tokio::test]
async fn invalid_bytes_in_a_path_are_refused_and_affect_no_other_request() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange::default());
    for path in [
        b"/%".to_vec(),
        b"/%ff%fe".to_vec(),
        b"/\x00".to_vec(),
        b"/\xff\xfe".to_vec(),
        b"/a\x7fb".to_vec(),
        b"/../etc/passwd".to_vec(),
        b"*".to_vec(),
        [b"/".to_vec(), vec![b'a'; 60_000]].concat(),
    ] {
        let mut stream = TcpStream::connect(keyed.server.address).await.unwrap();
        let head = [&b"POST "[..], &path, b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"].concat();
        let _ = stream.write_all(&head).await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await.unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let refused = ["400", "401", "404", "414", "431"]
            .iter()
            .any(|status| text.starts_with(&format!("HTTP/1.1 {status}")));
        assert!(refused || text.is_empty(), "{:?}: {text}", &path[..path.len().min(20)]);
    }
    assert_eq!(keyed.post(&format!("/{key}"), &number()).await.status, 200);
}

#[tokio::test]
async fn revoked_and_ended_keys_are_401_at_once() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange::default());
    let path = format!("/{key}");
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    keyed.registry.limit(&id, &KeyChange { expires: Some(1), ..KeyChange::default() }).unwrap();
    let ended = keyed.post(&path, &number()).await;
    assert_eq!(ended.error(), (401, -32016, "Unauthorized: the API key has expired", &json!(7)));
    assert_eq!(keyed.upgrade_status(&path, None).await, 401);
    keyed.registry.limit(&id, &KeyChange { expires: Some(0), ..KeyChange::default() }).unwrap();
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    keyed.registry.revoke(&id).unwrap();
    let revoked = keyed.post(&path, &number()).await;
    assert_eq!(revoked.error(), (401, -32016, "Unauthorized: invalid API key", &json!(7)));
    assert_eq!(keyed.upgrade_status(&path, None).await, 401);
}

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
    keyed.registry.limit(&id, &KeyChange { methods: Some(String::new()), ..KeyChange::default() }).unwrap();
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
    keyed.registry.limit(&id, &KeyChange { state_override: Some(true), ..KeyChange::default() }).unwrap();
    assert_eq!(keyed.post(&path, &message).await.body["result"], "0x01");
}

#[tokio::test]
async fn the_hosted_profile_has_the_debug_methods_for_keys_that_allow_them() {
    let keyed = keyed_with(|config| config.admission.profile = Profile::Hosted).await;
    let (key, id) = keyed.key(KeyChange::default());
    let path = format!("/{key}");
    let trace = call("debug_traceBlockByNumber", json!(["0x0", {"tracer": "callTracer"}]));
    let allow = |debug| {
        keyed.registry.limit(&id, &KeyChange { debug: Some(debug), ..KeyChange::default() }).unwrap();
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
    keyed.registry.limit(&id, &limit).unwrap();
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
    keyed.registry.limit(&id, &change).unwrap();
    let seen = keyed.post(&path, &number()).await;
    let text = "Forbidden: the client address is not allowed for this key";
    assert_eq!(seen.error(), (403, -32016, text, &json!(7)));
    let here = KeyChange { addresses: Some("10.0.0.0/8,127.0.0.1".into()), ..KeyChange::default() };
    keyed.registry.limit(&id, &here).unwrap();
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
}

/// The networks of a key are compared with the whole address of a client, also of one that a proxy passes on.
#[tokio::test]
async fn a_key_of_one_ipv6_address_is_for_that_address() {
    let proxies = Proxies { networks: vec!["127.0.0.1/32".parse().unwrap()], unix: false };
    let keyed = keyed_with(|config| config.operations.proxies = proxies).await;
    let (key, id) = keyed.key(KeyChange::default());
    let path = format!("/{key}");
    for (addresses, inside, sanitize) in [
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
        keyed.registry.limit(&id, &change).unwrap();
        for (clients, status) in [(inside, 200), (sanitize, 403)] {
            for client in clients {
                let seen = keyed.post_through(&path, client, &number()).await;
                assert_eq!(seen.status, status, "{addresses}: {client}");
            }
        }
    }
}

#[tokio::test]
async fn too_many_requests_per_second_are_429_with_the_time_to_wait() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange { per_second: Some(1), burst: Some(40), ..KeyChange::default() });
    let path = format!("/{key}");
    // A batch counts each of its calls, and takes nothing if it does not fit.
    let batch = |count: usize| Value::from(vec![number(); count]);
    let first = keyed.post(&path, &batch(30)).await;
    assert_eq!((first.status, first.header("x-ratelimit-limit")), (200, Some(40)));
    assert_eq!(
        (first.header("x-ratelimit-remaining"), first.header("x-ratelimit-reset")),
        (Some(10), Some(30))
    );
    let refused = keyed.post(&path, &batch(40)).await;
    let text = "Limit exceeded: too many requests per second";
    assert_eq!(refused.error(), (429, -32005, text, &Value::Null));
    let wait = refused.header("retry-after").unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    let data = json!({"limit": 40, "window": "second", "retryAfter": wait});
    assert_eq!((&refused.body["error"]["data"], refused.header("x-ratelimit-limit")), (&data, Some(40)));
    assert_eq!(keyed.post(&path, &batch(10)).await.status, 200);
    // The message fits after the time that is told.
    let mut refused = keyed.post(&path, &number()).await;
    while refused.status == 200 {
        refused = keyed.post(&path, &number()).await;
    }
    assert_eq!(refused.error(), (429, -32005, text, &json!(7)));
    assert_eq!((refused.header("retry-after"), refused.header("x-ratelimit-remaining")), (Some(1), Some(0)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    // A change of the limit starts with its whole burst. A method that weighs more than the burst is not shut out.
    keyed.registry.limit(&id, &KeyChange { burst: Some(2), ..KeyChange::default() }).unwrap();
    let heavy = call("trace_filter", json!([{}]));
    assert_eq!(keyed.post(&path, &heavy).await.status, 200);
    assert_eq!(keyed.post(&path, &heavy).await.status, 429);
}

#[tokio::test]
async fn the_requests_of_a_day_are_limited_and_counted_over_a_restart() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange { per_day: Some(3), ..KeyChange::default() });
    let path = format!("/{key}");
    let seen = keyed.post(&path, &Value::from(vec![number(); 2])).await;
    assert_eq!((seen.status, seen.header("x-ratelimit-remaining")), (200, Some(1)));
    let Keyed { mut server, registry, folder } = keyed;
    server.stop.take().unwrap().send(()).unwrap();
    server.task.await.unwrap();
    registry.flush().unwrap();
    drop(registry);
    let registry = Arc::new(Registry::open(&folder.path().join("keys.redb")).unwrap());
    let server = start_service(ServerConfig { admission: entry(&registry), ..config() }, dev()).await;
    let keyed = Keyed { server, registry, folder };
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    let refused = keyed.post(&path, &number()).await;
    assert_eq!(refused.error(), (429, -32005, "Daily quota exceeded", &json!(7)));
    let wait = refused.header("retry-after").unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(refused.body["error"]["data"]["window"], "day");
    assert_eq!(
        (refused.header("x-ratelimit-limit"), refused.header("x-ratelimit-remaining")),
        (Some(3), Some(0))
    );
    let usage = keyed.registry.list().into_iter().find(|(record, _)| record.id == id).unwrap().1;
    assert_eq!((usage.requests, usage.refused, usage.classes["eth"]), (3, 1, 3));
}

#[tokio::test]
async fn concurrent_requests_pass_exactly_as_often_as_allowed() {
    let keyed = Arc::new(keyed().await);
    let (key, id) = keyed.key(KeyChange { per_day: Some(50), ..KeyChange::default() });
    let ask = |_| {
        let (keyed, path) = (keyed.clone(), format!("/{key}"));
        async move { keyed.post(&path, &number()).await.status }
    };
    let statuses = futures::future::join_all((0..120).map(ask)).await;
    let passed = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!((passed, statuses.iter().filter(|status| **status == 429).count()), (50, 70));
    let usage = keyed.registry.list().into_iter().find(|(record, _)| record.id == id).unwrap().1;
    assert_eq!((usage.requests, usage.refused), (50, 70));
}

#[tokio::test]
async fn each_message_of_a_websocket_counts() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange { per_day: Some(2), ..KeyChange::default() });
    let mut socket = keyed.socket(&format!("/{key}")).await;
    for _ in 0..2 {
        assert_eq!(socket.ask(&number()).await["result"], "0x0");
    }
    let refused = socket.ask(&number()).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32005)));
    assert_eq!(refused["error"]["data"]["window"], "day");
    // A client that never stops is closed.
    for _ in 0..1_100 {
        if socket.0.send(Message::text(number().to_string())).await.is_err() {
            break;
        }
    }
    let code = loop {
        match socket.next().await {
            Message::Close(Some(frame)) => break u16::from(frame.code),
            Message::Text(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, 1008);
}

#[tokio::test]
async fn a_revoked_key_closes_its_open_websockets_and_no_others() {
    let keyed = keyed().await;
    let ((key, id), (other, _)) = (keyed.key(KeyChange::default()), keyed.key(KeyChange::default()));
    let mut socket = keyed.socket(&format!("/{key}")).await;
    let mut stays = keyed.socket(&format!("/{other}")).await;
    let subscription = socket.ask(&call("eth_subscribe", json!(["newHeads"]))).await;
    assert!(subscription["result"].is_string(), "{subscription}");
    keyed.registry.limit(&id, &KeyChange { name: Some("shop".into()), ..KeyChange::default() }).unwrap();
    stays.ask(&call("evm_mine", json!([]))).await;
    assert_eq!(socket.json().await["method"], "eth_subscription", "a change of its name closes nothing");
    keyed.registry.revoke(&id).unwrap();
    let (error, code) = socket.ended().await;
    assert_eq!((&error["error"]["code"], &error["id"], code), (&json!(-32016), &Value::Null, 1008));
    assert_eq!(stays.ask(&number()).await["result"], "0x1");
}

#[tokio::test]
async fn narrower_rights_reach_open_subscriptions_and_filters() {
    let methods = "eth_blockNumber,eth_newFilter,eth_getFilterChanges,eth_getFilterLogs,eth_uninstallFilter";
    for narrower in [
        KeyChange { contracts: Some(SHOP.into()), ..KeyChange::default() },
        KeyChange { methods: Some(methods.into()), ..KeyChange::default() },
    ] {
        let keyed = keyed().await;
        let (key, id) = keyed.key(KeyChange::default());
        let path = format!("/{key}");
        let mut socket = keyed.socket(&path).await;
        assert!(socket.ask(&call("eth_subscribe", json!(["logs", {}]))).await["result"].is_string());
        let all = call("eth_newFilter", json!([{"fromBlock": "earliest"}]));
        let filter = keyed.post(&path, &all).await.body["result"].take();
        let poll = |method: &str| call(method, json!([filter]));
        assert_eq!(keyed.post(&path, &poll("eth_getFilterLogs")).await.body["result"], json!([]));
        keyed.registry.limit(&id, &narrower).unwrap();
        let (error, code) = socket.ended().await;
        let text = "Forbidden: the rights of the key have changed, connect again";
        assert_eq!((error["error"]["message"].as_str().unwrap(), code), (text, 1008));
        for method in ["eth_getFilterChanges", "eth_getFilterLogs"] {
            let polled = keyed.post(&path, &poll(method)).await;
            assert_eq!(polled.error(), (200, -32000, "filter not found", &json!(7)), "{method}");
        }
        assert_eq!(keyed.post(&path, &poll("eth_uninstallFilter")).await.body["result"], false);
        let own = call("eth_newFilter", json!([{"address": SHOP}]));
        let filter = keyed.post(&path, &own).await.body["result"].take();
        let polled = keyed.post(&path, &call("eth_getFilterChanges", json!([filter]))).await;
        assert_eq!(polled.body["result"], json!([]), "a filter within the rights");
    }
}

#[tokio::test]
async fn a_key_has_a_limited_number_of_websockets() {
    let keyed = keyed_with(|config| config.limits.websockets_per_key = 2).await;
    let (key, other) = (keyed.key(KeyChange::default()).0, keyed.key(KeyChange::default()).0);
    let (path, other) = (format!("/{key}"), format!("/{other}"));
    let (one, _two) = (keyed.socket(&path).await, keyed.socket(&path).await);
    assert_eq!(keyed.upgrade_status(&path, None).await, 429);
    assert_eq!(keyed.upgrade_status(&other, None).await, 101);
    drop(one);
    for _ in 0..50 {
        if keyed.upgrade_status(&path, None).await == 101 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the place of a closed WebSocket is not free");
}

#[tokio::test]
async fn a_key_that_ends_closes_its_open_websockets() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange::default());
    let mut socket = keyed.socket(&format!("/{key}")).await;
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    keyed.registry.limit(&id, &KeyChange { expires: Some(now + 2), ..KeyChange::default() }).unwrap();
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
    let (error, code) = socket.ended().await;
    assert_eq!(
        (error["error"]["message"].as_str().unwrap(), code),
        ("Unauthorized: the API key has expired", 1008)
    );
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

#[tokio::test]
async fn a_base_path_and_the_hosted_profile_hold_with_and_without_keys() {
    let hosted = |config: &mut ServerConfig| {
        config.admission.base_path = "/v1".into();
        config.admission.profile = Profile::Hosted;
    };
    let keyed = keyed_with(hosted).await;
    let (key, _) = keyed.key(KeyChange::default());
    let path = format!("/v1/{key}");
    assert_eq!(keyed.post(&path, &call("eth_accounts", json!([]))).await.body["result"], json!([]));
    let mut socket = keyed.socket(&path).await;
    for answer in [
        keyed.post(&path, &call("evm_mine", json!([]))).await.body,
        socket.ask(&call("evm_mine", json!([]))).await,
    ] {
        let text = "the method evm_mine does not exist/is not available";
        assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32601), &json!(text)));
    }
    assert!(socket.ask(&call("eth_subscribe", json!(["newHeads"]))).await["result"].is_string());
    assert_eq!(keyed.post(&format!("/{key}"), &number()).await.status, 404);
    assert_eq!(keyed.post("/v1", &number()).await.status, 401);
    for path in ["/health", "/v1/health"] {
        assert_eq!(client().get(keyed.server.url(path)).send().await.unwrap().status(), 200, "{path}");
    }
    let open = keyed_with(|config| {
        hosted(config);
        config.admission.keys = None;
    });
    let open = open.await;
    for (path, status) in [("/v1", 200), ("/v1/", 200), ("/v1/any", 200), ("/", 404), ("/v12", 404)] {
        assert_eq!(open.post(path, &number()).await.status, status, "{path}");
    }
    assert_eq!(open.upgrade_status("/v1/websocket", None).await, 101);
    assert_eq!(open.upgrade_status("/v1/other", None).await, 404);
}

#[tokio::test]
async fn anonymous_clients_of_this_machine_are_served_if_the_operator_says_so() {
    let anonymous = |config: &mut ServerConfig| {
        if let Some(access) = &mut config.admission.keys {
            access.anonymous = true;
        }
    };
    let keyed = keyed_with(anonymous).await;
    let (key, id) = keyed.key(KeyChange::default());
    assert_eq!(keyed.post("/", &number()).await.status, 200);
    assert_eq!(keyed.post(&format!("/{key}"), &number()).await.status, 200);
    assert_eq!(keyed.post(&format!("/{id}"), &number()).await.status, 401, "a wrong key is not no key");
    assert_eq!(keyed.upgrade_status("/", None).await, 101);
}

/// Wrong keys take no memory and no database, and slow nobody down much.
#[tokio::test]
async fn a_flood_of_wrong_keys_leaves_the_service_usable() {
    let keyed = Arc::new(keyed().await);
    let (key, id) = keyed.key(KeyChange { per_day: Some(1_000), ..KeyChange::default() });
    let flood = |number: usize| {
        let keyed = keyed.clone();
        async move {
            for round in 0..50 {
                let secret = format!("{number}{round:03}{}", "A".repeat(39));
                let path = format!("/aaaaaaaa.{secret}");
                assert_eq!(keyed.post(&path, &call("eth_call", json!([]))).await.status, 401);
            }
        }
    };
    let floods = futures::future::join_all((0..8).map(flood));
    let used = async {
        for _ in 0..20 {
            assert_eq!(keyed.post(&format!("/{key}"), &number()).await.status, 200);
        }
    };
    tokio::join!(floods, used);
    let listed = keyed.registry.list();
    assert_eq!((listed.len(), listed[0].1.requests, &listed[0].0.id), (1, 20, &id));
}

#[tokio::test]
async fn messages_that_are_not_json_rpc_count_and_get_the_usual_error() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange { per_day: Some(2), ..KeyChange::default() });
    let url = keyed.server.url(&format!("/{key}"));
    let post = |body: &'static str| {
        let request = client().post(&url).header(CONTENT_TYPE, "application/json").body(body);
        async move { SeenResponse::new(request.send().await.unwrap()).await }
    };
    assert_eq!(post("{").await.error(), (400, -32700, "JSON parse error", &Value::Null));
    assert_eq!(post("5").await.status, 400);
    assert_eq!(post("{").await.status, 429);
}
