//! The pool itself: transactions by sender and nonce. Pending transactions can be mined; queued ones wait for earlier
//! nonces of their sender.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256};

use super::admission::{PoolContext, check};
use super::error::{MAX_POOL_BYTES, PoolError};
use super::order::by_price;
use super::pooled::Pooled;
use crate::consensus::persistent_map::PersistentMap;
use crate::state::AccountState;
use crate::types::Transaction;

/// The least gas price of a replacement, in percent of the price of the replaced transaction, as in the reference node.
const BUMPED_PERCENT: u64 = 140;

/// The bytes for which a transaction counts besides its data: more than its fields and its entries in the maps take.
const TRANSACTION_BYTES: usize = 1024;

/// Transactions of one sender, by nonce.
#[derive(Debug, Clone, Default)]
struct Sender {
    /// Transactions that can be mined, without a gap after the sender's nonce in the state.
    pending: BTreeMap<u64, Arc<Pooled>>,
    /// Transactions that wait for earlier nonces.
    queued: BTreeMap<u64, Arc<Pooled>>,
}

impl Sender {
    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.queued.is_empty()
    }

    /// The nonce after the last pending transaction.
    fn next(&self, state_nonce: u64) -> u64 {
        let after = self.pending.keys().next_back().map_or(0, |last| last.saturating_add(1));
        after.max(state_nonce)
    }
}

/// The effects of adding a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// Hashes of the transactions that became pending: the new one and those that waited for it.
    pub pending: Vec<B256>,
    /// Hash of the transaction of the same sender and nonce that the new one replaced.
    pub replaced: Option<B256>,
    /// Hash of the transaction that waited for the new one and was dropped because it no longer passes the pool's rules.
    pub dropped: Option<B256>,
}

/// The transaction pool. Cloning is cheap because clones share their data.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// By how many nonces an account may be ahead of its nonce in the state.
    account_slots: u64,
    by_hash: PersistentMap<B256, Arc<Pooled>>,
    senders: PersistentMap<Address, Arc<Sender>>,
    /// Number of transactions added so far.
    arrivals: u64,
    /// Number of pending transactions.
    pending: usize,
    /// The bytes for which all transactions count, at most [`MAX_POOL_BYTES`].
    bytes: usize,
}

impl Pool {
    /// An empty pool. An account may be ahead of its nonce in the state by `account_slots` nonces.
    pub fn new(account_slots: u64) -> Self {
        Self { account_slots, ..Self::default() }
    }

    /// A transaction by hash, pending or queued.
    pub fn get(&self, hash: &B256) -> Option<&Arc<Pooled>> {
        self.by_hash.get(hash)
    }

    /// Number of pending transactions.
    pub fn pending_len(&self) -> usize {
        self.pending
    }

    /// Number of queued transactions.
    pub fn queued_len(&self) -> usize {
        self.by_hash.len().saturating_sub(self.pending)
    }

    /// Number of transactions added so far, by which miners' work sees that the pool has new ones.
    pub const fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// The nonce after a sender's last pending transaction. `state_nonce` is the sender's nonce in the head's state.
    pub fn next_nonce(&self, sender: &Address, state_nonce: u64) -> u64 {
        self.senders.get(sender).map_or(state_nonce, |transactions| transactions.next(state_nonce))
    }

    /// Adds a transaction. `account` is its sender's account in the head's state.
    ///
    /// # Errors
    /// The first rule that the transaction breaks.
    pub fn add(
        &mut self,
        context: &PoolContext<'_>,
        transaction: Transaction,
        sender: Address,
        account: Option<&AccountState>,
    ) -> Result<Added, PoolError> {
        let hash = transaction.hash();
        if let Some(known) = self.by_hash.get(&hash) {
            let pending = self
                .senders
                .get(&known.sender)
                .is_some_and(|transactions| transactions.pending.contains_key(&known.nonce()));
            return Err(if pending { PoolError::KnownPending } else { PoolError::KnownQueued });
        }
        check(context, self.account_slots, &transaction, &sender, account)?;
        // Web pages that may not call every method (those with a page number other than 0) may fill half of the pool only, so that
        // programs can still send.
        let is_of_page = context.asker.is_some_and(|asker| asker.page != 0);
        let most = if is_of_page { MAX_POOL_BYTES / 2 } else { MAX_POOL_BYTES };
        if self.bytes.saturating_add(size(&transaction)) > most {
            return Err(PoolError::Full);
        }
        let new = Pooled { transaction, hash, sender, asker: context.asker, arrival: self.arrivals };
        let new = Arc::new(new);
        let mut transactions = self.senders.get(&sender).cloned().unwrap_or_default();
        let state_nonce = account.map_or(0, |account| account.nonce);
        let added =
            place(Arc::make_mut(&mut transactions), self.account_slots, context, &new, state_nonce, account)?;
        self.arrivals = self.arrivals.saturating_add(1);
        added.replaced.iter().chain(&added.dropped).for_each(|gone| self.forget(gone));
        self.bytes = self.bytes.saturating_add(size(&new.transaction));
        self.by_hash.insert(hash, new);
        self.store(sender, transactions);
        Ok(added)
    }

    /// Removes a transaction from the index by hash and from the count of bytes. The caller removes it from its sender's lists.
    fn forget(&mut self, hash: &B256) {
        let gone = self.by_hash.get(hash).map_or(0, |pooled| size(&pooled.transaction));
        self.bytes = self.bytes.saturating_sub(gone);
        self.by_hash.remove(hash);
    }

    /// Stores a sender's transactions and updates the count of pending ones.
    fn store(&mut self, sender: Address, transactions: Arc<Sender>) {
        let before = self.senders.get(&sender).map_or(0, |transactions| transactions.pending.len());
        self.pending = self.pending.saturating_sub(before).saturating_add(transactions.pending.len());
        if transactions.is_empty() {
            self.senders.remove(&sender);
        } else {
            self.senders.insert(sender, transactions);
        }
    }

    /// Drops a transaction. Pending transactions of its sender with higher nonces become queued.
    pub fn remove(&mut self, hash: &B256) -> Option<Arc<Pooled>> {
        let pooled = self.by_hash.get(hash)?.clone();
        self.forget(hash);
        let mut transactions = self.senders.get(&pooled.sender)?.clone();
        let sender = Arc::make_mut(&mut transactions);
        let nonce = pooled.nonce();
        if sender.pending.remove(&nonce).is_some() {
            let later = sender.pending.split_off(&nonce);
            sender.queued.extend(later);
        } else {
            sender.queued.remove(&nonce);
        }
        self.store(pooled.sender, transactions);
        Some(pooled)
    }

    /// Drops all transactions. The count of arrivals goes on, so that it never shows an old number for a new content.
    pub fn clear(&mut self) {
        *self = Self { arrivals: self.arrivals, ..Self::new(self.account_slots) };
    }

    /// Updates a sender's transactions after its nonce in the state has changed: those with used nonces are dropped,
    /// those that follow without a gap are pending. Returns the hashes of those that became pending.
    pub fn refresh(&mut self, address: &Address, state_nonce: u64) -> Vec<B256> {
        let Some(mut transactions) = self.senders.get(address).cloned() else { return Vec::new() };
        let sender = Arc::make_mut(&mut transactions);
        let before = core::mem::take(&mut sender.pending);
        let mut all = core::mem::take(&mut sender.queued);
        all.extend(before.clone());
        let keep = all.split_off(&state_nonce);
        all.values().for_each(|used| self.forget(&used.hash));
        let mut next = state_nonce;
        for (nonce, pooled) in keep {
            if nonce == next {
                next = next.saturating_add(1);
                sender.pending.insert(nonce, pooled);
            } else {
                sender.queued.insert(nonce, pooled);
            }
        }
        let new = sender.pending.values().filter(|tx| !before.contains_key(&tx.nonce())).map(|tx| tx.hash);
        let new = new.collect();
        self.store(*address, transactions);
        new
    }

    /// The senders of the transactions in the pool.
    pub fn senders(&self) -> Vec<Address> {
        let mut out = Vec::new();
        self.senders.for_each(&mut |sender, _| out.push(*sender));
        out
    }

    /// The pending transactions in the order in which they go into a block.
    pub fn ordered(&self) -> Vec<Arc<Pooled>> {
        let mut senders = Vec::new();
        self.senders.for_each(&mut |_, transactions| {
            senders.push(transactions.pending.values().rev().cloned().collect());
        });
        by_price(senders.into_iter())
    }

    /// The pending transactions by sender, each list in the order of nonces.
    pub fn pending(&self) -> BTreeMap<Address, Vec<Arc<Pooled>>> {
        self.listed(|transactions| &transactions.pending)
    }

    /// The queued transactions by sender, each list in the order of nonces.
    pub fn queued(&self) -> BTreeMap<Address, Vec<Arc<Pooled>>> {
        self.listed(|transactions| &transactions.queued)
    }

    /// One of the two lists of each sender.
    fn listed(
        &self,
        part: impl Fn(&Sender) -> &BTreeMap<u64, Arc<Pooled>>,
    ) -> BTreeMap<Address, Vec<Arc<Pooled>>> {
        let mut out = BTreeMap::new();
        self.senders.for_each(&mut |address, transactions| {
            if !part(transactions).is_empty() {
                out.insert(*address, part(transactions).values().cloned().collect());
            }
        });
        out
    }
}

/// The bytes for which a transaction counts.
fn size(transaction: &Transaction) -> usize {
    transaction.data.len().saturating_add(TRANSACTION_BYTES)
}

/// Puts a checked transaction among its sender's pending or queued ones. A pending transaction may make queued ones pending.
fn place(
    sender: &mut Sender,
    account_slots: u64,
    context: &PoolContext<'_>,
    new: &Arc<Pooled>,
    state_nonce: u64,
    account: Option<&AccountState>,
) -> Result<Added, PoolError> {
    let nonce = new.nonce();
    if sender.pending.get(&nonce).is_some_and(|old| !bumps(old, new)) {
        return Err(PoolError::Bump);
    }
    if nonce > sender.next(state_nonce) {
        let replaced = sender.queued.insert(nonce, new.clone()).map(|old| old.hash);
        return Ok(Added { pending: Vec::new(), replaced, dropped: None });
    }
    let balance = account.map_or(U256::ZERO, |account| account.balance);
    if !affords(sender, context, new, balance) {
        return Err(PoolError::FundsForAll);
    }
    // The new transaction replaces a queued one with the same nonce.
    let waiting = sender.queued.remove(&nonce).map(|old| old.hash);
    let replaced = sender.pending.insert(nonce, new.clone()).map(|old| old.hash).or(waiting);
    let mut pending = alloc::vec![new.hash];
    let (mut next, mut dropped) = (nonce.saturating_add(1), None);
    while let Some(successor) = sender.queued.remove(&next) {
        // A queued transaction was checked when it arrived, and the head may have changed since. Transactions after one that fails
        // stay queued.
        let fits = check(context, account_slots, &successor.transaction, &successor.sender, account).is_ok();
        if !fits || !affords(sender, context, &successor, balance) {
            dropped = Some(successor.hash);
            break;
        }
        pending.push(successor.hash);
        sender.pending.insert(next, successor);
        next = next.saturating_add(1);
    }
    Ok(Added { pending, replaced, dropped })
}

/// Whether the balance covers a transaction together with the sender's other pending ones.
fn affords(sender: &Sender, context: &PoolContext<'_>, new: &Pooled, balance: U256) -> bool {
    let others = sender.pending.values().filter(|other| other.nonce() != new.nonce());
    let total = others.fold(new.cost(context), |sum, other| sum.saturating_add(other.cost(context)));
    total <= balance
}

/// Whether the new transaction's gas price is high enough to replace the old one.
fn bumps(old: &Pooled, new: &Pooled) -> bool {
    let (old, new) = (old.transaction.gas_price.value(), new.transaction.gas_price.value());
    let wanted =
        old.saturating_mul(U256::from(BUMPED_PERCENT)).checked_div(U256::from(100)).unwrap_or(U256::MAX);
    new > old && new >= wanted
}
