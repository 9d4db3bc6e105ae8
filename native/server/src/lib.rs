//! HTTP and WebSocket server: connection handling, size and time limits, status codes. The server knows no chain: a
//! [`Service`](service::Service) answers its JSON-RPC messages.
//!
//! | module | contents |
//! |---|---|
//! | the root | the server ([`Server`]): connections, checks of requests (`access`, `admission`), responses (`http`, `ws`, `outgoing`) |
//! | [`service`] | the interface by which the server passes messages on to the part of the program that answers them |
//! | [`keys`], [`bans`] | API keys with their rights and limits; the banned addresses of this process (`ban_list` is the plain list) |
//! | [`methods`] | the table of methods: those of the core, and those about the server itself |
//! | [`metrics`] | the counters of a server, and their text for Prometheus |
//! | [`operator_server`] | serves the few connections of operators: to metrics and probes (`observer`), and to the admin page of a cluster |
//! | [`database_file`] | opens the files of redb databases |
//! | [`names`] | splits an option's comma-separated list into lower-case entries |
//! | `rests` | pauses in reading request bodies while long work occupies all processors |
//! | `sourcify` | the address of a server with contract sources, which the web page is given |

mod access;
mod addresses;
mod admission;
mod ban_list;
pub mod bans;
mod body;
mod compress;
mod connection_slots;
mod connections;
pub mod database_file;
mod handshake;
mod http;
mod key_access;
mod key_sockets;
pub mod keys;
mod limits;
mod listen;
mod metered;
pub mod methods;
pub mod metrics;
mod observer;
mod operations;
pub mod operator_server;
mod outgoing;
mod page;
mod presented_key;
mod probe;
mod proxies;
mod refusal;
mod request_source;
mod rests;
mod server_state;
pub mod service;
mod sockets;
mod sourcify;
mod subscriptions;
mod tls;
#[cfg(unix)]
mod unix_socket;
mod upgrade_terms;
mod ws;

pub use access::{Access, Origins, names};
pub use admission::AdmissionRules;
pub use key_access::KeyAccess;
pub use limits::ServerLimits;
pub use listen::{Control, Server, ServerConfig, ServerError};
pub use operations::{Operations, TlsFiles, UNIX_MODE};
pub use page::{Page, PageFile};
pub use proxies::{Proxies, TrustedProxy};
pub use sockets::{Inherited, Listen};
pub use sourcify::SourcifyAddress;
pub use tls::TlsError;
