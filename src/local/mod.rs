//! A locally executed chain: it executes the transactions of every block and compares every root. The development
//! chain appends the blocks it mines; a follower imports the blocks of an upstream.
//!
//! | file | holds |
//! |---|---|
//! | `snapshot` | an immutable snapshot of the chain, for readers |
//! | `chain` | the chain itself: importing blocks, history, direct changes of the state |
//! | `ancestry` | the ancestors of a block on its own branch |
//! | `sides` | limits of the blocks outside the canonical chain |
//! | `error` | the reasons for which a block is refused |
//! | `impersonated` | transactions of impersonated accounts |

mod ancestry;
mod chain;
mod error;
mod impersonated;
mod sides;
mod snapshot;

pub use ancestry::BranchAncestry;
pub use chain::{Imported, LocalChain, Settled};
pub use error::ImportError;
pub use impersonated::{mark_sender, marked_sender};
pub use snapshot::{ChainSnapshot, StoredBlock};
