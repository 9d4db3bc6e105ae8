//! The embedded development chain: everything around an executed chain that makes it a place to develop on.
//!
//! | file | holds |
//! |---|---|
//! | `config` | what it starts from |
//! | `options` | what people say they want, in words |
//! | `chain` | the chain with its pool, keys, clock and miner |
//! | `mine`, `recipe` | building and mining blocks |
//! | `work`, `bitcoin` | merge-mining work for outside miners, and what they submit |
//! | `control` | snapshots, changes of the state by hand |
//! | `pool` | waiting transactions |
//! | `clock` | the time of blocks |
//! | `key`, `mnemonic`, `wallet` | keys and accounts |

mod bitcoin;
mod chain;
mod clock;
mod config;
mod control;
mod error;
mod key;
mod mine;
mod mnemonic;
mod options;
pub mod pool;
mod recipe;
mod wallet;
mod work;

pub use bitcoin::Submission;
pub use chain::{DevChain, DevEvent};
pub use clock::Clock;
pub use config::{
    cow_keys, DevAccounts, DevConfig, Mining, DEFAULT_ACCOUNTS, DEFAULT_BALANCE, DEFAULT_COINBASE,
    DEFAULT_GAS_LIMIT, DEFAULT_HISTORY,
};
pub use error::DevError;
pub use key::PrivateKey;
pub use mine::MAX_BLOCKS_AT_ONCE;
pub use mnemonic::{Mnemonic, DEFAULT_MNEMONIC};
pub use options::{rbtc, DevOptionError, DevOptions, MAX_ACCOUNTS};
pub use recipe::{Assembled, Recipe};
pub use wallet::{UnlockError, Wallet, DEFAULT_UNLOCK_MS};
pub use work::Work;
