//! Authenticates the values that front ends put into the hot store for each other.
//!
//! Other programs may be able to write to the store, and must not be able to forge a value of a front end. So each value begins
//! with a code of 32 bytes that only front ends can make: Keccak-256 of a common secret, the value's key in the store (with its
//! length) and the value. Values are not encrypted. Keccak needs no construction such as HMAC for this, because it is a
//! sponge: the code of a text does not reveal the codes of longer texts that begin with it.

use alloy_primitives::{B256, Keccak256};
use subtle::ConstantTimeEq as _;

/// Makes and checks the codes of values.
#[derive(Clone)]
pub(crate) struct Seal {
    secret: B256,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// Codes with this secret, which all front ends of a service have.
    pub(crate) const fn new(secret: B256) -> Self {
        Self { secret }
    }

    /// The code of a value at a key of the store.
    fn code(&self, store_key: &str, value: &[u8]) -> B256 {
        let mut hasher = Keccak256::new();
        hasher.update(self.secret);
        hasher.update((store_key.len() as u64).to_be_bytes());
        hasher.update(store_key);
        hasher.update(value);
        hasher.finalize()
    }

    /// The value with its code before it.
    pub(crate) fn seal(&self, store_key: &str, value: &[u8]) -> Vec<u8> {
        [self.code(store_key, value).as_slice(), value].concat()
    }

    /// The value without its code; `None` if no front end has sealed it for this key.
    pub(crate) fn unseal<'a>(&self, store_key: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (code, value) = sealed.split_first_chunk::<32>()?;
        bool::from(code.ct_eq(&self.code(store_key, value).0)).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_put_at_a_place_is_read_there() {
        let seal = Seal::new(B256::repeat_byte(1));
        let sealed = seal.seal("f:1", b"value");
        assert_eq!(seal.unseal("f:1", &sealed), Some(&b"value"[..]));
        assert_eq!(seal.unseal("f:2", &sealed), None);
        assert_eq!(Seal::new(B256::repeat_byte(2)).unseal("f:1", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(seal.unseal("f:1", &changed), None);
            assert_eq!(seal.unseal("f:1", &sealed[..at]), None);
        }
    }
}
