//! The node list and the settings that the slots of a light client share.

use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight_p2p::discovery::NodeRecord;
use rootlight_p2p::rlpx::NodeId;

use super::finder::Finder;
use super::known::peer_address;
use super::list::NodeList;
use crate::p2p::{Identity, PeerUpstream, Reach, StateNodes};

/// Settings of the slots of a light client.
pub struct SlotOptions {
    /// Number of slots.
    pub count: usize,
    /// Our identity to the nodes.
    pub identity: Arc<Identity>,
    /// Nodes that no slot takes, because they are connected otherwise: a node admits one connection of each key.
    pub avoid: Vec<NodeId>,
    /// The network whose chain the nodes serve.
    pub network: Arc<Network>,
    /// Proven trie nodes, shared with other peers.
    pub nodes: Arc<StateNodes>,
}

/// The node list and the settings of all slots. The finder runs until the last slot is dropped.
pub(super) struct SlotContext {
    pub(super) list: Arc<NodeList>,
    options: SlotOptions,
    _finder: Finder,
}

impl SlotContext {
    pub(super) fn new(finder: Finder, options: SlotOptions) -> Self {
        Self { list: finder.list().clone(), options, _finder: finder }
    }

    /// Makes the upstream of a node, and starts to dial the node.
    pub(super) fn upstream(&self, node: &NodeRecord) -> PeerUpstream {
        let SlotOptions { identity, network, nodes, .. } = &self.options;
        let reach = Reach::Found { private: self.list.allows_private() };
        PeerUpstream::within(identity.clone(), peer_address(node), reach, network.clone(), nodes.clone())
    }
}
