//! The interface between handlers that change something and the local chain they change.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use alloy_primitives::{B256, keccak256};

use super::{Filters, View};
use crate::{
    dev::DevChain,
    exec::Interrupts,
    local::{ChainSnapshot, ImportError, Imported, Settled},
    types::Block,
};

/// What the outside world adds to a message: the core has neither a clock nor a source of randomness.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Seconds since 1970.
    pub now: u64,
    /// 32 random bytes, fresh for every message.
    pub entropy: B256,
}

/// Time and randomness of the message that is being answered.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    moment: Moment,
    drawn: u64,
}

impl Draw {
    /// Those of a message.
    #[must_use]
    pub const fn new(moment: Moment) -> Self {
        Self { moment, drawn: 0 }
    }

    /// Seconds since 1970.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.moment.now
    }

    /// 32 bytes that nobody can foresee, other ones at each call.
    pub fn random(&mut self) -> B256 {
        self.drawn = self.drawn.wrapping_add(1);
        keccak256([self.moment.entropy.as_slice(), &self.drawn.to_be_bytes()].concat())
    }
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

    /// The executed chain.
    fn local(&self) -> &ChainSnapshot;

    /// Executes a block that comes from outside and takes it in; `now` is the clock in seconds since 1970, without which
    /// blocks ahead of it are taken.
    ///
    /// # Errors
    /// The rule it breaks; nothing has changed then.
    fn import(&mut self, block: Block, now: Option<u64>) -> Result<Imported, ImportError>;

    /// Sets what ends the mining or import of blocks from now on; nothing does before this is called.
    fn interrupt_by(&mut self, interrupts: Interrupts);

    /// A copy of the node as it is now. It shares what does not change, so it costs little; the host goes back to it
    /// when a change cannot be kept on disk.
    fn copy(&self) -> Box<dyn Node>;

    /// Takes the blocks that settled since this was asked last or since [`Self::begin`], each with the state that its
    /// execution gave.
    fn take_settled(&mut self) -> Vec<Settled>;

    /// The height that the node which is followed announces.
    fn announced(&mut self, _height: u64) {}

    /// The development chain; `None` where blocks only come from outside.
    fn dev(&mut self) -> Option<&mut DevChain> {
        None
    }
}
