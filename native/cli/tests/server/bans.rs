//! Banned addresses: who may ban, and what banned clients get.

use crate::common;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use common::{RunningServer, client, config, dev_chain, start_service};
use futures::StreamExt;
use reqwest::header::{CONTENT_TYPE, ORIGIN};
use rootlight::dev::Mining;
use rootlight_node::ban_guard::protect;
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_server::keys::{KeyChange, KeyDatabase};
use rootlight_server::methods::Profile;
use rootlight_server::service::Service;
use rootlight_server::{AdmissionRules, KeyAccess, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

fn dev() -> Arc<LocalService> {
    dev_chain(Mining::Instant, LocalOptions::default())
}

/// An address of this machine other than loopback. No packet is sent. Prints a notice and returns `None` if there is
/// none.
fn own_address() -> Option<IpAddr> {
    let address = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect("198.51.100.1:9")?;
        Ok(socket.local_addr()?.ip())
    };
    let own = address().ok().filter(|address| !address.is_loopback() && !address.is_unspecified());
    if own.is_none() {
        println!("skipped: this machine has no address but loopback");
    }
    own
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

async fn start(change: impl FnOnce(&mut ServerConfig)) -> RunningServer {
    let mut config = ServerConfig { host: "0.0.0.0".into(), ..config() };
    change(&mut config);
    start_service(config, dev()).await
}

/// Sends a call to an address of the server, with further headers.
async fn post(to: SocketAddr, path: &str, headers: &[(&str, &str)], message: &Value) -> Value {
    let mut request = client().post(format!("http://{to}{path}")).header(CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let text = request.body(message.to_string()).send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

/// Sends a request on an open connection, and returns the whole response.
async fn exchange(stream: &mut TcpStream) -> String {
    let body = call("eth_chainId", json!([])).to_string();
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ";
    stream.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.contains("\r\n\r\n") || !text.ends_with('}') {
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut piece)).await;
        let read = read.expect("an answer in time").unwrap();
        assert!(read > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    text
}

#[tokio::test]
async fn banned_clients_are_refused_on_new_and_on_open_connections() {
    let Some(own) = own_address() else { return };
    let server = start(|_| {}).await;
    let (near, far) = (
        SocketAddr::from(([127, 0, 0, 1], server.address.port())),
        SocketAddr::new(own, server.address.port()),
    );
    let mut open = TcpStream::connect(far).await.unwrap();
    assert!(exchange(&mut open).await.starts_with("HTTP/1.1 200 "));
    let (mut socket, _) = connect_async(format!("ws://{far}/")).await.unwrap();

    let ban = call("sco_banAddress", json!([own.to_string()]));
    assert_eq!(post(near, "/", &[], &ban).await["result"], Value::Null);
    let refused = exchange(&mut open).await;
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains(r#""code":-32016"#), "{refused}");
    assert!(refused.contains("the client address is banned"), "{refused}");
    let closed = tokio::time::timeout(Duration::from_secs(10), socket.next()).await;
    match closed.expect("a close frame in time") {
        Some(Ok(Message::Close(Some(frame)))) => assert_eq!(u16::from(frame.code), 1008),
        other => panic!("{other:?}"),
    }
    let mut newcomer = TcpStream::connect(far).await.unwrap();
    let mut byte = [0];
    let read = tokio::time::timeout(Duration::from_secs(10), newcomer.read(&mut byte)).await;
    assert!(matches!(read.expect("closed in time"), Ok(0) | Err(_)), "a new connection is closed at once");

    assert_eq!(post(near, "/", &[], &call("eth_chainId", json!([]))).await["result"], "0x21");
    assert_eq!(
        post(near, "/", &[], &call("sco_bannedAddresses", json!([]))).await["result"],
        json!([own.to_string()])
    );
    post(near, "/", &[], &call("sco_unbanAddress", json!([own.to_string()]))).await;
    assert_eq!(post(far, "/", &[], &call("eth_chainId", json!([]))).await["result"], "0x21");
}

/// The error of a method that does not exist for the caller.
fn hidden(method: &str) -> Value {
    let text = format!("the method {method} does not exist/is not available");
    json!({"code": -32601, "message": text})
}

const GUARDED: [&str; 3] = ["sco_bannedAddresses", "sco_peerList", "sco_reputationSummary"];

#[tokio::test]
async fn without_keys_only_direct_requests_of_this_machine_may_see_bans() {
    let by_default = start(|config| config.admission.profile = Profile::Hosted).await;
    let server = start(|config| {
        config.admission.profile = Profile::Hosted;
        config.admission.local_operator = Some(true);
    })
    .await;
    let near = SocketAddr::from(([127, 0, 0, 1], server.address.port()));
    for method in GUARDED {
        let at_first = SocketAddr::from(([127, 0, 0, 1], by_default.address.port()));
        assert_eq!(post(at_first, "/", &[], &call(method, json!([]))).await["error"], hidden(method));
        let message = call(method, json!([]));
        assert!(post(near, "/", &[], &message).await.get("result").is_some(), "{method}");
        for headers in [[("x-forwarded-for", "192.0.2.1")], [(ORIGIN.as_str(), "https://evil.example")]] {
            assert_eq!(post(near, "/", &headers, &message).await["error"], hidden(method));
        }
        if let Some(own) = own_address() {
            let far = SocketAddr::new(own, server.address.port());
            assert_eq!(post(far, "/", &[], &message).await["error"], hidden(method));
        }
    }
    let loopback = post(near, "/", &[], &call("sco_banAddress", json!(["127.0.0.1"]))).await;
    assert_eq!(loopback["error"]["code"], -32602, "{loopback}");
}

#[tokio::test]
async fn with_keys_only_an_operator_key_may_see_bans() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
    let keys = Some(KeyAccess::embedded(&database));
    let server =
        start(|config| config.admission = AdmissionRules { keys, ..AdmissionRules::default() }).await;
    let near = SocketAddr::from(([127, 0, 0, 1], server.address.port()));
    let (plain, _) = database.create(&KeyChange::default()).unwrap();
    let (operator, record) =
        database.create(&KeyChange { operator: Some(true), ..KeyChange::default() }).unwrap();
    let (plain, operator) = (format!("/{}", plain.reveal()), format!("/{}", operator.reveal()));
    for method in GUARDED {
        let message = call(method, json!([]));
        assert_eq!(post(near, &plain, &[], &message).await["error"], hidden(method));
        assert!(post(near, &operator, &[], &message).await.get("result").is_some(), "{method}");
    }
    // The right ends with the next request, and open WebSockets are closed.
    let (mut socket, _) = connect_async(format!("ws://{near}{operator}")).await.unwrap();
    database.limit(&record.id, &KeyChange { operator: Some(false), ..KeyChange::default() }).unwrap();
    let last_message =
        tokio::time::timeout(Duration::from_secs(10), socket.next()).await.expect("told in time");
    let last_message = last_message.unwrap().unwrap().into_text().unwrap();
    assert!(last_message.contains("the rights of the key have changed"), "{last_message}");
    let answer = post(near, &operator, &[], &call("sco_peerList", json!([]))).await;
    assert_eq!(answer["error"], hidden("sco_peerList"));
}

/// The last upstream of a light client cannot be banned through its server.
#[tokio::test]
async fn the_only_upstream_of_a_service_cannot_be_banned() {
    let Some(own) = own_address() else { return };
    let service = dev();
    let upstream = rootlight_upstream::open(&format!("http://{own}:1")).unwrap();
    protect(&service.bans().unwrap(), &[upstream]);
    let server = start_service(config(), service).await;
    for range in [format!("{own}"), format!("{own}/16")] {
        let answer = post(server.address, "/", &[], &call("sco_banAddress", json!([range]))).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("last healthy upstream"), "{answer}");
    }
}
