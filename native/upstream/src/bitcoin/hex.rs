//! Hexadecimal text as sources of Bitcoin's chain write it.

use rootlight::types::B256;

/// Parses a hash that a source shows, with its bytes in reverse order as Bitcoin's programs show them. Returns it in internal byte
/// order; `None` if the text is not 64 hexadecimal digits.
pub(super) fn shown_hash(text: &str) -> Option<B256> {
    let mut bytes = [0; 32];
    alloy_primitives::hex::decode_to_slice(text.as_bytes(), &mut bytes).ok()?;
    bytes.reverse();
    (text.len() == 64).then_some(B256::from(bytes))
}

/// The bytes of a text without a prefix; `None` if it is not hexadecimal.
pub(super) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    if text.starts_with("0x") { None } else { alloy_primitives::hex::decode(text).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_in_display_order() {
        let shown = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
        let hash = shown_hash(shown).unwrap();
        assert_eq!((hash[0], hash[31]), (0x06, 0x0f));
        for wrong in ["", "0x", &shown[2..], &format!("0x{shown}"), &shown.replace('0', "g")] {
            assert_eq!(shown_hash(wrong), None, "{wrong}");
        }
    }
}
