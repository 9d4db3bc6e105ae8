//! The text of an API key, `id.secret`: making it, parsing it, and comparing its secret with the stored hash.

use std::fmt;

use alloy_primitives::B256;
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Random bytes of an id, which become 8 characters in base 32.
const ID_BYTES: usize = 5;
/// Characters of an id.
const ID_CHARS: usize = 8;
/// Random bytes of a secret, which become 43 characters in base 64.
const SECRET_BYTES: usize = 32;
/// Characters of a secret.
const SECRET_CHARS: usize = 43;

/// A key as a client sends it. `Debug` shows the id only.
pub struct KeyText {
    id: String,
    secret: [u8; SECRET_BYTES],
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyText").field("id", &self.id).finish_non_exhaustive()
    }
}

impl KeyText {
    /// Makes a key of random numbers.
    ///
    /// # Errors
    /// The operating system provides no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        Ok(Self { id: BASE32_NOPAD.encode(&id).to_ascii_lowercase(), secret })
    }

    /// Parses a path segment. Percent-encoded characters are not decoded, because no key needs them. `None` if no key
    /// has this form.
    #[must_use]
    pub fn parse(segment: &str) -> Option<Self> {
        let (id, secret) = segment.split_once('.')?;
        if !is_id(id) || secret.len() != SECRET_CHARS {
            return None;
        }
        let secret = BASE64URL_NOPAD.decode(secret.as_bytes()).ok()?;
        Some(Self { id: id.to_owned(), secret: secret.try_into().ok()? })
    }

    /// The id, which is not secret.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The whole key, to be shown to its owner once.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.id, BASE64URL_NOPAD.encode(&self.secret))
    }

    /// The hash of the secret.
    #[must_use]
    pub fn hash(&self) -> B256 {
        hash(&self.secret)
    }

    /// Whether the secret has this hash. `None` stands for an unknown id: the comparison takes the same time and is false.
    #[must_use]
    pub fn has(&self, hash: Option<&B256>) -> bool {
        let expected = hash.copied().unwrap_or_default();
        let equal = self.hash().0.ct_eq(&expected.0);
        (equal & u8::from(hash.is_some()).into()).into()
    }
}

/// Whether a text has the form of an id.
pub fn is_id(text: &str) -> bool {
    text.len() == ID_CHARS && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
}

/// SHA-256 of a secret. A slow hash protects passwords, which can be guessed; 256 random bits cannot.
#[must_use]
pub fn hash(secret: &[u8]) -> B256 {
    B256::from(<[u8; 32]>::from(Sha256::digest(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_text() {
        let key = KeyText::random().unwrap();
        let text = key.reveal();
        assert_eq!(text.len(), ID_CHARS + 1 + SECRET_CHARS);
        let read = KeyText::parse(&text).unwrap();
        assert_eq!((read.id(), read.hash()), (key.id(), key.hash()));
        assert!(read.has(Some(&key.hash())) && !read.has(None) && !read.has(Some(&B256::ZERO)));
    }

    #[test]
    fn debug_shows_no_secret() {
        let key = KeyText::random().unwrap();
        let (shown, text) = (format!("{key:?}"), key.reveal());
        assert!(shown.contains(key.id()) && !shown.contains(&text[9..]), "{shown}");
    }

    #[test]
    fn texts_of_another_form_are_no_keys() {
        let text = KeyText::random().unwrap().reveal();
        for bad in [
            String::new(),
            ".".into(),
            text[..8].into(),
            text[9..].into(),
            text.to_uppercase(),
            format!("{text}A"),
            text[..51].into(),
            text.replace('.', "%2e"),
            format!("{}!", &text[..51]),
            format!("{text}.{text}"),
            "a".repeat(100_000),
            "health".into(),
        ] {
            assert!(KeyText::parse(&bad).is_none(), "{}", &bad[..bad.len().min(60)]);
        }
    }
}
