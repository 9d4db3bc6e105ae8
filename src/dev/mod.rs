//! The embedded development chain.

mod key;
mod mnemonic;
pub mod pool;
mod wallet;

pub use key::PrivateKey;
pub use mnemonic::{Mnemonic, DEFAULT_MNEMONIC};
pub use wallet::{UnlockError, Wallet, DEFAULT_UNLOCK_MS};
