//! The transaction pool: admission, replacement, queueing and order as in the reference node.

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
