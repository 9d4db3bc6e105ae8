//! A Bitcoin chain beside a development chain, and servers of it in the protocols by which light clients read Bitcoin's chain
//! (`rootlight dev --bitcoin-chain`).
//!
//! | file | contents |
//! |---|---|
//! | `chain` | [`RegtestChain`]: blocks by the rules of Bitcoin's regtest |
//! | `coinbase` | the blocks' coinbase transactions and Merkle branches |
//! | `serve` | [`BitcoinServers`]: the servers, on loopback ports |
//! | `esplora`, `electrum` | the two protocols |

mod chain;
mod coinbase;
mod electrum;
mod esplora;
mod serve;

pub use chain::{KEPT_COINBASES, RegtestChain};
pub use coinbase::BlockCoinbase;
pub use serve::BitcoinServers;
