//! The Unitrie (RSKIP-107, RSKIP-108): one binary trie contains accounts, code and storage. The same node format
//! is used for transaction and receipt roots.
//!
//! | file | contents |
//! |---|---|
//! | `node`, `flags`, `reader`, `bits`, `node_error` | parser and serializer of a node |
//! | `tree`, `tree_node`, `cell`, `edit`, `put_many` | the persistent trie in memory, and its changes |
//! | `base` | a trie above the state of another chain |
//! | `source`, `by_hash`, `store` | look-ups and proofs in nodes that are found by hash |
//! | `persist`, `partial` | loading a trie from such nodes, complete or in part |
//! | `proof`, `multiproof`, `receipt`, `wrap`, `proof_error` | proofs of one key, of many keys, and of a receipt |
//! | `ordered`, `orchid` | roots of a block's transactions and receipts; the "orchid" format of roots from before RSKIP-126 |
//! | `limits`, `empty` | limits on untrusted input, which is refused with a typed error; the root of an empty trie |

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
