//! Upstreams: untrusted sources of chain data. They move bytes; nothing they say is believed here.

mod batch;
mod error;
mod http;
mod reply;
mod ws;
mod ws_link;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::Value;
use tokio::sync::Notify;

pub use error::UpstreamError;
pub use http::{HttpConfig, HttpUpstream};
pub use reply::{parse_reply, Reply};
pub use ws::WsUpstream;

use crate::budget::Held;
use crate::replay::{Replay, ReplayError};

/// One JSON-RPC call to an upstream.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Method name.
    pub method: String,
    /// Positional parameters.
    pub params: Vec<Value>,
}

impl Call {
    /// A call with parameters.
    pub fn new(method: impl Into<String>, params: Vec<Value>) -> Self {
        Self { method: method.into(), params }
    }
}

/// What one call came to: the result's JSON text as it was sent, or why there is none.
pub type CallResult = Result<Box<RawValue>, UpstreamError>;

/// A source of answers.
pub trait Upstream: Send + Sync + 'static {
    /// Asks all calls and gives their results in the same order. Never fails as a whole: a broken
    /// connection is the result of each call.
    fn request(&self, calls: Vec<Call>) -> BoxFuture<'_, Vec<CallResult>>;

    /// As [`Self::request`], with the bytes of the budget that the results take; they are to be held as long as these.
    fn request_held(&self, calls: Vec<Call>) -> BoxFuture<'_, (Vec<CallResult>, Held)> {
        Box::pin(async move { (self.request(calls).await, Held::default()) })
    }

    /// A name for logs: no credentials, no path (which may hold an API key).
    fn name(&self) -> &str;

    /// Tells of new blocks, where the upstream announces them by itself. A hint to look, nothing more.
    fn heads(&self) -> Option<Arc<Notify>> {
        None
    }
}

/// An upstream shared by everything that asks.
pub type SharedUpstream = Arc<dyn Upstream>;

/// Why an `--upstream` argument does not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Not `http://`, `https://`, `ws://`, `wss://` or `replay:`.
    #[error("--upstream takes an http(s) or ws(s) URL, or replay:PATH; this one {0}")]
    Scheme(String),
    /// The client could not be made.
    #[error("upstream {name}: {reason}")]
    Http {
        /// Host of the upstream.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// How a text begins that is no URL of ours. The rest may hold a password or a key.
fn scheme(text: &str) -> String {
    let plain = |scheme: &&str| scheme.len() <= 20 && scheme.chars().all(|c| c.is_ascii_alphanumeric());
    match text.split_once("://").map(|(scheme, _)| scheme).filter(plain) {
        Some(scheme) => format!("begins with {scheme}://"),
        None => "has no scheme".to_owned(),
    }
}

/// Opens what `--upstream` names.
pub fn open(text: &str) -> Result<SharedUpstream, OpenError> {
    open_with(text, HttpConfig::default())
}

/// Opens what `--upstream` names, with these limits where it is spoken to over HTTP.
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
