//! The development chain: pool, keys, clock and miner around an executed chain.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, B256};

use super::clock::Clock;
use super::config::{DevConfig, Mining};
use super::error::DevError;
use super::pool::{Pool, PoolContext};
use super::recipe::Recipe;
use super::wallet::Wallet;
use super::work::WorkShop;
use crate::consensus::{ChainError, Change, VerifiedHeader};
use crate::exec::{BlockObserver, CallPolicy, Executed, HaltReason, Interrupts};
use crate::local::{ChainSnapshot, LocalChain};
use crate::state::{AccountState, StateReader as _};
use crate::types::Transaction;

/// Events that are kept for a host that does not ask for them.
const MAX_EVENTS: usize = 10_000;

/// Something a person at the console wants to see.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DevEvent {
    /// A block was mined or submitted and is the head.
    Mined {
        /// Its header.
        header: VerifiedHeader,
        /// Transactions in it, REMASC's not counted.
        transactions: usize,
    },
    /// A transaction in the block that was just mined failed.
    Failed {
        /// The transaction.
        hash: B256,
        /// What it returned.
        output: Bytes,
        /// Why it halted; nothing for REVERT.
        halt: Option<HaltReason>,
    },
    /// A method of a native contract failed because it is not simulated.
    Unsimulated {
        /// The transaction.
        hash: B256,
        /// The method.
        method: alloc::string::String,
    },
    /// A transaction took longer than the time limit of a block and was dropped.
    TooSlow {
        /// The transaction.
        hash: B256,
    },
    /// The head went over to another branch.
    Reorganised {
        /// Blocks left.
        removed: usize,
        /// Blocks that took their place.
        added: usize,
    },
}

/// A state to go back to.
#[derive(Debug, Clone)]
pub(super) struct Saved {
    pub(super) chain: LocalChain,
    pub(super) clock: Clock,
}

/// A development chain. It has no clock and no randomness: the host's time comes with each call.
#[derive(Debug, Clone)]
pub struct DevChain {
    pub(super) chain: LocalChain,
    pub(super) genesis: LocalChain,
    pub(super) pool: Pool,
    pub(super) clock: Clock,
    pub(super) recipe: Recipe,
    pub(super) mining: Mining,
    /// The mining that is taken up again after a pause.
    pub(super) paused: Option<Mining>,
    pub(super) last_tick: Option<u64>,
    pub(super) snapshots: Vec<Saved>,
    pub(super) work: WorkShop,
    pub(super) new_pending: Vec<B256>,
    pub(super) events: Vec<DevEvent>,
    pub(super) interrupts: Interrupts,
    wallet: Wallet,
    report_reverts: bool,
    policy: CallPolicy,
    version: alloc::string::String,
}

impl DevChain {
    /// A chain that consists of its genesis.
    ///
    /// # Errors
    /// The genesis is not the network's.
    pub fn new(config: DevConfig) -> Result<Self, ChainError> {
        let DevConfig { network, genesis, keys, .. } = config;
        let chain = LocalChain::new(network, genesis.header, genesis.state, config.history)?;
        let mut wallet = Wallet::default();
        for key in keys {
            wallet.add(key);
        }
        Ok(Self {
            genesis: chain.clone(),
            chain,
            pool: Pool::new(config.pool),
            clock: Clock::default(),
            recipe: config.recipe,
            mining: config.mining,
            paused: None,
            last_tick: None,
            snapshots: Vec::new(),
            work: WorkShop::default(),
            new_pending: Vec::new(),
            events: Vec::new(),
            interrupts: Interrupts::default(),
            wallet,
            report_reverts: config.report_reverts,
            policy: config.policy,
            version: config.version,
        })
    }

    /// Sets what ends the execution of blocks from now on.
    pub fn interrupt_by(&mut self, interrupts: Interrupts) {
        self.interrupts = interrupts;
    }

    /// The executed chain, for restoring stored blocks before anything else happens.
    pub fn local_mut(&mut self) -> &mut LocalChain {
        &mut self.chain
    }

    /// The chain as it is now.
    #[must_use]
    pub const fn view(&self) -> &ChainSnapshot {
        self.chain.view()
    }

    /// The waiting transactions.
    #[must_use]
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The keys.
    #[must_use]
    pub const fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// The keys, to be changed.
    pub fn wallet_mut(&mut self) -> &mut Wallet {
        &mut self.wallet
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The clock, to be moved.
    pub fn clock_mut(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// What the miner decides.
    #[must_use]
    pub const fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What the miner decides, to be changed.
    pub fn recipe_mut(&mut self) -> &mut Recipe {
        &mut self.recipe
    }

    /// When blocks are mined.
    #[must_use]
    pub const fn mining(&self) -> Mining {
        self.mining
    }

    /// What the host decides about calls.
    #[must_use]
    pub const fn policy(&self) -> CallPolicy {
        self.policy
    }

    /// Name and version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Hashes of transactions that have become minable since this was asked last.
    pub fn take_pending(&mut self) -> Vec<B256> {
        core::mem::take(&mut self.new_pending)
    }

    /// What has happened since this was asked last, for people; only so much is kept.
    pub fn take_events(&mut self) -> Vec<DevEvent> {
        core::mem::take(&mut self.events)
    }

    pub(super) fn note(&mut self, event: DevEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }

    /// An account at the head.
    #[must_use]
    pub fn account(&self, address: &Address) -> Option<AccountState> {
        // A state of one's own lacks nothing and holds only what decodes.
        self.chain.view().head_state().account(address).ok().flatten()
    }

    /// The nonce of the next transaction of an account, those that wait counted.
    #[must_use]
    pub fn next_nonce(&self, address: &Address) -> u64 {
        self.pool.next_nonce(address, self.account(address).map_or(0, |account| account.nonce))
    }

    /// Takes a transaction into the pool, and mines it at once if that is how blocks are mined. `sender` is whom its
    /// signature belongs to, or who is impersonated; `now` is the host's clock.
    ///
    /// # Errors
    /// [`DevError::Pool`]; with instant mining also [`DevError::NotMined`] and [`DevError::Reverted`].
    pub fn submit(&mut self, transaction: Transaction, sender: Address, now: u64) -> Result<B256, DevError> {
        let hash = transaction.hash();
        let account = self.account(&sender);
        let view = self.chain.view();
        let (network, head) = (view.network(), view.head().header());
        let context = PoolContext { network, head, now };
        self.pool.expire(head.number, now);
        let added = self.pool.add(&context, transaction, sender, account.as_ref())?;
        self.new_pending.extend(added.pending);
        if self.mining != Mining::Instant {
            return Ok(hash);
        }
        self.mine(now)?;
        self.outcome(hash)
    }

    /// What became of a transaction that should have been mined.
    fn outcome(&self, hash: B256) -> Result<B256, DevError> {
        let view = self.chain.view();
        let slow = |event: &DevEvent| matches!(event, DevEvent::TooSlow { hash: slow } if *slow == hash);
        let Some((block, index)) = view.locate(&hash) else {
            let too_slow = self.events.iter().any(slow);
            return Err(if too_slow { DevError::TooSlow(hash) } else { DevError::NotMined });
        };
        let receipts = view.block(&block).map(|stored| stored.receipts.clone());
        let success = receipts.and_then(|all| all.receipts().get(index).map(|receipt| receipt.success));
        if success != Some(false) || !self.report_reverts {
            return Ok(hash);
        }
        let failures = self.failures(&block);
        let failure = failures.into_iter().find(|(failed, ..)| *failed == hash);
        let output = failure.and_then(|(_, output, halt)| halt.is_none().then_some(output));
        Err(DevError::Reverted { hash, output })
    }

    /// The transactions of a block that failed, with what they returned: the block is executed again.
    pub(super) fn failures(&self, block: &B256) -> Vec<(B256, Bytes, Option<HaltReason>)> {
        let view = self.chain.view();
        let Some(header) = view.headers().by_hash(block) else { return Vec::new() };
        let mut watch = Failures(Vec::new());
        // It was executed before on the same state.
        let _ = view.replay(header, &mut watch, &|| self.interrupts.is_due());
        watch.0
    }

    /// Sorts the pool again after the head has moved.
    pub(super) fn follow(&mut self, change: &Change) {
        match change {
            Change::Known | Change::Side => {}
            Change::Extended => {
                let head = self.chain.head().hash();
                self.settle_senders(&[head]);
            }
            Change::Reorganised(change) => {
                let hashes =
                    |headers: &[VerifiedHeader]| headers.iter().map(|h| h.hash()).collect::<Vec<_>>();
                let (removed, added) = (hashes(&change.removed), hashes(&change.added));
                self.note(DevEvent::Reorganised { removed: removed.len(), added: added.len() });
                self.take_back(&removed);
                self.settle_senders(&added);
            }
        }
    }

    /// Puts the transactions of blocks that have left the chain back into the pool, where its rules allow.
    fn take_back(&mut self, blocks: &[B256]) {
        let stored: Vec<_> =
            blocks.iter().filter_map(|hash| self.chain.view().block(hash).cloned()).collect();
        for block in stored {
            for (transaction, sender) in block.body.transactions().iter().zip(&block.senders) {
                let account = self.account(sender);
                let (network, head) = (self.chain.view().network(), self.chain.head().header());
                let context = PoolContext { network, head, now: head.timestamp };
                // One that is in the new branch too, or that its state does not allow, is not wanted.
                if let Ok(added) = self.pool.add(&context, transaction.clone(), *sender, account.as_ref()) {
                    self.new_pending.extend(added.pending);
                }
            }
        }
    }

    /// Sorts the waiting transactions of everybody who sent something in these blocks.
    fn settle_senders(&mut self, blocks: &[B256]) {
        let stored: Vec<_> =
            blocks.iter().filter_map(|hash| self.chain.view().block(hash).cloned()).collect();
        for sender in stored.iter().flat_map(|block| &block.senders) {
            self.settle_sender(sender);
        }
    }

    pub(super) fn settle_sender(&mut self, sender: &Address) {
        let nonce = self.account(sender).map_or(0, |account| account.nonce);
        let minable = self.pool.refresh(sender, nonce);
        self.new_pending.extend(minable);
    }
}

/// Collects the transactions that fail.
struct Failures(Vec<(B256, Bytes, Option<HaltReason>)>);

impl BlockObserver for Failures {
    fn executed(&mut self, _: usize, executed: &Executed<'_>) {
        if let Some(halt) = executed.failure {
            self.0.push((executed.transaction.hash(), Bytes::copy_from_slice(executed.output), halt));
        } else if !executed.receipt.success {
            self.0.push((executed.transaction.hash(), Bytes::new(), Some(HaltReason::Other)));
        }
    }
}
