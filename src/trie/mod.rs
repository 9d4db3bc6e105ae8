//! The Unitrie (RSKIP-107, RSKIP-108): one binary trie holds accounts, code and storage. The same node format
//! is used for transaction and receipt roots. This module contains the node codec, the persistent trie,
//! proofs of inclusion and absence, multi-proofs, and the "orchid" format of roots from before RSKIP-126.
//!
//! Untrusted input is bounded by [`limits`] and refused with a typed error.

mod base;
mod bits;
mod by_hash;
mod cell;
mod edit;
mod empty;
pub mod flags;
pub mod limits;
mod multiproof;
mod node;
mod node_error;
mod orchid;
mod ordered;
#[cfg(feature = "local")]
mod partial;
mod persist;
mod proof;
mod proof_error;
mod put_many;
mod reader;
mod receipt;
mod source;
mod store;
mod tree;
mod tree_node;
mod wrap;

pub use base::TrieBase;
pub use bits::Bits;
pub use by_hash::TrieNodes;
pub use empty::EMPTY_ROOT;
pub use multiproof::{ProvenNodes, connected, verify_multiproof};
pub use node::{Child, Node, NodeStep, Value, parse_node};
pub use node_error::{NodeError, NodeField, NodePart, NodeRule};
pub use ordered::{NodeFormat, index_key, ordered_root, ordered_trie};
#[cfg(feature = "local")]
pub use partial::PartialTrie;
pub use persist::{LoadError, Loader};
pub use proof::{Leaf, ProvenValue, verify_path, verify_proof};
pub use proof_error::ProofError;
pub use receipt::{ReceiptProofError, prove_receipt, receipt_index};
pub use source::{FoundNode, Lookup, NodeSource, WalkError, lookup, lookup_node, lookup_value, prove};
pub(crate) use source::{PathNode, lookup_end};
pub use store::{StoreFault, TrieStore};
pub use tree::Trie;
pub use wrap::unwrap_node;
