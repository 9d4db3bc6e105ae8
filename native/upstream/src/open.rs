//! Opens the upstream that `--upstream` names: a URL, or a recording.

use std::sync::Arc;

use super::replay::{Replay, ReplayError};
use super::{HttpConfig, HttpUpstream, SharedUpstream, UrlError, WsUpstream, of_network};

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

/// Describes an unusable argument. The text repeats no part of the argument, since any part may be a password or a key.
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
    open_any(text, config, None)
}

/// Opens the upstream that a flag names for a client of the network with this chain id. Requests fail while the upstream is of
/// another network ([`of_network`]). A recording of another network is refused at once, because it never changes.
///
/// # Errors
/// As [`open_with`]; [`ReplayError::OtherNetwork`].
pub fn open_of_network(text: &str, config: HttpConfig, chain_id: u64) -> Result<SharedUpstream, OpenError> {
    open_any(text, config, Some(chain_id)).map(|upstream| of_network(upstream, chain_id))
}

/// Opens a recording or a URL. `chain_id` is that of the expected network, if a recording of another one is to be refused.
fn open_any(text: &str, config: HttpConfig, chain_id: Option<u64>) -> Result<SharedUpstream, OpenError> {
    let lower = text.to_ascii_lowercase();
    if let Some(path) = text.get(REPLAY.len()..).filter(|_| lower.starts_with(REPLAY)) {
        return Ok(Arc::new(Replay::open_named(path, config.limits, chain_id)?));
    }
    if lower.starts_with("ws://") || lower.starts_with("wss://") {
        return Ok(Arc::new(WsUpstream::new(text, config)?));
    }
    if !lower.starts_with("http://") && !lower.starts_with("https://") {
        return Err(OpenError::Scheme(fault(text).to_owned()));
    }
    Ok(Arc::new(HttpUpstream::new(text, config)?))
}
