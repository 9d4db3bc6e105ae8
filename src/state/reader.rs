//! Reading state of which parts may be missing.

use alloy_primitives::{Address, Bytes, B256, KECCAK256_EMPTY, U256};
use thiserror::Error;

use super::account::AccountError;

/// One fact about the state, or about the chain it stands on, that a run may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateKey {
    /// Nonce, balance, code hash and code length of an account.
    Account(Address),
    /// A storage slot.
    Storage(Address, U256),
    /// Bytes of a slot whose proof is at hand, but whose value of more than 32 bytes is not.
    StorageBytes(Address, U256),
    /// Bytes of an account's code, whose hash is known.
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

/// An account as reading it gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// Hash of the code; that of no bytes where there is none.
    pub code_hash: B256,
    /// Length of the code in bytes.
    pub code_size: u32,
}

impl AccountState {
    /// An account that exists and has nothing.
    pub const EMPTY: Self = Self { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY, code_size: 0 };
}

/// Why a read gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StateError {
    /// Not at hand: to be fetched and proven.
    #[error("state lacks {0:?}")]
    Missing(StateKey),
    /// Committed to by the root, yet not what it must be. No fetching helps.
    #[error("state at {key:?} is corrupt: {fault}")]
    Corrupt {
        /// What was read.
        key: StateKey,
        /// What is wrong with it.
        fault: Corrupt,
    },
}

/// What is wrong with bytes that hash as they must.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Corrupt {
    /// A trie node does not parse.
    #[error("trie node: {0}")]
    Node(alloc::string::String),
    /// An account does not parse.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// A storage value of more than 32 bytes where a word is needed.
    #[error("storage value of {0} bytes is no word")]
    LongWord(usize),
}

/// State at one root. Absent and missing are different answers: absence is proven.
pub trait StateReader {
    /// The account, `None` where there is none.
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError>;

    /// Whether the account has the storage-root marker.
    fn is_contract(&self, address: &Address) -> Result<bool, StateError>;

    /// Bytes of a storage slot as stored (words without leading zeros), empty where there are none.
    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError>;

    /// Bytes of the code, empty where there is none.
    fn code(&self, address: &Address) -> Result<Bytes, StateError>;

    /// A storage slot as a word; native contracts also keep longer values, which are no words.
    fn storage_word(&self, address: &Address, slot: &U256) -> Result<U256, StateError> {
        let bytes = self.storage(address, slot)?;
        U256::try_from_be_slice(&bytes).ok_or_else(|| StateError::Corrupt {
            key: StateKey::Storage(*address, *slot),
            fault: Corrupt::LongWord(bytes.len()),
        })
    }
}
