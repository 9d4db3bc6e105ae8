//! API keys of a service on many machines.
//!
//! PostgreSQL holds keys, revocations and usage. The hot store (Redis) holds copies of the keys that are in use, and the counters of
//! their limits. A front end caches keys, learns of changes within a second (`changes.rs`), and takes leases, parts of the limits that
//! it may use without asking the hot store (`meter.rs`). So most messages wait for nothing.

mod access;
mod admin;
mod changes;
mod connection;
mod error;
mod fallback;
mod key_cache;
mod key_copies;
mod limit_query;
mod limits;
mod lookups;
mod meter;
mod metrics;
mod quotas;
mod reports;
mod rows;
mod schema;
mod search;
mod usage;

pub use access::ClusterAccess;
pub use admin::{ClusterKeys, KeyPage, MAX_PAGE};
pub use changes::GRACE;
pub use error::ClusterKeyError;
pub use metrics::{Decision, LookupOutcome, ServiceMetrics};
pub use reports::{DatabaseReport, DayUsage, FrontEndUsage, MAX_DAYS, ServiceUsage};
