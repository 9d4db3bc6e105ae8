//! Code headers: code that starts with `0xfc` begins with bytes that are not executed.

use alloc::vec::Vec;

use alloy_primitives::Bytes;
use revm::bytecode::Bytecode;
use revm::interpreter::interpreter::ExtBytecode;
use revm::interpreter::interpreter_types::{Jumps, LegacyBytecode};

/// First byte of a code header: `0xfc`, header version, script version, length of what follows.
const HEADER: u8 = 0xfc;
/// Length in bytes of the fixed part of a code header.
const HEADER_FIXED: usize = 4;

/// Code as the machine runs it. Never decodes EIP-7702 delegations, which Rootstock lacks:
/// `0xef01...` is ordinary (invalid) code here.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_legacy(code)
}

/// Offset of the first instruction; 0 without a header.
pub(super) fn entry_point(code: &[u8]) -> usize {
    match code {
        [HEADER, _, _, extra, ..] => HEADER_FIXED.saturating_add(usize::from(*extra)).min(code.len()),
        _ => 0,
    }
}

/// Makes a frame's code start behind its header. Returns the original code where there is one.
///
/// Header bytes are blanked for the jump analysis (no jump target may lie in them, and a push in
/// them must not swallow what follows); CODECOPY reads the original that is returned.
pub(super) fn skip_header(running: &mut ExtBytecode) -> Option<Bytes> {
    let entry = entry_point(running.bytecode_slice());
    if entry == 0 {
        return None;
    }
    let original = Bytes::copy_from_slice(running.bytecode_slice());
    let mut blanked: Vec<u8> = original.to_vec();
    blanked.iter_mut().take(entry).for_each(|byte| *byte = 0);
    let hash = running.hash();
    *running = ExtBytecode::new_with_optional_hash(bytecode(blanked.into()), hash);
    running.absolute_jump(entry);
    Some(original)
}

#[cfg(test)]
mod tests {
    use super::entry_point;

    #[test]
    fn headers_are_four_bytes_and_what_they_announce() {
        assert_eq!(entry_point(&[0xfc, 1, 1, 0, 0]), 4);
        assert_eq!(entry_point(&[0xfc, 1, 1, 2, 9, 9, 0]), 6);
        assert_eq!(entry_point(&[0xfc, 1, 1, 200, 0]), 5, "never behind the end");
        assert_eq!(entry_point(&[0xfc, 1, 1]), 0, "too short for a header");
        assert_eq!(entry_point(&[0x60, 1]), 0);
    }
}
