//! Simulated transactions (`eth_simulateV1`, traced calls): calls that run as transactions on the state of a call, one after the other,
//! each on the state that the earlier ones have changed.
//!
//! The changes stay in memory and no trie is written, so that a state of which only parts are known suffices. A
//! signature is not needed, and the caller checks the rules of transactions.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256};

use super::call::{CallContext, check_overrides, run_context, run_environment, stop};
use super::limits::RunLimits;
use super::recorder::{ReadRecord, ReadRecorder};
use super::run_end::{RunEnd, first_frame, report_payments};
use super::stop::CallStop;
use super::transaction::IndexedTransaction;
use super::transaction_error::{gas_limit, gas_price};
use crate::consensus::Rule;
#[cfg(feature = "catalogue")]
use crate::evm::LiveState;
use crate::evm::precompiles::{Precompile, RunTransaction};
use crate::evm::{Abort, AccountValues, HaltReason, Inspector, Machine, StateChanges, intrinsic_gas};
use crate::state::{AccountOverride, AccountState, ChangedState, StateOverride, StateReader};
use crate::types::{Log, Receipt};

/// A state on which transactions are simulated.
pub struct Simulation<'a> {
    state: ChangedState<'a>,
    limits: &'a RunLimits<'a>,
    /// The reads of all runs so far.
    record: ReadRecord,
    /// Accounts whose code comes from overrides or from simulated transactions, in the form in which [`ReadRecorder`] gets overrides:
    /// it then does not cache their code.
    made_up: StateOverride,
    /// Contracts that the present block has destroyed.
    destroyed: BTreeSet<Address>,
    /// Whether the next transaction is the last one, so that no code reads the state after it.
    drops_changes: bool,
}

/// The result of a simulated transaction.
#[derive(Clone, Debug)]
pub struct SimulatedRun {
    /// Logs in order.
    pub logs: Vec<Log>,
    /// Gas used.
    pub gas_used: u64,
    /// Fee in wei.
    pub fee: U256,
    /// Return data, revert data, or the code of the new contract.
    pub output: Bytes,
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on an exceptional halt.
    pub failure: Option<Option<HaltReason>>,
    /// Gas used before refunds.
    pub spent: u64,
    /// Whether the value was transferred.
    pub transferred: bool,
}

impl SimulatedRun {
    /// The receipt, if the block's earlier transactions used this gas.
    pub fn receipt(&self, gas_before: u64) -> Receipt {
        let cumulative = gas_before.saturating_add(self.gas_used);
        Receipt::new(self.failure.is_none(), cumulative, self.gas_used, self.logs.clone())
    }
}

/// Accounts that a run has read or changed, each with its slots.
type UsedAccounts = Vec<(Address, Vec<U256>)>;

/// Simulates transactions on a state. Data that are missing are read as zeros so that the simulation goes on to find
/// more of them, and its result is then discarded.
///
/// # Errors
/// Missing data, a limit, or a reason to refuse a call. The errors of `run` only if no data were missing.
pub fn simulate<'a, T>(
    state: &'a dyn StateReader,
    limits: &'a RunLimits<'a>,
    run: impl FnOnce(&mut Simulation<'a>) -> Result<T, CallStop>,
) -> Result<T, CallStop> {
    let mut simulation = Simulation {
        state: ChangedState::new(state),
        limits,
        record: ReadRecord::default(),
        made_up: StateOverride::default(),
        destroyed: BTreeSet::new(),
        drops_changes: false,
    };
    let result = run(&mut simulation);
    // An inline run that ended early counts as interrupted even if data are missing: the run without its limits finds all of them.
    if !(limits.is_inline && matches!(result, Err(CallStop::Interrupted))) {
        simulation.record.finish(limits.max_keys)?;
    }
    result
}

impl<'a> Simulation<'a> {
    /// Whether data are missing, so that values that are read now may be wrong, and the result will be discarded.
    pub fn is_incomplete(&self) -> bool {
        self.record.is_incomplete()
    }

    /// An account; an empty one if it does not exist.
    pub fn account(&mut self, address: Address) -> AccountState {
        let read = self.state.account(&address);
        let Some(account) = self.record.note(read) else { return AccountState::EMPTY };
        // The next read of the account is then a look-up in memory.
        self.state.set_account(address, account);
        account
    }

    /// Drops the changes of the next transaction, which must be the last one.
    pub fn drop_changes_of_next(&mut self) {
        self.drops_changes = true;
    }

    /// Begins another block, in which contracts can be created again at addresses that the block before has destroyed.
    pub fn begin_block(&mut self) {
        self.destroyed.clear();
    }

    /// Changes the state directly.
    ///
    /// # Errors
    /// [`CallStop::Override`] if a native contract is overridden.
    pub fn override_state(
        &mut self,
        context: &CallContext<'_>,
        overrides: &StateOverride,
    ) -> Result<(), CallStop> {
        check_overrides(overrides, context.rules)?;
        for (address, over) in &overrides.accounts {
            let applied = self.state.apply(*address, over);
            self.record.note(applied);
            if over.code.is_some() {
                self.mark_made_up(*address);
            }
        }
        Ok(())
    }

    /// Adds wei to an account.
    pub fn credit(&mut self, address: Address, value: U256) {
        let mut account = self.account(address);
        account.balance = account.balance.saturating_add(value);
        self.state.set_account(address, account);
    }

    /// Subtracts wei from an account.
    fn debit(&mut self, address: Address, value: U256) {
        let mut account = self.account(address);
        account.balance = account.balance.saturating_sub(value);
        self.state.set_account(address, account);
    }

    /// Runs a transaction in the block of a context, whose state is not used, and charges its fee.
    ///
    /// The caller has checked that the gas limit covers the intrinsic gas, and that the sender has the value and
    /// the fee.
    ///
    /// # Errors
    /// As those of a call.
    pub fn run(
        &mut self,
        context: &CallContext<'_>,
        item: IndexedTransaction<'_>,
        mut inspector: Option<&mut dyn Inspector>,
    ) -> Result<SimulatedRun, CallStop> {
        if (self.limits.interrupt)() {
            return Err(CallStop::Interrupted);
        }
        let watched = inspector.as_ref().is_some_and(|inspector| inspector.wants_accounts());
        let before = watched.then(|| self.state.clone());
        let (limit, price) = (gas_limit(item.transaction), gas_price(item.transaction));
        let mut sender = self.account(item.sender);
        sender.nonce = sender.nonce.saturating_add(1);
        sender.balance = sender.balance.saturating_sub(price.saturating_mul(U256::from(limit)));
        self.state.set_account(item.sender, sender);
        #[allow(clippy::option_as_ref_deref, reason = "the lifetime of the trait object is shortened")]
        let watching = inspector.as_mut().map(|inspector| -> &mut dyn Inspector { &mut **inspector });
        let (end, used) = self.execute(context, item, watching)?;
        let unpaid = U256::from(limit.saturating_sub(end.gas_paid));
        if !price.is_zero() {
            self.credit(item.sender, price.saturating_mul(unpaid));
        }
        if let (Some(before), Some(inspector)) = (before, inspector) {
            self.report(&before, &used, inspector);
        }
        Ok(SimulatedRun {
            logs: end.logs,
            gas_used: end.gas_used,
            fee: price.saturating_mul(U256::from(end.gas_paid)),
            output: end.output,
            failure: end.failure,
            spent: end.spent,
            transferred: end.transferred,
        })
    }

    /// Runs a transaction whose sender has paid for its gas limit, and applies the changes. Returns the accounts that it used if the
    /// inspector wants them.
    fn execute(
        &mut self,
        context: &CallContext<'_>,
        item: IndexedTransaction<'_>,
        inspector: Option<&mut dyn Inspector>,
    ) -> Result<(RunEnd, UsedAccounts), CallStop> {
        let IndexedTransaction { index, transaction, sender } = item;
        let intrinsic = intrinsic_gas(&transaction.data, transaction.to.is_none(), context.rules);
        if transaction.to.is_none() && transaction.data.is_empty() {
            return Ok(self.run_bare_creation(context, item, intrinsic));
        }
        let limit = gas_limit(transaction);
        let gas = limit.saturating_sub(intrinsic);
        let first = first_frame(transaction, sender, gas);
        let record = core::mem::take(&mut self.record);
        // No sender for the recorder: `run` has stored the sender's account already.
        let recorder = ReadRecorder::new(&self.state, context.hashes, &self.made_up, None, self.limits)
            .after(record, &self.destroyed);
        let mut run = run_context(context, gas_price(transaction), self.limits);
        let native = transaction.to.and_then(|to| Precompile::at(&to, context.rules));
        // The inspector of a direct call of a native contract, which gets the payments only: no frame is opened.
        let mut payment_inspector = None;
        let watched = inspector.as_ref().is_some_and(|inspector| inspector.wants_accounts());
        match native {
            Some(_) => payment_inspector = inspector,
            None => run.inspector = inspector.map(|inspector| -> &mut dyn Inspector { inspector }),
        }
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        run.transaction = Some(RunTransaction { index, transaction });
        let mut machine = Machine::new(recorder, run_environment(context, sender), run);
        let ended = match native {
            Some(native) => machine.run_direct(native, &first).map(|end| {
                report_payments(native, &end, payment_inspector);
                RunEnd::of_native(end, limit, gas)
            }),
            None => machine.run_transaction(first).map(|end| RunEnd::of_code(end, limit)),
        };
        if self.drops_changes && !watched {
            self.record = machine.into_state().into_record();
            return ended.map(|end| (end, Vec::new())).map_err(|abort| self.stop(abort));
        }
        let cells = machine.written_cells();
        let mut natives: Vec<Address> =
            machine.natives_called().iter().map(|called| called.contract.address()).collect();
        let used = if watched { machine.used() } else { Vec::new() };
        let (changes, recorder) = machine.into_changes();
        self.record = recorder.into_record();
        let end = ended.map_err(|abort| self.stop(abort))?;
        natives.extend(transaction.to.filter(|_| native.is_some() && end.transferred));
        self.apply(changes, cells, &natives);
        Ok((end, used))
    }

    /// Reports the accounts that a run has used, as they were before it and as they are now.
    fn report(&mut self, before: &ChangedState<'_>, used: &UsedAccounts, inspector: &mut dyn Inspector) {
        let record = &mut self.record;
        for (address, slots) in used {
            let values_before = values(before, address, record);
            let values_after = values(&self.state, address, record);
            let mut word = |state: &ChangedState<'_>, slot: &U256| {
                let read = state.storage(address, slot);
                U256::try_from_be_slice(&record.note(read)).unwrap_or_default()
            };
            let mut words = slots.iter().map(|slot| (*slot, word(before, slot), word(&self.state, slot)));
            inspector.account(*address, values_before, values_after, &mut words);
        }
    }

    /// The error for an aborted run. Missing data are reported first: a run on zeros may be aborted where a run on the real state would
    /// not.
    fn stop(&self, abort: Abort) -> CallStop {
        if self.limits.is_inline && abort == Abort::Stopped {
            return CallStop::Interrupted;
        }
        self.record.finish(self.limits.max_keys).err().unwrap_or_else(|| stop(abort))
    }

    /// Runs a creation without data, in which no code runs.
    fn run_bare_creation(
        &mut self,
        context: &CallContext<'_>,
        item: IndexedTransaction<'_>,
        intrinsic: u64,
    ) -> (RunEnd, UsedAccounts) {
        let created = self.create_bare(context, item);
        (RunEnd::plain(intrinsic), vec![(item.sender, Vec::new()), (created, Vec::new())])
    }

    /// Creates the account of a creation without data, which has neither code nor the marker of a contract. Returns its address.
    fn create_bare(&mut self, context: &CallContext<'_>, item: IndexedTransaction<'_>) -> Address {
        let nonce = self.account(item.sender).nonce.saturating_sub(1);
        let address = item.sender.create(nonce);
        let old_balance = self.account(address).balance;
        let balance = if context.rules.has(Rule::Rskip174) { old_balance } else { U256::ZERO };
        self.state.set_account(address, AccountState { balance, ..AccountState::EMPTY });
        self.debit(item.sender, item.transaction.value);
        self.credit(address, item.transaction.value);
        address
    }

    /// Notes that the code of an account is not that of the chain.
    fn mark_made_up(&mut self, address: Address) {
        let made_up = AccountOverride { code: Some(Bytes::new()), ..AccountOverride::default() };
        self.made_up.accounts.insert(address, made_up);
    }

    /// Applies the changes of a run, as in a block. The native contracts `natives`, which were called, become contracts.
    fn apply(&mut self, changes: StateChanges, cells: Vec<(Address, U256, Bytes)>, natives: &[Address]) {
        for changed in changes.accounts {
            let address = changed.address;
            let existing = self.account(address);
            let account = AccountState { nonce: changed.nonce, balance: changed.balance, ..existing };
            self.state.set_account(address, account);
            if natives.contains(&address) {
                self.state.set_contract(address);
            }
            if let Some(code) = changed.created {
                self.state.set_contract(address);
                let set = self.state.set_code(address, code);
                self.record.note(set);
                self.mark_made_up(address);
            }
            for (slot, word) in changed.words {
                self.state.set_slot(address, slot, word.to_be_bytes_trimmed_vec().into());
            }
        }
        for (contract, slot, bytes) in cells {
            self.state.set_slot(contract, slot, bytes);
        }
        for address in changes.destroyed {
            self.state.remove(address);
            self.destroyed.insert(address);
        }
    }
}

#[cfg(feature = "catalogue")]
impl LiveState for Simulation<'_> {
    fn account(&mut self, address: Address) -> Option<(u64, U256)> {
        let read = self.state.account(&address);
        self.record.note(read).map(|account| (account.nonce, account.balance))
    }

    fn code(&mut self, address: Address) -> Bytes {
        let code = values(&self.state, &address, &mut self.record).map(|values| values.code);
        code.unwrap_or_default()
    }

    fn word(&mut self, address: Address, slot: U256) -> U256 {
        let read = self.state.storage(&address, &slot);
        U256::try_from_be_slice(&self.record.note(read)).unwrap_or_default()
    }
}

/// The nonce, balance and code of an account.
fn values(state: &ChangedState<'_>, address: &Address, record: &mut ReadRecord) -> Option<AccountValues> {
    let account = record.note(state.account(address))?;
    let code = match account.code_size {
        0 => Bytes::new(),
        _ => record.note(state.code(address)),
    };
    Some(AccountValues { nonce: account.nonce, balance: account.balance, code })
}
