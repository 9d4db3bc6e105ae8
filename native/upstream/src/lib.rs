//! Upstreams: untrusted sources of chain data. This crate moves bytes; the core verifies them.
//!
//! | module | contents |
//! |---|---|
//! | the root | the trait [`Upstream`], and upstreams over HTTP and WebSocket |
//! | [`bitcoin`] | sources of Bitcoin's headers and coinbases |
//! | [`p2p`] | nodes of the peer-to-peer network |
//! | [`replay`], [`record`] | recordings as upstreams, and how they are written |
//! | [`source_quota`] | the memory that the responses of one source may take |

mod batch;
pub mod bitcoin;
mod error;
mod http;
mod last_address;
mod of_network;
mod open;
pub mod p2p;
mod quota_owner;
pub mod record;
mod redacted;
pub mod replay;
mod source;
pub mod source_quota;
mod tls;
mod words;
mod ws;
mod ws_frames;
mod ws_link;
mod ws_open;

use rootlight::light::UpstreamRequest;
use serde_json::Value;

pub(crate) use batch::result_of;
pub use error::{UpstreamError, UpstreamResult, UrlError};
pub use http::{HttpConfig, HttpUpstream};
pub use of_network::of_network;
pub use open::{OpenError, open, open_of_network, open_with};
pub use quota_owner::{quota_owner, with_caller};
pub use redacted::redacted;
pub use source::{CurrentSource, Dismissal, ReservedResults, SharedUpstream, Upstream, unreserved};
pub use tls::config as tls_config;
pub use ws::WsUpstream;

/// Builds a request from its parameters as JSON values.
pub fn call(method: &'static str, params: Value) -> UpstreamRequest {
    UpstreamRequest::new(method, params.to_string())
}

/// Encodes a number as a QUANTITY of JSON-RPC: hexadecimal with `0x`, without leading zeros.
pub fn quantity(number: u64) -> String {
    format!("{number:#x}")
}
