//! Filters and subscriptions: each remembers up to where its owner was informed, and is polled for what is new.
//!
//! Filters of an executed chain report the chain's own events. Filters of a light client need only a view of the present
//! head: they remember the blocks that they have reported, and those that are no longer canonical have left the chain.

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
pub use self::reported_blocks::{MAX_REPORTED_BLOCKS, MAX_REPORTED_LOGS, ReportedBlock};
pub use self::set::Filters;
pub use self::spec::{FilterChanges, FilterSpec};
