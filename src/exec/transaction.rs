//! Execution of one transaction of a block on a complete state: rules, run, fee and receipt. `block.rs` executes the transactions of a
//! block, `build.rs` those of a new one.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256};

use super::Executed;
use super::basic_cost::basic_cost;
use super::block_context::BlockContext;
use super::run_end::{RunEnd, first_frame, report_payments};
use super::transaction_error::{MAX_GAS, NotExecuted, TxError, gas_limit, gas_price};
use super::transaction_state::{ReadyCodes, TransactionState};
use crate::consensus::{Rule, RuleSet};
use crate::evm::precompiles::{Precompile, RunTransaction, Unsimulated};
use crate::evm::{
    Abort, ChangedAccount, DirectOutcome, HaltReason, Inspector, MAX_INIT_CODE, Machine, StateChanges, Touch,
};
use crate::state::{Account, World};
use crate::types::{Receipt, Transaction};

/// A transaction with its index and sender.
#[derive(Clone, Copy)]
pub struct IndexedTransaction<'a> {
    /// Index in the block.
    pub index: usize,
    /// The transaction.
    pub transaction: &'a Transaction,
    /// Sender: from the signature, or given with a transaction that has none, as in a simulation.
    pub sender: Address,
}

/// A list of transactions being executed: the whole block, or one of the lists of RSKIP-144.
pub struct TransactionList {
    /// The state after the transactions executed so far.
    pub world: World,
    /// Gas limit of the list.
    pub gas_limit: u64,
    /// Gas used so far.
    pub gas_used: u64,
    /// Contracts destroyed by transactions of this list or of lists before it.
    pub destroyed: BTreeSet<Address>,
    /// Sum of the fees so far, in wei.
    pub fees: U256,
    /// Analysed code of earlier transactions.
    pub(super) codes: ReadyCodes,
}

/// Calls of the Bridge or REMASC, which are only allowed in the sequential list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCalls {
    /// Whether there was such a call.
    pub any: bool,
    /// Whether there was a call that the rules forbid in a parallel list. The reference node ignores calls
    /// from constructors of contracts that contracts create.
    pub forbidden: bool,
}

/// The result of a transaction.
#[derive(Clone, Debug)]
pub struct TransactionEnd {
    /// Receipt of the transaction.
    pub receipt: Receipt,
    /// Fee in wei. It is more than the gas used times the price if a native contract failed that was called directly.
    pub fee: U256,
    /// Return data, revert data, or the code of the new contract.
    pub output: Bytes,
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on an exceptional halt.
    pub failure: Option<Option<HaltReason>>,
    /// The transaction's calls of the Bridge or REMASC.
    pub shared: SharedCalls,
    /// Methods of native contracts that failed because this version does not implement them.
    pub unsimulated: Vec<Unsimulated>,
}

impl TransactionEnd {
    /// The result in the form that observers get.
    pub(super) fn executed<'e>(&'e self, item: IndexedTransaction<'e>) -> Executed<'e> {
        Executed {
            transaction: item.transaction,
            sender: item.sender,
            success: self.receipt.success,
            gas_used: self.receipt.gas_used,
            logs: &self.receipt.logs,
            output: &self.output,
            failure: self.failure,
        }
    }

    /// A success without fee, output or calls.
    pub(super) fn quiet(receipt: Receipt) -> Self {
        Self {
            receipt,
            fee: U256::ZERO,
            output: Bytes::new(),
            failure: None,
            shared: SharedCalls::default(),
            unsimulated: Vec::new(),
        }
    }
}

/// A run that has ended, and its calls of native contracts.
struct EndedRun {
    end: RunEnd,
    shared: SharedCalls,
    unsimulated: Vec<Unsimulated>,
}

impl From<RunEnd> for EndedRun {
    fn from(end: RunEnd) -> Self {
        Self { end, shared: SharedCalls::default(), unsimulated: Vec::new() }
    }
}

impl TransactionList {
    /// Creates a list that starts on this state.
    pub fn new(world: World, gas_limit: u64) -> Self {
        Self {
            world,
            gas_limit,
            gas_used: 0,
            destroyed: BTreeSet::new(),
            fees: U256::ZERO,
            codes: ReadyCodes::default(),
        }
    }

    /// Checks a transaction, executes it and charges its fee. If it is refused, the state is unchanged.
    ///
    /// # Errors
    /// The first rule that the transaction breaks.
    pub fn execute(
        &mut self,
        context: &BlockContext<'_>,
        item: IndexedTransaction<'_>,
        inspector: Option<&mut dyn Inspector>,
    ) -> Result<TransactionEnd, TxError> {
        let intrinsic = self.check(context, item)?;
        let limit = gas_limit(item.transaction);
        let price = gas_price(item.transaction);
        let before = self.world.account(&item.sender);
        self.touch(Touch::Sender(item.sender));
        self.world.bump_nonce(&item.sender);
        self.world.charge(&item.sender, price.saturating_mul(U256::from(limit)));
        let EndedRun { end, shared, unsimulated } = match self.run(context, item, intrinsic, inspector) {
            Ok(ended) => ended,
            Err(abort) => {
                self.world.restore(&item.sender, before);
                return Err(TxError::NotExecuted(NotExecuted(abort)));
            }
        };
        let unpaid = limit.saturating_sub(end.gas_paid);
        self.world.credit(&item.sender, price.saturating_mul(U256::from(unpaid)));
        let fee = price.saturating_mul(U256::from(end.gas_paid));
        self.fees = self.fees.saturating_add(fee);
        self.gas_used = self.gas_used.saturating_add(end.gas_used);
        Ok(TransactionEnd {
            receipt: Receipt::new(end.failure.is_none(), self.gas_used, end.gas_used, end.logs),
            fee,
            output: end.output,
            failure: end.failure,
            shared,
            unsimulated,
        })
    }

    /// Checks the rules of transactions, in the order of the reference node, and returns the intrinsic gas.
    fn check(&mut self, context: &BlockContext<'_>, item: IndexedTransaction<'_>) -> Result<u64, TxError> {
        let IndexedTransaction { transaction, sender, .. } = item;
        let (rules, size) = (context.rules, transaction.data.len());
        if transaction.to.is_none() && rules.has(Rule::Rskip438) && size > MAX_INIT_CODE {
            return Err(TxError::InitCodeSize { size, hash: transaction.hash() });
        }
        let needed = basic_cost(transaction, &sender, context.network, rules);
        let sent = gas_limit(transaction);
        // A sum that reaches the highest amount of gas is refused even if the list's limit is that amount.
        let total = self.gas_used.saturating_add(sent).min(MAX_GAS);
        if total > self.gas_limit || total == MAX_GAS {
            return Err(TxError::ListGas { limit: self.gas_limit, sent });
        }
        if sent < needed {
            return Err(TxError::Intrinsic { needed, sent });
        }
        let account = self.world.account(&sender).unwrap_or_default();
        let found = transaction.nonce.value();
        if found != U256::from(account.nonce) {
            return Err(TxError::Nonce { required: account.nonce, found });
        }
        let gas_cost = match needed {
            // A free transaction of the Bridge's federation.
            0 => U256::ZERO,
            _ => gas_price(transaction).saturating_mul(U256::from(sent)),
        };
        let required = transaction.value.saturating_add(gas_cost);
        let below_zero = !account.debt.is_zero();
        if account.balance < required || below_zero {
            let balance = if below_zero { account.debt } else { account.balance };
            return Err(TxError::Cash { required, balance, below_zero });
        }
        let native = transaction.to.and_then(|to| Precompile::at(&to, rules));
        if native == Some(Precompile::Blake2F) && size == 0 && !rules.has(Rule::Rskip552) {
            return Err(TxError::NoBlakeData);
        }
        Ok(needed)
    }

    /// Runs a transaction that was checked and paid for, and applies its changes.
    fn run(
        &mut self,
        context: &BlockContext<'_>,
        item: IndexedTransaction<'_>,
        intrinsic: u64,
        inspector: Option<&mut dyn Inspector>,
    ) -> Result<EndedRun, Abort> {
        let IndexedTransaction { transaction, sender, .. } = item;
        let gas = gas_limit(transaction).saturating_sub(intrinsic);
        match transaction.to {
            Some(to) => {
                if let Some(precompile) = Precompile::at(&to, context.rules) {
                    return self.run_direct(context, item, precompile, gas, inspector);
                }
                self.touch(Touch::TargetCode(to));
                let (_, code_size) = self.world.code_id(&to);
                if code_size == 0 {
                    self.transfer(&sender, &to, transaction.value)?;
                    return Ok(RunEnd::plain(intrinsic).into());
                }
            }
            None if transaction.data.is_empty() => {
                self.create_bare(context.rules, item)?;
                return Ok(RunEnd::plain(intrinsic).into());
            }
            None => {}
        }
        self.run_code(context, item, gas, inspector)
    }

    /// Records a touch, if touches are tracked.
    fn touch(&mut self, touch: Touch) {
        if let Some(touches) = self.world.touches() {
            touch.note(touches);
        }
    }

    /// Records the touch of a transfer. Returns the balance of the receiver before the transfer; `None` if the account does not exist.
    fn touch_transfer(&mut self, from: &Address, to: &Address, value: U256) -> Option<U256> {
        let balance = self.world.account(to).map(|account| account.balance);
        self.touch(Touch::Transfer { from: *from, to: *to, value, exists: balance.is_some() });
        balance
    }

    /// Transfers wei.
    fn transfer(&mut self, from: &Address, to: &Address, value: U256) -> Result<(), Abort> {
        let balance = self.touch_transfer(from, to, value).unwrap_or_default();
        if from != to && balance.checked_add(value).is_none() {
            return Err(Abort::BalanceOverflow);
        }
        self.world.charge(from, value);
        self.world.credit(to, value);
        Ok(())
    }

    /// Executes a creation without data, which creates an account without code and marker.
    fn create_bare(&mut self, rules: RuleSet, item: IndexedTransaction<'_>) -> Result<(), Abort> {
        // A creation always has a contract address.
        let Some(address) = item.transaction.contract_address(&item.sender) else { return Ok(()) };
        self.touch(Touch::Created(address));
        let existing = self.world.account(&address).unwrap_or_default();
        let kept = if rules.has(Rule::Rskip174) { existing } else { Account::default() };
        self.world.set_account(&address, Account { nonce: 0, flags: 0, ..kept });
        self.transfer(&item.sender, &address, item.transaction.value)
    }

    /// The machine for a transaction.
    fn machine<'a, 'b: 'a, 'i: 'a>(
        &'a mut self,
        context: &'a BlockContext<'b>,
        item: IndexedTransaction<'a>,
        inspector: Option<&'i mut (dyn Inspector + 'i)>,
    ) -> Machine<'a, TransactionState<'a, 'b>> {
        let state = TransactionState {
            world: &mut self.world,
            context,
            destroyed: &self.destroyed,
            codes: &mut self.codes,
            owners: BTreeMap::new(),
        };
        let mut run = context.run_context(gas_price(item.transaction));
        run.inspector = inspector.map(|inspector| -> &'a mut dyn Inspector { inspector });
        let index = u32::try_from(item.index).unwrap_or(u32::MAX);
        run.transaction = Some(RunTransaction { index, transaction: item.transaction });
        Machine::new(state, context.run_environment(item.sender), run)
    }

    /// Runs the code of a contract or of a creation.
    fn run_code(
        &mut self,
        context: &BlockContext<'_>,
        item: IndexedTransaction<'_>,
        gas: u64,
        inspector: Option<&mut dyn Inspector>,
    ) -> Result<EndedRun, Abort> {
        let limit = gas_limit(item.transaction);
        if let Some(to) = &item.transaction.to {
            // Only the touch: the machine makes the transfer.
            self.touch_transfer(&item.sender, to, item.transaction.value);
        }
        let mut machine = self.machine(context, item, inspector);
        let end = machine.run_transaction(first_frame(item.transaction, item.sender, gas))?;
        let cells = machine.written_cells();
        let called = machine.natives_called();
        let calls = || called.iter().filter(|called| is_shared(&called.contract));
        let forbidden = calls().any(|called| called.outside_creations);
        let shared = SharedCalls { any: calls().next().is_some(), forbidden };
        let natives: Vec<Address> = called.iter().map(|called| called.contract.address()).collect();
        let unsimulated = machine.unsimulated().to_vec();
        let (changes, _) = machine.into_changes();
        self.apply(changes, &cells, &natives);
        Ok(EndedRun { end: RunEnd::of_code(end, limit), shared, unsimulated })
    }

    /// Runs a direct call of a native contract. The cells that the contract wrote stay written also if it fails.
    fn run_direct(
        &mut self,
        context: &BlockContext<'_>,
        item: IndexedTransaction<'_>,
        precompile: Precompile,
        gas: u64,
        inspector: Option<&mut dyn Inspector>,
    ) -> Result<EndedRun, Abort> {
        let limit = gas_limit(item.transaction);
        // No inspector: no frame is opened, and the payments are reported below.
        let mut machine = self.machine(context, item, None);
        let end = machine.run_direct(precompile, &first_frame(item.transaction, item.sender, gas))?;
        let cells = machine.written_cells();
        let unsimulated = machine.unsimulated().to_vec();
        let (changes, _) = machine.into_changes();
        let done = matches!(end.outcome, DirectOutcome::Done(_));
        let address = precompile.address();
        if done {
            self.touch(Touch::NativeDone(address));
            self.touch_transfer(&item.sender, &address, item.transaction.value);
        }
        report_payments(precompile, &end, inspector);
        self.apply(changes, &cells, if done { core::slice::from_ref(&address) } else { &[] });
        let any = is_shared(&precompile);
        let shared = SharedCalls { any, forbidden: any };
        Ok(EndedRun { end: RunEnd::of_native(end, limit, gas), shared, unsimulated })
    }

    /// Applies the changes of a run. Native contracts that were called get the storage-root marker.
    fn apply(&mut self, changes: StateChanges, cells: &[(Address, U256, Bytes)], natives: &[Address]) {
        for account in changes.accounts {
            let called = natives.contains(&account.address);
            let address = account.address;
            self.apply_account(account);
            if called && !self.world.marker(&address) {
                self.world.set_marker(&address);
            }
        }
        for (contract, slot, bytes) in cells {
            self.world.set_cell(contract, slot, bytes.clone());
        }
        for address in changes.destroyed {
            self.touch(Touch::Deleted(address));
            self.world.remove(&address);
            self.destroyed.insert(address);
        }
    }

    /// Applies the changes of one account. The balance of a run counts from zero up, so the difference to the old balance is credited or
    /// charged, which pays a debt first.
    fn apply_account(&mut self, changed: ChangedAccount) {
        let address = &changed.address;
        match self.world.account(address) {
            Some(existing) if existing.nonce == changed.nonce && existing.balance == changed.balance => {}
            Some(mut existing) => {
                existing.nonce = changed.nonce;
                match changed.balance.checked_sub(existing.balance) {
                    Some(gain) => existing.credit(gain),
                    None => existing.charge(existing.balance.saturating_sub(changed.balance)),
                }
                self.world.set_account(address, existing);
            }
            None => {
                let (nonce, balance) = (changed.nonce, changed.balance);
                self.world.set_account(address, Account { nonce, balance, ..Account::default() });
            }
        }
        if let Some(code) = changed.created {
            self.world.set_marker(address);
            self.world.set_code(address, code);
        }
        for (slot, word) in &changed.words {
            self.world.set_word(address, slot, *word);
        }
    }
}

/// Whether parallel lists may not call the contract.
fn is_shared(precompile: &Precompile) -> bool {
    matches!(precompile, Precompile::Bridge | Precompile::Remasc)
}
