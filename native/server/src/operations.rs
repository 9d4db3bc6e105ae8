//! Settings for operators: listeners, TLS, proxies, metrics and the page.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::page::Page;
use super::proxies::Proxies;
use super::sockets::Listen;
use super::sourcify::SourcifyAddress;

/// Mode of Unix sockets unless another one is given: only the owner may connect.
pub const UNIX_MODE: u32 = 0o600;

/// Settings for operators. By default there are none.
#[derive(Debug, Clone)]
pub struct Operations {
    /// Addresses to listen on instead of the configured host and port.
    pub listen: Vec<Listen>,
    /// Mode of Unix sockets.
    pub unix_mode: u32,
    /// Certificate and key, for all listeners but Unix sockets; `None` for connections without TLS.
    pub tls: Option<TlsFiles>,
    /// Proxies whose `x-forwarded-for` and `x-request-id` headers are trusted.
    pub proxies: Proxies,
    /// Address of the listener for metrics and probes.
    pub metrics: Option<SocketAddr>,
    /// The page that browsers get at `/`; `None` for none.
    pub page: Option<Page>,
    /// The Sourcify server that the page may ask for the ABI of a contract, if any.
    pub sourcify: Option<SourcifyAddress>,
}

impl Default for Operations {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            unix_mode: UNIX_MODE,
            tls: None,
            proxies: Proxies::default(),
            metrics: None,
            page: None,
            sourcify: None,
        }
    }
}

/// The PEM files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by those of intermediate authorities.
    pub certificate: PathBuf,
    /// Its private key (PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
}
