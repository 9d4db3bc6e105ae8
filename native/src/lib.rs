//! The native host of Rootlight: HTTP and WebSocket server, upstream connections, recordings of upstream
//! responses, command line.
//!
//! The program `rootlight` runs [`cli::main`]; `cargo install rootlight-native` installs it. As a library, this crate
//! serves the core, `rootlight`, to other processes. A development chain with an HTTP port inside a test:
//!
//! ```
//! use std::sync::Arc;
//!
//! use rootlight::dev::{DevAccounts, DevConfig};
//! use rootlight::engine::DevNode;
//! use rootlight_native::local::{Entropy, LocalOptions, LocalService, moment};
//! use rootlight_native::server::{Entry, Limits, Operations, Origins, Server, ServerConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let entropy = Entropy::from_system()?;
//! let node = DevNode::new(DevConfig::new(&DevAccounts::default()), moment(&entropy))?;
//! let service = Arc::new(LocalService::new(Box::new(node), LocalOptions::default(), entropy, None));
//!
//! let config = ServerConfig {
//!     host: "127.0.0.1".into(),
//!     http_port: 0, // 0: the system picks a free port
//!     ws_port: None,
//!     origins: Origins::Unnamed,
//!     hosts: Vec::new(),
//!     limits: Limits::default(),
//!     entry: Entry::default(),
//!     operations: Operations::default(),
//! };
//! let server = Server::bind(config, service.clone()).await?;
//! println!("http://{}", server.address());
//!
//! // The server runs until this future ends; a test sends its requests meanwhile.
//! let test = tokio::time::sleep(std::time::Duration::from_millis(10));
//! server.run(test).await;
//! service.stop();
//! # Ok(())
//! # }
//! ```

pub mod cli;
pub mod doctor;

#[cfg(feature = "cluster")]
pub use rootlight_cluster as cluster;
#[cfg(feature = "cluster")]
pub use rootlight_cluster::serve;
pub use rootlight_limits::{budget, caller_id, runs};
pub(crate) use rootlight_limits::{files, outside, processors, unix_time};
#[cfg(feature = "rskj-store")]
pub use rootlight_node::rskj_store;
pub use rootlight_node::{ban_guard, follow, index, light, local, peer_server, sidecar, store};
pub use rootlight_server as server;
pub use rootlight_server::{bans, keys, service};
pub use rootlight_upstream as upstream;
pub use rootlight_upstream::{p2p, record, replay};
