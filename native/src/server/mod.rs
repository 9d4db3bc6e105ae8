//! HTTP and WebSocket server: connection handling, size and time limits, status codes.

mod access;
mod body;
mod compress;
mod entry;
mod http;
mod key_access;
mod key_sockets;
mod limits;
mod listen;
mod metered;
mod places;
mod refusal;
mod shared;
mod subscriptions;
mod tenant;
mod ws;

pub(crate) use access::names;
pub use access::{Access, Origins};
pub use entry::Entry;
pub use key_access::KeyAccess;
pub use limits::Limits;
pub use listen::{Server, ServerConfig, ServerError};
