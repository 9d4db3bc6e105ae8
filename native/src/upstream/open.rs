//! Opens the upstream that `--upstream` names: a URL, or a recording.

use std::sync::Arc;

use super::replay::{Replay, ReplayError};
use super::{HttpConfig, HttpUpstream, SharedUpstream, UrlError, WsUpstream};

/// Why an `--upstream` argument cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The argument has none of the schemes `http://`, `https://`, `ws://`, `wss://` and `replay:`.
    #[error("--upstream takes an http(s) or ws(s) URL, or replay:PATH; this one {0}")]
    Scheme(String),
    /// The client could not be created.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The recording cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Describes the beginning of an unusable argument. The rest is left out, since it may hold a password or a
/// key.
fn scheme(text: &str) -> String {
    let plain = |scheme: &&str| scheme.len() <= 20 && scheme.chars().all(|c| c.is_ascii_alphanumeric());
    match text.split_once("://").map(|(scheme, _)| scheme).filter(plain) {
        Some(scheme) => format!("begins with {scheme}://"),
        None => "has no scheme".to_owned(),
    }
}

/// Opens the upstream that `--upstream` names.
pub fn open(text: &str) -> Result<SharedUpstream, OpenError> {
    open_with(text, HttpConfig::default())
}

/// Opens the upstream that `--upstream` names, with these limits for HTTP.
pub fn open_with(text: &str, config: HttpConfig) -> Result<SharedUpstream, OpenError> {
    if let Some(path) = text.strip_prefix("replay:") {
        return Ok(Arc::new(Replay::open(path)?));
    }
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("ws://") || lower.starts_with("wss://") {
        return Ok(Arc::new(WsUpstream::new(text, HttpConfig::default())?));
    }
    if !lower.starts_with("http://") && !lower.starts_with("https://") {
        return Err(OpenError::Scheme(scheme(text)));
    }
    Ok(Arc::new(HttpUpstream::new(text, config)?))
}
