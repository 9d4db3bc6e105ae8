//! Connections to the database: one at a time for the writer's lock, or a pool.

use std::net::IpAddr;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use rustls::ClientConfig;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{CancelToken, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tracing::debug;

use crate::error::IndexError;

/// Longest wait for a connection, and for a free one of a pool.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Name of the connections in `pg_stat_activity`.
const APPLICATION: &str = "rootlight";

/// The address of the database, and whether connections to it are encrypted.
#[derive(Clone)]
pub struct Database {
    /// Its SSL mode is `Require` or `Disable`: [`Self::parse`] decides what the library's `Prefer` leaves open.
    config: Config,
    /// The TLS settings; `None` if the connection is not encrypted.
    tls: Option<ClientConfig>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration holds a password.
        f.debug_struct("Database").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

impl Database {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/NAME?OPTIONS` (libpq's form). The connection is encrypted, and the
    /// server's certificate checked against `tls`, unless the host is this machine; `sslmode=require` and
    /// `sslmode=disable` say otherwise.
    ///
    /// # Errors
    /// [`IndexError::Address`]: the URL cannot be read, or names no host.
    pub fn parse(url: &str, tls: ClientConfig) -> Result<Self, IndexError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(IndexError::Address("it begins with neither postgres:// nor postgresql://"));
        }
        let mut config: Config = url.parse().map_err(|_| IndexError::Address("it cannot be read"))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(IndexError::Address("it names no host"));
        }
        let encrypted = match config.get_ssl_mode() {
            SslMode::Disable => false,
            SslMode::Prefer => !config.get_hosts().iter().all(is_local),
            // `Require`; the library may add stricter modes.
            _ => true,
        };
        config.ssl_mode(if encrypted { SslMode::Require } else { SslMode::Disable });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION);
        }
        Ok(Self { config, tls: encrypted.then_some(tls) })
    }

    /// Whether connections are encrypted.
    pub const fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Makes one connection, which ends when the client is dropped.
    ///
    /// # Errors
    /// [`IndexError::Database`]; [`IndexError::Silent`] if the server accepts the connection and does not begin a session in
    /// time.
    pub async fn connect(&self) -> Result<Client, IndexError> {
        // The library's own time limit ends when the transport is connected, before the session begins.
        let limit = self.config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        timeout(limit, self.connect_without_limit()).await.map_err(|_| IndexError::Silent(limit))?
    }

    async fn connect_without_limit(&self) -> Result<Client, IndexError> {
        let client = match &self.tls {
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                // The library sends and receives only while this future runs.
                tokio::spawn(async move { log_end(connection.await) });
                client
            }
            Some(tls) => {
                let (client, connection) = self.config.connect(MakeRustlsConnect::new(tls.clone())).await?;
                tokio::spawn(async move { log_end(connection.await) });
                client
            }
        };
        Ok(client)
    }

    /// Asks the server to cancel the statement that runs on the connection of a token.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(crate) async fn cancel(&self, token: &CancelToken) -> Result<(), tokio_postgres::Error> {
        match &self.tls {
            None => token.cancel_query(NoTls).await,
            Some(tls) => token.cancel_query(MakeRustlsConnect::new(tls.clone())).await,
        }
    }

    /// Makes a pool of at most `size` connections, which are opened when they are needed.
    pub(crate) fn pool(&self, size: usize) -> Result<Pool, IndexError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match &self.tls {
            None => Manager::from_config(self.config.clone(), NoTls, recycling),
            Some(tls) => {
                Manager::from_config(self.config.clone(), MakeRustlsConnect::new(tls.clone()), recycling)
            }
        };
        let pool = Pool::builder(manager)
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECT_TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT));
        pool.build().map_err(|error| IndexError::Pool(error.to_string()))
    }
}

/// Whether a host is this machine: a socket file or a loopback address.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn log_end(outcome: Result<(), tokio_postgres::Error>) {
    if let Err(error) = outcome {
        debug!(%error, "a connection to the database ended");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn parse(url: &str) -> Result<Database, IndexError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        Database::parse(url, tls)
    }

    #[test]
    fn connections_to_other_machines_are_encrypted_unless_the_address_says_otherwise() {
        for (url, encrypted) in [
            ("postgres://me@localhost/index", false),
            ("postgresql://me@127.0.0.1:5433/index", false),
            ("postgres://me@%2Frun%2Fpostgresql/index", false),
            ("postgres://me:word@db.example/index", true),
            ("postgres://me:word@127.0.0.1,db.example/index", true),
            ("postgres://me:word@db.example/index?sslmode=disable", false),
            ("postgres://me@localhost/index?sslmode=require", true),
        ] {
            assert_eq!(parse(url).unwrap().is_encrypted(), encrypted, "{url}");
        }
    }

    #[tokio::test]
    async fn a_server_that_accepts_and_says_nothing_is_not_waited_for() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let database = parse(&format!("postgres://me@127.0.0.1:{port}/index?connect_timeout=1")).unwrap();
        let silent = async {
            let (_stream, _) = listener.accept().await.unwrap();
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            connected = database.connect() => connected.expect_err("no session"),
            () = silent => unreachable!(),
        };
        assert!(matches!(error, IndexError::Silent(_)), "{error}");
        assert!(error.is_transient(), "{error}");
    }

    /// The error of a server that answers the first message of a session with this error.
    async fn refused(severity: &str, code: &str, text: &str) -> IndexError {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let database = parse(&format!("postgres://me@127.0.0.1:{port}/index?sslmode=disable")).unwrap();
        let fields = format!("S{severity}\0V{severity}\0C{code}\0M{text}\0\0");
        let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
        let response = [b"E", &length[..], fields.as_bytes()].concat();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1_024]).await.unwrap() > 0);
            stream.write_all(&response).await.unwrap();
            stream
        };
        let (connected, _stream) = tokio::join!(database.connect(), serve);
        connected.expect_err("no session")
    }

    #[tokio::test]
    async fn a_server_that_cannot_begin_a_session_at_present_is_tried_again() {
        for (severity, code, text, passing) in [
            ("FATAL", "XX000", "could not write init file", true),
            ("FATAL", "53300", "sorry, too many clients already", true),
            ("FATAL", "28P01", "password authentication failed for user \"me\"", false),
            ("FATAL", "3D000", "database \"index\" does not exist", false),
            ("ERROR", "XX000", "cache lookup failed", false),
        ] {
            let error = refused(severity, code, text).await;
            assert!(error.to_string().contains(text), "{error}");
            assert_eq!(error.is_transient(), passing, "{error}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_used_is_not_repeated() {
        for url in ["mysql://me:secret@host/x", "postgres://me:secret@host:port/x", "postgres:///secret"] {
            let text = parse(url).unwrap_err().to_string();
            assert!(text.contains("postgres://USER") && !text.contains("secret"), "{text}");
        }
        assert!(!format!("{:?}", parse("postgres://me:secret@host/x").unwrap()).contains("secret"));
    }
}
