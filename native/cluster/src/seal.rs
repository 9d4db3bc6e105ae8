//! Values that front ends keep in the store for each other.
//!
//! The store is shared and holds nothing secret. Whoever can write to it must not be able to put words into the mouth of a
//! front end, so each value has a code that only front ends can make: Keccak-256 of a common secret, the place of the
//! value and the value. Keccak needs no further construction for that (it is a sponge: a code of a prefix says nothing
//! about a longer text).

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

    fn code(&self, store_key: &str, value: &[u8]) -> B256 {
        let mut hasher = Keccak256::new();
        hasher.update(self.secret);
        hasher.update((store_key.len() as u64).to_be_bytes());
        hasher.update(store_key);
        hasher.update(value);
        hasher.finalize()
    }

    pub(crate) fn seal(&self, store_key: &str, value: &[u8]) -> Vec<u8> {
        [self.code(store_key, value).as_slice(), value].concat()
    }

    /// The value of a sealed one; `None` if no front end has put it at this key.
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
