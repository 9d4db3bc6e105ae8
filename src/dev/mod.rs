//! The embedded development chain: an executed chain with a transaction pool, accounts, a clock and a miner.
//!
//! | file | holds |
//! |---|---|
//! | `config` | the complete configuration of a chain |
//! | `options` | the options of the command line and the browser package, parsed from text |
//! | `chain` | the chain with its pool, keys, clock and miner |
//! | `mine`, `miner_settings` | building and mining blocks |
//! | `work`, `bitcoin` | merge-mining work for external miners, and the Bitcoin blocks they submit |
//! | `bitcoin_chain`, `mine_bitcoin` | a Bitcoin chain that a host simulates, and its blocks on request |
//! | `block_limits` | gas limit and minimum gas price of blocks, which change by small steps |
//! | `fork` | the block of another network on which a chain begins, and the fetches of its state and ancestors |
//! | `atomic_change` | changes that are undone as a whole if they fail |
//! | `control` | snapshots and direct changes of the state |
//! | `dump` | complete accounts, to be put into another chain |
//! | `rewind` | removal and replacement of the newest blocks |
//! | `pool` | the transaction pool |
//! | `clock` | the timestamps of blocks |
//! | `error`, `limits` | errors, and the limits that their messages state |
//! | `key`, `mnemonic`, `wallet` | keys and accounts |
//! | `typed_data` | the hash of typed data (EIP-712) |
//!
//! Only methods of the feature `catalogue` use `dump` and `message_signer`. `fork` needs the feature `light`, which has the requests to
//! upstreams and the checks of their responses.

mod atomic_change;
mod bitcoin;
mod bitcoin_chain;
mod block_limits;
mod chain;
mod clock;
mod config;
mod control;
#[cfg(feature = "catalogue")]
mod dump;
mod error;
#[cfg(feature = "light")]
pub mod fork;
#[cfg(test)]
mod fork_test;
mod key;
mod limits;
mod mine;
mod mine_bitcoin;
mod miner_settings;
mod mnemonic;
mod options;
pub mod pool;
mod rewind;
mod typed_data;
mod wallet;
mod work;

pub use bitcoin::Submission;
pub use bitcoin_chain::{BitcoinBlocks, BitcoinTag, BitcoinTip, MAX_BITCOIN_BLOCKS, SimulatedBitcoin};
pub use block_limits::{BlockLimits, MAX_BLOCKS_AT_ONCE};
pub use chain::{DevChain, DevEvent, Settings};
pub use clock::Clock;
pub use config::{
    DEFAULT_ACCOUNTS, DEFAULT_BALANCE, DEFAULT_COINBASE, DEFAULT_GAS_LIMIT, DEFAULT_HISTORY, DevAccounts,
    DevConfig, ForkStart, Mining, cow_keys,
};
#[cfg(feature = "catalogue")]
pub use dump::DumpedAccount;
pub use error::DevError;
pub use key::PrivateKey;
#[cfg(feature = "catalogue")]
pub(crate) use key::message_signer;
pub use limits::{LAST_TIME, MAX_DUMP, MAX_SNAPSHOTS};
pub use mine::Spacing;
pub use miner_settings::{Assembled, MinerSettings};
pub use mnemonic::{DEFAULT_MNEMONIC, Mnemonic};
pub use options::{DevOptionError, DevOptions, MAX_ACCOUNTS, MAX_CHAIN_ID, rbtc};
pub use typed_data::TypedDataError;
pub use wallet::{DEFAULT_UNLOCK_MS, UnlockError, Wallet};
pub use work::Work;
