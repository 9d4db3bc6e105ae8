//! HTTP and WebSocket server: connection handling, size and time limits, status codes.
//!
//! | module | contents |
//! |---|---|
//! | the root | the server ([`Server`]) |
//! | [`service`] | what answers its messages |
//! | [`keys`], [`bans`] | who may call, what and how often; which addresses are refused |
//! | [`metrics`] | what a server counts |

mod access;
mod addresses;
pub mod bans;
mod body;
mod coding;
mod compress;
mod connections;
mod entry;
pub mod few;
mod grounds;
mod handshake;
mod head_timer;
mod http;
mod key_access;
mod key_sockets;
pub mod keys;
mod limits;
mod listen;
mod live;
mod metered;
pub mod metrics;
mod observer;
mod operations;
mod page;
mod places;
mod probe;
mod proxies;
mod read;
mod refusal;
mod request_id;
mod rests;
pub mod service;
mod shared;
mod sockets;
mod stream;
mod subscriptions;
mod tenant;
mod tls;
#[cfg(unix)]
mod unix_socket;
mod way_out;
mod ws;

pub use access::{Access, Origins, names};
pub use entry::Entry;
pub use key_access::KeyAccess;
pub use limits::Limits;
pub use listen::{Server, ServerConfig, ServerError};
pub use live::Control;
pub use operations::{Operations, TlsFiles, UNIX_MODE};
pub use page::{Page, PageFile};
pub use proxies::{Proxies, TrustedProxy};
pub use sockets::{Inherited, Listen};
pub use tls::TlsError;
