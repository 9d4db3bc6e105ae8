//! Upstreams: untrusted sources of chain data. This module moves bytes; the core verifies them.

mod asker;
mod batch;
mod discreet;
mod error;
mod http;
pub(crate) mod intake;
mod open;
mod reached;
pub mod replay;
mod source;
mod tls;
mod ws;
mod ws_frames;
mod ws_link;
mod ws_open;

use rootlight::light::UpstreamRequest;
use serde_json::Value;

pub(crate) use asker::{asked_by, asker};
pub(crate) use batch::result_of;
pub(crate) use discreet::discreet;
pub use error::{UpstreamError, UpstreamResult, UrlError};
pub use http::{HttpConfig, HttpUpstream};
pub use open::{OpenError, open, open_with};
pub use source::{Dismissal, SharedUpstream, Turn, Upstream};
#[cfg(feature = "cluster")]
pub(crate) use tls::config as tls_config;
pub use ws::WsUpstream;

/// Builds a request from its parameters as JSON values.
pub(crate) fn call(method: &'static str, params: Value) -> UpstreamRequest {
    UpstreamRequest::new(method, params.to_string())
}

/// Encodes a number as a QUANTITY: hexadecimal with `0x`.
pub(crate) fn quantity(number: u64) -> String {
    format!("{number:#x}")
}
