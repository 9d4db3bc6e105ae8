//! A chain that is executed here: every block's transactions run, every root compared. The development chain mines
//! onto it, a follower imports into it.
//!
//! | file | holds |
//! |---|---|
//! | `snapshot` | the chain as of one moment, for readers |
//! | `chain` | the writer: taking blocks in, history, changes by hand |
//! | `ancestry` | the ancestors of a block on its own branch |
//! | `sides` | what is kept off the canonical chain |
//! | `error` | why a block is refused |
//! | `impersonated` | transactions without a key |

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
