//! The write side of the state: what a block changes, over the trie it starts from.

use alloc::collections::BTreeMap;

use alloc::vec::Vec;

use alloy_primitives::map::{AddressMap, Entry, HashMap};
use alloy_primitives::{keccak256, Address, Bytes, B256, KECCAK256_EMPTY, U256};

use super::access::{Access, AccessKey, Touches};
use super::account::Account;
use super::keys::{
    account_key, code_key_below, slot_key_below, storage_root_key_below, ACCOUNT_KEY_LEN, REMASC_SENDER_KEY,
};
use super::storage_walk::storage_words_up_to;
use crate::trie::Trie;

/// A state that can be changed: an overlay that remembers what was read and holds what is new, until
/// [`World::commit`] writes it into the trie in one go.
///
/// It notes by itself which keys are looked at, where somebody asks for that. Which ones are touched in
/// the eyes of parallel lists only the code that runs transactions knows; it says so by [`World::touches`].
///
/// Nothing here fails. A trie made by this crate holds only accounts that decode; one from elsewhere
/// that does not reads as empty accounts there, and gives another root.
#[derive(Clone, Debug)]
pub struct World {
    base: Trie,
    held: AddressMap<Held>,
    /// Nonce of the REMASC transaction's sender, which has no address of 20 bytes.
    remasc_nonce: Option<u64>,
    /// Keys looked at, where somebody asks for them.
    access: Option<Access>,
    /// Keys touched in the eyes of parallel lists, where there are such lists.
    touches: Option<Touches>,
}

/// Hash and length of a code.
type CodeId = (B256, usize);

/// What is known of one account.
#[derive(Clone, Debug)]
struct Held {
    key: [u8; ACCOUNT_KEY_LEN],
    account: Option<Account>,
    account_written: bool,
    /// The account was deleted with everything below it: the base has nothing of it any more.
    wiped: bool,
    code: Option<CodeId>,
    new_code: Option<Bytes>,
    marker: Option<bool>,
    marker_written: bool,
    cells: HashMap<U256, Cell>,
}

#[derive(Clone, Debug)]
struct Cell {
    value: Bytes,
    written: bool,
}

impl Held {
    fn load(base: &Trie, address: &Address) -> Self {
        let key = account_key(address);
        let account = base.get(&key).map(|bytes| Account::decode(bytes).unwrap_or_default());
        Self {
            key,
            account,
            account_written: false,
            wiped: false,
            code: None,
            new_code: None,
            marker: None,
            marker_written: false,
            cells: HashMap::default(),
        }
    }

    fn account_mut(&mut self) -> &mut Account {
        self.account_written = true;
        self.account.get_or_insert_default()
    }

    fn code_id(&mut self, base: &Trie) -> CodeId {
        let (wiped, key) = (self.wiped, self.key);
        *self.code.get_or_insert_with(|| {
            let stored = if wiped { None } else { base.value_hash(&code_key_below(&key)) };
            stored.unwrap_or((KECCAK256_EMPTY, 0))
        })
    }

    fn marker(&mut self, base: &Trie) -> bool {
        let (wiped, key) = (self.wiped, self.key);
        *self.marker.get_or_insert_with(|| !wiped && base.get(&storage_root_key_below(&key)).is_some())
    }

    fn cell(&mut self, base: &Trie, slot: &U256) -> &Bytes {
        let (wiped, key) = (self.wiped, self.key);
        let cell = self.cells.entry(*slot).or_insert_with(|| {
            let stored = if wiped { None } else { base.get(&slot_key_below(&key, slot)) };
            Cell { value: stored.cloned().unwrap_or_default(), written: false }
        });
        &cell.value
    }
}

impl World {
    /// The state of a trie, nothing changed yet.
    pub fn new(base: Trie) -> Self {
        Self { base, held: AddressMap::default(), remasc_nonce: None, access: None, touches: None }
    }

    /// From now on remembers which keys are looked at; forgets what it has remembered.
    pub fn track_access(&mut self) {
        self.access = Some(Access::default());
    }

    /// What was looked at since [`World::track_access`].
    pub fn take_access(&mut self) -> Access {
        self.access.take().unwrap_or_default()
    }

    /// From now on has a place for touches; forgets those it has.
    pub fn track_touches(&mut self) {
        self.touches = Some(Touches::default());
    }

    /// Where touches are to be noted, if anybody wants them.
    pub fn touches(&mut self) -> Option<&mut Touches> {
        self.touches.as_mut()
    }

    /// What was touched since [`World::track_touches`].
    pub fn take_touches(&mut self) -> Touches {
        self.touches.take().unwrap_or_default()
    }

    /// Notes that a whole storage is listed.
    pub fn note_listing(&mut self, address: &Address) {
        if let Some(access) = &mut self.access {
            access.listed.insert(*address);
        }
    }

    fn note(&mut self, key: AccessKey) {
        if let Some(access) = &mut self.access {
            access.keys.insert(key);
        }
    }

    fn held(&mut self, address: &Address) -> (&mut Held, &Trie) {
        let base = &self.base;
        (self.held.entry(*address).or_insert_with(|| Held::load(base, address)), base)
    }

    fn held_noted(&mut self, address: &Address) -> (&mut Held, &Trie) {
        self.note(AccessKey::Account(*address));
        self.held(address)
    }

    fn held_to_write(&mut self, address: &Address) -> &mut Held {
        self.held_noted(address).0
    }

    /// Nonce and balance; `None` where there is no account.
    pub fn account(&mut self, address: &Address) -> Option<Account> {
        self.held_noted(address).0.account
    }

    /// Wei by which the balance of an account that was read lies below zero.
    pub fn debt(&self, address: &Address) -> U256 {
        self.held.get(address).and_then(|held| held.account).map_or(U256::ZERO, |account| account.debt)
    }

    /// Sets nonce and balance, creating the account.
    pub fn set_account(&mut self, address: &Address, account: Account) {
        *self.held_to_write(address).account_mut() = account;
    }

    /// Puts nonce and balance back as [`World::account`] gave them, or takes the account away again.
    pub fn restore(&mut self, address: &Address, account: Option<Account>) {
        if let Some(held) = self.held.get_mut(address) {
            held.account = account;
            held.account_written = account.is_some();
        }
    }

    /// Creates the account if there is none.
    pub fn create(&mut self, address: &Address) {
        if self.account(address).is_none() {
            self.held_to_write(address).account_mut();
        }
    }

    /// Adds wei, creating the account.
    pub fn credit(&mut self, address: &Address, amount: U256) {
        if amount.is_zero() {
            return self.create(address);
        }
        self.held_to_write(address).account_mut().credit(amount);
    }

    /// Takes wei away, creating the account; the balance may fall below zero.
    pub fn charge(&mut self, address: &Address, amount: U256) {
        if amount.is_zero() {
            return self.create(address);
        }
        self.held_to_write(address).account_mut().charge(amount);
    }

    /// Adds one to the nonce, creating the account.
    pub fn bump_nonce(&mut self, address: &Address) {
        let account = self.held_to_write(address).account_mut();
        account.nonce = account.nonce.saturating_add(1);
    }

    /// Hash and length in bytes of the code; those of no bytes where there is none.
    pub fn code_id(&mut self, address: &Address) -> (B256, usize) {
        let (held, base) = self.held_noted(address);
        held.code_id(base)
    }

    /// The code, empty where there is none.
    pub fn code_of(&mut self, address: &Address) -> Bytes {
        let (held, base) = self.held_noted(address);
        match &held.new_code {
            Some(code) => code.clone(),
            None if held.wiped => Bytes::new(),
            None => base.get(&code_key_below(&held.key)).cloned().unwrap_or_default(),
        }
    }

    /// Sets the code.
    pub fn set_code(&mut self, address: &Address, code: Bytes) {
        let held = self.held_to_write(address);
        held.code = Some((keccak256(&code), code.len()));
        held.new_code = Some(code);
    }

    /// Whether the account has the storage-root marker.
    pub fn marker(&mut self, address: &Address) -> bool {
        let (held, base) = self.held_noted(address);
        held.marker(base)
    }

    /// Sets the storage-root marker.
    pub fn set_marker(&mut self, address: &Address) {
        let held = self.held_to_write(address);
        held.marker = Some(true);
        held.marker_written = true;
    }

    /// Bytes of a storage cell, empty where there are none.
    pub fn cell(&mut self, address: &Address, slot: &U256) -> Bytes {
        self.note(AccessKey::Cell(*address, *slot));
        let (held, base) = self.held(address);
        held.cell(base, slot).clone()
    }

    /// A storage cell as a word; longer values, which only native contracts keep, give their end.
    pub fn word(&mut self, address: &Address, slot: &U256) -> U256 {
        self.note(AccessKey::Cell(*address, *slot));
        let (held, base) = self.held(address);
        let bytes = held.cell(base, slot);
        let tail = bytes.len().saturating_sub(32);
        U256::try_from_be_slice(bytes.get(tail..).unwrap_or_default()).unwrap_or_default()
    }

    /// Writes a storage cell; no bytes remove it. A missing account comes to be, as a contract.
    pub fn set_cell(&mut self, address: &Address, slot: &U256, value: Bytes) {
        if self.account(address).is_none() {
            self.create(address);
            self.set_marker(address);
        }
        self.note(AccessKey::Cell(*address, *slot));
        self.held(address).0.cells.insert(*slot, Cell { value, written: true });
    }

    /// Writes a word to a storage cell; zero removes it.
    pub fn set_word(&mut self, address: &Address, slot: &U256, word: U256) {
        self.set_cell(address, slot, word.to_be_bytes_trimmed_vec().into());
    }

    /// All storage words of an account that are not zero, as they are now, or `None` where the trie has more
    /// than `limit`; longer values are left out.
    pub fn storage_words(&self, address: &Address, limit: usize) -> Option<BTreeMap<U256, U256>> {
        let held = self.held.get(address);
        let wiped = held.is_some_and(|held| held.wiped);
        let mut words =
            if wiped { BTreeMap::new() } else { storage_words_up_to(&self.base, address, limit)? };
        for (slot, cell) in held.into_iter().flat_map(|held| &held.cells) {
            match U256::try_from_be_slice(&cell.value).filter(|word| !word.is_zero()) {
                Some(word) => words.insert(*slot, word),
                None => words.remove(slot),
            };
        }
        Some(words)
    }

    /// Deletes an account with its code, marker and storage.
    pub fn remove(&mut self, address: &Address) {
        let held = self.held_to_write(address);
        *held = Held {
            key: held.key,
            account: None,
            account_written: false,
            wiped: true,
            code: None,
            new_code: None,
            marker: None,
            marker_written: false,
            cells: HashMap::default(),
        };
    }

    /// Nonce of the REMASC transaction's sender: the number of REMASC transactions so far.
    pub fn remasc_nonce(&self) -> u64 {
        self.remasc_nonce.unwrap_or_else(|| {
            let stored = self.base.get(&REMASC_SENDER_KEY).map(|bytes| Account::decode(bytes));
            stored.and_then(Result::ok).map_or(0, |account| account.nonce)
        })
    }

    /// Adds one to it.
    pub fn bump_remasc_nonce(&mut self) {
        self.remasc_nonce = Some(self.remasc_nonce().saturating_add(1));
    }

    /// Takes over what another overlay of the same base has written; for parallel lists, which have
    /// nothing in common.
    pub fn merge(&mut self, other: Self) {
        for (address, theirs) in other.held {
            match self.held.entry(address) {
                Entry::Occupied(mut ours) => ours.get_mut().merge(theirs),
                Entry::Vacant(free) => {
                    free.insert(theirs);
                }
            }
        }
    }

    /// The trie with everything that was written.
    pub fn commit(self) -> Trie {
        let mut trie = self.base;
        let mut puts = Vec::new();
        for held in self.held.into_values() {
            if held.wiped {
                trie.delete_subtree(&held.key);
            }
            held.write(&mut puts);
        }
        if let Some(nonce) = self.remasc_nonce {
            let account = Account { nonce, ..Account::default() };
            puts.push((REMASC_SENDER_KEY.to_vec(), account.encode().into()));
        }
        trie.put_all(puts);
        trie
    }
}

impl Held {
    /// Takes over what the other one has written. Both may have written cells of the same contract,
    /// other things only one of them.
    fn merge(&mut self, theirs: Self) {
        if theirs.wiped && !self.wiped {
            *self = theirs;
            return;
        }
        if theirs.account_written {
            (self.account, self.account_written) = (theirs.account, true);
        }
        if theirs.new_code.is_some() {
            (self.code, self.new_code) = (theirs.code, theirs.new_code);
        }
        if theirs.marker_written {
            (self.marker, self.marker_written) = (theirs.marker, true);
        }
        self.cells.extend(theirs.cells.into_iter().filter(|(_, cell)| cell.written));
    }

    /// Adds what was written; no bytes remove a value.
    fn write(self, puts: &mut Vec<(Vec<u8>, Bytes)>) {
        if let (true, Some(account)) = (self.account_written, &self.account) {
            puts.push((self.key.to_vec(), account.encode().into()));
        }
        if let Some(code) = self.new_code {
            puts.push((code_key_below(&self.key).to_vec(), code));
        }
        if self.marker_written {
            puts.push((storage_root_key_below(&self.key).to_vec(), Bytes::from_static(&[1])));
        }
        for (slot, cell) in self.cells {
            if cell.written {
                puts.push((slot_key_below(&self.key, &slot), cell.value));
            }
        }
    }
}
