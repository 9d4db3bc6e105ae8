//! Opens the upstream that `--upstream` names: a URL, or a recording.

use std::sync::Arc;

use super::replay::{Replay, ReplayError};
use super::{HttpConfig, HttpUpstream, SharedUpstream, UrlError, WsUpstream};

/// Scheme of recordings, in lower case.
const REPLAY: &str = "replay:";

/// Why an `--upstream` argument cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The argument has none of the schemes `http://`, `https://`, `ws://`, `wss://` and `replay:`.
    #[error("an upstream is an http(s) or ws(s) URL, or replay:PATH; this one {0}")]
    Scheme(String),
    /// The client could not be created.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The recording cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Describes an unusable argument. Nothing of it is repeated, since any part may be a password or a key.
fn fault(text: &str) -> &'static str {
    if text.contains("://") {
        "has another scheme"
    } else {
        "has no scheme: put http:// or https:// before it"
    }
}

/// Opens the upstream that a flag names.
pub fn open(text: &str) -> Result<SharedUpstream, OpenError> {
    open_with(text, HttpConfig::default())
}

/// Opens the upstream that a flag names, with these limits for HTTP and WebSocket.
pub fn open_with(text: &str, config: HttpConfig) -> Result<SharedUpstream, OpenError> {
    let lower = text.to_ascii_lowercase();
    if let Some(path) = text.get(REPLAY.len()..).filter(|_| lower.starts_with(REPLAY)) {
        return Ok(Arc::new(Replay::open_within(path, config.limits)?));
    }
    if lower.starts_with("ws://") || lower.starts_with("wss://") {
        return Ok(Arc::new(WsUpstream::new(text, config)?));
    }
    if !lower.starts_with("http://") && !lower.starts_with("https://") {
        return Err(OpenError::Scheme(fault(text).to_owned()));
    }
    Ok(Arc::new(HttpUpstream::new(text, config)?))
}
