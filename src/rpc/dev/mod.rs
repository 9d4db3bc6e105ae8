//! Methods of a development chain: accounts, the pool, mining, and direct changes for tests.

mod accounts;
mod anvil;
#[cfg(feature = "catalogue")]
mod bitcoin;
mod evm;
mod mining;
mod personal;
mod pool;
mod rows;
mod send;

#[cfg(feature = "light")]
pub(super) use send::receiver;
pub(super) use send::send_raw;

use super::method::Method;
use rows::{
    TRANSACTION, address, addresses, brief, chain, chain_at, milliseconds, number, optional_small, quantity,
    read, small, write,
};

/// The rows of the method table, by file.
pub(super) const METHODS: &[&[Method]] = &[
    accounts::METHODS,
    // Browser modules have no Bitcoin chain beside theirs.
    #[cfg(feature = "catalogue")]
    bitcoin::METHODS,
    send::METHODS,
    personal::METHODS,
    pool::METHODS,
    mining::METHODS,
    evm::METHODS,
    anvil::STATE,
    anvil::CHAIN,
];
