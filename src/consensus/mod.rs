//! Consensus of headers: networks, proof of work, header rules, uncles, fork choice.
//!
//! | file | contents |
//! |---|---|
//! | `rule`, `network`, `builtin`, `custom` | rules, hard forks and networks as data; networks read from a file |
//! | `bitcoin`, `merkle`, `partial_merkle`, `coinbase`, `fallback`, `pow` | merged mining in every era |
//! | `mining` | creation of merge-mining proofs |
//! | `difficulty`, `fork_detection`, `rules` | header rules |
//! | `candidate`, `verified` | headers before and after the rules are checked, with the evidence |
//! | `uncles`, `fork_choice`, `chain` | uncles, total difficulty, the header chain |
//! | `body` | transactions and receipts of verified blocks |
//! | `checkpoint`, `genesis`, `genesis_state` | blocks known in advance |
//! | `persistent_map` | a map whose clones share their content, for views of the chain |
//! | `testing` | headers that are mined for tests |

pub mod bitcoin;
pub mod body;
#[cfg(test)]
mod body_test;
pub mod builtin;
pub mod candidate;
pub mod chain;
#[cfg(test)]
mod chain_test;
pub mod checkpoint;
pub mod coinbase;
pub mod custom;
pub mod difficulty;
pub mod fallback;
pub mod fork_choice;
#[cfg(test)]
mod fork_choice_test;
pub mod fork_detection;
pub mod genesis;
pub mod genesis_state;
pub mod merkle;
pub mod mining;
pub mod network;
pub mod partial_merkle;
pub(crate) mod persistent_map;
pub mod pow;
pub mod rule;
pub mod rules;
#[cfg(test)]
mod rules_test;
#[cfg(any(test, feature = "testkit"))]
#[doc(hidden)]
pub mod testing;
pub mod uncles;
pub mod verified;

pub use body::{
    BodyError, VerifiedBody, VerifiedReceipts, check_receipts, check_transactions, receipts_root,
    root_format, transactions_root,
};
pub use candidate::HeaderCandidate;
pub use chain::{
    Base, ChainError, ChainView, CheckedHeader, HeadChange, HeaderChain, Inserted, Reorganisation,
};
pub use checkpoint::Checkpoint;
pub use custom::NetworkFileError;
pub use fork_detection::ForkDetection;
pub use genesis::{AllocatedContract, Allocation, Genesis, GenesisError};
pub use network::{MAX_UNCLES, Network, NetworkSpec, Params, WORK_START_HEADERS, WorkStart, WorkStartError};
pub use pow::{PowError, Seal, verify_merged_mining};
pub use rule::{Fork, Rule, RuleSet};
pub use rules::{RuleError, verify_child, verify_standalone};
pub use uncles::{UncleError, VerifiedUncles};
pub use verified::{Evidence, Origin, PendingHeader, VerifiedHeader};
