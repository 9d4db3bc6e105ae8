//! Upstreams: untrusted sources of chain data. They move bytes; nothing they say is believed here.

mod batch;
mod error;
mod http;
mod open;
pub mod replay;
mod ws;
mod ws_link;

use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamCall;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Notify;

pub(crate) use batch::result_of;
pub use error::{UpstreamError, UrlError};
pub use http::{HttpConfig, HttpUpstream};
pub use open::{OpenError, open, open_with};
pub use ws::WsUpstream;

use crate::budget::Held;

/// What one call came to: the result's JSON text as it was sent, or why there is none.
pub type CallResult = Result<Box<RawValue>, UpstreamError>;

/// A question with its parameters as JSON values.
pub(crate) fn call(method: &'static str, params: Value) -> UpstreamCall {
    UpstreamCall::new(method, params.to_string())
}

/// A number as JSON-RPC writes it in parameters: hexadecimal with `0x`.
pub(crate) fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

/// A source of answers.
pub trait Upstream: Send + Sync + 'static {
    /// Asks all calls and gives their results in the same order. Never fails as a whole: a broken connection is the
    /// result of each call.
    fn request(&self, calls: Vec<UpstreamCall>) -> BoxFuture<'_, Vec<CallResult>>;

    /// As [`Self::request`], with the bytes of the budget that the results take; they are to be held as long as these.
    fn request_held(&self, calls: Vec<UpstreamCall>) -> BoxFuture<'_, (Vec<CallResult>, Held)> {
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
