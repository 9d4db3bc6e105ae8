//! TLS of the server: handshakes, limits of handshakes, and certificates that change. The certificates in `tls/` were made
//! for these tests; each vouches for itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{self, Echo, config};
use futures::{SinkExt, StreamExt};
use reqwest::header::CONTENT_TYPE;
use rootlight_server::{Control, Operations, Server, ServerConfig, ServerError, TlsFiles};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

fn pem(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/tls")).join(name)
}

/// A server whose files can be replaced.
struct Secured {
    folder: TempDir,
    port: u16,
    control: Control,
}

impl Secured {
    fn use_files(&self, certificate: &str, key: &str) {
        std::fs::copy(pem(certificate), self.folder.path().join("cert.pem")).unwrap();
        copy_key(key, &self.folder.path().join("key.pem"));
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/", self.port)
    }
}

/// Copies a key with the mode that a key must have, whatever that of the checkout is.
fn copy_key(name: &str, to: &Path) {
    std::fs::copy(pem(name), to).unwrap();
    set_mode(to, 0o600);
}

fn set_mode(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn files(folder: &TempDir) -> TlsFiles {
    TlsFiles { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem") }
}

fn configured(folder: &TempDir) -> ServerConfig {
    let operations = Operations { tls: Some(files(folder)), ..Operations::default() };
    ServerConfig { operations, ..config() }
}

async fn secured_with(change: impl FnOnce(&mut ServerConfig)) -> Secured {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(pem("first.pem"), folder.path().join("cert.pem")).unwrap();
    copy_key("first-key.pem", &folder.path().join("key.pem"));
    let mut config = configured(&folder);
    change(&mut config);
    let server = Server::bind(config, Arc::new(Echo)).await.unwrap();
    let (port, control) = (server.address().port(), server.control());
    assert_eq!(server.ready_line(), format!("listening https://127.0.0.1:{port} wss://127.0.0.1:{port}"));
    tokio::spawn(server.run(std::future::pending()));
    Secured { folder, port, control }
}

async fn secured() -> Secured {
    secured_with(|_| {}).await
}

/// A client that trusts one of the certificates only.
fn trusting(name: &str) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = reqwest::Certificate::from_pem(&std::fs::read(pem(name)).unwrap()).unwrap();
    reqwest::Client::builder().no_proxy().tls_certs_only([certificate]).build().unwrap()
}

async fn answered(client: &reqwest::Client, url: &str) -> bool {
    let sent = client.post(url).header(CONTENT_TYPE, "application/json").body(BODY).send().await;
    sent.is_ok_and(|response| response.status() == 200)
}

#[tokio::test]
async fn http_and_websocket_are_served_over_tls() {
    let server = secured().await;
    assert!(answered(&trusting("first.pem"), &server.url()).await);
    assert!(!answered(&trusting("second.pem"), &server.url()).await, "the client checks the certificate");
    assert!(
        !answered(&trusting("first.pem"), &server.url().replace("https", "http")).await,
        "there is no plain HTTP"
    );

    let mut roots = rustls::RootCertStore::empty();
    let certificate = std::fs::read(pem("first.pem")).unwrap();
    let certificate =
        <rustls::pki_types::CertificateDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_slice(
            &certificate,
        );
    roots.add(certificate.unwrap()).unwrap();
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connector = tokio_tungstenite::Connector::Rustls(Arc::new(config));
    let url = format!("wss://localhost:{}/", server.port);
    let connected = tokio_tungstenite::connect_async_tls_with_config(url, None, false, Some(connector)).await;
    let mut socket = connected.unwrap().0;
    socket.send(Message::text(BODY)).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().to_text().unwrap().contains("result"));
}

#[tokio::test]
async fn long_bodies_and_answers_pass_over_tls() {
    let server = secured().await;
    let body = format!(r#"{{"id":1,"method":"large","params":["{}"]}}"#, "x".repeat(3 << 20));
    let request =
        trusting("first.pem").post(server.url()).header(CONTENT_TYPE, "application/json").body(body);
    assert_eq!(request.send().await.unwrap().text().await.unwrap().len(), common::response_of((4 << 20) + 2));
}

#[tokio::test]
async fn new_connections_get_a_new_certificate_and_open_ones_stay() {
    let server = secured().await;
    let (first, second) = (trusting("first.pem"), trusting("second.pem"));
    assert!(answered(&first, &server.url()).await);
    server.use_files("second.pem", "second-key.pem");
    server.control.reload_certificate();
    assert!(answered(&second, &server.url()).await);
    assert!(answered(&first, &server.url()).await, "the open connection is still used");
    assert!(!answered(&trusting("first.pem"), &server.url()).await);
}

#[tokio::test]
async fn changed_files_are_noticed() {
    let server = secured().await;
    server.use_files("second.pem", "second-key.pem");
    let (client, started) = (trusting("second.pem"), Instant::now());
    while !answered(&client, &server.url()).await {
        assert!(started.elapsed() < Duration::from_secs(20), "the new certificate is not in use");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test]
async fn a_broken_certificate_leaves_the_old_one_in_use() {
    let server = secured().await;
    let (cert, key) = (server.folder.path().join("cert.pem"), server.folder.path().join("key.pem"));
    // A key that belongs to another certificate, no PEM, nothing, and no file.
    copy_key("second-key.pem", &key);
    server.control.reload_certificate();
    assert!(answered(&trusting("first.pem"), &server.url()).await);
    for content in [&b"garbage"[..], b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        std::fs::write(&cert, content).unwrap();
        server.control.reload_certificate();
        assert!(answered(&trusting("first.pem"), &server.url()).await);
    }
    std::fs::remove_file(&cert).unwrap();
    server.control.reload_certificate();
    assert!(answered(&trusting("first.pem"), &server.url()).await);
    server.use_files("second.pem", "second-key.pem");
    server.control.reload_certificate();
    assert!(
        answered(&trusting("second.pem"), &server.url()).await,
        "it is replaced when the files are whole again"
    );
}

#[tokio::test]
async fn a_server_does_not_start_with_unusable_files_and_does_not_repeat_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let key = std::fs::read_to_string(pem("first-key.pem")).unwrap();
    let damaged = key.replace("-----END", "-END");
    for (certificate, key, words) in [
        ("garbage", key.as_str(), "no certificate in PEM"),
        (include_str!("tls/first.pem"), "garbage", "no private key in PEM: there is none"),
        (include_str!("tls/first.pem"), damaged.as_str(), "no private key in PEM: it is damaged"),
        (include_str!("tls/second.pem"), key.as_str(), "KeyMismatch"),
    ] {
        std::fs::write(folder.path().join("cert.pem"), certificate).unwrap();
        std::fs::write(folder.path().join("key.pem"), key).unwrap();
        set_mode(&folder.path().join("key.pem"), 0o600);
        let failure = Server::bind(configured(&folder), Arc::new(Echo)).await.err().unwrap();
        assert!(matches!(failure, ServerError::Tls(_)));
        let text = failure.to_string();
        assert!(text.contains(words) && text.contains(".pem"), "{text}");
        assert!(!text.contains("MIGH"), "{text}");
    }
}

#[tokio::test]
async fn a_handshake_has_a_time_limit_and_does_not_hold_up_others() {
    let server = secured_with(|config| {
        config.limits.head_timeout = Duration::from_millis(500);
    })
    .await;
    // A client that sends nothing, one that sends a byte at a time, and one that speaks plain HTTP.
    let mut silent = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    let mut slow = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    let mut plain = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    slow.write_all(&[0x16]).await.unwrap();
    plain.write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(answered(&trusting("first.pem"), &server.url()).await);
    for stream in [&mut silent, &mut slow, &mut plain] {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "the connection is closed");
    }
}

#[tokio::test]
async fn connections_in_their_handshake_count_as_connections() {
    let server = secured_with(|config| {
        config.limits.connections = 2;
    })
    .await;
    let _silent = [
        TcpStream::connect(("127.0.0.1", server.port)).await.unwrap(),
        TcpStream::connect(("127.0.0.1", server.port)).await.unwrap(),
    ];
    tokio::time::sleep(Duration::from_millis(100)).await;
    let started = Instant::now();
    assert!(answered(&trusting("first.pem"), &server.url()).await, "an idle one is closed for it");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[cfg(unix)]
#[tokio::test]
async fn a_key_that_others_can_read_or_write_is_refused_at_the_start_and_at_a_reload() {
    let server = secured().await;
    let key = server.folder.path().join("key.pem");
    for mode in [0o644, 0o604, 0o660, 0o602] {
        set_mode(&key, mode);
        let failure = Server::bind(configured(&server.folder), Arc::new(Echo)).await.err().unwrap();
        let text = failure.to_string();
        assert!(text.contains("chmod 600") && text.contains("key.pem") && !text.contains("MIGH"), "{text}");
        server.use_files("second.pem", "second-key.pem");
        set_mode(&key, mode);
        server.control.reload_certificate();
        assert!(answered(&trusting("first.pem"), &server.url()).await, "{mode:o}: the old one stays");
        server.use_files("first.pem", "first-key.pem");
    }
    set_mode(&key, 0o440);
    assert!(
        Server::bind(configured(&server.folder), Arc::new(Echo)).await.is_ok(),
        "as systemd's credentials"
    );
}
