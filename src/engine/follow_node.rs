//! A chain that follows the blocks of another node: it executes them here and mines none.

use alloc::{boxed::Box, string::String, sync::Arc, vec, vec::Vec};

use super::{
    SyncProgress,
    local_view::LocalSnapshot,
    node::{HostInput, LocalNode, NodeParts, Snapshot},
};
use crate::local::BlockIndex;
use crate::{
    exec::{CallPolicy, Interrupts},
    local::{BlockState, ChainSnapshot, ImportError, Imported, LocalChain},
    types::Block,
};

/// An executed chain that imports the blocks of another node.
#[derive(Debug, Clone)]
pub struct FollowNode {
    chain: LocalChain,
    parts: NodeParts,
    /// The name of the followed node, without credentials.
    upstreams: Arc<vec::Vec<String>>,
    /// The limits and defaults of calls.
    policy: CallPolicy,
    /// Height of the head at the start.
    starting: u64,
    /// The height that the upstream has announced last.
    announced: u64,
    /// Conditions that interrupt an import.
    interrupts: Interrupts,
}

impl FollowNode {
    /// Makes a node from a chain; `upstream` is the name of the followed node, without credentials.
    pub fn new(
        chain: LocalChain,
        version: &str,
        upstream: &str,
        policy: CallPolicy,
        host_input: HostInput,
    ) -> Self {
        let start = chain.head().number;
        Self {
            chain,
            parts: NodeParts::new(version, host_input),
            upstreams: Arc::new(vec![upstream.into()]),
            policy,
            starting: start,
            announced: start,
            interrupts: Interrupts::default(),
        }
    }

    /// `None` if the chain has reached the announced height.
    fn progress(&self) -> Option<SyncProgress> {
        let current = self.chain.head().number;
        (current < self.announced).then_some(SyncProgress {
            starting: self.starting,
            current,
            highest: self.announced,
        })
    }
}

impl LocalNode for FollowNode {
    fn parts(&self) -> &NodeParts {
        &self.parts
    }

    fn parts_mut(&mut self) -> &mut NodeParts {
        &mut self.parts
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        Arc::new(LocalSnapshot {
            chain: self.chain.snapshot(),
            version: self.parts.version.clone(),
            policy: self.policy,
            syncing: self.progress(),
            upstreams: self.upstreams.clone(),
            producer: None,
            host: self.parts.host.clone(),
            #[cfg(feature = "catalogue")]
            scripts: self.parts.scripts.clone(),
        })
    }

    fn local(&self) -> &ChainSnapshot {
        self.chain.view()
    }

    fn import(&mut self, block: Block, now: Option<u64>) -> Result<Imported, ImportError> {
        self.chain.import_until(block, now, &|| self.interrupts.is_due())
    }

    fn interrupt_by(&mut self, interrupts: Interrupts) {
        self.interrupts = interrupts;
    }

    fn copy(&self) -> Box<dyn LocalNode> {
        Box::new(self.clone())
    }

    fn take_block_states(&mut self) -> Vec<BlockState> {
        self.chain.take_block_states()
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

    fn announced(&mut self, height: u64) {
        self.announced = height;
    }
}
