//! A Bitcoin chain beside a development chain, with servers of the protocols in which light clients read Bitcoin's.
//!
//! | file | contents |
//! |---|---|
//! | `chain` | [`RegtestChain`]: blocks by the rules of Bitcoin's regtest |
//! | `coinbase` | their coinbase transactions and Merkle branches |
//! | `serve` | [`BitcoinServers`]: the servers, on loopback ports |
//! | `esplora`, `electrum` | what they answer |

mod chain;
mod coinbase;
mod electrum;
mod esplora;
mod serve;

pub use chain::{KEPT_COINBASES, RegtestChain};
pub use coinbase::BlockCoinbase;
pub use serve::BitcoinServers;
