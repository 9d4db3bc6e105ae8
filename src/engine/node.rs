//! The interface between handlers that change something and the local chain they change.

use alloc::{boxed::Box, sync::Arc};

use alloy_primitives::B256;

use super::{Filters, View};
use crate::dev::DevChain;

/// What the outside world adds to a message: the core has neither a clock nor a source of randomness.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Seconds since 1970.
    pub now: u64,
    /// 32 random bytes, fresh for every message.
    pub entropy: B256,
}

/// A local chain as of one moment, for readers: it never changes, and taking one costs next to nothing.
pub trait Snapshot: Send + Sync {
    /// The chain for one message; `now` is in seconds since 1970, `interrupt` says when a run has used up its time.
    fn view<'a>(&'a self, now: u64, interrupt: &'a dyn Fn() -> bool) -> Box<dyn View + 'a>;
}

/// Exclusive access to a local chain, its pool, keys, clock and filters: what handlers that write get.
///
/// One message at a time: the host calls [`Self::begin`] before each one.
pub trait Node: Send {
    /// Sets time and randomness of the message that is answered next.
    fn begin(&mut self, moment: Moment);

    /// The host's clock, in seconds since 1970.
    fn now(&self) -> u64;

    /// 32 bytes that nobody can foresee, other ones at each call.
    fn random(&mut self) -> B256;

    /// The chain as readers see it now.
    fn snapshot(&self) -> Arc<dyn Snapshot>;

    /// The filters that callers poll. The node tells them of each transaction that enters the pool
    /// ([`Filters::pending`]); blocks and logs they find by themselves.
    fn filters(&mut self) -> &mut Filters;

    /// The development chain; `None` where blocks only come from outside.
    fn dev(&mut self) -> Option<&mut DevChain> {
        None
    }
}
