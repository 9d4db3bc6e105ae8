//! What a session sees of the light client for as long as it runs: one head, whatever happens meanwhile.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::{fault::SyncFault, sync::Sync};
use crate::{
    consensus::{ChainView, Network},
    exec::CallPolicy,
};

/// How an instance of the client presents itself.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// `web3_clientVersion`: name, version, host, language and build, separated by `/`.
    pub version: String,
    /// Names of the upstreams, credentials removed.
    pub upstreams: Vec<String>,
    /// What the host decides about calls.
    pub policy: CallPolicy,
}

/// The chain as of one moment.
#[derive(Debug, Clone)]
pub struct Pin {
    pub(crate) network: Arc<Network>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) chain: Option<ChainView>,
    pub(crate) synced: bool,
    /// Whether the uncles of all blocks are proven, or known not to be had.
    pub(crate) settled: bool,
    pub(crate) fault: Option<SyncFault>,
    pub(crate) start: u64,
    pub(crate) announced: u64,
    /// Whom to ask, best first.
    pub(crate) roster: Vec<usize>,
}

impl Pin {
    /// Pins the present head of a synchronization machine.
    pub fn new(sync: &Sync, identity: Arc<Identity>) -> Self {
        Self {
            network: sync.network().clone(),
            identity,
            chain: sync.chain().map(|chain| chain.snapshot()),
            synced: sync.is_synced(),
            settled: sync.is_settled(),
            fault: sync.fault().cloned(),
            start: sync.start(),
            announced: sync.announced(),
            roster: sync.roster(),
        }
    }

    /// The network's parameters.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Whom to ask, best first.
    pub fn roster(&self) -> &[usize] {
        &self.roster
    }

    /// The pinned chain, if the checkpoint's header is verified.
    pub fn chain(&self) -> Option<&ChainView> {
        self.chain.as_ref()
    }
}
