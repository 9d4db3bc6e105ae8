//! A node's hash, which is computed once and can be read by several threads, without a lock and without the standard library.

use alloy_primitives::B256;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Stores a hash after its first use. Two threads that compute it at the same time store the same words, so a
/// reader that sees `ready` reads the whole hash.
#[derive(Debug, Default)]
pub(super) struct HashCell {
    ready: AtomicBool,
    words: [AtomicU32; 8],
}

impl HashCell {
    /// Returns the hash. The first call computes it with `compute`.
    pub(super) fn get_or_compute(&self, compute: impl FnOnce() -> B256) -> B256 {
        if self.ready.load(Ordering::Acquire) {
            let mut hash = B256::ZERO;
            for (bytes, word) in hash.chunks_exact_mut(4).zip(&self.words) {
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
            }
            return hash;
        }
        let hash = compute();
        for (bytes, word) in hash.chunks_exact(4).zip(&self.words) {
            let mut whole = [0u8; 4];
            whole.copy_from_slice(bytes);
            word.store(u32::from_ne_bytes(whole), Ordering::Relaxed);
        }
        self.ready.store(true, Ordering::Release);
        hash
    }
}
