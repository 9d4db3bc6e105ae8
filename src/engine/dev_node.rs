//! A development chain as a local node, which handlers change.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use super::{
    FilterOwner,
    dev_producer::DevProducer,
    local_view::LocalSnapshot,
    node::{HostInput, LocalNode, NodeParts, Snapshot},
};
use crate::local::BlockIndex;
use crate::{
    consensus::ChainError,
    dev::{DevChain, DevConfig},
    exec::Interrupts,
    local::{BlockState, ChainSnapshot, ImportError, Imported},
    types::Block,
};

/// A development chain with its filters and the host's time and randomness.
#[derive(Debug, Clone)]
pub struct DevNode {
    chain: DevChain,
    parts: NodeParts,
}

impl DevNode {
    /// Makes a node with a new chain; `host_input` is the time and randomness at the start.
    ///
    /// # Errors
    /// The genesis block is not the network's.
    pub fn new(config: DevConfig, host_input: HostInput) -> Result<Self, ChainError> {
        let parts = NodeParts::new(&config.version, host_input);
        Ok(Self { chain: DevChain::new(config)?, parts })
    }

    /// The chain.
    pub const fn chain(&self) -> &DevChain {
        &self.chain
    }

    /// The chain, for hosts that restore or import blocks.
    pub fn chain_mut(&mut self) -> &mut DevChain {
        &mut self.chain
    }

    /// The snapshot as its concrete type, for hosts that read its parts.
    pub fn local_snapshot(&self) -> LocalSnapshot {
        let chain = &self.chain;
        LocalSnapshot {
            chain: chain.view().clone(),
            version: self.parts.version.clone(),
            policy: chain.policy(),
            syncing: None,
            upstreams: Arc::default(),
            producer: Some(Arc::new(DevProducer {
                pool: chain.pool().clone(),
                miner_settings: chain.miner_settings().clone(),
                clock: *chain.clock(),
                mining: chain.mining(),
                accounts: Arc::new(chain.wallet().addresses()),
                bitcoin: chain.bitcoin.clone(),
            })),
            host: self.parts.host.clone(),
            #[cfg(feature = "catalogue")]
            scripts: self.parts.scripts.clone(),
        }
    }
}

impl LocalNode for DevNode {
    fn parts(&self) -> &NodeParts {
        &self.parts
    }

    fn parts_mut(&mut self) -> &mut NodeParts {
        &mut self.parts
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        Arc::new(self.local_snapshot())
    }

    fn set_owner(&mut self, owner: FilterOwner) {
        self.parts.filters.set_owner(owner);
        self.chain.set_asker(owner.asker);
    }

    fn local(&self) -> &ChainSnapshot {
        self.chain.view()
    }

    fn import(&mut self, block: Block, now: Option<u64>) -> Result<Imported, ImportError> {
        self.chain.import(block, now)
    }

    fn interrupt_by(&mut self, interrupts: Interrupts) {
        self.chain.interrupt_by(interrupts);
    }

    fn copy(&self) -> Box<dyn LocalNode> {
        Box::new(self.clone())
    }

    fn take_block_states(&mut self) -> Vec<BlockState> {
        self.chain.local_mut().take_block_states()
    }

    fn set_recovery(&mut self, recovery: Arc<dyn crate::exec::Recovery>) {
        self.chain.set_recovery(recovery);
    }

    fn set_index(&mut self, index: Arc<dyn BlockIndex>) {
        self.chain.set_index(index);
    }

    fn set_codes(&mut self, codes: Arc<dyn crate::exec::SharedCodes>) {
        self.chain.set_codes(codes);
    }

    fn dev(&mut self) -> Option<&mut DevChain> {
        Some(&mut self.chain)
    }
}
