//! Code headers: code that starts with `0xfc` begins with a header that is not executed.

use alloc::vec::Vec;

use alloy_primitives::Bytes;
use revm::bytecode::Bytecode;
use revm::interpreter::interpreter::ExtBytecode;
use revm::interpreter::interpreter_types::{Jumps, LegacyBytecode};

/// First byte of a code header. Three bytes follow: header version, script version, and the number of further header bytes.
const HEADER: u8 = 0xfc;
/// An opcode that always fails.
const INVALID: u8 = 0xfe;
/// Length in bytes of the fixed part of a code header.
const HEADER_FIXED: usize = 4;

/// Converts code for the machine. EIP-7702 delegations are not decoded, because Rootstock does not have them:
/// `0xef01...` is ordinary (invalid) code.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_legacy(code)
}

/// Length of the header, which can exceed that of the code; 0 if there is no header.
fn header_len(code: &[u8]) -> usize {
    match code {
        [HEADER, _, _, extra, ..] => HEADER_FIXED.saturating_add(usize::from(*extra)),
        _ => 0,
    }
}

/// Makes a frame start after the header of its code. Returns the original code; `None` if the code has no header.
///
/// The header bytes are set to zero for the jump analysis: no jump target may be inside the header, and a
/// push opcode in it must not hide the code that follows. CODECOPY reads the returned original.
pub(super) fn skip_header(running: &mut ExtBytecode) -> Option<Bytes> {
    let header = header_len(running.bytecode_slice());
    let last = running.bytecode_slice().len().checked_sub(1)?;
    if header == 0 {
        return None;
    }
    let original = Bytes::copy_from_slice(running.bytecode_slice());
    let mut blanked: Vec<u8> = original.to_vec();
    blanked.iter_mut().take(header).for_each(|byte| *byte = 0);
    if let (true, Some(end)) = (header > last, blanked.last_mut()) {
        // No code follows the header. The run fails in the reference node, and here by INVALID.
        *end = INVALID;
    }
    let hash = running.hash();
    *running = ExtBytecode::new_with_optional_hash(bytecode(blanked.into()), hash);
    // The frame starts at the last byte at most: a position after the code is out of bounds in `revm`.
    running.absolute_jump(header.min(last));
    Some(original)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_four_bytes_and_the_length_it_states() {
        assert_eq!(header_len(&[0xfc, 1, 1, 0, 0]), 4);
        assert_eq!(header_len(&[0xfc, 1, 1, 2, 9, 9, 0]), 6);
        assert_eq!(header_len(&[0xfc, 1, 1]), 0, "too short for a header");
        assert_eq!(header_len(&[0x60, 1]), 0);
    }

    fn entered(code: &[u8]) -> (usize, u8, Option<Bytes>) {
        let mut running = ExtBytecode::new(bytecode(Bytes::copy_from_slice(code)));
        let original = skip_header(&mut running);
        (running.pc(), running.opcode(), original)
    }

    #[test]
    fn execution_starts_after_the_header_and_inside_the_code() {
        assert_eq!(entered(&[0x60, 1]), (0, 0x60, None));
        let code = [0xfc, 1, 1, 1, 0x5b, 0x59];
        assert_eq!(entered(&code), (5, 0x59, Some(code.into())));
        let short = [0xfc, 1, 1, 200, 0x5b, 0];
        assert_eq!(entered(&short), (5, INVALID, Some(short.into())));
    }

    #[test]
    fn jumps_into_the_header_are_invalid() {
        let mut running = ExtBytecode::new(bytecode(Bytes::from_static(&[0xfc, 1, 1, 1, 0x5b, 0x5b])));
        skip_header(&mut running);
        assert!(!running.is_valid_legacy_jump(4));
        assert!(running.is_valid_legacy_jump(5));
    }
}
