//! Filters and subscriptions: each remembers up to where its owner was informed, and is polled for what is new.
//!
//! On an executed chain they report the chain's own events. On a light client they need only a [`View`] of the present
//! head: what a reorganisation took back follows from the reported blocks that are no longer canonical.

#[cfg(feature = "local")]
mod events;
#[cfg(feature = "light")]
mod exported;
mod installed;
mod kinds;
mod quota;
#[cfg(feature = "light")]
mod reported_blocks;
mod set;
mod spec;

#[cfg(feature = "light")]
pub use self::exported::ExportedFilter;
pub use self::installed::{FILTER_IDLE, FilterOwner, SUBSCRIPTION_IDLE};
#[cfg(feature = "light")]
pub use self::kinds::MAX_PENDING;
pub use self::quota::{FilterLimit, MAX_FILTERS};
#[cfg(feature = "light")]
pub use self::reported_blocks::{MAX_TOLD_LOGS, ReportedBlock, TRAIL};
pub use self::set::Filters;
pub use self::spec::{FilterChanges, FilterSpec};
