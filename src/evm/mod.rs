//! evm
