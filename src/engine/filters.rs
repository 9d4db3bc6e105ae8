//! Filters and subscriptions: each remembers up to where its owner was informed, and is polled for what is new.
//!
//! On an executed chain they report the chain's own events. On a light client they need only a [`View`] of the present
//! head: what a reorganisation took back follows from the reported blocks that are no longer canonical.

#[cfg(feature = "local")]
mod events;
mod kinds;
#[cfg(feature = "light")]
mod lent;
mod open;
mod room;
mod set;
#[cfg(feature = "light")]
mod trail;
mod watch;

#[cfg(feature = "light")]
pub use self::kinds::MAX_PENDING;
#[cfg(feature = "light")]
pub use self::lent::LentFilter;
pub use self::open::{FILTER_IDLE, Owner, SUBSCRIPTION_IDLE};
pub use self::room::{FilterLimit, MAX_FILTERS};
pub use self::set::Filters;
#[cfg(feature = "light")]
pub use self::trail::{MAX_TOLD_LOGS, ReportedBlock, TRAIL};
pub use self::watch::{Changes, Watch};
