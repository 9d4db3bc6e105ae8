//! The interface between a local chain and the handlers that change it. Readers take a [`Snapshot`] instead.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::any::Any;

use alloy_primitives::{B256, keccak256};

use super::{FilterOwner, Filters, View};
use crate::local::BlockIndex;
use crate::{
    exec::Interrupts,
    local::{BlockState, ChainSnapshot, ImportError, Imported},
    types::{Asker, Block},
};

/// The host's input to a message: the core has neither a clock nor a source of randomness.
#[derive(Debug, Clone, Copy)]
pub struct HostInput {
    /// Seconds since 1970.
    pub now: u64,
    /// 32 random bytes, fresh for every message.
    pub entropy: B256,
}

/// Time and randomness of the message that is being answered.
#[derive(Debug, Clone, Copy)]
struct HostInputReader {
    host_input: HostInput,
    /// How many random values the message has taken.
    drawn: u64,
}

impl HostInputReader {
    const fn new(host_input: HostInput) -> Self {
        Self { host_input, drawn: 0 }
    }

    const fn now(&self) -> u64 {
        self.host_input.now
    }

    /// 32 unpredictable bytes, different at each call.
    fn random(&mut self) -> B256 {
        // One message may need several values and gets the entropy only once.
        self.drawn = self.drawn.wrapping_add(1);
        keccak256([self.host_input.entropy.as_slice(), &self.drawn.to_be_bytes()].concat())
    }
}

/// The parts of a local node beside its chain.
#[derive(Debug, Clone)]
pub struct NodeParts {
    pub(super) filters: Filters,
    /// The host's data for its own rows of the method table.
    pub(super) host: Option<Arc<dyn Any + Send + Sync>>,
    /// The host's engine for tracers that are scripts ([`Policy::scripts`](super::Policy::scripts)).
    #[cfg(feature = "catalogue")]
    pub(super) scripts: Option<Arc<dyn crate::exec::trace::ScriptEngine>>,
    /// Name and version as `web3_clientVersion` returns them.
    pub(super) version: Arc<str>,
    host_input: HostInputReader,
}

impl NodeParts {
    /// The parts of a node with this name and version; `host_input` is the time and randomness at the start.
    #[must_use]
    pub fn new(version: &str, host_input: HostInput) -> Self {
        Self {
            filters: Filters::new(keccak256(host_input.entropy)),
            host: None,
            #[cfg(feature = "catalogue")]
            scripts: None,
            version: version.into(),
            host_input: HostInputReader::new(host_input),
        }
    }
}

/// A local chain at one moment, for readers: it never changes, and taking one is cheap.
pub trait Snapshot: Send + Sync {
    /// The chain for one message; `now` is in seconds since 1970, `interrupt` tells when a run has used up its time.
    fn view<'a>(&'a self, now: u64, interrupt: &'a dyn Fn() -> bool) -> Box<dyn View + 'a>;

    /// As [`Self::view`], with the part of the pool that the asker sees: an isolated asker ([`Asker::is_isolated`]) sees no waiting
    /// transactions of others, and no pending block.
    fn view_of<'a>(&'a self, _asker: Asker, now: u64, interrupt: &'a dyn Fn() -> bool) -> Box<dyn View + 'a> {
        self.view(now, interrupt)
    }

    /// As [`Self::view_of`], for a message that runs inline ([`super::Policy::is_inline`]).
    fn inline_view<'a>(
        &'a self,
        asker: Asker,
        now: u64,
        interrupt: &'a dyn Fn() -> bool,
    ) -> Box<dyn View + 'a> {
        self.view_of(asker, now, interrupt)
    }
}

/// Exclusive access to a local chain, its pool, keys, clock and filters, for handlers that change it.
///
/// The host answers one message at a time and calls [`Self::begin`] before each.
pub trait LocalNode: Send {
    /// The parts beside the chain.
    fn parts(&self) -> &NodeParts;

    /// As [`Self::parts`], to change them.
    fn parts_mut(&mut self) -> &mut NodeParts;

    /// Sets time and randomness of the message that is answered next.
    fn begin(&mut self, host_input: HostInput) {
        // Block states that the host did not take after the last message are dropped, so that they do not accumulate.
        self.take_block_states();
        self.parts_mut().host_input = HostInputReader::new(host_input);
    }

    /// The host's clock, in seconds since 1970.
    fn now(&self) -> u64 {
        self.parts().host_input.now()
    }

    /// 32 unpredictable bytes, different at each call.
    fn random(&mut self) -> B256 {
        self.parts_mut().host_input.random()
    }

    /// The present chain, for readers.
    fn snapshot(&self) -> Arc<dyn Snapshot>;

    /// The filters that callers poll, which report blocks, logs and transactions from the events of the chain
    /// ([`View::events`]).
    fn filters(&mut self) -> &mut Filters {
        &mut self.parts_mut().filters
    }

    /// Sets the owner of the message that is answered next: filters and waiting transactions that the message makes belong to it.
    fn set_owner(&mut self, owner: FilterOwner) {
        self.filters().set_owner(owner);
    }

    /// The executed chain.
    fn local(&self) -> &ChainSnapshot;

    /// Executes a block of another node and adds it to the chain. `now` is the clock in seconds since 1970; without
    /// it, blocks with future timestamps are accepted.
    ///
    /// # Errors
    /// The rule that the block breaks; the chain is unchanged.
    fn import(&mut self, block: Block, now: Option<u64>) -> Result<Imported, ImportError>;

    /// Sets the conditions that interrupt the mining or import of later blocks; before this call there are none.
    fn interrupt_by(&mut self, interrupts: Interrupts);

    /// A copy of the present node, which shares the data and so costs little. The host continues with the copy when a change
    /// cannot be stored on disk.
    fn copy(&self) -> Box<dyn LocalNode>;

    /// Takes the blocks that were executed since the last call or since [`Self::begin`], each with its resulting
    /// state.
    fn take_block_states(&mut self) -> Vec<BlockState>;

    /// Sets the index of blocks; see `LocalChain::set_index`. Nodes that cannot use one ignore it.
    fn set_index(&mut self, _index: Arc<dyn BlockIndex>) {}

    /// Sets the cache of analysed code for calls; see `LocalChain::set_codes`.
    fn set_codes(&mut self, _codes: Arc<dyn crate::exec::SharedCodes>) {}

    /// Sets the recovery of the senders of imported transactions; see `LocalChain::set_recovery`.
    fn set_recovery(&mut self, _recovery: Arc<dyn crate::exec::Recovery>) {}

    /// Sets the height that the followed node announces.
    fn announced(&mut self, _height: u64) {}

    /// Sets what the host's own rows of the method table find in [`Policy::host`](super::Policy::host).
    fn set_host(&mut self, host: Arc<dyn Any + Send + Sync>) {
        self.parts_mut().host = Some(host);
    }

    /// Sets the engine for tracers that are scripts.
    #[cfg(feature = "catalogue")]
    fn set_scripts(&mut self, scripts: Arc<dyn crate::exec::trace::ScriptEngine>) {
        self.parts_mut().scripts = Some(scripts);
    }

    /// The development chain; `None` if the chain follows another node.
    #[cfg(feature = "dev")]
    fn dev(&mut self) -> Option<&mut crate::dev::DevChain> {
        None
    }
}
