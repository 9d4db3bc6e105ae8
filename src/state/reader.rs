//! [`StateReader`]: reads of a state of which parts may be missing, and the names of these parts.

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use thiserror::Error;

use super::account::AccountError;

/// A piece of the state after a block, or of the chain up to that block, that a run may need and not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateKey {
    /// Nonce, balance, code hash and code length of an account.
    Account(Address),
    /// A storage slot.
    Storage(Address, U256),
    /// Bytes of a slot's value of more than 32 bytes, of which the proven node states only hash and length.
    StorageBytes(Address, U256),
    /// Bytes of an account's code, of which the proven account states only hash and length.
    Code(Address),
    /// Hash of the block at a height.
    BlockHash(u64),
    /// Header of the ancestor at a height.
    Header(u64),
    /// Uncles of the ancestor at a height.
    Uncles(u64),
    /// Total difficulty up to the ancestor at a height.
    TotalDifficulty(u64),
}

/// An account as read from the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// Number of transactions sent, or of contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// Hash of the code; keccak-256 of no bytes if there is none.
    pub code_hash: B256,
    /// Length of the code in bytes.
    pub code_size: u32,
}

impl AccountState {
    /// An account that exists with nonce 0, balance 0 and no code.
    pub const EMPTY: Self = Self { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY, code_size: 0 };
}

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum StateError {
    /// The data is not available; the host must fetch it.
    #[error("state is missing: {0:?}")]
    Missing(StateKey),
    /// The root commits to data that is invalid. Fetching the data again does not help.
    #[error("state at {key:?} is corrupt: {fault}")]
    Corrupt { key: StateKey, fault: Corrupt },
}

/// Why data that has the right hash is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum Corrupt {
    /// The bytes are not a trie node, or a long value has another length than its node states; with the message of that error.
    #[error("trie node: {0}")]
    Node(alloc::string::String),
    /// An account does not parse.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// A storage value has more than 32 bytes where a word is needed.
    #[error("storage value of {0} bytes does not fit into a 32-byte word")]
    LongWord(usize),
}

/// The state at one root. An absent value is proven to be absent; a missing one is an error.
pub trait StateReader {
    /// The account; `None` if it does not exist.
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError>;

    /// Whether the account has the storage-root marker.
    fn is_contract(&self, address: &Address) -> Result<bool, StateError>;

    /// Bytes of a storage slot as stored (words without leading zeros); empty if the slot is not set.
    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError>;

    /// Bytes of the code; empty if there is none.
    fn code(&self, address: &Address) -> Result<Bytes, StateError>;

    /// A storage slot as a word. Fails for the longer values that native contracts store.
    fn storage_word(&self, address: &Address, slot: &U256) -> Result<U256, StateError> {
        let bytes = self.storage(address, slot)?;
        U256::try_from_be_slice(&bytes).ok_or_else(|| StateError::Corrupt {
            key: StateKey::Storage(*address, *slot),
            fault: Corrupt::LongWord(bytes.len()),
        })
    }
}
