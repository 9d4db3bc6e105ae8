//! The keys with which the development chain signs: unlocked ones, and encrypted ones that a passphrase unlocks (methods `personal_*`).
//! Also the accounts that may send without a signature (impersonated ones).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, keccak256};

use super::key::PrivateKey;
use super::mnemonic::pbkdf2;

/// The default time in milliseconds for which an account stays unlocked, as in the reference node.
pub const DEFAULT_UNLOCK_MS: u64 = 30 * 60 * 1000;

/// A key encrypted with a passphrase. The passphrase is right if the decrypted key has the account's address.
#[derive(Debug, Clone, Copy)]
struct EncryptedKey {
    salt: B256,
    /// The key, encrypted by [`mask`].
    masked: B256,
}

impl EncryptedKey {
    /// Encrypts a key. `salt` must be random.
    fn new(key: &PrivateKey, passphrase: &str, salt: B256) -> Self {
        Self { salt, masked: mask(key.to_bytes(), passphrase, &salt) }
    }

    /// The key; `None` if the passphrase is wrong.
    fn decrypt(&self, address: Address, passphrase: &str) -> Option<PrivateKey> {
        let key = PrivateKey::new(&mask(self.masked, passphrase, &self.salt))?;
        (key.address() == address).then_some(key)
    }
}

/// Encrypts or decrypts bytes with a key stream derived from the passphrase and the salt.
fn mask(bytes: B256, passphrase: &str, salt: &B256) -> B256 {
    bytes ^ keccak256(pbkdf2(passphrase.as_bytes(), salt.as_slice()))
}

/// A key with which the account can sign.
#[derive(Debug, Clone)]
struct UnlockedKey {
    key: PrivateKey,
    /// Time in milliseconds since 1970 after which the account is locked; `None` if it stays unlocked.
    until: Option<u64>,
}

/// The reason why an account was not unlocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum UnlockError {
    /// The wallet has no key of this account that is protected by a passphrase.
    #[error("account {0} is not in the key store")]
    Unknown(Address),
    #[error("wrong passphrase for account {0}")]
    Passphrase(Address),
}

/// Keys of accounts, in memory only. An account can have an unlocked key, an encrypted one, or both.
#[derive(Debug, Clone, Default)]
pub struct Wallet {
    /// Accounts that were added without a passphrase, in the order of adding; `eth_accounts` lists them first.
    initial: Vec<Address>,
    unlocked: BTreeMap<Address, UnlockedKey>,
    encrypted: BTreeMap<Address, EncryptedKey>,
    /// Accounts that may send transactions although the wallet does not have their keys.
    impersonated: BTreeSet<Address>,
    /// Whether every account may send transactions without a signature.
    impersonate_all: bool,
}

impl Wallet {
    /// Adds a key that is always unlocked. Accounts are listed in the order in which they were added.
    pub fn add(&mut self, key: PrivateKey) -> Address {
        let address = key.address();
        if !self.initial.contains(&address) {
            self.initial.push(address);
        }
        self.unlocked.insert(address, UnlockedKey { key, until: None });
        address
    }

    /// Adds a key protected by a passphrase and unlocks it for [`DEFAULT_UNLOCK_MS`] from `now_ms` on. `salt` must be
    /// random.
    pub fn add_sealed(&mut self, key: PrivateKey, passphrase: &str, salt: B256, now_ms: u64) -> Address {
        let address = key.address();
        self.encrypted.insert(address, EncryptedKey::new(&key, passphrase, salt));
        let until = Some(now_ms.saturating_add(DEFAULT_UNLOCK_MS));
        self.unlocked.insert(address, UnlockedKey { key, until });
        address
    }

    /// All accounts, unlocked or locked; those added without a passphrase come first.
    pub fn addresses(&self) -> Vec<Address> {
        let others = self.unlocked.keys().chain(self.encrypted.keys()).copied().collect::<BTreeSet<_>>();
        let others = others.into_iter().filter(|address| !self.initial.contains(address));
        self.initial.iter().copied().chain(others).collect()
    }

    /// The key of an account that is unlocked at `now_ms` (milliseconds since 1970).
    pub fn key(&self, address: &Address, now_ms: u64) -> Option<&PrivateKey> {
        let unlocked = self.unlocked.get(address)?;
        unlocked.until.is_none_or(|until| now_ms <= until).then_some(&unlocked.key)
    }

    /// Decrypts the key of an account without unlocking the account.
    pub fn key_with(&self, address: Address, passphrase: &str) -> Result<PrivateKey, UnlockError> {
        let encrypted = self.encrypted.get(&address).ok_or(UnlockError::Unknown(address))?;
        encrypted.decrypt(address, passphrase).ok_or(UnlockError::Passphrase(address))
    }

    /// Unlocks an account until `until_ms` (milliseconds since 1970).
    pub fn unlock(&mut self, address: Address, passphrase: &str, until_ms: u64) -> Result<(), UnlockError> {
        let key = self.key_with(address, passphrase)?;
        self.unlocked.insert(address, UnlockedKey { key, until: Some(until_ms) });
        Ok(())
    }

    /// Locks an account; returns `false` if it was not unlocked. A key without a passphrase is lost, as in the
    /// reference node.
    pub fn lock(&mut self, address: &Address) -> bool {
        self.unlocked.remove(address).is_some()
    }

    /// Lets an account send without a signature. Returns `false` if this was called for the account before.
    pub fn impersonate(&mut self, address: Address) -> bool {
        self.impersonated.insert(address)
    }

    /// Ends the impersonation of an account. Returns `false` if it was not impersonated.
    pub fn stop_impersonating(&mut self, address: &Address) -> bool {
        self.impersonated.remove(address)
    }

    /// Sets whether every account may send without a signature.
    pub fn set_impersonate_all(&mut self, all: bool) {
        self.impersonate_all = all;
    }

    /// Whether an account may send without a signature.
    pub fn is_impersonated(&self, address: &Address) -> bool {
        self.impersonate_all || self.impersonated.contains(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: &str) -> PrivateKey {
        PrivateKey::from_seed(seed).unwrap()
    }

    #[test]
    fn accounts_with_a_passphrase_are_unlocked_and_locked() {
        let mut wallet = Wallet::default();
        let address = wallet.add_sealed(key("a"), "pass", B256::repeat_byte(1), 1_000);
        assert!(wallet.key(&address, 1_000 + DEFAULT_UNLOCK_MS).is_some());
        assert!(wallet.key(&address, 1_001 + DEFAULT_UNLOCK_MS).is_none());
        assert!(wallet.lock(&address) && !wallet.lock(&address));
        assert!(wallet.key(&address, 1_000).is_none());
        assert_eq!(wallet.unlock(address, "other", 5_000), Err(UnlockError::Passphrase(address)));
        assert_eq!(wallet.unlock(address, "pass", 5_000), Ok(()));
        assert!(wallet.key(&address, 5_000).is_some() && wallet.key(&address, 5_001).is_none());
        let stranger = Address::repeat_byte(9);
        assert_eq!(wallet.unlock(stranger, "x", 0), Err(UnlockError::Unknown(stranger)));
        assert_eq!(wallet.key_with(address, "pass").unwrap().to_bytes(), key("a").to_bytes());
    }

    #[test]
    fn accounts_are_listed_in_the_order_in_which_they_were_added() {
        let mut wallet = Wallet::default();
        let first: Vec<Address> = ["z", "y", "x", "z"].map(|seed| wallet.add(key(seed))).to_vec();
        let sealed = wallet.add_sealed(key("w"), "", B256::ZERO, 0);
        assert_eq!(wallet.addresses(), [first[0], first[1], first[2], sealed]);
        wallet.lock(&sealed);
        assert_eq!(wallet.addresses().len(), 4, "a locked account is still listed");
    }

    #[test]
    fn impersonation_starts_and_ends_for_one_account_and_for_all() {
        let mut wallet = Wallet::default();
        let address = Address::repeat_byte(7);
        assert!(wallet.impersonate(address) && wallet.is_impersonated(&address));
        assert!(wallet.stop_impersonating(&address) && !wallet.is_impersonated(&address));
        wallet.set_impersonate_all(true);
        assert!(wallet.is_impersonated(&address));
    }
}
