//! The hot store of a service on many machines: what is small and asked for by every message, in a server that speaks
//! the protocol of Redis (Redis, Valkey; one server or a cluster).
//!
//! Everything here can be lost at any time. What must be kept is in PostgreSQL, and a front end that cannot reach the
//! store goes on without it, within limits that are stated where the store is used.

mod announce;
mod config;
mod connection;
mod error;
mod health;
mod hot;
mod metrics;
mod script;

pub use announce::Announcement;
pub use config::{PREFIX, StoreConfig, StoreLayout, StoreLimits};
pub use error::HotStoreError;
pub use hot::HotStore;
pub use metrics::StoreMetrics;
pub use redis::{FromRedisValue, Value};
pub use script::Script;
