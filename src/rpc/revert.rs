//! The reason in a revert payload: the data with which a contract reverts, as Solidity encodes it.

use alloc::string::String;

/// Selector of `Error(string)`.
const ERROR_STRING: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];

/// The text of an `Error(string)` payload. Returns `None` for other payloads (custom errors, panics), as the
/// reference node does.
#[must_use]
pub fn reason(payload: &[u8]) -> Option<String> {
    let arguments = payload.strip_prefix(&ERROR_STRING)?;
    let offset = word_as_usize(arguments, 0)?;
    let length = word_as_usize(arguments, offset)?;
    let start = offset.checked_add(32)?;
    let text = arguments.get(start..start.checked_add(length)?)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The 32-byte word at an offset; `None` if it exceeds 32 bits.
fn word_as_usize(bytes: &[u8], offset: usize) -> Option<usize> {
    let word = bytes.get(offset..offset.checked_add(32)?)?;
    let (high, low) = word.split_last_chunk::<4>()?;
    if high.iter().any(|byte| *byte != 0) {
        return None;
    }
    usize::try_from(u32::from_be_bytes(*low)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(offset: u8, length: u8, text: &[u8]) -> alloc::vec::Vec<u8> {
        let mut bytes = ERROR_STRING.to_vec();
        for number in [offset, length] {
            bytes.extend([0; 31]);
            bytes.push(number);
        }
        bytes.extend_from_slice(text);
        bytes
    }

    #[test]
    fn the_reason_is_the_text_of_an_error_string() {
        assert_eq!(reason(&payload(32, 5, b"no luck")), Some("no lu".into()));
        assert_eq!(reason(&payload(32, 0, b"")), Some(String::new()));
    }

    #[test]
    fn other_payloads_have_no_reason() {
        assert_eq!(reason(&payload(32, 8, b"no luck")), None);
        assert_eq!(reason(&payload(200, 1, b"x")), None);
        assert_eq!(
            reason(&payload(32, 2, &[b'a', 0xff])),
            Some("a\u{fffd}".into()),
            "invalid UTF-8 is replaced"
        );
        assert_eq!(reason(&[0x4e, 0x48, 0x7b, 0x71, 0]), None);
        assert_eq!(reason(&[]), None);
        let mut huge = payload(32, 1, b"x");
        huge[4] = 1;
        assert_eq!(reason(&huge), None);
    }
}
