//! Keys derived from a mnemonic: BIP-39 seed, BIP-32 derivation, path `m/44'/60'/0'/0/i` (BIP-44), as in anvil and hardhat.

use alloc::string::String;

use alloy_primitives::B256;
use bip32::{ChildNumber, DerivationPath, XPrv};
use pbkdf2::pbkdf2_hmac_array;
use sha2::Sha512;

use super::key::PrivateKey;

/// The mnemonic of anvil's and hardhat's default accounts.
pub const DEFAULT_MNEMONIC: &str = "test test test test test test test test test test test junk";

/// Number of PBKDF2 rounds in BIP-39.
const ROUNDS: u32 = 2_048;
/// The path to the account key, of which the keys of all accounts are children.
const ACCOUNT_PATH: &str = "m/44'/60'/0'/0";

/// The keys that derive from a mnemonic.
#[derive(Clone)]
pub struct Mnemonic {
    account: XPrv,
}

impl core::fmt::Debug for Mnemonic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Mnemonic")
    }
}

impl Mnemonic {
    /// Derives the account key of a mnemonic with an empty passphrase. Any white space separates words. Neither the
    /// word list nor the checksum is checked, so any text gives keys. Returns `None` if a derived key is out of
    /// range, which has a probability of about 2^-127.
    #[must_use]
    pub fn new(phrase: &str) -> Option<Self> {
        let words: alloc::vec::Vec<&str> = phrase.split_whitespace().collect();
        let phrase: String = words.join(" ");
        let seed = pbkdf2(phrase.as_bytes(), b"mnemonic");
        let path: DerivationPath = ACCOUNT_PATH.parse().ok()?;
        XPrv::derive_from_path(seed, &path).ok().map(|account| Self { account })
    }

    /// The key at `m/44'/60'/0'/0/index`.
    pub fn key(&self, index: u32) -> Option<PrivateKey> {
        let key = self.account.derive_child(ChildNumber(index)).ok()?;
        PrivateKey::new(&B256::from(key.to_bytes()))
    }
}

/// PBKDF2 with HMAC-SHA-512: 2,048 rounds, 64 bytes, as in BIP-39.
pub(super) fn pbkdf2(password: &[u8], salt: &[u8]) -> [u8; 64] {
    pbkdf2_hmac_array::<Sha512, 64>(password, salt, ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{address, hex};

    /// The accounts that anvil and hardhat print when they start.
    #[test]
    fn the_default_accounts_equal_anvils() {
        let mnemonic = Mnemonic::new(DEFAULT_MNEMONIC).unwrap();
        let expected = [
            address!("f39fd6e51aad88f6f4ce6ab8827279cfffb92266"),
            address!("70997970c51812dc3a010c7d01b50e0d17dc79c8"),
            address!("3c44cdddb6a900fa2b585dd299e03d12fa4293bc"),
        ];
        for (index, address) in expected.into_iter().enumerate() {
            assert_eq!(mnemonic.key(index as u32).unwrap().address(), address);
        }
        assert_eq!(mnemonic.key(9).unwrap().address(), address!("a0ee7a142d267c1f36714e4a8f75612f20a79720"));
        assert_eq!(
            hex::encode(mnemonic.key(0).unwrap().to_bytes()),
            "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
        );
    }

    /// BIP-39's first test vector, which has the passphrase TREZOR.
    #[test]
    fn the_seed_matches_the_bip_39_test_vector() {
        let words =
            "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";
        assert_eq!(
            hex::encode(pbkdf2(words.as_bytes(), b"mnemonicTREZOR")),
            "c55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e53495531f09a6987599d18264c1e1c92f2cf141630c7a3c4ab7c81b2f001698e7463b04"
        );
    }

    #[test]
    fn white_space_does_not_matter() {
        let spaced =
            Mnemonic::new(" test  test test test test test test test\ttest test test junk\n").unwrap();
        assert_eq!(spaced.key(0).unwrap().address(), address!("f39fd6e51aad88f6f4ce6ab8827279cfffb92266"));
    }
}
