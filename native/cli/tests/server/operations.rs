//! Operations of a server: probes, metrics, request ids, proxies, compression, Unix sockets and the orderly end.

use crate::common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{client, config, start};
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ORIGIN};
use rootlight::light::bitcoin::{BitcoinReport, BitcoinVerdict, Counts, DatedReport, TagCounts};
use rootlight::rpc::{Message as Request, Reply};
use rootlight_limits::caller_id::CallerId;
use rootlight_server::service::{
    BitcoinHealth, Caller, Health, ReservedReply, Service, ServiceStatus, UpstreamHealth,
};
use rootlight_server::{Listen, Operations, Proxies, Server, ServerConfig};
use serde_json::value::to_raw_value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;

/// A service that answers with the address of its client, late if asked to, and that may be not ready.
#[derive(Default)]
struct Mirror {
    unready: AtomicBool,
    /// A message that is held has arrived.
    arrived: Notify,
    /// Lets such a message be answered.
    released: Notify,
}

impl Service for Mirror {
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Request,
    ) -> BoxFuture<'a, ReservedReply> {
        Box::pin(async move {
            let calls = |method| message.calls().any(|call| call.method == method);
            if calls("held") {
                self.arrived.notify_one();
                self.released.notified().await;
            }
            let filler = if calls("large") { "0".repeat(200_000) } else { String::new() };
            let result = to_raw_value(&format!("{}{filler}", CallerId::of(caller).address)).unwrap();
            ReservedReply::of(Reply::to(message, vec![Ok(result)]))
        })
    }

    fn health(&self) -> Health {
        let ready = !self.unready.load(Ordering::Relaxed);
        Health { ready, block_number: Some(7), ..Health::default() }
    }

    fn chain_status(&self) -> ServiceStatus {
        let upstream = UpstreamHealth {
            name: "https://node.example".into(),
            healthy: true,
            announced: Some(9),
            latency: Duration::from_millis(20),
            demerits: 0,
            lies: 1,
        };
        ServiceStatus {
            head: Some((7, 1_700_000_000)),
            target: Some(9),
            synced: false,
            upstreams: vec![upstream],
            bitcoin: Some(bitcoin()),
        }
    }
}

/// A Bitcoin chain that supports the chain.
fn bitcoin() -> BitcoinHealth {
    let report = BitcoinReport {
        verdict: BitcoinVerdict::Held,
        dated: DatedReport { tip: 840_000, lag: Some(0), judged: 72, lowest: None },
        counts: Counts { recent: 18, all: 70 },
        tags: TagCounts { own: 20, kin: 16, none: 36, ..TagCounts::default() },
        hidden: None,
        tip_age: 0,
    };
    BitcoinHealth { tip: Some((840_000, 1_700_000_000)), sources: 1, report: Some(report) }
}

/// A running server with a listener for metrics.
pub(crate) struct OperatedServer {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) ready_line: String,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

impl OperatedServer {
    async fn get(&self, path: &str) -> (u16, String) {
        let response = client().get(format!("http://{}{path}", self.address)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn observe(&self, path: &str) -> (u16, String) {
        let response = client().get(format!("http://{}{path}", self.metrics.unwrap())).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn post(&self, body: &str) -> String {
        let request =
            client().post(format!("http://{}/", self.address)).header(CONTENT_TYPE, "application/json");
        request.body(body.to_owned()).send().await.unwrap().text().await.unwrap()
    }
}

pub(crate) async fn serve(operations: Operations, service: Arc<dyn Service>) -> OperatedServer {
    let operations = Operations { metrics: Some("127.0.0.1:0".parse().unwrap()), ..operations };
    let server = Server::bind(ServerConfig { operations, ..config() }, service).await.unwrap();
    let (address, metrics, ready_line) = (server.address(), server.metrics_address(), server.ready_line());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    OperatedServer { address, metrics, ready_line, stop: Some(stop), task }
}

async fn mirror(operations: Operations) -> OperatedServer {
    serve(operations, Arc::new(Mirror::default())).await
}

#[tokio::test]
async fn probes_say_whether_the_process_runs_and_whether_it_can_answer() {
    let service = Arc::new(Mirror::default());
    let server = serve(Operations::default(), service.clone()).await;
    for (unready, status) in [(false, 200), (true, 503)] {
        service.unready.store(unready, Ordering::Relaxed);
        assert_eq!(server.get("/livez").await, (200, r#"{"live":true}"#.to_owned()));
        let health = server.get("/health").await;
        assert_eq!(health.0, status);
        assert_eq!(server.get("/readyz").await, health);
        assert_eq!(server.observe("/readyz").await, health);
        assert_eq!(server.observe("/livez").await.0, 200);
    }
    let (status, text) = server.get("/metrics").await;
    assert_eq!(status, 404, "metrics have a listener of their own");
    assert!(text.contains("--metrics-listen"), "{text}");
}

#[tokio::test]
async fn probes_are_also_below_the_base_path() {
    let mut config = config();
    config.admission.base_path = "/v1".into();
    let server = start(config).await;
    for path in ["/livez", "/readyz", "/health", "/v1/livez", "/v1/readyz", "/v1/health"] {
        let response = client().get(server.url(path)).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    }
    for path in ["/livez/", "/v1/readyz/x", "/v2/livez"] {
        assert_eq!(client().get(server.url(path)).send().await.unwrap().status(), 405, "{path}");
    }
}

#[tokio::test]
async fn metrics_count_messages_by_method_and_outcome() {
    let server = mirror(Operations::default()).await;
    let calls = ["eth_hashrate", "eth_hashrate", "no_such_method\\u0000", "also_none"];
    for method in calls {
        server.post(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)).await;
    }
    server.post("[{}]").await;
    let mut socket = connect_async(format!("ws://{}/", server.address)).await.unwrap().0;
    socket.send(Message::text(r#"{"id":1,"method":"net_peerCount"}"#)).await.unwrap();
    socket.next().await.unwrap().unwrap();
    let _idle = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let refused = client().post(format!("http://{}/", server.address)).body("x").send().await.unwrap();
    assert_eq!(refused.status(), 415);
    let (status, text) = server.observe("/metrics").await;
    assert_eq!(status, 200);
    for line in [
        r#"rootlight_rpc_duration_seconds_count{method="eth_hashrate",outcome="ok"} 2"#,
        r#"rootlight_rpc_duration_seconds_count{method="net_peerCount",outcome="ok"} 1"#,
        r#"rootlight_rpc_duration_seconds_count{method="other",outcome="ok"}"#,
        r#"rootlight_rpc_duration_seconds_count{method="batch",outcome="ok"}"#,
        r#"rootlight_rejected_requests_total{reason="content_type"}"#,
        r#"rootlight_http_responses_total{status="101"}"#,
        "rootlight_head_block 7",
        r#"rootlight_upstream_up{upstream="0",name="https://node.example"} 1"#,
        r#"rootlight_upstream_lies_total{upstream="0"} 1"#,
        r#"rootlight_bitcoin_verdict{verdict="held"} 1"#,
        r#"rootlight_bitcoin_tags{class="kin"} 16"#,
        "rootlight_bitcoin_commitments 18",
        "rootlight_bitcoin_hidden_branch_tags 0",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    for foreign in ["no_such_method", "also_none"] {
        assert!(!text.contains(foreign), "names of clients are no labels");
    }
    let value = |name: &str| -> f64 {
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
        line.trim().parse().unwrap()
    };
    assert!(value("rootlight_websockets ") >= 1.0 && value("rootlight_connections ") >= 1.0);
    assert!(value("rootlight_received_bytes_total ") > 500.0 && value("rootlight_sent_bytes_total ") > 500.0);
    assert!(value("process_resident_memory_bytes ") > 1e6);
    assert!(value("rootlight_head_age_seconds ") > 1e6);
    assert!(value("rootlight_bitcoin_tip_age_seconds ") > 1e6);
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_dashboard_uses_only_metrics_that_exist() {
    use rootlight_server::keys::{KeyChange, KeyDatabase};
    use rootlight_server::{AdmissionRules, KeyAccess};
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
    let (key, _) = database.create(&KeyChange::default()).unwrap();
    let admission =
        AdmissionRules { keys: Some(KeyAccess::embedded(&database)), ..AdmissionRules::default() };
    let operations = Operations { metrics: Some("127.0.0.1:0".parse().unwrap()), ..Operations::default() };
    let server =
        Server::bind(ServerConfig { operations, admission, ..config() }, Arc::new(Mirror::default()))
            .await
            .unwrap();
    let (address, metrics) = (server.address(), server.metrics_address().unwrap());
    let _running = tokio::spawn(server.run(std::future::pending()));
    let request =
        client().post(format!("http://{address}/{}", key.reveal())).header(CONTENT_TYPE, "application/json");
    assert_eq!(request.body(BODY).send().await.unwrap().status(), 200);
    let text = client().get(format!("http://{metrics}/metrics")).send().await.unwrap().text().await.unwrap();
    assert!(text.contains(&format!("rootlight_key_requests_total{{key=\"{}\"}} 1\n", key.id())), "{text}");
    assert!(!text.contains(&key.reveal()[9..]), "no secret is in the metrics");
    // The only metrics that a server without upstreams lacks: their counters begin with the first request.
    common::check_dashboard("rootlight", &text, &["rootlight_upstream_requests_total"]);
}

#[tokio::test]
async fn web_pages_cannot_read_metrics() {
    let server = mirror(Operations::default()).await;
    let url = format!("http://{}/metrics", server.metrics.unwrap());
    for request in [
        client().get(&url).header(ORIGIN, "http://localhost"),
        client().get(&url).header("host", "evil.example"),
    ] {
        assert_eq!(request.send().await.unwrap().status(), 403);
    }
    assert_eq!(client().post(&url).send().await.unwrap().status(), 405);
    assert_eq!(server.observe("/").await.0, 404);
}

#[tokio::test]
async fn a_trusted_proxy_gives_the_address_of_the_client_and_the_request_id() {
    let trusting = Operations {
        proxies: Proxies { networks: vec!["127.0.0.1/32".parse().unwrap()], unix: false },
        ..Operations::default()
    };
    for (operations, address, kept) in
        [(trusting, "203.0.113.9", true), (Operations::default(), "127.0.0.1", false)]
    {
        let server = mirror(operations).await;
        let request =
            client().post(format!("http://{}/", server.address)).header(CONTENT_TYPE, "application/json");
        let request =
            request.header("x-forwarded-for", "6.6.6.6, 203.0.113.9").header("x-request-id", "proxy-1");
        let response = request.body(BODY).send().await.unwrap();
        assert_eq!(response.headers()["x-request-id"] == "proxy-1", kept);
        assert!(response.text().await.unwrap().contains(address));
        let url = format!("ws://{}/", server.address);
        let mut request =
            tokio_tungstenite::tungstenite::client::IntoClientRequest::into_client_request(url).unwrap();
        request.headers_mut().insert("x-forwarded-for", "203.0.113.9".parse().unwrap());
        let mut socket = connect_async(request).await.unwrap().0;
        socket.send(Message::text(BODY)).await.unwrap();
        assert!(socket.next().await.unwrap().unwrap().to_text().unwrap().contains(address));
    }
}

#[tokio::test]
async fn every_response_has_a_request_id_of_its_own() {
    let server = mirror(Operations::default()).await;
    let mut ids = std::collections::BTreeSet::new();
    for path in ["/", "/", "/health", "/livez"] {
        let response = client().get(format!("http://{}{path}", server.address)).send().await.unwrap();
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn answers_are_compressed_by_the_coding_that_the_client_prefers() {
    let server = mirror(Operations::default()).await;
    let plain = server.post(r#"{"id":1,"method":"large"}"#).await;
    for (accepted, coding) in [("gzip, deflate, br", Some("br")), ("gzip", Some("gzip")), ("br;q=0", None)] {
        // A client that leaves answers as they are.
        let client = reqwest::Client::builder().no_proxy().no_gzip().build().unwrap();
        let request =
            client.post(format!("http://{}/", server.address)).header(CONTENT_TYPE, "application/json");
        let response = request
            .header(ACCEPT_ENCODING, accepted)
            .body(r#"{"id":1,"method":"large"}"#)
            .send()
            .await
            .unwrap();
        let given = response.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(given.as_deref(), coding, "{accepted}");
        assert_eq!(response.headers()["vary"], "accept-encoding");
        let body = response.bytes().await.unwrap();
        if given.as_deref() == Some("br") {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut brotli::Decompressor::new(&body[..], 4096), &mut text)
                .unwrap();
            assert!(text == plain && body.len() < 1_000);
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_serves_http_beside_tcp() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rpc.sock");
    let listen = vec![Listen::Tcp("127.0.0.1".into(), 0), Listen::Unix(path.clone())];
    let mut server = mirror(Operations { listen, ..Operations::default() }).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.post(BODY).await.contains("127.0.0.1"));
    let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("127.0.0.1"), "{answer}");
    server.stop.take().unwrap().send(()).unwrap();
    server.task.await.unwrap();
    assert!(!path.exists(), "the socket is removed");
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_may_have_a_unix_socket_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rpc.sock");
    let server =
        mirror(Operations { listen: vec![Listen::Unix(path.clone())], ..Operations::default() }).await;
    assert_eq!(server.ready_line, format!("listening unix:{}", path.display()));
    assert_eq!(server.address.port(), 0);
    assert!(tokio::net::UnixStream::connect(&path).await.is_ok());
}

#[tokio::test]
async fn a_stop_lets_running_requests_of_websockets_finish() {
    let service = Arc::new(Mirror::default());
    let mut server = serve(Operations::default(), service.clone()).await;
    let mut socket = connect_async(format!("ws://{}/", server.address)).await.unwrap().0;
    socket.send(Message::text(r#"{"id":1,"method":"held"}"#)).await.unwrap();
    service.arrived.notified().await;
    server.stop.take().unwrap().send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (status, reason) = server.observe("/readyz").await;
    assert!(status == 503 && reason.contains("stopping"), "{status} {reason}");
    assert_eq!(server.observe("/livez").await.0, 200);
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err(), "no new connections");
    service.released.notify_one();
    let answer = socket.next().await.unwrap().unwrap();
    assert!(answer.to_text().unwrap().contains("result"), "{answer:?}");
    match socket.next().await.unwrap().unwrap() {
        Message::Close(Some(frame)) => assert_eq!(u16::from(frame.code), 1001),
        other => panic!("{other:?}"),
    }
    drop(socket);
    tokio::time::timeout(Duration::from_secs(3), server.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_ends_requests_that_take_longer_than_the_time_for_them() {
    let mut config = config();
    config.limits.drain_timeout = Duration::from_millis(300);
    let service = Arc::new(Mirror::default());
    let mut server = common::start_service(config, service.clone()).await;
    let mut socket = connect_async(server.ws("/")).await.unwrap().0;
    socket.send(Message::text(r#"{"id":1,"method":"held"}"#)).await.unwrap();
    service.arrived.notified().await;
    server.stop.take().unwrap().send(()).unwrap();
    match socket.next().await.unwrap().unwrap() {
        Message::Close(Some(frame)) => assert_eq!(u16::from(frame.code), 1001),
        other => panic!("{other:?}"),
    }
    tokio::time::timeout(Duration::from_secs(2), &mut server.task).await.unwrap().unwrap();
}
