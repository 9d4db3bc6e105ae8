//! Methods of a development chain: accounts, the pool, mining, and direct changes for tests. `rows` has the forms of the rows
//! and reads parameters; each other file has the methods of one subject.

mod accounts;
mod anvil;
#[cfg(feature = "catalogue")]
mod bitcoin;
#[cfg(feature = "catalogue")]
mod dump;
mod edits;
#[cfg(feature = "catalogue")]
mod erc20;
mod evm;
#[cfg(feature = "catalogue")]
mod fill;
#[cfg(feature = "catalogue")]
mod gzip;
#[cfg(feature = "catalogue")]
mod info;
mod mining;
mod personal;
mod pool;
mod reorganise;
mod rows;
mod send;
mod sync;

#[cfg(feature = "light")]
pub(super) use send::receiver;
pub(super) use send::send_raw;

use super::method::Method;
use rows::{
    TRANSACTION, address, addresses, brief, chain, chain_at, milliseconds, number, optional_u64_param,
    quantity, read, u64_param, unit, write,
};

/// The rows of the method table, by file.
pub(super) const METHODS: &[&[Method]] = &[
    accounts::METHODS,
    // Development chains in browsers have no Bitcoin chain.
    #[cfg(feature = "catalogue")]
    bitcoin::METHODS,
    send::METHODS,
    personal::METHODS,
    pool::METHODS,
    mining::METHODS,
    evm::METHODS,
    edits::METHODS,
    anvil::METHODS,
    reorganise::METHODS,
    // Browser modules leave the following methods out, to be smaller.
    #[cfg(feature = "catalogue")]
    dump::METHODS,
    #[cfg(feature = "catalogue")]
    erc20::METHODS,
    #[cfg(feature = "catalogue")]
    fill::METHODS,
    #[cfg(feature = "catalogue")]
    info::METHODS,
];
