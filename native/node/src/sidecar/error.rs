//! Why a sidecar cannot start.

use rootlight::types::B256;

/// Why a sidecar cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum SidecarError {
    #[error(
        "the node is on the network with chain id {found}, not on {network} (chain id {expected}): give its network with \
         --network"
    )]
    ChainId { network: String, expected: u64, found: u64 },
    #[error(
        "block 0 of the node is {found}, that of {network} is {expected}: give the node's network with --network"
    )]
    Genesis { network: String, expected: B256, found: B256 },
    /// The node's answer cannot be used.
    #[error("{method} of the node: {reason}")]
    Node { method: &'static str, reason: String },
    #[error(
        "--rskj-db has the state of none of the blocks {0} of the node's chain: it is the store of another node or network, \
         or an incomplete copy"
    )]
    ForeignStore(String),
}
