//! Runs a search against a server.

use alloy_primitives::Bytes;
use rootlight::trie::NodeSource;
use rootlight_p2p::chunk::limits::MAX_IN_FLIGHT;
use rootlight_p2p::chunk::{Seek, prove, serve};

use crate::state::NodeMap;

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) requests: usize,
    pub(crate) bytes: usize,
}

/// Runs a search against a server that has `nodes`.
pub(crate) fn run(seek: &mut Seek, store: &mut NodeMap, nodes: &dyn NodeSource) -> Cost {
    let (mut cost, mut waiting) = (Cost::default(), Vec::new());
    loop {
        waiting.extend(seek.next(store));
        assert!(waiting.len() <= MAX_IN_FLIGHT);
        if waiting.is_empty() {
            assert!(seek.is_finished());
            return cost;
        }
        // The last request is answered first.
        let from = waiting.pop().unwrap();
        let served = serve::chunk(nodes, &seek.root(), from).unwrap_or_else(|| panic!("{from}: no chunk"));
        cost.requests += 1;
        cost.bytes += served.bytes.len();
        let proven = prove(&served.bytes, &seek.root(), from).unwrap();
        store.extend(proven.iter().map(|(hash, bytes)| (*hash, Bytes::copy_from_slice(bytes))));
        seek.received(from);
    }
}
