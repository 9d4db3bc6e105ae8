//! Execution of a block on its parent's state, and comparison of the result with the header. RSKIP-144 divides the transactions of a block
//! into lists: parallel ones, which are independent of each other, then a sequential one, which ends with the REMASC transaction.

use alloc::vec::Vec;
use core::ops::Range;

use alloy_primitives::{Address, Bloom, U256};

use super::activation::activate;
use super::block_context::{Ancestry, BlockContext, OnUnsimulated};
use super::block_error::{BlockError, Mismatch};
use super::observer::{BlockObserver, WatchedAncestry};
use super::remasc::distribute;
use super::sublists::{ListLimits, are_parallel, split};
use super::transaction::{IndexedTransaction, TransactionEnd, TransactionList};
use super::transaction_error::{MAX_GAS, NotExecuted, TxError, gas_price};
use crate::consensus::body::{receipts_root, root_format, transactions_root};
use crate::consensus::{Network, Rule};
use crate::evm::{Abort, precompiles::Unsimulated};
use crate::state::{Access, Touches, World};
use crate::trie::Trie;
use crate::types::{Header, REMASC_ADDRESS, Receipt, SenderError, Transaction};

/// A transaction's gas price is at most this many times the block's minimum (RSKIP-252).
pub const PRICE_CAP: u64 = 100;

/// A block to execute.
#[derive(Clone, Copy, Debug)]
pub struct BlockInput<'a> {
    /// Header of the block. Only the fields visible to instructions, the number, the edges (ends of the parallel lists) and the
    /// transactions root are used.
    pub header: &'a Header,
    /// Transactions of the block; the REMASC transaction is the last one.
    pub transactions: &'a [Transaction],
    /// Senders of the transactions, if already recovered. Otherwise they are recovered here.
    pub senders: Option<&'a [Address]>,
}

/// The result of executing a block.
#[derive(Clone, Debug)]
pub struct ExecutedBlock {
    /// The state after the block.
    pub state: Trie,
    /// Receipts in block order.
    pub receipts: Vec<Receipt>,
    /// Senders in block order; the zero address for the REMASC transaction.
    pub senders: Vec<Address>,
    /// Address of the created contract for each transaction.
    pub contract_addresses: Vec<Option<Address>>,
    /// Gas used by all transactions.
    pub gas_used: u64,
    /// Fees of all transactions, in wei.
    pub paid_fees: U256,
    /// Bloom of all logs.
    pub logs_bloom: Bloom,
    /// Methods of native contracts that failed because this version does not implement them, each with the
    /// index of the transaction.
    pub unsimulated: Vec<(usize, Unsimulated)>,
}

impl ExecutedBlock {
    /// Compares the result with the header.
    ///
    /// # Errors
    /// All fields that differ; if a call to a method failed that is not implemented, it is named as the reason.
    pub fn check(&self, header: &Header, network: &Network) -> Result<(), BlockError> {
        check_block(self, header, network).map_err(|mismatches| self.mismatch_error(mismatches))
    }

    /// As [`Self::check`], apart from the state root: for a run on a part of the state, or on one that was changed
    /// directly.
    pub fn check_apart_from_state(&self, header: &Header, network: &Network) -> Result<(), BlockError> {
        let mismatches: Vec<Mismatch> = self.mismatches(header, network).collect();
        if mismatches.is_empty() { Ok(()) } else { Err(self.mismatch_error(mismatches)) }
    }

    /// The error for fields that differ. A call that was not simulated is named as the reason.
    fn mismatch_error(&self, mismatches: Vec<Mismatch>) -> BlockError {
        match self.unsimulated.first() {
            Some(&(index, method)) => BlockError::NotSimulated { index, method, mismatches },
            None => BlockError::Mismatch(mismatches),
        }
    }

    /// The header fields besides the state root that differ from the result.
    fn mismatches(&self, header: &Header, network: &Network) -> impl Iterator<Item = Mismatch> {
        let receipts = receipts_root(&self.receipts, root_format(network, header.number));
        [
            Mismatch::between("receiptsRoot", header.receipts_root, receipts),
            Mismatch::between("logsBloom", header.logs_bloom, self.logs_bloom),
            Mismatch::between("gasUsed", header.gas_used, self.gas_used),
            Mismatch::between("paidFees", header.paid_fees, self.paid_fees),
        ]
        .into_iter()
        .flatten()
    }
}

/// Executes a block on its parent's state, and checks the transactions and their lists, but not the header;
/// [`check_block`] compares the result with the header. Calls to methods that are not implemented fail; what the
/// observer sees is then not what happened on the network.
///
/// # Errors
/// The first rule that the transactions break.
pub fn execute_block(
    network: &Network,
    parent_state: &Trie,
    block: &BlockInput<'_>,
    ancestry: &dyn Ancestry,
    observer: &mut dyn BlockObserver,
) -> Result<ExecutedBlock, BlockError> {
    let mut context = BlockContext::new(network, block.header.into(), ancestry);
    context.unsimulated = OnUnsimulated::Fail;
    execute_in(&context, parent_state, block, observer)
}

/// As [`execute_block`], in a context that can interrupt the execution and refuse calls to methods that are not
/// implemented.
///
/// # Errors
/// The first rule that the transactions break, an interruption, or a refused call.
pub fn execute_in(
    context: &BlockContext<'_>,
    parent_state: &Trie,
    block: &BlockInput<'_>,
    observer: &mut dyn BlockObserver,
) -> Result<ExecutedBlock, BlockError> {
    if !observer.watches_access() {
        return run(context, parent_state, block, observer);
    }
    let ancestry = WatchedAncestry::new(context.ancestry);
    let executed = run(&context.with_ancestry(&ancestry), parent_state, block, observer);
    ancestry.report(observer);
    executed
}

/// Executes the block; its ancestry is already watched if the observer wants it.
fn run(
    context: &BlockContext<'_>,
    parent_state: &Trie,
    block: &BlockInput<'_>,
    observer: &mut dyn BlockObserver,
) -> Result<ExecutedBlock, BlockError> {
    check_transactions(context, block)?;
    let recovered = context.recovery.filter(|_| block.senders.is_none()).and_then(|recovery| {
        super::recovery::all_senders(recovery, block.transactions, context.network.chain_id)
    });
    let block = &BlockInput { senders: block.senders.or(recovered.as_deref()), ..*block };
    let BlockStart { lists, start, world, limits } = BlockStart::of(context, parent_state, block)?;
    let mut run = BlockRun {
        context,
        block,
        observer,
        receipts: Vec::with_capacity(block.transactions.len()),
        senders: Vec::with_capacity(block.transactions.len()),
        gas_used: 0,
        unsimulated: Vec::new(),
    };
    let mut sequential = run.parallel(world, &lists, limits)?;
    let remasc = block.transactions.len().saturating_sub(1);
    let parallel = false;
    run.list(&mut sequential, start..remasc, parallel)?;
    run.remasc(&mut sequential, remasc)?;
    let fees = sequential.fees;
    Ok(run.finish(sequential.world.commit(), fees))
}

/// The lists of a block and the state before its first transaction.
struct BlockStart {
    /// The parallel lists.
    lists: Vec<Range<usize>>,
    /// The first transaction of the sequential list.
    start: usize,
    /// The parent's state, with the accounts of native contracts that the block activates.
    world: World,
    /// The gas limits of the lists.
    limits: ListLimits,
}

impl BlockStart {
    /// Divides the transactions into lists and activates native contracts.
    fn of(
        context: &BlockContext<'_>,
        parent_state: &Trie,
        block: &BlockInput<'_>,
    ) -> Result<Self, BlockError> {
        let edges = if are_parallel(context.rules) { block.header.edges.as_slice() } else { &[] };
        let (lists, start) = split(edges, block.transactions.len())?;
        let mut world = World::new(parent_state.clone());
        activate(&mut world, context.network, context.environment.number);
        let limits = ListLimits::new(
            block_gas(context.environment.gas_limit),
            context.network.params.min_sequential_gas_limit,
            context.rules,
        );
        Ok(Self { lists, start, world, limits })
    }
}

/// The state before the transaction of a block at an index: after the activation of native contracts and the earlier transactions of the
/// block. As in the block, each parallel list runs on the state before all lists. Only `debug_storageRangeAt` uses it, a method of the
/// feature `catalogue`.
#[cfg(all(feature = "catalogue", feature = "local"))]
pub(crate) fn state_before(
    context: &BlockContext<'_>,
    parent_state: &Trie,
    block: &BlockInput<'_>,
    index: usize,
) -> Result<Trie, BlockError> {
    check_transactions(context, block)?;
    let BlockStart { mut lists, start, world, limits } = BlockStart::of(context, parent_state, block)?;
    // The lists end before the index; those that begin later are left out.
    lists.retain_mut(|list| {
        list.end = list.end.min(index);
        list.start < list.end
    });
    let mut run = BlockRun {
        context,
        block,
        observer: &mut super::NoObserver,
        receipts: Vec::new(),
        senders: Vec::new(),
        gas_used: 0,
        unsimulated: Vec::new(),
    };
    let mut sequential = run.parallel(world, &lists, limits)?;
    let parallel = false;
    run.list(&mut sequential, start..index.max(start), parallel)?;
    Ok(sequential.world.commit())
}

/// Compares the result of the execution with the header.
///
/// # Errors
/// All fields that differ.
pub fn check_block(
    executed: &ExecutedBlock,
    header: &Header,
    network: &Network,
) -> Result<(), Vec<Mismatch>> {
    // Before RSKIP-126, the state root in headers is that of the older trie format.
    let state = network
        .active(Rule::Rskip126, header.number)
        .then(|| Mismatch::between("stateRoot", header.state_root, executed.state.root()))
        .flatten();
    let mismatches: Vec<Mismatch> = state.into_iter().chain(executed.mismatches(header, network)).collect();
    if mismatches.is_empty() { Ok(()) } else { Err(mismatches) }
}

/// Gas limit of a block, capped at the 63 bits of the reference node.
pub(super) fn block_gas(limit: U256) -> u64 {
    u64::try_from(limit).unwrap_or(MAX_GAS).min(MAX_GAS)
}

/// Checks the rules that need no state.
fn check_transactions(context: &BlockContext<'_>, block: &BlockInput<'_>) -> Result<(), BlockError> {
    let number = context.environment.number;
    let Some((last, others)) = block.transactions.split_last() else { return Err(BlockError::Remasc) };
    if let Some(senders) = block.senders.filter(|senders| senders.len() != block.transactions.len()) {
        let transactions = block.transactions.len();
        return Err(BlockError::Senders { senders: senders.len(), transactions });
    }
    let refused = |index: usize, transaction: &Transaction, error| BlockError::Transaction {
        index,
        hash: transaction.hash(),
        error,
    };
    for (index, transaction) in others.iter().enumerate() {
        check_price(context, transaction).map_err(|error| refused(index, transaction, error))?;
        if transaction.is_remasc() {
            return Err(refused(index, transaction, TxError::Remasc));
        }
    }
    let expected = block.header.transactions_root;
    let found = transactions_root(block.transactions, root_format(context.network, number));
    if expected != found {
        return Err(BlockError::TransactionsRoot { expected, found });
    }
    if !last.is_remasc() {
        return Err(BlockError::Remasc);
    }
    Ok(())
}

/// Checks the block's rules on gas prices.
pub(super) fn check_price(context: &BlockContext<'_>, transaction: &Transaction) -> Result<(), TxError> {
    let minimum = context.environment.minimum_gas_price;
    let price = gas_price(transaction);
    if price < minimum {
        return Err(TxError::MinimumGasPrice { price, minimum });
    }
    let cap = minimum.saturating_mul(U256::from(PRICE_CAP));
    if context.rules.has(Rule::Rskip252) && !minimum.is_zero() && price > cap {
        return Err(TxError::GasPriceCap { price, cap });
    }
    Ok(())
}

/// Recovers the sender of a transaction and checks that its signature is valid on the network. The reference
/// node checks the signature after the other rules; the order only decides which error is reported.
pub(super) fn sender_of(network: &Network, transaction: &Transaction) -> Result<Address, SenderError> {
    transaction.recover_sender(network.chain_id)
}

/// A running execution of a block, with the results of the transactions so far.
struct BlockRun<'a, 'b> {
    context: &'a BlockContext<'b>,
    block: &'a BlockInput<'a>,
    observer: &'a mut dyn BlockObserver,
    receipts: Vec<Receipt>,
    senders: Vec<Address>,
    gas_used: u64,
    unsimulated: Vec<(usize, Unsimulated)>,
}

/// The state before a transaction, for an observer.
struct StateBefore {
    world: World,
    /// The keys that were recorded before the transaction, to which its own are added at its end.
    around: Option<Access>,
}

impl StateBefore {
    /// Returns the state with the keys that the transaction used.
    fn end(self, list: &mut TransactionList) -> (World, Access) {
        (self.world, list.world.end_access_part(self.around))
    }
}

impl BlockRun<'_, '_> {
    /// Executes each parallel list on the state before them, and returns the sequential list, which continues
    /// on their merged state.
    fn parallel(
        &mut self,
        world: World,
        lists: &[Range<usize>],
        limits: ListLimits,
    ) -> Result<TransactionList, BlockError> {
        if lists.is_empty() {
            return Ok(TransactionList::new(world, limits.sequential));
        }
        let mut after = world.clone();
        // The state of the sequential list is set when all parallel lists have run.
        let mut sequential = TransactionList::new(World::new(Trie::new()), limits.sequential);
        let mut used: Vec<Touches> = Vec::new();
        for (index, range) in lists.iter().enumerate() {
            let mut list = TransactionList::new(world.clone(), limits.parallel);
            list.codes = core::mem::take(&mut sequential.codes);
            list.world.track_touches();
            let watched = self.watch(&mut list);
            let parallel = true;
            let run = self.list(&mut list, range.clone(), parallel);
            // The keys of a failed list are reported too: a run on a part of the state may fail because a cell is missing, and the
            // observer then learns which.
            self.report(&mut list, range.end.saturating_sub(1), watched);
            run?;
            let touches = list.world.take_touches();
            for (earlier, other) in used.iter().enumerate() {
                if let Some(key) = touches.conflict(other) {
                    return Err(BlockError::Conflict { lists: (earlier, index), key });
                }
            }
            used.push(touches);
            after.merge(list.world);
            sequential.codes = list.codes;
            sequential.destroyed.extend(list.destroyed);
            sequential.fees = sequential.fees.saturating_add(list.fees);
        }
        sequential.world = after;
        Ok(sequential)
    }

    /// Executes the transactions of a list at these indices. `parallel` says that this is a parallel list, not the sequential one.
    fn list(
        &mut self,
        list: &mut TransactionList,
        range: Range<usize>,
        parallel: bool,
    ) -> Result<(), BlockError> {
        for index in range {
            // Every index is in the block: `split` has checked the lists, and the caller of `state_before` its index.
            let Some(transaction) = self.block.transactions.get(index) else { continue };
            self.transaction(list, index, transaction, parallel)?;
        }
        Ok(())
    }

    /// Executes one transaction, reports it to the observer and records its result.
    fn transaction(
        &mut self,
        list: &mut TransactionList,
        index: usize,
        transaction: &Transaction,
        parallel: bool,
    ) -> Result<(), BlockError> {
        let refused = |error| match error {
            TxError::NotExecuted(NotExecuted(Abort::NotSimulated(method))) => {
                BlockError::NotSimulated { index, method, mismatches: Vec::new() }
            }
            error => BlockError::Transaction { index, hash: transaction.hash(), error },
        };
        let known = self.block.senders.and_then(|senders| senders.get(index)).copied();
        let sender = match known {
            Some(sender) => sender,
            None => sender_of(self.context.network, transaction).map_err(|error| refused(error.into()))?,
        };
        let item = IndexedTransaction { index, transaction, sender };
        // The keys of a parallel list are reported together.
        let watched = !parallel && self.watch(list);
        let before = self.watch_state(list, index);
        let inspector = self.observer.inspector(index);
        let end = list.execute(self.context, item, inspector).map_err(refused);
        // From RSKIP-144 on, REMASC gets the fees at the end of the block (`run_remasc`): parallel lists would all write its account.
        if let (Ok(end), false) = (&end, are_parallel(self.context.rules)) {
            list.world.credit(&REMASC_ADDRESS, end.fee);
        }
        self.report_end(list, item, end.as_ref().ok());
        let used = before.map(|before| before.end(list));
        self.report(list, index, watched);
        let end = end?;
        if parallel && end.shared.forbidden {
            return Err(BlockError::NativeContract { index, hash: transaction.hash() });
        }
        self.report_state(list, index, used);
        self.record(item, end);
        Ok(())
    }

    /// Starts recording keys if the observer watches them; returns whether it does.
    fn watch(&self, list: &mut TransactionList) -> bool {
        let watched = self.observer.watches_access();
        if watched {
            list.world.track_access();
        }
        watched
    }

    /// Reports the recorded keys if `watched`.
    fn report(&mut self, list: &mut TransactionList, index: usize, watched: bool) {
        if watched {
            self.observer.accessed(index, &list.world.take_access());
        }
    }

    /// Keeps the state before a transaction if the observer watches it.
    fn watch_state(&self, list: &mut TransactionList, index: usize) -> Option<StateBefore> {
        self.observer
            .watches_state(index)
            .then(|| StateBefore { world: list.world.clone(), around: list.world.start_access_part() })
    }

    /// Reports the states before and after a transaction; `used` is the state before with the keys that were used.
    fn report_state(&mut self, list: &mut TransactionList, index: usize, used: Option<(World, Access)>) {
        if let Some((mut before, access)) = used {
            self.observer.state(index, &mut before, &mut list.world, &access);
        }
    }

    /// Reports a transaction that has run, with the state after it.
    #[cfg_attr(
        not(feature = "catalogue"),
        allow(
            unused_variables,
            clippy::unused_self,
            reason = "only observers of the feature catalogue watch the end of a transaction"
        )
    )]
    fn report_end(
        &mut self,
        list: &mut TransactionList,
        item: IndexedTransaction<'_>,
        end: Option<&TransactionEnd>,
    ) {
        #[cfg(feature = "catalogue")]
        if let Some(end) = end {
            self.observer.ended(item.index, &end.executed(item), &mut list.world);
        }
    }

    /// Adds an executed transaction to the results of the block.
    fn record(&mut self, item: IndexedTransaction<'_>, end: TransactionEnd) {
        self.gas_used = self.gas_used.saturating_add(end.receipt.gas_used);
        self.observer.executed(item.index, &end.executed(item));
        let TransactionEnd { receipt, unsimulated, .. } = end;
        self.unsimulated.extend(unsimulated.into_iter().map(|method| (item.index, method)));
        self.receipts.push(receipt);
        self.senders.push(item.sender);
    }

    /// Executes the REMASC transaction, reports it and records its result.
    fn remasc(&mut self, list: &mut TransactionList, index: usize) -> Result<(), BlockError> {
        let Some(transaction) = self.block.transactions.get(index) else { return Err(BlockError::Remasc) };
        let watched = self.watch(list);
        let before = self.watch_state(list, index);
        let end = run_remasc(self.context, list, (index, transaction), self.observer);
        let item = IndexedTransaction { index, transaction, sender: Address::ZERO };
        self.report_end(list, item, end.as_ref().ok());
        let used = before.map(|before| before.end(list));
        self.report(list, index, watched);
        let end = end?;
        self.report_state(list, index, used);
        self.record(item, end);
        Ok(())
    }

    /// The result of the block.
    fn finish(self, state: Trie, paid_fees: U256) -> ExecutedBlock {
        let created = |(transaction, sender): (&Transaction, &Address)| transaction.contract_address(sender);
        let contract_addresses = self.block.transactions.iter().zip(&self.senders).map(created).collect();
        let logs_bloom = self.receipts.iter().fold(Bloom::ZERO, |all, receipt| all | receipt.logs_bloom);
        ExecutedBlock {
            state,
            receipts: self.receipts,
            senders: self.senders,
            contract_addresses,
            gas_used: self.gas_used,
            paid_fees,
            logs_bloom,
            unsimulated: self.unsimulated,
        }
    }
}

/// Runs the REMASC transaction, which distributes the fees of an older block. If fees were not credited after each transaction, they are
/// credited first.
pub(super) fn run_remasc(
    context: &BlockContext<'_>,
    list: &mut TransactionList,
    (index, transaction): (usize, &Transaction),
    observer: &mut dyn BlockObserver,
) -> Result<TransactionEnd, BlockError> {
    let required = list.world.remasc_nonce();
    let found = transaction.nonce.value();
    if found != U256::from(required) {
        let error = TxError::Nonce { required, found };
        return Err(BlockError::Transaction { index, hash: transaction.hash(), error });
    }
    if are_parallel(context.rules) && !list.fees.is_zero() {
        list.world.credit(&REMASC_ADDRESS, list.fees);
    }
    // The call announces the transaction to the observer. No frame is inspected: REMASC runs no code.
    let _ = observer.inspector(index);
    list.world.bump_remasc_nonce();
    list.world.create(&REMASC_ADDRESS);
    if !list.world.marker(&REMASC_ADDRESS) {
        list.world.set_marker(&REMASC_ADDRESS);
    }
    let logs = distribute(context, &mut list.world, observer)?;
    // A success that uses no gas.
    Ok(TransactionEnd::quiet(Receipt::new(true, list.gas_used, 0, logs)))
}
