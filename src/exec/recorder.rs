//! The state below a local call. Missing data are recorded and read as zero, so that the run can continue.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256};

use super::block_hashes::BlockHashes;
use super::limits::RunLimits;
use super::stop::CallStop;
use crate::evm::{EvmAccount, EvmState, ReadyCode};
use crate::state::{AccountState, Corrupt, StateError, StateKey, StateOverride, StateReader};
use crate::types::{Header, SealedHeader};

/// Proof that no data were missing in a run: only [`ReadRecord::finish`] makes it, and a result of a call needs it (`result.rs`).
pub(super) struct Complete(());

/// How many reads runs have made, and the keys that they could not read.
#[derive(Default)]
pub(super) struct ReadRecord {
    /// Number of reads, which `max_keys` limits. A value that is read twice counts twice.
    reads: usize,
    missing: BTreeSet<StateKey>,
    /// The first key whose proven value does not decode.
    corrupt: Option<(StateKey, Corrupt)>,
}

impl ReadRecord {
    /// Whether a value could not be read, so that results are discarded.
    pub(super) fn is_incomplete(&self) -> bool {
        self.corrupt.is_some() || !self.missing.is_empty()
    }

    /// Returns the proof that no data were missing; an error if some were missing or corrupt, or if there were more than `max_keys` reads.
    pub(super) fn finish(&self, max_keys: usize) -> Result<Complete, CallStop> {
        if let Some((key, fault)) = &self.corrupt {
            return Err(CallStop::Corrupt { key: *key, fault: fault.clone() });
        }
        if !self.missing.is_empty() {
            return Err(CallStop::Missing(self.missing.clone()));
        }
        if self.reads > max_keys {
            return Err(CallStop::TooManyKeys { limit: max_keys });
        }
        Ok(Complete(()))
    }

    /// Returns the value read, or records the failure and returns zero.
    pub(super) fn note<T: Default>(&mut self, read: Result<T, StateError>) -> T {
        self.reads = self.reads.saturating_add(1);
        match read {
            Ok(value) => value,
            Err(StateError::Missing(key)) => {
                self.missing.insert(key);
                T::default()
            }
            Err(StateError::Corrupt { key, fault }) => {
                self.corrupt.get_or_insert((key, fault));
                T::default()
            }
        }
    }

    /// Whether the run should end, because its result will be discarded or refused.
    fn exhausted(&self, max_missing: usize, max_keys: usize) -> bool {
        self.corrupt.is_some() || self.missing.len() >= max_missing || self.reads > max_keys
    }
}

/// The state and the block hashes below a run, and the record of its reads.
pub(super) struct ReadRecorder<'a> {
    state: &'a dyn StateReader,
    hashes: &'a dyn BlockHashes,
    overrides: &'a StateOverride,
    /// The sender of the call, whose account the call creates; `None` for the null sender.
    sender: Option<Address>,
    /// Contracts that earlier transactions of the block destroyed, in a simulation.
    destroyed: Option<&'a BTreeSet<Address>>,
    max_missing: usize,
    max_keys: usize,
    record: ReadRecord,
    /// For each code hash, an account with this code and the length of the code. Filled when accounts are
    /// read. The values are in an `Arc` only so that all maps by hash have the same type, and thus the same machine code.
    codes: BTreeMap<B256, Arc<(Address, u32)>>,
    /// The cache of analysed code.
    analysed: Option<&'a dyn super::CodeCache>,
}

impl<'a> ReadRecorder<'a> {
    pub(super) fn new(
        state: &'a dyn StateReader,
        hashes: &'a dyn BlockHashes,
        overrides: &'a StateOverride,
        sender: Option<Address>,
        limits: &RunLimits<'a>,
    ) -> Self {
        Self {
            state,
            hashes,
            overrides,
            sender,
            destroyed: None,
            max_missing: limits.max_missing,
            max_keys: limits.max_keys,
            record: ReadRecord::default(),
            codes: BTreeMap::new(),
            analysed: limits.codes,
        }
    }

    /// The same recorder after earlier runs with this record, in a block that has destroyed these contracts.
    pub(super) fn after(self, record: ReadRecord, destroyed: &'a BTreeSet<Address>) -> Self {
        Self { record, destroyed: Some(destroyed), ..self }
    }

    /// The record of the reads, for the next run of a simulation.
    pub(super) fn into_record(self) -> ReadRecord {
        self.record
    }

    /// Returns the proof that no data were missing; an error if some were missing or corrupt, or if there were more than `max_keys` reads.
    pub(super) fn finish(&self) -> Result<Complete, CallStop> {
        self.record.finish(self.max_keys)
    }

    /// Returns a fact about an ancestor, or records it as missing.
    fn note_ancestor<T>(&mut self, read: Option<T>, key: StateKey) -> Option<T> {
        self.note(read.map(Some).ok_or(StateError::Missing(key)))
    }

    fn note<T: Default>(&mut self, read: Result<T, StateError>) -> T {
        self.record.note(read)
    }
}

impl EvmState for ReadRecorder<'_> {
    fn account(&mut self, address: Address) -> Option<EvmAccount> {
        let read = self.state.account(&address);
        let account: Option<AccountState> = self.note(read);
        // A transfer creates the sender's account, even if the value is zero. The null sender (`None`) has no account.
        let sends = self.sender == Some(address);
        account.or(sends.then_some(AccountState::EMPTY)).map(|account| {
            self.codes.insert(account.code_hash, Arc::new((address, account.code_size)));
            EvmAccount {
                nonce: account.nonce,
                balance: account.balance,
                code_hash: account.code_hash,
                code: None,
            }
        })
    }

    fn code(&mut self, code_hash: B256) -> Bytes {
        match self.codes.get(&code_hash) {
            Some(known) => {
                let read = self.state.code(&known.0);
                self.note(read)
            }
            // Not reached: the account with this code was read before (`EvmState::code`), which filled `codes`.
            None => Bytes::new(),
        }
    }

    fn code_size(&mut self, code_hash: B256) -> usize {
        self.codes.get(&code_hash).map_or(0, |known| usize::try_from(known.1).unwrap_or(usize::MAX))
    }

    fn is_contract(&mut self, address: Address) -> bool {
        let read = self.state.is_contract(&address);
        self.note(read)
    }

    fn code_overridden(&self, address: Address) -> bool {
        self.overrides.accounts.get(&address).is_some_and(|over| over.code.is_some())
    }

    fn storage(&mut self, address: Address, slot: U256) -> U256 {
        let read = self.state.storage_word(&address, &slot);
        self.note(read)
    }

    fn cell(&mut self, contract: Address, slot: U256) -> Bytes {
        // Unlike `storage_word`, this method of the reader returns the bytes of any length as stored.
        let read = self.state.storage(&contract, &slot);
        self.note(read)
    }

    fn header(&mut self, number: u64) -> Option<SealedHeader> {
        self.note_ancestor(self.hashes.header(number), StateKey::Header(number))
    }

    fn uncles(&mut self, number: u64) -> Option<Vec<Header>> {
        self.note_ancestor(self.hashes.uncles(number), StateKey::Uncles(number))
    }

    fn total_difficulty(&mut self, number: u64) -> Option<U256> {
        self.note_ancestor(self.hashes.total_difficulty(number), StateKey::TotalDifficulty(number))
    }

    fn block_hash(&mut self, number: u64) -> B256 {
        let read = self.hashes.block_hash(number).ok_or(StateError::Missing(StateKey::BlockHash(number)));
        self.note(read)
    }

    fn ready_code(&self, code_hash: B256) -> Option<ReadyCode> {
        self.analysed?.get(&code_hash)
    }

    /// Caches code. Code that the state does not have, which was read as empty, is not cached. A run that overrides any code caches
    /// nothing: callers can make up any number of codes.
    fn keep_code(&mut self, code_hash: B256, code: ReadyCode) {
        let overrides_code = self.overrides.accounts.values().any(|over| over.code.is_some());
        let is_whole = code.size() > 0 && code.size() == self.code_size(code_hash);
        if let Some(analysed) = self.analysed.filter(|_| is_whole && !overrides_code) {
            analysed.keep(code_hash, code);
        }
    }

    fn exhausted(&self) -> bool {
        self.record.exhausted(self.max_missing, self.max_keys)
    }

    fn destroyed_before(&self) -> Option<&BTreeSet<Address>> {
        self.destroyed
    }
}
