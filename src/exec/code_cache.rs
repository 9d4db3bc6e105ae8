//! The interface to a cache of analysed code, which the calls on a chain share. Analysis finds the jump targets of code.

use core::fmt::Debug;

use alloy_primitives::B256;

use crate::evm::ReadyCode;

/// A cache of analysed code by its hash. The owner of the cache bounds its memory, and may remove code at any time.
pub trait CodeCache {
    /// The code with this hash, if the cache has it.
    fn get(&self, hash: &B256) -> Option<ReadyCode>;

    /// Offers code to the cache.
    fn keep(&self, hash: B256, code: ReadyCode);
}

/// A [`CodeCache`] that threads can share. The host provides it.
pub trait SharedCodes: CodeCache + Debug + Send + Sync {}

impl<T: CodeCache + Debug + Send + Sync> SharedCodes for T {}
