//! The state below a transaction's run: a complete state, unlike that of a local call (`recorder.rs`).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, Bytes, U256};

use super::block_context::BlockContext;
use super::limits::MAX_LISTED_CELLS;
use crate::evm::{EvmAccount, EvmState, ReadyCode};
use crate::state::{Touches, World};
use crate::types::{Header, SealedHeader};

/// Analysed codes of earlier runs, by hash.
pub(super) type ReadyCodes = B256Map<ReadyCode>;

/// State, ancestors and codes of one run.
pub(super) struct TransactionState<'a, 'b> {
    pub(super) world: &'a mut World,
    pub(super) context: &'a BlockContext<'b>,
    /// Contracts that earlier transactions of the block destroyed.
    pub(super) destroyed: &'a BTreeSet<Address>,
    pub(super) codes: &'a mut ReadyCodes,
    /// For each code hash, an account with this code and the length of the code. Filled when accounts are
    /// read.
    pub(super) owners: BTreeMap<B256, (Address, usize)>,
}

impl EvmState for TransactionState<'_, '_> {
    fn account(&mut self, address: Address) -> Option<EvmAccount> {
        let account = self.world.account(&address)?;
        let (code_hash, size) = self.world.code_id(&address);
        if size > 0 {
            self.owners.insert(code_hash, (address, size));
        }
        Some(EvmAccount { nonce: account.nonce, balance: account.balance, code_hash, code: None })
    }

    fn code(&mut self, code_hash: B256) -> Bytes {
        match self.owners.get(&code_hash) {
            Some((address, _)) => self.world.code_of(address),
            // Not reached for code of an account, which was read before (`EvmState::code`).
            None => Bytes::new(),
        }
    }

    fn code_size(&mut self, code_hash: B256) -> usize {
        self.owners.get(&code_hash).map_or(0, |(_, size)| *size)
    }

    fn is_contract(&mut self, address: Address) -> bool {
        self.world.marker(&address)
    }

    fn code_overridden(&self, _: Address) -> bool {
        false
    }

    fn storage(&mut self, address: Address, slot: U256) -> U256 {
        self.world.word(&address, &slot)
    }

    fn whole_storage(&mut self, address: Address) -> Option<BTreeMap<U256, U256>> {
        self.world.note_listing(&address);
        self.world.storage_words(&address, MAX_LISTED_CELLS)
    }

    fn cell(&mut self, contract: Address, slot: U256) -> Bytes {
        self.world.cell(&contract, &slot)
    }

    fn block_hash(&mut self, number: u64) -> B256 {
        // An executed chain has the 256 blocks that BLOCKHASH reads. Where parts are missing (a fork, the proven blocks of a light
        // client), the ancestry has noted it, and the result is discarded.
        self.context.ancestry.hash(number).unwrap_or_default()
    }

    fn header(&mut self, number: u64) -> Option<SealedHeader> {
        self.context.ancestry.header(number)
    }

    fn uncles(&mut self, number: u64) -> Option<Vec<Header>> {
        self.context.ancestry.uncles(number)
    }

    fn total_difficulty(&mut self, number: u64) -> Option<U256> {
        self.context.ancestry.total_difficulty(number)
    }

    fn touches(&mut self) -> Option<&mut Touches> {
        self.world.touches()
    }

    fn debt(&self, address: Address) -> U256 {
        self.world.debt(&address)
    }

    fn destroyed_before(&self) -> Option<&BTreeSet<Address>> {
        Some(self.destroyed)
    }

    fn ready_code(&self, code_hash: B256) -> Option<ReadyCode> {
        self.codes.get(&code_hash).cloned()
    }

    fn keep_code(&mut self, code_hash: B256, code: ReadyCode) {
        self.codes.insert(code_hash, code);
    }

    fn exhausted(&self) -> bool {
        false
    }
}
