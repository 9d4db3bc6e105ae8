//! The hot store of a service on many machines: small data that front ends share and that messages need. It is Redis, or another
//! server of its protocol such as Valkey: one server or a cluster.
//!
//! All data of the store can be lost at any time. Data that must last is in PostgreSQL. A front end that cannot reach the
//! store continues without the store, within limits that are stated where the store is used.

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
