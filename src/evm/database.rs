//! State as the machine asks for it, and its face towards `revm`.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::convert::Infallible;

use alloy_primitives::{Address, Bytes, B256, U256};
use revm::bytecode::Bytecode;
use revm::state::AccountInfo;
use revm::Database;

use super::code::bytecode;
use super::context::EvmDatabase;
use super::touches::Touch;
use crate::state::Touches;
use crate::types::{Header, SealedHeader};

/// An account as the machine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvmAccount {
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// Hash that EXTCODEHASH shows; that of no bytes where there is no code.
    pub code_hash: B256,
    /// Code known already; otherwise it is asked for by hash when needed.
    pub code: Option<Bytes>,
}

/// State behind a run. Nothing here fails: what is missing is noted by the implementation, read as
/// zero, and the run's result is thrown away.
pub trait EvmState {
    /// The account, or `None` where there is none.
    fn account(&mut self, address: Address) -> Option<EvmAccount>;
    /// Code by its hash, of an account asked for before.
    fn code(&mut self, code_hash: B256) -> Bytes;
    /// Length in bytes of that code, without loading it.
    fn code_size(&mut self, code_hash: B256) -> usize;
    /// Whether the account has the storage-root marker that every contract has.
    fn is_contract(&mut self, address: Address) -> bool;
    /// Whether a state override gave the account its code.
    fn code_overridden(&self, address: Address) -> bool;
    /// A storage word.
    fn storage(&mut self, address: Address, slot: U256) -> U256;
    /// All storage words of an account (no zeros), where the state can list them; for tracing.
    fn whole_storage(&mut self, _address: Address) -> Option<BTreeMap<U256, U256>> {
        None
    }
    /// Raw bytes of a cell of a native contract, of any length; none where there are none.
    fn cell(&mut self, contract: Address, slot: U256) -> Bytes;
    /// Hash of one of the 256 blocks before the one the run sees.
    fn block_hash(&mut self, number: u64) -> B256;
    /// The ancestor at a height, which is there: below the block the run sees.
    fn header(&mut self, number: u64) -> Option<SealedHeader>;
    /// The uncles of that ancestor.
    fn uncles(&mut self, number: u64) -> Option<Vec<Header>>;
    /// Total difficulty, uncles included, up to that ancestor.
    fn total_difficulty(&mut self, number: u64) -> Option<U256>;
    /// Where the run is to note what it touches, if it runs for parallel lists (RSKIP-144).
    fn touches(&mut self) -> Option<&mut Touches> {
        None
    }
    /// Wei by which the account's balance lies below zero; [`EvmAccount::balance`] is 0 then.
    fn debt(&self, _address: Address) -> U256 {
        U256::ZERO
    }
    /// Contracts that earlier transactions of the block destroyed: nothing can be created at their
    /// addresses (RSKIP-125).
    fn destroyed_before(&self) -> Option<&BTreeSet<Address>> {
        None
    }
    /// Code that was made ready to run before.
    fn ready_code(&self, _code_hash: B256) -> Option<ReadyCode> {
        None
    }
    /// Keeps code that was made ready, to be asked for again.
    fn keep_code(&mut self, _code_hash: B256, _code: ReadyCode) {}
    /// Whether the run should end now.
    fn exhausted(&self) -> bool;
}

/// Code with its jump targets worked out; a clone is one reference count.
#[derive(Clone, Debug)]
pub struct ReadyCode(Bytecode);

/// [`EvmState`] in `revm`'s shape.
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
        // SLOAD and SSTORE ask once in a transaction. Cells of accounts that it creates are not asked for:
        // whoever touches those touches the account too, which the creation writes.
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
