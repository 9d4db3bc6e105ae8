//! Private keys of the accounts of a development chain: their addresses, and signatures of transactions, messages and typed data.

use alloc::vec::Vec;
use core::fmt;

use alloy_primitives::{Address, B256, U256, keccak256};
use k256::ecdsa::SigningKey;

use super::typed_data::{TypedDataError, digest};
use crate::types::Transaction;

/// `v` of an EIP-155 signature with chain id 0 and an even y.
const PROTECTED_V: u64 = 35;
/// `v` of a message signature with an even y.
const MESSAGE_V: u8 = 27;
/// The prefix of a signed message, before its length and its bytes (EIP-191, version 0x45).
const MESSAGE_PREFIX: &[u8] = b"\x19Ethereum Signed Message:\n";

/// A secp256k1 private key.
#[derive(Clone)]
pub struct PrivateKey {
    key: SigningKey,
    address: Address,
}

/// Shows the address only, so that the key does not end up in logs.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrivateKey").field(&self.address).finish()
    }
}

impl PrivateKey {
    /// Reads a key from its 32 bytes. Returns `None` for zero and for numbers that are not below the group order.
    #[must_use]
    pub fn new(bytes: &B256) -> Option<Self> {
        let key = SigningKey::from_slice(bytes.as_slice()).ok()?;
        let point = key.verifying_key().to_encoded_point(false);
        let (_, coordinates) = point.as_bytes().split_first()?;
        Some(Self { address: Address::from_word(keccak256(coordinates)), key })
    }

    /// Derives the key of a seed word as the reference node does: the Keccak-256 hash of the word. The seed words of
    /// the reference node's regtest accounts are "cow", "cow1" and so on up to "cow9".
    #[must_use]
    pub fn from_seed(seed: &str) -> Option<Self> {
        Self::new(&keccak256(seed.as_bytes()))
    }

    /// The address of the account that this key controls.
    pub const fn address(&self) -> Address {
        self.address
    }

    /// The key as 32 bytes.
    pub fn to_bytes(&self) -> B256 {
        B256::from(<[u8; 32]>::from(self.key.to_bytes()))
    }

    /// Signs a hash (RFC 6979, low s). Returns r, s and whether y is odd.
    fn sign(&self, hash: &B256) -> Option<(U256, U256, bool)> {
        let (signature, y) = self.key.sign_prehash_recoverable(hash.as_slice()).ok()?;
        let (r, s) = signature.split_bytes();
        let number = |bytes: &[u8]| U256::try_from_be_slice(bytes);
        Some((number(&r)?, number(&s)?, y.is_y_odd()))
    }

    /// Signs a transaction for a chain (EIP-155). Returns `None` if the chain id is too large: `v` is one byte in
    /// Rootstock's transactions.
    pub fn sign_transaction(&self, mut transaction: Transaction, chain_id: u64) -> Option<Transaction> {
        // `v` for an even y; an odd one adds 1, which must fit the byte too.
        let even = chain_id.checked_mul(2)?.checked_add(PROTECTED_V)?;
        transaction.v = u8::try_from(even.checked_add(1)?).ok()?.checked_sub(1)?;
        let (r, s, odd) = self.sign(&transaction.signing_hash())?;
        (transaction.r, transaction.s) = (r, s);
        transaction.v = transaction.v.checked_add(u8::from(odd))?;
        Some(transaction)
    }

    /// Signs a message as `eth_sign` does. Returns r, s and v (27 or 28) in 65 bytes.
    pub fn sign_message(&self, message: &[u8]) -> Option<[u8; 65]> {
        self.sign_hash(&message_hash(message))
    }

    /// Signs typed data in JSON (EIP-712). Returns r, s and v as [`Self::sign_message`] does; `None` if the library fails.
    ///
    /// # Errors
    /// The text is not typed data, a type is not defined, or a value is not of its type.
    pub fn sign_typed_data(&self, json: &str) -> Result<Option<[u8; 65]>, TypedDataError> {
        Ok(self.sign_hash(&digest(json)?))
    }

    /// Signs a hash. Returns r, s and v (27 or 28) in 65 bytes.
    fn sign_hash(&self, hash: &B256) -> Option<[u8; 65]> {
        let (r, s, odd) = self.sign(hash)?;
        let bytes = r.to_be_bytes::<32>().into_iter().chain(s.to_be_bytes::<32>());
        let v = MESSAGE_V.checked_add(u8::from(odd))?;
        let mut out = [0; 65];
        out.iter_mut().zip(bytes.chain([v])).for_each(|(to, from)| *to = from);
        Some(out)
    }
}

/// The hash that is signed of a message (EIP-191, version 0x45).
fn message_hash(message: &[u8]) -> B256 {
    let length = alloc::format!("{}", message.len());
    let text: Vec<u8> = [MESSAGE_PREFIX, length.as_bytes(), message].concat();
    keccak256(text)
}

/// The account that signed a message as [`PrivateKey::sign_message`] does; `None` if no key makes the signature, which is r, s
/// and v (27 or 28) in 65 bytes. Only `personal_ecRecover` uses it, a method of the feature `catalogue`.
#[cfg(feature = "catalogue")]
pub(crate) fn message_signer(message: &[u8], signature: &[u8]) -> Option<Address> {
    use crate::types::{RecoveryId, recover};

    let (r, rest) = signature.split_at_checked(32)?;
    let (s, v) = rest.split_at_checked(32)?;
    let [v] = *v else { return None };
    let odd = v.checked_sub(MESSAGE_V).filter(|odd| *odd < 2)? == 1;
    let number = |bytes: &[u8]| U256::try_from_be_slice(bytes);
    let key = recover(&message_hash(message), &number(r)?, &number(s)?, RecoveryId::of(odd))?;
    Some(Address::from_word(keccak256(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{address, b256, hex};

    #[test]
    fn the_first_cow_account_is_that_of_the_reference_node() {
        let key = PrivateKey::from_seed("cow").unwrap();
        assert_eq!(key.address(), address!("cd2a3d9f938e13cd947ec05abc7fe734df8dd826"));
        assert_eq!(key.to_bytes(), b256!("c85ef7d79691fe79573b1a7064c19c1a9819ebdbd1faaab1a8ec92344438aaf4"));
        assert!(!alloc::format!("{key:?}").contains("c85e"), "the key is not shown");
    }

    /// Recorded from the reference node's `eth_sign`.
    #[test]
    fn a_message_signature_equals_the_reference_nodes() {
        let key = PrivateKey::from_seed("cow").unwrap();
        assert_eq!(
            hex::encode(key.sign_message(&hex!("deadbeef")).unwrap()),
            "7a962b63cef41a9cc1d3a6805da9f982a2a562b2d7a1ee75c78e5cd4464db9bf\
             6e2b425bae2ce2c74a47631a2ec67c7efcc3dade1201fd5306443b85ec6116071b"
        );
    }

    #[test]
    fn the_sender_of_a_signed_transaction_is_the_keys_address() {
        let key = PrivateKey::from_seed("cow1").unwrap();
        let unsigned = Transaction { to: Some(Address::ZERO), v: 0, ..Transaction::remasc(5) };
        for chain_id in [1, 33, 109] {
            let signed = key.sign_transaction(unsigned.clone(), chain_id).unwrap();
            assert_eq!(signed.recover_sender(chain_id), Ok(key.address()));
        }
        assert!(key.sign_transaction(unsigned, 110).is_none(), "v is one byte");
    }

    #[test]
    fn zero_and_numbers_above_the_group_order_are_not_keys() {
        assert!(PrivateKey::new(&B256::ZERO).is_none());
        assert!(PrivateKey::new(&B256::repeat_byte(0xff)).is_none());
    }
}
