//! The transaction pool of the development chain: admission, replacement, queueing and order as in the reference node.
//!
//! | file | holds |
//! |---|---|
//! | `queue` | the pool: pending and queued transactions by sender |
//! | `admission` | the rules for a new transaction |
//! | `order` | the order in which transactions go into a block |
//! | `pooled` | a transaction in the pool |
//! | `error` | the reasons of refusals |

mod admission;
mod error;
mod order;
mod pooled;
mod queue;
#[cfg(test)]
mod queue_test;

pub use admission::PoolContext;
pub use error::PoolError;
pub use pooled::Pooled;
pub use queue::{Added, Pool};
