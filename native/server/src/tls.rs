//! TLS for the connections of clients, with a certificate that can be replaced while the server runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rootlight_limits::files;
use rootlight_limits::io_words::of_path;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;
use tracing::{error, info};

use super::operations::TlsFiles;

/// Interval at which the files are compared with those in use.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Longest file that is read, in bytes. Chains of certificates have some kilobytes.
const FILE_BYTES: u64 = 1024 * 1024;

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum TlsError {
    /// A file cannot be read, or others than its owner can use the key.
    #[error("{path}: {}", of_path(.source))]
    File { path: PathBuf, source: io::Error },
    #[error("{0}: no certificate in PEM (-----BEGIN CERTIFICATE-----)")]
    NoCertificate(PathBuf),
    #[error("{path}: no private key in PEM: {reason}")]
    NoKey { path: PathBuf, reason: String },
    /// The certificate or the key is damaged, or they do not belong together.
    #[error("{path}: {source}")]
    Unusable { path: PathBuf, source: rustls::Error },
}

/// The contents of the two files: the certificate and its private key.
type Contents = (Vec<u8>, Vec<u8>);

/// The certificate in use, and the files from which it was read.
pub(crate) struct Certificates {
    files: TlsFiles,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
    /// The contents that were read last, also if they cannot be used, so that each error is logged once.
    last_read: Mutex<Contents>,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Certificates {
    /// Reads the files of a certificate for the first time.
    pub(crate) fn load(files: &TlsFiles) -> Result<Arc<Self>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let contents = read(files)?;
        let current = RwLock::new(Arc::new(parse(files, &contents, &provider)?));
        Ok(Arc::new(Self { files: files.clone(), provider, current, last_read: Mutex::new(contents) }))
    }

    /// Reads the files again. Returns whether there is another certificate now; after an error the old one stays.
    pub(crate) fn reload(&self) -> Result<bool, TlsError> {
        let contents = read(&self.files)?;
        let mut last = self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        if *last == contents {
            return Ok(false);
        }
        let parsed = parse(&self.files, &contents, &self.provider);
        *last = contents;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(parsed?);
        Ok(true)
    }

    /// Makes the acceptor of TLS handshakes, which uses the certificate that is current at each handshake.
    pub(crate) fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, TlsError> {
        let unusable = |source| TlsError::Unusable { path: self.files.certificate.clone(), source };
        let config = rustls::ServerConfig::builder_with_provider(self.provider.clone());
        let config = config.with_safe_default_protocol_versions().map_err(unusable)?;
        let mut config = config.with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Replaces the certificate when the files change, for ever.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut missing = false;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let certificates = self.clone();
            let Ok(loaded) = tokio::task::spawn_blocking(move || certificates.reload()).await else {
                continue;
            };
            match &loaded {
                Ok(true) => info!("the TLS certificate was replaced"),
                // A file that is missing, or whose mode is refused, stays so at every look, and was logged at the first.
                Err(TlsError::File { .. }) if missing => {}
                Err(failure) => error!("the old TLS certificate stays in use: {failure}"),
                Ok(false) => {}
            }
            missing = matches!(loaded, Err(TlsError::File { .. }));
        }
    }
}

/// Reads both files.
fn read(files: &TlsFiles) -> Result<Contents, TlsError> {
    let failed = |path: &Path, source| TlsError::File { path: path.to_owned(), source };
    let TlsFiles { certificate, key } = files;
    let chain = files::read(certificate, FILE_BYTES).map_err(|source| failed(certificate, source))?;
    let secret = files::read_secret(key, FILE_BYTES).map_err(|source| failed(key, source))?;
    Ok((chain, secret))
}

/// Parses the contents of both files, and checks that they belong together.
fn parse(
    files: &TlsFiles,
    (certificate, key): &Contents,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(certificate).collect();
    // Damaged PEM counts as no certificate.
    let chain = chain.unwrap_or_default();
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(files.certificate.clone()));
    }
    let key = PrivateKeyDer::from_pem_slice(key);
    let key = key.map_err(|error| TlsError::NoKey { path: files.key.clone(), reason: reason(&error) })?;
    let unusable = |source| TlsError::Unusable { path: files.certificate.clone(), source };
    CertifiedKey::from_der(chain, key, provider).map_err(unusable)
}

/// The fault of a key file, in words of this program: the texts of some errors repeat a line of the file, which may be a part of
/// the key.
fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => "there is none".to_owned(),
        _ => "it is damaged".to_owned(),
    }
}
