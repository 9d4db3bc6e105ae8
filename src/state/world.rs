//! Writes to the state: the changes of a block's transactions as an overlay over a trie in memory.

use alloc::collections::BTreeMap;

use alloc::vec::Vec;

use alloy_primitives::map::{AddressMap, Entry, HashMap};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};

use super::access::{Access, AccessKey, Touches};
use super::account::Account;
use super::keys::{
    ACCOUNT_KEY_LEN, REMASC_SENDER_KEY, account_key, code_key_below, slot_key_below, storage_root_key_below,
};
use super::storage_walk::storage_words_up_to;
use crate::trie::Trie;

/// A state that can be changed. The overlay contains the accounts that were read, with their changes, until
/// [`World::commit`] writes all changes into the trie at once.
///
/// If tracking is on, the overlay records which keys are read. Which keys count as touched for parallel lists (RSKIP-144, see
/// [`Touches`]) only the code that runs transactions can tell; that code records them with [`World::touches`].
///
/// No operation fails. Tries built by this crate contain only accounts that decode. An account from another
/// trie that does not decode is read as empty, and the resulting root differs.
#[derive(Clone, Debug)]
pub struct World {
    base: Trie,
    cached: AddressMap<CachedAccount>,
    /// Nonce of the REMASC transaction's sender, whose address does not have 20 bytes.
    remasc_nonce: Option<u64>,
    /// Keys that were read, if tracking is on.
    access: Option<Access>,
    /// Keys touched for the purposes of parallel lists, if tracking is on.
    touches: Option<Touches>,
}

/// Hash and length in bytes of an account's code.
type CodeId = (B256, usize);

/// The cached and changed parts of one account.
#[derive(Clone, Debug)]
struct CachedAccount {
    /// Key of the account in the state trie.
    key: [u8; ACCOUNT_KEY_LEN],
    /// Nonce and balance; `None` if the account does not exist.
    account: Option<Account>,
    account_written: bool,
    /// Whether the account of the base was deleted with everything below it, so no part of it is read from the base.
    wiped: bool,
    /// Hash and length of the code; `None` if they were not read.
    code: Option<CodeId>,
    /// The code, if it was written.
    new_code: Option<Bytes>,
    /// Whether the account has the storage-root marker; `None` if that was not read.
    marker: Option<bool>,
    marker_written: bool,
    /// The cells that were read or written, by slot.
    cells: HashMap<U256, Cell>,
}

/// A storage cell that was read or written.
#[derive(Clone, Debug)]
struct Cell {
    value: Bytes,
    written: bool,
}

impl CachedAccount {
    /// Reads an account from the base.
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

    /// The account, created if it does not exist, to be changed.
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
    /// Creates an overlay over a trie, without changes.
    pub fn new(base: Trie) -> Self {
        Self { base, cached: AddressMap::default(), remasc_nonce: None, access: None, touches: None }
    }

    /// Starts recording which keys are read. Discards earlier records.
    pub fn track_access(&mut self) {
        self.access = Some(Access::default());
    }

    /// Stops recording and returns what was read since [`World::track_access`].
    pub fn take_access(&mut self) -> Access {
        self.access.take().unwrap_or_default()
    }

    /// Starts a record of its own for a part of a run. Returns the record so far, for [`World::end_access_part`].
    pub(crate) fn start_access_part(&mut self) -> Option<Access> {
        self.access.replace(Access::default())
    }

    /// Ends the record of a part and continues the one around it, which gets what was read. Returns what was read.
    pub(crate) fn end_access_part(&mut self, around: Option<Access>) -> Access {
        let part = self.take_access();
        self.access = around.map(|mut around| {
            around.keys.extend(part.keys.iter().copied());
            around.listed.extend(part.listed.iter().copied());
            around
        });
        part
    }

    /// Starts recording touches. Discards earlier records.
    pub fn track_touches(&mut self) {
        self.touches = Some(Touches::default());
    }

    /// The set in which the caller records touches; `None` if tracking is off.
    pub fn touches(&mut self) -> Option<&mut Touches> {
        self.touches.as_mut()
    }

    /// Stops recording and returns what was touched since [`World::track_touches`].
    pub fn take_touches(&mut self) -> Touches {
        self.touches.take().unwrap_or_default()
    }

    /// Records that the whole storage of an account was listed.
    pub fn note_listing(&mut self, address: &Address) {
        if let Some(access) = &mut self.access {
            access.listed.insert(*address);
        }
    }

    /// Records that a key was read.
    fn note(&mut self, key: AccessKey) {
        if let Some(access) = &mut self.access {
            access.keys.insert(key);
        }
    }

    /// The cached account, read from the base if it is not in the overlay yet, and the base.
    fn cached(&mut self, address: &Address) -> (&mut CachedAccount, &Trie) {
        let base = &self.base;
        (self.cached.entry(*address).or_insert_with(|| CachedAccount::load(base, address)), base)
    }

    /// As [`Self::cached`]; also records that the account was read.
    fn cached_and_noted(&mut self, address: &Address) -> (&mut CachedAccount, &Trie) {
        self.note(AccessKey::Account(*address));
        self.cached(address)
    }

    /// The cached account, to be changed. The key is recorded, because a proof of the run must cover changed keys too.
    fn cached_to_write(&mut self, address: &Address) -> &mut CachedAccount {
        self.cached_and_noted(address).0
    }

    /// Nonce and balance; `None` if the account does not exist.
    pub fn account(&mut self, address: &Address) -> Option<Account> {
        self.cached_and_noted(address).0.account
    }

    /// Wei by which the balance of an account is negative; zero if the account was not read before.
    pub fn debt(&self, address: &Address) -> U256 {
        self.cached.get(address).and_then(|cached| cached.account).map_or(U256::ZERO, |account| account.debt)
    }

    /// Sets nonce and balance; creates the account if needed.
    pub fn set_account(&mut self, address: &Address, account: Account) {
        *self.cached_to_write(address).account_mut() = account;
    }

    /// Sets nonce and balance back to the account that [`World::account`] returned; `None` removes an account that was created since.
    pub fn restore(&mut self, address: &Address, account: Option<Account>) {
        if let Some(cached) = self.cached.get_mut(address) {
            cached.account = account;
            cached.account_written = account.is_some();
        }
    }

    /// Creates the account if it does not exist.
    pub fn create(&mut self, address: &Address) {
        if self.account(address).is_none() {
            self.cached_to_write(address).account_mut();
        }
    }

    /// Adds wei; creates the account if needed.
    pub fn credit(&mut self, address: &Address, amount: U256) {
        if amount.is_zero() {
            return self.create(address);
        }
        self.cached_to_write(address).account_mut().credit(amount);
    }

    /// Subtracts wei; creates the account if needed. The balance can become negative.
    pub fn charge(&mut self, address: &Address, amount: U256) {
        if amount.is_zero() {
            return self.create(address);
        }
        self.cached_to_write(address).account_mut().charge(amount);
    }

    /// Increments the nonce; creates the account if needed.
    pub fn bump_nonce(&mut self, address: &Address) {
        let account = self.cached_to_write(address).account_mut();
        account.nonce = account.nonce.saturating_add(1);
    }

    /// Hash and length in bytes of the code; those of no bytes if there is none.
    pub fn code_id(&mut self, address: &Address) -> (B256, usize) {
        let (cached, base) = self.cached_and_noted(address);
        cached.code_id(base)
    }

    /// The code; empty if there is none.
    pub fn code_of(&mut self, address: &Address) -> Bytes {
        let (cached, base) = self.cached_and_noted(address);
        match &cached.new_code {
            Some(code) => code.clone(),
            None if cached.wiped => Bytes::new(),
            None => base.get(&code_key_below(&cached.key)).cloned().unwrap_or_default(),
        }
    }

    /// Sets the code.
    pub fn set_code(&mut self, address: &Address, code: Bytes) {
        let cached = self.cached_to_write(address);
        cached.code = Some((keccak256(&code), code.len()));
        cached.new_code = Some(code);
    }

    /// Whether the account has the storage-root marker.
    pub fn marker(&mut self, address: &Address) -> bool {
        let (cached, base) = self.cached_and_noted(address);
        cached.marker(base)
    }

    /// Sets the storage-root marker.
    pub fn set_marker(&mut self, address: &Address) {
        let cached = self.cached_to_write(address);
        cached.marker = Some(true);
        cached.marker_written = true;
    }

    /// Bytes of a storage cell; empty if the cell is not set.
    pub fn cell(&mut self, address: &Address, slot: &U256) -> Bytes {
        self.note(AccessKey::Cell(*address, *slot));
        let (cached, base) = self.cached(address);
        cached.cell(base, slot).clone()
    }

    /// A storage cell as a word. Of the longer values that native contracts store, the last 32 bytes are
    /// returned.
    pub fn word(&mut self, address: &Address, slot: &U256) -> U256 {
        self.note(AccessKey::Cell(*address, *slot));
        let (cached, base) = self.cached(address);
        let bytes = cached.cell(base, slot);
        let tail = bytes.len().saturating_sub(32);
        U256::try_from_be_slice(bytes.get(tail..).unwrap_or_default()).unwrap_or_default()
    }

    /// Writes a storage cell; an empty value removes it. A missing account is created as a contract.
    pub fn set_cell(&mut self, address: &Address, slot: &U256, value: Bytes) {
        if self.account(address).is_none() {
            self.create(address);
            self.set_marker(address);
        }
        self.note(AccessKey::Cell(*address, *slot));
        self.cached(address).0.cells.insert(*slot, Cell { value, written: true });
    }

    /// Writes a word to a storage cell; zero removes it.
    pub fn set_word(&mut self, address: &Address, slot: &U256, word: U256) {
        self.set_cell(address, slot, word.to_be_bytes_trimmed_vec().into());
    }

    /// All current non-zero storage words of an account, or `None` if the trie has more than `limit`. Values
    /// of more than 32 bytes are left out.
    pub fn storage_words(&self, address: &Address, limit: usize) -> Option<BTreeMap<U256, U256>> {
        let cached = self.cached.get(address);
        let wiped = cached.is_some_and(|cached| cached.wiped);
        let mut words =
            if wiped { BTreeMap::new() } else { storage_words_up_to(&self.base, address, limit)? };
        for (slot, cell) in cached.into_iter().flat_map(|cached| &cached.cells) {
            match U256::try_from_be_slice(&cell.value).filter(|word| !word.is_zero()) {
                Some(word) => words.insert(*slot, word),
                None => words.remove(slot),
            };
        }
        Some(words)
    }

    /// Deletes an account with its code, marker and storage.
    pub fn remove(&mut self, address: &Address) {
        let cached = self.cached_to_write(address);
        *cached = CachedAccount {
            key: cached.key,
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

    /// Increments the nonce of the REMASC transaction's sender.
    pub fn bump_remasc_nonce(&mut self) {
        self.remasc_nonce = Some(self.remasc_nonce().saturating_add(1));
    }

    /// Adds the changes of another overlay of the same base. The two are overlays of parallel lists, whose changes do
    /// not conflict.
    pub fn merge(&mut self, other: Self) {
        for (address, theirs) in other.cached {
            match self.cached.entry(address) {
                Entry::Occupied(mut ours) => ours.get_mut().merge(theirs),
                Entry::Vacant(free) => {
                    free.insert(theirs);
                }
            }
        }
    }

    /// Returns the trie with all changes applied.
    pub fn commit(self) -> Trie {
        let mut trie = self.base;
        let mut puts = Vec::new();
        for cached in self.cached.into_values() {
            if cached.wiped {
                trie.delete_subtree(&cached.key);
            }
            cached.write(&mut puts);
        }
        if let Some(nonce) = self.remasc_nonce {
            let account = Account { nonce, ..Account::default() };
            puts.push((REMASC_SENDER_KEY.to_vec(), account.encode().into()));
        }
        trie.put_all(puts);
        trie
    }
}

impl CachedAccount {
    /// Adds the changes of the other overlay. The two may have changed different cells of the same contract;
    /// everything else was changed by at most one of them.
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

    /// Appends the changes to `puts`; an empty value removes a key.
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
