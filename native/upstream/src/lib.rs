//! Upstreams: untrusted sources of chain data. This crate moves bytes; the core verifies them.
//!
//! | module | contents |
//! |---|---|
//! | the root | what an upstream is ([`Upstream`]), and upstreams over HTTP and WebSocket |
//! | [`p2p`] | nodes of the peer-to-peer network |
//! | [`replay`], [`record`] | recordings as upstreams, and how they are written |

mod asker;
mod batch;
mod discreet;
mod error;
mod http;
pub mod intake;
mod open;
pub mod p2p;
mod reached;
pub mod record;
pub mod replay;
mod source;
mod tls;
mod ws;
mod ws_frames;
mod ws_link;
mod ws_open;

use rootlight::light::UpstreamRequest;
use serde_json::Value;

pub use asker::{asked_by, asker};
pub(crate) use batch::result_of;
pub use discreet::discreet;
pub use error::{UpstreamError, UpstreamResult, UrlError};
pub use http::{HttpConfig, HttpUpstream};
pub use open::{OpenError, open, open_with};
pub use source::{Dismissal, SharedUpstream, Turn, Upstream};
pub use tls::config as tls_config;
pub use ws::WsUpstream;

/// Builds a request from its parameters as JSON values.
pub fn call(method: &'static str, params: Value) -> UpstreamRequest {
    UpstreamRequest::new(method, params.to_string())
}

/// Encodes a number as a QUANTITY: hexadecimal with `0x`.
pub fn quantity(number: u64) -> String {
    format!("{number:#x}")
}
