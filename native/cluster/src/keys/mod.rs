//! API keys of a service on many machines.
//!
//! PostgreSQL holds keys, revocations and usage. The store holds copies of the keys that are in use, and the counters of
//! their limits. A front end remembers keys, learns of changes within a second (`changes.rs`), and takes leases of limits
//! (`meter.rs`), so that most messages wait for nothing.

mod access;
mod admin;
mod changes;
mod error;
mod fallback;
mod limits;
mod line;
mod lookups;
mod memory;
mod meter;
mod metrics;
mod quotas;
mod reports;
mod rows;
mod schema;
mod search;
mod shared;
mod usage;
mod verdict;

pub use access::ClusterAccess;
pub use admin::{ClusterKeys, MAX_PAGE, Page};
pub use changes::GRACE;
pub use error::ClusterKeyError;
pub use metrics::{Decision, Level, ServiceMetrics};
pub use reports::{DatabaseReport, DayUsage, FrontEndUsage, MAX_DAYS, ServiceUsage};
