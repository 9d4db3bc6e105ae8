//! TLS to the store: the certificate is checked against the system's authorities, or those in the file that `SSL_CERT_FILE`
//! names. The certificate is that of the tests of the program: for `localhost`, by an authority that no system knows.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rootlight_index::testkit::{PostgresServer, postgres};
use tempfile::TempDir;

use crate::servers::Servers;

const AUTHORITY: &str = "authority.pem";

/// A copy of a file that another user can read.
fn copy(folder: &TempDir, name: &str) -> PathBuf {
    let from = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/tls")).join(name);
    let to = folder.path().join(name);
    std::fs::copy(from, &to).unwrap();
    to
}

/// A store that takes TLS at a port of its own, with a password.
struct Secured {
    folder: TempDir,
    _servers: Servers,
    port: u16,
    _postgres: std::sync::Arc<PostgresServer>,
    database: String,
}

impl Secured {
    async fn start() -> Option<Self> {
        let postgres = postgres()?;
        let folder = tempfile::tempdir().unwrap();
        // Readable for the user that the server runs as.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let file = |name| copy(&folder, name).display().to_string();
        let settings = [
            format!("tls-port={port}"),
            format!("tls-cert-file={}", file("server.pem")),
            format!("tls-key-file={}", file("server-key.pem")),
            format!("tls-ca-cert-file={}", file(AUTHORITY)),
            "tls-auth-clients=no".to_owned(),
            "bind=127.0.0.1 127.0.0.2".to_owned(),
        ];
        let servers = Servers::single(&settings.each_ref().map(String::as_str))?;
        let database = postgres.database().await;
        Some(Self { folder, _servers: servers, port, _postgres: postgres, database })
    }

    /// Runs `rootlight keys create` against the store under this name, with these authorities.
    fn create(&self, host: &str, authorities: &Path) -> Output {
        let store = format!("rediss://{host}:{}", self.port);
        let mut command = Command::new(env!("CARGO_BIN_EXE_rootlight"));
        command.args(["keys", "create", "--cluster", &store, "--index", &self.database]);
        command.env("SSL_CERT_FILE", authorities).env_remove("SSL_CERT_DIR").env_remove("RUST_LOG");
        command.output().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_tls_is_used_if_its_authority_is_known_and_else_refused_with_a_reason() {
    let Some(store) = Secured::start().await else { return };
    let known = store.folder.path().join(AUTHORITY);
    for host in ["localhost", "127.0.0.1"] {
        let done = store.create(host, &known);
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success() && said.is_empty(), "the store was told: {said}");
    }
    // Another authority, and another name. The key is made all the same: front ends find it in PostgreSQL.
    let other = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/tls/first.pem"));
    for (host, authorities, reason) in
        [("localhost", other, "UnknownIssuer"), ("127.0.0.2", &known, "not valid for name \"127.0.0.2\"")]
    {
        let refused = store.create(host, authorities);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("the store cannot be reached: invalid peer certificate"), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(refused.status.success() && !refused.stdout.is_empty());
    }
}
