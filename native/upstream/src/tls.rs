//! TLS of upstream connections over HTTP and WebSocket.

use std::sync::{Arc, LazyLock};

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tracing::{debug, info};

/// The configuration of all connections. Static, because reading the system's certificates takes milliseconds, and they are the
/// same for all upstreams.
static CONFIG: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    // The provider is process-wide; a second installation fails and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        debug!(%error, "a certificate of the system was not read");
    }
    Arc::new(ClientConfig::builder().with_root_certificates(roots(found.certs)).with_no_client_auth())
});

/// The TLS settings of a connection to an upstream.
pub fn config() -> Arc<ClientConfig> {
    CONFIG.clone()
}

/// The certificate authorities whose certificates of upstreams are accepted: those of the system (`system`), so that its
/// administrator decides. On a system without any, such as an empty container, those of Mozilla, which are compiled in.
fn roots(system: Vec<CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    let (_, unusable) = store.add_parsable_certificates(system);
    if unusable > 0 {
        debug!(unusable, "certificates of the system that cannot be used");
    }
    if store.is_empty() {
        info!("the system has no certificate authorities: those compiled in are used");
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    store
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_authorities_gets_those_compiled_in() {
        let store = roots(Vec::new());
        assert_eq!(store.len(), webpki_roots::TLS_SERVER_ROOTS.len());
        assert!(store.len() > 50, "{}", store.len());
    }

    #[test]
    fn a_certificate_that_cannot_be_read_is_left_out() {
        let garbage = CertificateDer::from(vec![0_u8; 10]);
        assert_eq!(roots(vec![garbage]).len(), webpki_roots::TLS_SERVER_ROOTS.len());
    }
}
