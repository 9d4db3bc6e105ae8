//! Building a new block: candidates that fit and obey the rules are placed in the lists of RSKIP-144 (`schedule.rs`). A development chain
//! mines such blocks.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bloom, U256};

use super::activation::activate;
use super::block::{ExecutedBlock, block_gas, check_price, run_remasc};
use super::block_context::{Ancestry, BlockContext, OnUnsimulated};
use super::block_error::BlockError;
use super::call::BlockEnvironment;
use super::observer::NoObserver;
use super::schedule::{Placed, SEQUENTIAL, Schedule, edges};
use super::sublists::{ListLimits, are_parallel};
use super::transaction::{IndexedTransaction, TransactionEnd, TransactionList};
use super::transaction_error::{TxError, gas_limit};
use crate::consensus::Network;
use crate::consensus::body::{receipts_root, root_format, transactions_root};
use crate::evm::precompiles::Unsimulated;
use crate::state::World;
use crate::trie::Trie;
use crate::types::{Header, REMASC_ADDRESS, Receipt, Transaction};

/// A candidate for a block, with its sender: from the signature, or impersonated on a development chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionCandidate {
    /// The transaction.
    pub transaction: Transaction,
    /// Sender of the transaction.
    pub sender: Address,
}

/// A new block without its header.
#[derive(Clone, Debug)]
pub struct BuiltBlock {
    /// Transactions in order; the REMASC transaction is the last one.
    pub transactions: Vec<Transaction>,
    /// Ends of the parallel lists, for the header's edges.
    pub edges: Vec<u16>,
    /// Result of the execution.
    pub executed: ExecutedBlock,
    /// Candidates that were not included: hash and reason.
    pub dropped: Vec<(B256, TxError)>,
}

impl BuiltBlock {
    /// Sets the header fields that follow from the transactions and their execution.
    pub fn complete(&self, header: &mut Header, network: &Network) {
        let (format, executed) = (root_format(network, header.number), &self.executed);
        header.transactions_root = transactions_root(&self.transactions, format);
        header.receipts_root = receipts_root(&executed.receipts, format);
        header.state_root = executed.state.root();
        header.logs_bloom = executed.logs_bloom;
        header.gas_used = executed.gas_used;
        header.paid_fees = executed.paid_fees;
        if header.shape.edges {
            header.edges.clone_from(&self.edges);
        }
    }
}

/// Builds a block on a state from candidates, in their order as far as the lists allow.
///
/// # Errors
/// A missing ancestor that REMASC needs. Candidates that break a rule are dropped.
pub fn build_block(
    network: &Network,
    parent_state: &Trie,
    template: &BlockEnvironment,
    candidates: &[TransactionCandidate],
    ancestry: &dyn Ancestry,
) -> Result<BuiltBlock, BlockError> {
    let mut context = BlockContext::new(network, template.clone(), ancestry);
    context.unsimulated = OnUnsimulated::Fail;
    build_in(&context, parent_state, candidates)
}

/// As [`build_block`], in a context that can interrupt the execution. If a transaction is interrupted, it is
/// dropped, the block ends before it, and later candidates are not tried.
///
/// # Errors
/// A missing ancestor that REMASC needs.
pub fn build_in(
    context: &BlockContext<'_>,
    parent_state: &Trie,
    candidates: &[TransactionCandidate],
) -> Result<BuiltBlock, BlockError> {
    let mut world = World::new(parent_state.clone());
    activate(&mut world, context.network, context.environment.number);
    let minimum = context.network.params.min_sequential_gas_limit;
    let limits = ListLimits::new(block_gas(context.environment.gas_limit), minimum, context.rules);
    let mut builder = Builder {
        context,
        parallel: are_parallel(context.rules),
        list: TransactionList::new(world, limits.largest()),
        schedule: Schedule::new(limits),
        lists: Default::default(),
        dropped: Vec::new(),
    };
    for candidate in candidates {
        if let Err(error) = builder.add(candidate) {
            let interrupted = error.is_interruption();
            builder.dropped.push((candidate.transaction.hash(), error));
            if interrupted {
                break;
            }
        }
    }
    builder.finish()
}

/// A candidate in a list, with its result.
struct ListedTransaction<'a> {
    candidate: &'a TransactionCandidate,
    end: TransactionEnd,
}

/// A block under construction.
struct Builder<'a, 'b> {
    context: &'a BlockContext<'b>,
    /// Whether there are parallel lists (RSKIP-144).
    parallel: bool,
    /// The state after all candidates so far, which run one after the other.
    list: TransactionList,
    schedule: Schedule,
    /// The parallel lists, then the sequential one.
    lists: [Vec<ListedTransaction<'a>>; SEQUENTIAL + 1],
    dropped: Vec<(B256, TxError)>,
}

impl<'a> Builder<'a, '_> {
    /// Runs a candidate and assigns it to a list. After an error the state is as before.
    fn add(&mut self, candidate: &'a TransactionCandidate) -> Result<(), TxError> {
        let transaction = &candidate.transaction;
        if transaction.is_remasc() {
            return Err(TxError::Remasc);
        }
        check_price(self.context, transaction)?;
        let gas_limit = gas_limit(transaction);
        // A transaction is dropped after its execution only if it fits into no list, thus not into the sequential one. Only then is a
        // copy of the state needed.
        let backup = (!self.schedule.fits(SEQUENTIAL, gas_limit)).then(|| self.backup());
        // The candidate is checked against the gas that is left in the sequential list, of which `place` may choose another one.
        // `PartialBlock::take_list` sets the cumulative gas of the receipt.
        self.list.gas_used = self.schedule.used(SEQUENTIAL);
        if self.parallel {
            self.list.world.track_touches();
        }
        // Index in the block, which TXINDEX pushes. The opcode ended with RSKIP-191, before RSKIP-144
        // introduced several lists.
        let index = self.lists.iter().map(Vec::len).sum();
        let item = IndexedTransaction { index, transaction, sender: candidate.sender };
        let end = self.list.execute(self.context, item, None)?;
        let touches = self.list.world.take_touches();
        let placed = Placed {
            sender: candidate.sender,
            gas_limit,
            gas_used: end.receipt.gas_used,
            touches: &touches,
            shared: end.shared.any || !self.parallel,
        };
        let Some(list) = self.schedule.place(&placed) else {
            if let Some(backup) = backup {
                (self.list.world, self.list.destroyed, self.list.fees) = backup;
            }
            let limit = self.list.gas_limit.saturating_sub(self.schedule.used(SEQUENTIAL));
            return Err(TxError::ListGas { limit, sent: gas_limit });
        };
        if !self.parallel {
            self.list.world.credit(&REMASC_ADDRESS, end.fee);
        }
        if let Some(list) = self.lists.get_mut(list) {
            list.push(ListedTransaction { candidate, end });
        }
        Ok(())
    }

    /// The part of the state that a dropped candidate may have changed: accounts, destroyed contracts, fees.
    fn backup(&self) -> (World, alloc::collections::BTreeSet<Address>, U256) {
        (self.list.world.clone(), self.list.destroyed.clone(), self.list.fees)
    }

    /// Runs the REMASC transaction and puts the block together.
    fn finish(mut self) -> Result<BuiltBlock, BlockError> {
        let remasc = Transaction::remasc(self.context.environment.number);
        let mut executed = PartialBlock::default();
        let [first, second, sequential] = self.lists;
        let edges = edges([first.len(), second.len()]);
        for list in [first, second, sequential] {
            executed.take_list(list);
        }
        self.list.gas_used = self.schedule.used(SEQUENTIAL);
        let index = executed.transactions.len();
        // The REMASC transaction, which ends every block, is executed even if the time is used up.
        let BlockContext { network, rules, ref environment, ancestry, .. } = *self.context;
        let context = BlockContext { rules, ..BlockContext::new(network, environment.clone(), ancestry) };
        let end = run_remasc(&context, &mut self.list, (index, &remasc), &mut NoObserver)?;
        executed.push(remasc, Address::ZERO, end);
        let PartialBlock { transactions, senders, receipts, unsimulated, gas_used } = executed;
        let created = transactions.iter().zip(&senders).map(|(tx, sender)| tx.contract_address(sender));
        Ok(BuiltBlock {
            edges,
            dropped: self.dropped,
            executed: ExecutedBlock {
                state: self.list.world.commit(),
                logs_bloom: receipts.iter().fold(Bloom::ZERO, |all, receipt| all | receipt.logs_bloom),
                contract_addresses: created.collect(),
                senders,
                receipts,
                gas_used,
                paid_fees: self.list.fees,
                unsimulated,
            },
            transactions,
        })
    }
}

/// The parts of the block so far.
#[derive(Default)]
struct PartialBlock {
    transactions: Vec<Transaction>,
    senders: Vec<Address>,
    receipts: Vec<Receipt>,
    unsimulated: Vec<(usize, Unsimulated)>,
    gas_used: u64,
}

impl PartialBlock {
    /// Appends a list. Cumulative gas restarts in each list.
    fn take_list(&mut self, list: Vec<ListedTransaction<'_>>) {
        let mut cumulative = 0u64;
        for ListedTransaction { candidate, mut end } in list {
            cumulative = cumulative.saturating_add(end.receipt.gas_used);
            end.receipt.cumulative_gas_used = cumulative;
            self.push(candidate.transaction.clone(), candidate.sender, end);
        }
    }

    /// Appends a transaction with its result.
    fn push(&mut self, transaction: Transaction, sender: Address, end: TransactionEnd) {
        let index = self.transactions.len();
        self.gas_used = self.gas_used.saturating_add(end.receipt.gas_used);
        self.unsimulated.extend(end.unsimulated.into_iter().map(|method| (index, method)));
        self.receipts.push(end.receipt);
        self.transactions.push(transaction);
        self.senders.push(sender);
    }
}
