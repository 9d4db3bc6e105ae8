//! A locally executed chain: it executes the transactions of every block and compares every root. The development
//! chain appends the blocks it mines; a follower imports the blocks of an upstream.
//!
//! | file | contents |
//! |---|---|
//! | `snapshot` | an immutable snapshot of the chain, for readers |
//! | `chain` | the chain itself: importing blocks, history, direct changes of the state |
//! | `ancestry` | the ancestors of a block on its own branch |
//! | `index` | the interface to an index of blocks by the addresses and topics in them |
//! | `stored_block` | the parts of a block besides its header, and the terms by which it is found |
//! | `side_blocks` | the blocks outside the canonical chain, and the limits of their number and size |
//! | `events` | what happened to the canonical chain and the pool, for filters and subscriptions |
//! | `fork` | the chain of another network on which a local chain can begin |
//! | `error` | the reasons for which a block is rejected |
//! | `impersonated` | transactions of accounts whose keys the node does not have |

mod ancestry;
mod chain;
mod error;
mod events;
mod fork;
mod impersonated;
mod index;
mod side_blocks;
mod snapshot;
mod stored_block;

pub use ancestry::BranchAncestry;
pub use chain::{BlockState, Imported, LocalChain};
pub use error::ImportError;
pub use events::{ChainEvent, EventBlock, Events, MAX_EVENTS};
pub use fork::{ForkBase, ForkBody};
pub use impersonated::{mark_sender, marked_sender};
pub use index::BlockIndex;
pub use snapshot::ChainSnapshot;
pub use stored_block::{StoredBlock, Term};
