//! The native host of Rootlight: HTTP and WebSocket server, upstream connections, recordings, command line.

pub mod budget;
pub mod cli;
pub mod follow;
pub mod light;
pub mod local;
mod priority;
mod progress;
pub mod record;
pub mod runs;
pub mod server;
pub mod service;
pub mod store;
pub mod upstream;

pub use upstream::replay;
