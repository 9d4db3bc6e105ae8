//! The interface through which a run reads the state ([`EvmState`]), and its adapter to `revm`. Calls implement it over proven facts, and
//! blocks over a complete state.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::convert::Infallible;

use alloy_primitives::{Address, B256, Bytes, U256};
use revm::Database;
use revm::bytecode::Bytecode;
use revm::state::AccountInfo;

use super::code::bytecode;
use super::context::EvmDatabase;
use super::touches::Touch;
use crate::state::Touches;
use crate::types::{Header, SealedHeader};

/// An account as the machine reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvmAccount {
    /// Number of transactions sent, or of contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// Hash returned by EXTCODEHASH; keccak-256 of no bytes if there is no code.
    pub code_hash: B256,
    /// The code, if it was read with the account. Otherwise [`EvmState::code`] reads it when needed.
    pub code: Option<Bytes>,
}

/// The state below a run. No method fails: the implementation records missing data and returns zero, and the
/// caller discards the run's result.
pub trait EvmState {
    /// The account; `None` if it does not exist.
    fn account(&mut self, address: Address) -> Option<EvmAccount>;
    /// Code by its hash. The account with this code was read before.
    fn code(&mut self, code_hash: B256) -> Bytes;
    /// Length in bytes of the code with this hash, without loading the code.
    fn code_size(&mut self, code_hash: B256) -> usize;
    /// Whether the account has the storage-root marker that every contract has.
    fn is_contract(&mut self, address: Address) -> bool;
    /// Whether a state override gave the account its code.
    fn code_overridden(&self, address: Address) -> bool;
    /// A storage word.
    fn storage(&mut self, address: Address, slot: U256) -> U256;
    /// All non-zero storage words of an account, if the state can list them. Used for tracing.
    fn whole_storage(&mut self, _address: Address) -> Option<BTreeMap<U256, U256>> {
        None
    }
    /// Raw bytes of any length of a native contract's cell; empty if the cell is not set.
    fn cell(&mut self, contract: Address, slot: U256) -> Bytes;
    /// Hash of one of the 256 blocks before the block of the run.
    fn block_hash(&mut self, number: u64) -> B256;
    /// The ancestor at a height below the block of the run.
    fn header(&mut self, number: u64) -> Option<SealedHeader>;
    /// The uncles that the ancestor at a height lists.
    fn uncles(&mut self, number: u64) -> Option<Vec<Header>>;
    /// Total difficulty of the chain up to the ancestor at a height, uncles included.
    fn total_difficulty(&mut self, number: u64) -> Option<U256>;
    /// The set in which the run records touched keys. `None` unless the run belongs to parallel lists
    /// (RSKIP-144).
    fn touches(&mut self) -> Option<&mut Touches> {
        None
    }
    /// Wei by which the account's balance is negative; [`EvmAccount::balance`] is then 0.
    fn debt(&self, _address: Address) -> U256 {
        U256::ZERO
    }
    /// Contracts that earlier transactions of the block destroyed. No contract can be created at their
    /// addresses (RSKIP-125).
    fn destroyed_before(&self) -> Option<&BTreeSet<Address>> {
        None
    }
    /// Analysed code from a cache, if there is one; see [`Self::keep_code`].
    fn ready_code(&self, _code_hash: B256) -> Option<ReadyCode> {
        None
    }
    /// Caches analysed code.
    fn keep_code(&mut self, _code_hash: B256, _code: ReadyCode) {}
    /// Whether the run should end now, because its result would be discarded.
    fn exhausted(&self) -> bool;
}

/// Code with analysed jump targets. Cloning it increments a reference count.
#[derive(Clone, Debug)]
pub struct ReadyCode(Bytecode);

impl ReadyCode {
    #[cfg(test)]
    pub(crate) fn of(code: Bytes) -> Self {
        Self(bytecode(code))
    }

    /// Length of the code in bytes. The analysed code takes an eighth more, for its jump targets.
    pub fn size(&self) -> usize {
        self.0.original_byte_slice().len()
    }
}

/// Adapts an [`EvmState`] to `revm`'s `Database`.
pub(super) struct Adapter<S>(pub(super) S);

impl<S: EvmState> Database for Adapter<S> {
    type Error = Infallible;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Infallible> {
        Ok(self.0.account(address).map(|account| AccountInfo {
            balance: account.balance,
            nonce: account.nonce,
            code_hash: account.code_hash,
            account_id: None,
            code: account.code.map(bytecode),
        }))
    }

    fn code_by_hash(&mut self, code_hash: B256) -> Result<Bytecode, Infallible> {
        if let Some(ready) = self.0.ready_code(code_hash) {
            return Ok(ready.0);
        }
        let code = bytecode(self.0.code(code_hash));
        self.0.keep_code(code_hash, ReadyCode(code.clone()));
        Ok(code)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Infallible> {
        // `revm` requests each cell once per transaction, from SLOAD or SSTORE. It does not request cells of
        // accounts that the transaction creates. Touches of such cells need not be recorded: every instruction that uses
        // them also touches the account, which the creation writes.
        self.touch(Touch::CellRead(address, slot));
        Ok(self.0.storage(address, slot))
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Infallible> {
        Ok(self.0.block_hash(number))
    }
}

impl<S: EvmState> EvmDatabase for Adapter<S> {
    fn code_size(&mut self, code_hash: B256) -> usize {
        self.0.code_size(code_hash)
    }

    fn is_contract(&mut self, address: Address) -> bool {
        self.0.is_contract(address)
    }

    fn code_overridden(&self, address: Address) -> bool {
        self.0.code_overridden(address)
    }

    fn whole_storage(&mut self, address: Address) -> Option<BTreeMap<U256, U256>> {
        self.0.whole_storage(address)
    }

    fn cell(&mut self, contract: Address, slot: U256) -> Bytes {
        self.0.cell(contract, slot)
    }

    fn header(&mut self, number: u64) -> Option<SealedHeader> {
        self.0.header(number)
    }

    fn uncles(&mut self, number: u64) -> Option<Vec<Header>> {
        self.0.uncles(number)
    }

    fn total_difficulty(&mut self, number: u64) -> Option<U256> {
        self.0.total_difficulty(number)
    }

    fn touch(&mut self, touch: Touch) {
        if let Some(touches) = self.0.touches() {
            touch.note(touches);
        }
    }

    fn debt(&self, address: Address) -> U256 {
        self.0.debt(address)
    }

    fn destroyed_before(&self) -> Option<&BTreeSet<Address>> {
        self.0.destroyed_before()
    }

    fn exhausted(&self) -> bool {
        self.0.exhausted()
    }
}
