//! The full node beside a client that serves its state (`rootlight sidecar`).

use std::sync::Arc;

use rootlight::trie::TrieStore;

/// The operator's own full node, which is the client's only upstream. State is read from the node's store; blocks below the
/// start are taken from the node as it shows them.
#[derive(Debug, Clone)]
pub struct OwnNode {
    /// The trie nodes that the node keeps on disk.
    pub store: Arc<dyn TrieStore>,
    /// Whether calls, estimates and traces run here. Otherwise the node runs them.
    pub executes: bool,
}
