//! HTTP over real sockets: every part of the transport that the server decides.

use crate::common;

use std::time::Duration;

use common::{RunningServer, client, config, start};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST, ORIGIN};
use reqwest::{Method, Response, StatusCode};
use rootlight_server::{AdmissionRules, Origins, ServerConfig};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

async fn post(server: &RunningServer, path: &str, kind: &str, body: impl Into<reqwest::Body>) -> Response {
    client().post(server.url(path)).header(CONTENT_TYPE, kind).body(body).send().await.unwrap()
}

async fn error(response: Response) -> (i64, String) {
    let value: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(value["jsonrpc"], "2.0");
    assert_eq!(value["id"], Value::Null);
    (value["error"]["code"].as_i64().unwrap(), value["error"]["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn post_answers_on_any_path() {
    let server = start(config()).await;
    for path in ["/", "", "/some/KEY", "/websocket", "/health"] {
        let response = post(&server, path, "application/json", BODY).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(
            response.text().await.unwrap(),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, BODY.len())
        );
    }
}

#[tokio::test]
async fn only_json_content_types_are_accepted() {
    let server = start(config()).await;
    for kind in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/json-rpc",
        " application/json ; x",
    ] {
        assert_eq!(post(&server, "/", kind, BODY).await.status(), StatusCode::OK, "{kind}");
    }
    for kind in
        ["text/plain", "application/jsonx", "", "application/x-www-form-urlencoded", "x application/json"]
    {
        let response = post(&server, "/", kind, BODY).await;
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        assert_eq!(error(response).await.0, -32600);
    }
    let missing = client().post(server.url("/")).body(BODY).send().await.unwrap();
    assert_eq!(missing.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn only_unusable_payloads_are_400() {
    let server = start(config()).await;
    let response = post(&server, "/", "application/json", "{").await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(error(response).await, (-32700, "JSON parse error".into()));
    let response = post(&server, "/", "application/json", "").await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn notifications_get_204() {
    let server = start(config()).await;
    let response = post(&server, "/", "application/json", r#"{"method":"notify"}"#).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(response.text().await.unwrap(), "");
}

#[tokio::test]
async fn bodies_above_the_size_limit_are_413() {
    let server = start(config()).await;
    let limit = 5 * 1024 * 1024;
    let exact = common::call_of(limit);
    assert_eq!(post(&server, "/", "application/json", exact.clone()).await.status(), StatusCode::OK);
    let response = post(&server, "/", "application/json", exact + " ").await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(error(response).await, (-32005, "Request size limit of 5242880 bytes exceeded".into()));
}

#[tokio::test]
async fn the_size_limit_holds_for_chunked_bodies() {
    let mut config = config();
    config.limits.message_bytes = 1000;
    let server = start(config).await;
    let answer = raw(&server, &chunked(1000)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let answer = raw(&server, &chunked(1001)).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

fn chunked(bytes: usize) -> String {
    let body = common::call_of(bytes);
    let (one, two) = body.split_at(5);
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
         {:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    )
}

async fn raw(server: &RunningServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_client_that_has_ended_its_side_gets_its_answer() {
    let server = start(config()).await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"slow"}"#;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"result\":"), "{answer}");
}

#[tokio::test]
async fn other_http_methods_are_405() {
    let server = start(config()).await;
    for verb in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH, Method::HEAD] {
        let response = client().request(verb.clone(), server.url("/")).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{verb}");
        assert_eq!(response.headers()["allow"], "GET, POST, OPTIONS");
        if verb != Method::HEAD {
            assert_eq!(response.headers()["content-type"], "application/json");
            assert_eq!(error(response).await, (-32600, "send JSON-RPC by POST".to_owned()), "{verb}");
        }
    }
}

#[tokio::test]
async fn a_path_without_a_service_is_told_the_path_that_has_one() {
    let rules = AdmissionRules { base_path: "/v1".into(), ..AdmissionRules::default() };
    let server = start(ServerConfig { admission: rules, ..config() }).await;
    let response = client().post(server.url("/v2")).header(CONTENT_TYPE, "application/json");
    let response = response.body(r#"{"id":7,"method":"eth_chainId"}"#).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(body["error"]["message"], "no service at this path: send JSON-RPC by POST to /v1");
}

#[tokio::test]
async fn health_answers_a_get() {
    let server = start(config()).await;
    let response = client().get(server.url("/health")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.text().await.unwrap(), r#"{"ready":true}"#);
}

#[tokio::test]
async fn preflight_requests_are_answered_and_all_origins_may_read() {
    let server = start(config()).await;
    let response = client()
        .request(Method::OPTIONS, server.url("/"))
        .header(ORIGIN, "https://dapp.example")
        .header("access-control-request-method", "POST")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let headers = response.headers();
    assert_eq!(headers["access-control-allow-origin"], "*");
    assert_eq!(headers["access-control-allow-headers"], "content-type, accept");
    assert_eq!(headers["access-control-max-age"], "86400");
    assert!(headers["access-control-allow-methods"].to_str().unwrap().contains("POST"));
    let bare = client().request(Method::OPTIONS, server.url("/")).send().await.unwrap();
    assert_eq!(bare.status(), StatusCode::NO_CONTENT);
    let request = client()
        .post(server.url("/"))
        .header(CONTENT_TYPE, "application/json")
        .header(ORIGIN, "null")
        .body(BODY);
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    assert!(response.headers()["access-control-expose-headers"].to_str().unwrap().contains("retry-after"));
}

#[tokio::test]
async fn only_listed_origins_may_call() {
    let mut config = config();
    config.origins = Origins::parse("https://dapp.example");
    let server = start(config).await;
    let ask = |origin: &'static str| {
        client()
            .post(server.url("/"))
            .header(CONTENT_TYPE, "application/json")
            .header(ORIGIN, origin)
            .body(BODY)
            .send()
    };
    let response = ask("https://dapp.example").await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["access-control-allow-origin"], "https://dapp.example");
    assert!(response.headers().get_all("vary").iter().any(|value| value == "origin"));
    let response = ask("https://evil.example").await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!response.headers().contains_key("access-control-allow-origin"));
    assert_eq!(
        post(&server, "/", "application/json", BODY).await.status(),
        StatusCode::OK,
        "no origin: not a web page"
    );
}

#[tokio::test]
async fn a_loopback_server_refuses_foreign_host_names() {
    let server = start(config()).await;
    let ask = |host: &'static str| {
        client()
            .post(server.url("/"))
            .header(CONTENT_TYPE, "application/json")
            .header(HOST, host)
            .body(BODY)
            .send()
    };
    for host in ["localhost:4444", "127.0.0.1", "[::1]:1"] {
        assert_eq!(ask(host).await.unwrap().status(), StatusCode::OK, "{host}");
    }
    let response = ask("evil.com").await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(error(response).await.1.contains("host not allowed"));
    let mut named = config();
    named.hosts = vec!["node.example".into()];
    let server = start(named).await;
    let request = client().post(server.url("/")).header(CONTENT_TYPE, "application/json");
    let response = request.header(HOST, "node.example:4444").body(BODY).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn long_answers_are_compressed_on_request() {
    let server = start(config()).await;
    let _ = client();
    let plain = reqwest::Client::builder().no_proxy().no_gzip().build().unwrap();
    let request = plain.post(server.url("/")).header(CONTENT_TYPE, "application/json");
    let response =
        request.header(ACCEPT_ENCODING, "gzip").body(r#"{"id":1,"method":"large"}"#).send().await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert!(response.bytes().await.unwrap().len() < 100_000);
    let request = plain.post(server.url("/")).header(CONTENT_TYPE, "application/json");
    let response = request.header(ACCEPT_ENCODING, "gzip").body(BODY).send().await.unwrap();
    assert!(!response.headers().contains_key("content-encoding"), "a short answer would grow");
}

#[tokio::test]
async fn connections_are_kept_alive() {
    let server = start(config()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for _ in 0..3 {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{BODY}",
            BODY.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200 OK"));
    }
}

#[tokio::test]
async fn slow_heads_and_bodies_are_cut_off() {
    let mut config = config();
    config.limits.head_timeout = Duration::from_millis(200);
    config.limits.body_timeout = Duration::from_millis(200);
    let server = start(config).await;
    let answer = raw(&server, "POST / HTTP/1.1\r\nHost: local").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    let answer = raw(
        &server,
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn connections_above_the_cap_wait() {
    let mut config = config();
    config.limits.connections = 1;
    let server = start(config).await;
    let first = TcpStream::connect(server.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let waiting = tokio::spawn(
        client().post(server.url("/")).header(CONTENT_TYPE, "application/json").body(BODY).send(),
    );
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    drop(first);
    assert_eq!(waiting.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn open_requests_finish_after_a_stop_signal() {
    let mut server = start(config()).await;
    let url = server.url("/");
    let open = tokio::spawn(
        client()
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .body(r#"{"id":1,"method":"slow"}"#)
            .send(),
    );
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.stop.take().unwrap().send(()).unwrap();
    assert_eq!(open.await.unwrap().unwrap().status(), StatusCode::OK);
    tokio::time::timeout(Duration::from_secs(2), &mut server.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn an_address_in_use_is_an_error() {
    let server = start(config()).await;
    let mut again = config();
    again.http_port = server.address.port();
    let error = rootlight_server::Server::bind(again, std::sync::Arc::new(common::Echo)).await.err().unwrap();
    let expected = format!("cannot listen on 127.0.0.1:{}: it is in use: ", server.address.port());
    assert!(error.to_string().starts_with(&expected) && error.to_string().contains("--http-port"), "{error}");
    // An address for documentation, which no machine has.
    let mut foreign = config();
    foreign.host = "192.0.2.1".into();
    let error =
        rootlight_server::Server::bind(foreign, std::sync::Arc::new(common::Echo)).await.err().unwrap();
    assert!(error.to_string().contains("no address of this machine"), "{error}");
}
