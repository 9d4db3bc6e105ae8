//! 0x01000011 (RSKIP-203): the native contract that tells a contract its call depth, `getCallStackDepth()`.

use alloc::vec::Vec;

/// Selector of `getCallStackDepth()`.
const GET_CALL_STACK_DEPTH: [u8; 4] = [0xe8, 0xce, 0x22, 0x74];

/// The call depth as a 32-byte word; `None` for any other selector.
pub(super) fn run(input: &[u8], depth: usize) -> Option<Vec<u8>> {
    if !input.starts_with(&GET_CALL_STACK_DEPTH) {
        return None;
    }
    let mut word = Vec::with_capacity(32);
    word.resize(24, 0);
    word.extend_from_slice(&(depth as u64).to_be_bytes());
    Some(word)
}
