//! Helpers shared by the tests: recorded data, and an in-memory state.
#![allow(dead_code, unreachable_pub)]

pub mod arguments;
pub mod calls;
pub mod chain;
pub mod dev;
pub mod errors;
pub mod executed;
pub mod light;
pub mod lists;
pub mod nodes;
pub mod recording;
pub mod shapes;
pub mod tally;
pub mod upstream;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use rootlight::exec::BlockHashes;
use rootlight::state::{AccountState, StateError, StateKey, StateReader};

/// The root of the repository, for the tests of every crate that use these helpers.
pub fn root() -> &'static Path {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).expect("a workspace")
}

/// Folder of the large recordings. Tests that need it are skipped without it.
pub fn shared() -> Option<PathBuf> {
    let path = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no recordings at {}", path.display());
    None
}

pub fn u256(text: &str) -> U256 {
    U256::from_str_radix(text.trim_start_matches("0x"), 16).expect("hex number")
}

pub fn u64_of(text: &str) -> u64 {
    u256(text).to::<u64>()
}

pub fn bytes(text: &str) -> Bytes {
    hex::decode(text.trim_start_matches("0x")).expect("hex").into()
}

pub fn low_address(low: u64) -> Address {
    Address::left_padding_from(&low.to_be_bytes())
}

/// An account of [`MapState`].
#[derive(Clone, Debug, Default)]
pub struct MapAccount {
    pub nonce: u64,
    pub balance: U256,
    pub code: Bytes,
    pub contract: bool,
    pub storage: BTreeMap<U256, U256>,
}

/// A state in memory; `hidden` keys are missing until revealed.
#[derive(Clone, Debug, Default)]
pub struct MapState {
    pub accounts: BTreeMap<Address, MapAccount>,
    pub hidden: BTreeSet<StateKey>,
    pub hide_all: bool,
    pub revealed: BTreeSet<StateKey>,
}

impl MapState {
    fn check(&self, key: StateKey) -> Result<(), StateError> {
        let hidden = self.hidden.contains(&key) || self.hide_all;
        if hidden && !self.revealed.contains(&key) {
            return Err(StateError::Missing(key));
        }
        Ok(())
    }
}

impl StateReader for MapState {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        self.check(StateKey::Account(*address))?;
        Ok(self.accounts.get(address).map(|account| AccountState {
            nonce: account.nonce,
            balance: account.balance,
            code_hash: if account.code.is_empty() { KECCAK256_EMPTY } else { keccak256(&account.code) },
            code_size: account.code.len() as u32,
        }))
    }

    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        self.check(StateKey::Storage(*address, U256::ZERO))?;
        Ok(self.accounts.get(address).is_some_and(|account| account.contract))
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        self.check(StateKey::Storage(*address, *slot))?;
        let word = self.accounts.get(address).and_then(|account| account.storage.get(slot)).copied();
        Ok(word.unwrap_or_default().to_be_bytes_trimmed_vec().into())
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        self.check(StateKey::Code(*address))?;
        Ok(self.accounts.get(address).map(|account| account.code.clone()).unwrap_or_default())
    }
}

/// Block hashes by height.
#[derive(Clone, Debug, Default)]
pub struct MapHashes(pub BTreeMap<u64, B256>);

impl BlockHashes for MapHashes {
    fn block_hash(&self, number: u64) -> Option<B256> {
        self.0.get(&number).copied()
    }
}
