//! Tests which certificates of an upstream the program accepts. The files in `tls/` were made for these
//! tests: a certificate authority, whose key was deleted, and its certificate for 127.0.0.1.

use crate::common;

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

/// A file of a system that has no authorities.
const ABSENT: &str = "/nonexistent/authorities.pem";

fn server_config() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server-key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap())
}

/// Runs the program against an upstream with TLS. Returns whether the first handshake succeeded, and what the program
/// wrote to standard error.
fn handshake(scheme: &str, authorities: &str) -> (bool, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = format!("{scheme}://{address}");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut connection = ServerConnection::new(server_config()).unwrap();
        let done = connection.complete_io(&mut stream).is_ok() && !connection.is_handshaking();
        // The client's refusal may arrive after the server's part of the handshake is done.
        let request = connection.complete_io(&mut stream);
        let _ = stream.flush();
        done && request.is_ok()
    });
    let folder = tempfile::tempdir().unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_rootlight"))
        .args(["record", "--upstream", &upstream, "--from", "0", "--to", "0", "--out"])
        .arg(folder.path().join("out"))
        .env("SSL_CERT_FILE", authorities)
        .env_remove("SSL_CERT_DIR")
        .env("RUST_LOG", "info")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _watch = common::ProgramWatch::of(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "the upstream answers nothing");
    // Ends the server if the program did not connect.
    let _ = TcpStream::connect(address);
    (server.join().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn authorities_of_the_system_vouch_for_upstreams() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/tls/authority.pem");
    for scheme in ["https", "wss"] {
        let (accepted, said) = handshake(scheme, file);
        assert!(accepted, "{scheme}: {said}");
        assert!(!said.contains("compiled in"), "{scheme}: {said}");
    }
}

#[test]
fn a_system_without_authorities_still_checks_certificates() {
    for scheme in ["https", "wss"] {
        let (accepted, said) = handshake(scheme, ABSENT);
        assert!(!accepted, "{scheme}: {said}");
        assert!(said.contains("those compiled in are used"), "{scheme}: {said}");
    }
}
