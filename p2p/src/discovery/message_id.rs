//! Ids of messages, by which an answer names its question: version 4 UUIDs, written as text.

use core::fmt;

use alloy_primitives::hex;

use super::error::DatagramError;

/// Characters of a UUID.
pub(super) const TEXT_BYTES: usize = 36;
/// Positions of the dashes in the text.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// The id of a question, which its answer repeats. The text is that of a version 4 UUID in lower case; the reference implementation
/// does not answer messages with other ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId([u8; 16]);

impl MessageId {
    /// An id of random bytes; six of the bits are replaced by version and variant.
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(u128::to_be_bytes(
            u128::from_be_bytes(random) & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62),
        ))
    }

    /// Reads the text.
    pub fn from_text(text: &[u8]) -> Result<Self, DatagramError> {
        let mut digits = [0; 32];
        let is_dash = |at: &usize| DASHES.contains(at);
        let plain = text.iter().enumerate().filter(|(at, _)| !is_dash(at)).map(|(_, byte)| *byte);
        digits.iter_mut().zip(plain).for_each(|(to, from)| *to = from);
        let mut bytes = [0; 16];
        let decoded = text.len() == TEXT_BYTES && hex::decode_to_slice(digits, &mut bytes).is_ok();
        let id = Self(bytes);
        // Comparing with the text of the id checks dashes and case at once: an id has one text only.
        if decoded && bytes.get(6).is_some_and(|byte| byte >> 4 == 4) && id.text() == *text {
            Ok(id)
        } else {
            Err(DatagramError::MessageId)
        }
    }

    /// The text: 36 bytes of ASCII.
    pub fn text(&self) -> [u8; TEXT_BYTES] {
        let mut digits = [0; 32];
        // The buffer has the right length, so this cannot fail.
        let _ = hex::encode_to_slice(self.0, &mut digits);
        let mut text = [b'-'; TEXT_BYTES];
        let targets = text.iter_mut().enumerate().filter(|(at, _)| !DASHES.contains(at));
        targets.zip(digits).for_each(|((_, to), from)| *to = from);
        text
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(core::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_is_read_from_its_text_and_no_other(random in any::<[u8; 16]>(), at in 0..TEXT_BYTES, byte in any::<u8>()) {
            let id = MessageId::from_random(random);
            let text = id.text();
            prop_assert_eq!(MessageId::from_text(&text), Ok(id));
            prop_assert_eq!(text[14], b'4');
            prop_assert!(b"89ab".contains(&text[19]));
            let mut other = text;
            other[at] = byte;
            match MessageId::from_text(&other) {
                Ok(read) => prop_assert_eq!(read.text(), other),
                Err(error) => prop_assert_eq!(error, DatagramError::MessageId),
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let text = "578e3de2-7b80-460a-bf1e-ff131830076f";
        assert_eq!(MessageId::from_text(text.as_bytes()).unwrap().to_string(), text);
        for wrong in [
            "",
            "578e3de2-7b80-160a-bf1e-ff131830076f",
            "578E3de2-7b80-460a-bf1e-ff131830076f",
            "578e3de2-7b80-460a-bf1e-ff131830076",
            "578e3de2-7b80-460a-bf1e-ff131830076f0",
            "578e3de2-7b80-460a-bf1eaff131830076f",
            "578e3de27b80460abf1eff131830076f",
        ] {
            assert_eq!(MessageId::from_text(wrong.as_bytes()), Err(DatagramError::MessageId), "{wrong}");
        }
    }
}
