//! The development chain: pool, keys, clock and miner around an executed chain. Handlers of JSON-RPC methods change it through
//! `engine::LocalNode`; the files beside this one add mining, snapshots and direct changes.

use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256};
use serde::{Deserialize, Serialize};

use super::bitcoin_chain::SimulatedBitcoin;
use super::clock::Clock;
use super::config::{DevConfig, ForkStart, Mining};
use super::error::DevError;
use super::miner_settings::MinerSettings;
use super::pool::{Pool, PoolContext};
use super::wallet::Wallet;
use super::work::MinerWork;
use crate::consensus::{ChainError, HeadChange, VerifiedHeader};
use crate::exec::{BlockObserver, CallPolicy, Executed, HaltReason, Interrupts, OnUnsimulated};
use crate::local::BlockIndex;
use crate::local::{ChainSnapshot, LocalChain};
use crate::state::{AccountState, StateReader as _};
use crate::types::{Asker, Transaction};

/// The largest number of events stored until the host takes them; later events are dropped. A host that shows no events never takes
/// them, so this bounds their memory.
const MAX_EVENTS: usize = 10_000;

/// An event that a host may show to the user, for instance on the console.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DevEvent {
    /// A mined, submitted or imported block became the head.
    Mined {
        /// The header of the block.
        header: VerifiedHeader,
        /// Number of its transactions, without REMASC's.
        transactions: usize,
    },
    /// A transaction of the new head block failed.
    Failed {
        /// The transaction.
        hash: B256,
        /// The data that it returned.
        output: Bytes,
        /// Why it halted; `None` for REVERT.
        halt: Option<HaltReason>,
    },
    /// A transaction called a method of a native contract that this version does not execute; the call failed.
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
    /// The head moved to another branch.
    Reorganised {
        /// Number of blocks that left the canonical chain.
        removed: usize,
        /// Number of blocks that replaced them.
        added: usize,
    },
}

/// A snapshot to which the chain can be reverted.
#[derive(Debug, Clone)]
pub(super) struct DevSnapshot {
    pub(super) chain: LocalChain,
    pub(super) clock: Clock,
    pub(super) miner_settings: MinerSettings,
}

/// The settings of the clock and of later blocks that methods have made. Hosts that store a chain store it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    clock: Clock,
    coinbase: Address,
    gas_limit: u64,
    minimum_gas_price: U256,
}

/// A development chain. It reads no clock and makes no random numbers: the caller passes the host's time to each
/// method.
#[derive(Debug, Clone)]
pub struct DevChain {
    pub(super) chain: LocalChain,
    /// The first block (block 0, or the block on which a fork begins) and the settings at the start, for [`Self::reset`].
    pub(super) start: DevSnapshot,
    /// The block of another network on which the chain begins, if it does.
    pub(super) fork: Option<ForkStart>,
    pub(super) pool: Pool,
    pub(super) clock: Clock,
    pub(super) miner_settings: MinerSettings,
    pub(super) mining: Mining,
    /// The mining mode that [`Self::resume`] restores.
    pub(super) paused: Option<Mining>,
    /// The host's time of the last mined block or change of the mining mode, in seconds since 1970: interval mining counts from it.
    pub(super) last_tick: Option<u64>,
    pub(super) snapshots: Arc<Vec<DevSnapshot>>,
    /// The blocks that external miners work on.
    pub(super) work: MinerWork,
    pub(super) events: Vec<DevEvent>,
    /// Whether events are stored for the host.
    logging: bool,
    /// Transactions that were dropped because they took longer than the time limit of a block, since the last one was submitted.
    pub(super) slow: Vec<B256>,
    /// The conditions that interrupt the execution of blocks.
    pub(super) interrupts: Interrupts,
    /// The Bitcoin chain on whose newest block blocks are merge-mined, if the host simulates one.
    pub(crate) bitcoin: Option<Arc<dyn SimulatedBitcoin>>,
    /// The asker whose message is handled now; transactions that are added belong to it.
    asker: Asker,
    wallet: Wallet,
    /// See [`DevConfig::report_reverts`].
    report_reverts: bool,
    policy: CallPolicy,
    version: alloc::string::String,
    /// Whether a change has begun ([`Self::begin`]) and not ended.
    pub(super) is_changing: bool,
}

impl DevChain {
    /// Makes a chain of one block: the genesis, or the block on which a fork begins.
    ///
    /// # Errors
    /// The genesis block is not the one that the network names.
    pub fn new(config: DevConfig) -> Result<Self, ChainError> {
        let DevConfig { network, genesis, keys, fork, .. } = config;
        let chain = match &fork {
            None => LocalChain::new(network, genesis.header, genesis.state, config.history)?,
            Some(start) => LocalChain::above(network, start.fork.clone(), genesis.state, config.history)?,
        };
        let mut wallet = Wallet::default();
        for key in keys {
            wallet.add(key);
        }
        Ok(Self {
            start: DevSnapshot {
                chain: chain.clone(),
                clock: Clock::default(),
                miner_settings: config.miner_settings.clone(),
            },
            fork,
            chain,
            pool: Pool::new(config.account_slots),
            clock: Clock::default(),
            miner_settings: config.miner_settings,
            mining: config.mining,
            paused: None,
            last_tick: None,
            snapshots: Arc::default(),
            work: MinerWork::default(),
            events: Vec::new(),
            logging: true,
            slow: Vec::new(),
            interrupts: Interrupts::default(),
            bitcoin: None,
            asker: Asker::default(),
            wallet,
            report_reverts: config.report_reverts,
            policy: config.policy,
            version: config.version,
            is_changing: false,
        })
    }

    /// Sets the conditions that interrupt the execution of later blocks. Hosts call this before each message. If a panic kept the
    /// change of an earlier message from ending, that change is ended here, and stays: the copy of the chain from before it is lost.
    pub fn interrupt_by(&mut self, interrupts: Interrupts) {
        self.interrupts = interrupts;
        if core::mem::take(&mut self.is_changing)
            && let Some(bitcoin) = &self.bitcoin
        {
            bitcoin.end(true);
        }
    }

    /// Whether the present run has used up its time, or the host stops.
    pub fn is_interrupted(&self) -> bool {
        self.interrupts.is_due()
    }

    /// Sets the Bitcoin chain on whose newest block later blocks are merge-mined.
    pub fn set_bitcoin(&mut self, bitcoin: Arc<dyn SimulatedBitcoin>) {
        self.bitcoin = Some(bitcoin);
    }

    /// The Bitcoin chain on whose newest block blocks are merge-mined, if there is one.
    pub const fn bitcoin(&self) -> Option<&Arc<dyn SimulatedBitcoin>> {
        self.bitcoin.as_ref()
    }

    /// Sets the asker to whom the transactions belong that are added from now on.
    pub fn set_asker(&mut self, asker: Asker) {
        self.asker = asker;
    }

    /// The executed chain. Hosts use it to restore stored blocks at the start.
    pub fn local_mut(&mut self) -> &mut LocalChain {
        &mut self.chain
    }

    /// Sets the index of blocks, also for the chain that [`Self::reset`] returns to. See [`LocalChain::set_index`].
    pub fn set_index(&mut self, index: Arc<dyn BlockIndex>) {
        self.start.chain.set_index(index.clone());
        self.chain.set_index(index);
    }

    /// Sets the cache of analysed code, also for the chain that [`Self::reset`] returns to. See [`LocalChain::set_codes`].
    pub fn set_codes(&mut self, codes: Arc<dyn crate::exec::SharedCodes>) {
        self.start.chain.set_codes(codes.clone());
        self.chain.set_codes(codes);
    }

    /// Sets the recovery of the senders of imported transactions. [`Self::reset`] keeps it.
    pub fn set_recovery(&mut self, recovery: Arc<dyn crate::exec::Recovery>) {
        self.chain.set_recovery(recovery);
    }

    /// The current snapshot of the executed chain.
    pub const fn view(&self) -> &ChainSnapshot {
        self.chain.view()
    }

    /// The transaction pool.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The keys of accounts with which the chain signs.
    pub const fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// As [`Self::wallet`], mutable.
    pub fn wallet_mut(&mut self) -> &mut Wallet {
        &mut self.wallet
    }

    /// The clock that gives blocks their timestamps.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// As [`Self::clock`], mutable. Ends the work of external miners, because the timestamps of its blocks come from the clock
    /// before the change.
    pub fn clock_mut(&mut self) -> &mut Clock {
        self.work.clear();
        &mut self.clock
    }

    /// Changes the clock as [`Self::clock_mut`] does, unless the change fails.
    ///
    /// # Errors
    /// The errors of the change.
    pub fn change_clock<T>(
        &mut self,
        change: impl FnOnce(&mut Clock) -> Result<T, DevError>,
    ) -> Result<T, DevError> {
        let mut clock = self.clock;
        let changed = change(&mut clock)?;
        *self.clock_mut() = clock;
        Ok(changed)
    }

    /// The header fields that the miner chooses.
    pub const fn miner_settings(&self) -> &MinerSettings {
        &self.miner_settings
    }

    /// As [`Self::miner_settings`], mutable. Ends the work of external miners, whose blocks have the settings before the change.
    pub fn miner_settings_mut(&mut self) -> &mut MinerSettings {
        self.work.clear();
        &mut self.miner_settings
    }

    /// The settings that methods have made.
    pub const fn settings(&self) -> Settings {
        let MinerSettings { coinbase, gas_limit, minimum_gas_price, .. } = self.miner_settings;
        Settings { clock: self.clock, coinbase, gas_limit, minimum_gas_price }
    }

    /// Restores settings of an earlier run.
    pub fn set_settings(&mut self, settings: &Settings) {
        let Settings { clock, coinbase, gas_limit, minimum_gas_price } = *settings;
        self.clock = clock;
        self.miner_settings =
            MinerSettings { coinbase, gas_limit, minimum_gas_price, ..self.miner_settings.clone() };
    }

    /// The gas price in wei that a transaction must offer now.
    pub fn price(&self) -> U256 {
        self.miner_settings.price(self.chain.view().network(), self.chain.head())
    }

    /// When blocks are mined.
    pub const fn mining(&self) -> Mining {
        self.mining
    }

    /// The limits and defaults of calls. If a method has raised the gas limit of blocks, calls and estimates may use as much gas as
    /// such a block.
    pub fn policy(&self) -> CallPolicy {
        let mut policy = self.policy;
        if self.miner_settings.gas_limit > self.start.miner_settings.gas_limit {
            policy.gas_cap = policy.gas_cap.max(self.miner_settings.gas_limit);
        }
        policy
    }

    /// Client name and version, as `web3_clientVersion` reports it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Takes the events since the last call, at most 10,000 of them.
    pub fn take_events(&mut self) -> Vec<DevEvent> {
        core::mem::take(&mut self.events)
    }

    /// Turns events on or off.
    pub fn set_logging(&mut self, enabled: bool) {
        self.logging = enabled;
    }

    /// Stores an event for the host, if events are on and there are not too many.
    pub(super) fn note(&mut self, event: DevEvent) {
        if self.logging && self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }

    /// An account in the head's state; `None` if it does not exist.
    pub fn account(&self, address: &Address) -> Option<AccountState> {
        // The local state is complete and holds only accounts that decode, so there is no error to report.
        self.chain.view().head_state().account(address).ok().flatten()
    }

    /// The nonce of an account's next transaction, after those in the pool that can be mined.
    pub fn next_nonce(&self, address: &Address) -> u64 {
        self.pool.next_nonce(address, self.account(address).map_or(0, |account| account.nonce))
    }

    /// Adds a transaction to the pool and, with instant mining, mines it at once. A transaction whose nonce is ahead of
    /// its sender's waits in the pool for those before it. `sender` is the account that signed it or that is
    /// impersonated; `now` is the host's time in seconds since 1970.
    ///
    /// # Errors
    /// [`DevError::Pool`]; with instant mining also those of [`Self::mine`], after which nothing has changed,
    /// [`DevError::NotMined`] and [`DevError::Reverted`]. As in the reference node, a waiting transaction is
    /// [`DevError::NotMined`] where reverts are reported.
    pub fn submit(&mut self, transaction: Transaction, sender: Address, now: u64) -> Result<B256, DevError> {
        if self.mining != Mining::Instant {
            return self.add(transaction, sender).map(|(hash, _)| hash);
        }
        let before = self.begin();
        let sent = self.add_and_mine(transaction, sender, now);
        self.end(before, sent.is_ok());
        sent?
    }

    /// Adds a transaction to the pool and mines it. After an outer error the caller undoes all changes; with the inner result they
    /// stay, also if it is an error (a mined transaction that reverted).
    fn add_and_mine(
        &mut self,
        transaction: Transaction,
        sender: Address,
        now: u64,
    ) -> Result<Result<B256, DevError>, DevError> {
        let (hash, waits) = self.add(transaction, sender)?;
        if waits && !self.report_reverts {
            return Ok(Ok(hash));
        }
        self.slow.clear();
        let mined = self.mine_pool(now);
        match (self.outcome(hash), mined) {
            // Blocks after that of the transaction do not concern its sender.
            (Err(DevError::NotMined), Err(error)) => Err(error),
            (outcome, _) => Ok(outcome),
        }
    }

    /// Adds a transaction to the pool. Returns its hash, and whether it waits for earlier nonces.
    fn add(&mut self, transaction: Transaction, sender: Address) -> Result<(B256, bool), DevError> {
        let hash = transaction.hash();
        let account = self.account(&sender);
        if self.fork.is_some() {
            // Reading an account that the fork has not fetched notes it as missing. Reading the recipient here lets one exchange
            // fetch the recipient, with its code, together with the sender.
            let _ = transaction.to.map(|to| self.account(&to));
        }
        let view = self.chain.view();
        let (network, head) = (view.network(), view.head().header());
        let context =
            PoolContext { network, head, target: self.miner_settings.target(), asker: Some(self.asker) };
        let added = self.pool.add(&context, transaction, sender, account.as_ref())?;
        self.note_pending(&added.pending);
        Ok((hash, added.pending.is_empty()))
    }

    /// The result of a transaction that should have been mined by the last block.
    fn outcome(&self, hash: B256) -> Result<B256, DevError> {
        let view = self.chain.view();
        let Some((block, index)) = view.locate(&hash) else {
            // `slow` has it, not the events: those are for the host, which may have turned them off, and their list may be full.
            let too_slow = self.slow.contains(&hash);
            return Err(if too_slow { DevError::TooSlow(hash) } else { DevError::NotMined });
        };
        let receipts = view.block(&block).map(|stored| stored.receipts.clone());
        // A block that was mined here has a receipt for each transaction.
        let success = receipts.and_then(|all| all.receipts().get(index).map(|receipt| receipt.success));
        if success != Some(false) || !self.report_reverts {
            return Ok(hash);
        }
        let failures = self.failures(&block);
        let failure = failures.into_iter().find(|(failed, ..)| *failed == hash);
        let output = failure.and_then(|(_, output, halt)| halt.is_none().then_some(output));
        Err(DevError::Reverted { hash, output })
    }

    /// The failed transactions of a block with the data they returned and why they halted (`None` for REVERT). Executes the block
    /// again.
    pub(super) fn failures(&self, block: &B256) -> Vec<(B256, Bytes, Option<HaltReason>)> {
        let view = self.chain.view();
        let Some(header) = view.headers().by_hash(block) else { return Vec::new() };
        let mut observer = Failures(Vec::new());
        // The block was executed before on the same state, so this run can fail by an interruption only: the failures of the
        // transactions before it are returned.
        let _ = view.replay(header, &mut observer, OnUnsimulated::Fail, &|| self.interrupts.is_due());
        observer.0
    }

    /// Updates the pool after the head has moved.
    pub(super) fn follow(&mut self, change: &HeadChange) {
        match change {
            HeadChange::Known | HeadChange::Side => {}
            HeadChange::Extended => {
                let head = self.chain.head().hash();
                self.settle_senders(&[head]);
            }
            HeadChange::Reorganised(change) => {
                let hashes =
                    |headers: &[VerifiedHeader]| headers.iter().map(|h| h.hash()).collect::<Vec<_>>();
                let (removed, added) = (hashes(&change.removed), hashes(&change.added));
                self.note(DevEvent::Reorganised { removed: removed.len(), added: added.len() });
                self.take_back(&removed);
                self.settle_senders(&added);
            }
        }
    }

    /// Puts the transactions of blocks that left the canonical chain back into the pool if they pass its rules.
    fn take_back(&mut self, blocks: &[B256]) {
        let stored: Vec<_> =
            blocks.iter().filter_map(|hash| self.chain.view().block(hash).cloned()).collect();
        for block in stored {
            for (transaction, sender) in block.body.transactions().iter().zip(&block.senders) {
                let account = self.account(sender);
                let (network, head) = (self.chain.view().network(), self.chain.head().header());
                // No asker: the transaction was in a block, which all askers have seen.
                let context =
                    PoolContext { network, head, target: self.miner_settings.target(), asker: None };
                // The pool refuses transactions that the new branch contains too or that its state does not allow.
                if let Ok(added) = self.pool.add(&context, transaction.clone(), *sender, account.as_ref()) {
                    self.note_pending(&added.pending);
                }
            }
        }
    }

    /// As [`Self::settle_sender`], for every sender of a transaction in these blocks.
    fn settle_senders(&mut self, blocks: &[B256]) {
        let stored: Vec<_> =
            blocks.iter().filter_map(|hash| self.chain.view().block(hash).cloned()).collect();
        for sender in stored.iter().flat_map(|block| &block.senders) {
            self.settle_sender(sender);
        }
    }

    /// As [`Self::settle_sender`], for every sender of a transaction in the pool, after a change of the state as a whole.
    pub(super) fn settle_all(&mut self) {
        self.pool.senders().iter().for_each(|sender| self.settle_sender(sender));
    }

    /// Reports to filters that these transactions of the pool can be mined now, with the askers that have sent them.
    fn note_pending(&mut self, transactions: &[B256]) {
        for hash in transactions {
            let asker = self.pool.get(hash).and_then(|pooled| pooled.asker);
            self.chain.note_pending(*hash, asker);
        }
    }

    /// Updates the pool to the nonce of a sender in the head's state: drops transactions whose nonce is used, and reports those that
    /// can be mined now.
    pub(super) fn settle_sender(&mut self, sender: &Address) {
        let nonce = self.account(sender).map_or(0, |account| account.nonce);
        let minable = self.pool.refresh(sender, nonce);
        self.note_pending(&minable);
    }
}

/// Collects the failed transactions of a block: hash, returned data, and why each halted (`None` for REVERT).
struct Failures(Vec<(B256, Bytes, Option<HaltReason>)>);

impl BlockObserver for Failures {
    fn executed(&mut self, _: usize, executed: &Executed<'_>) {
        if let Some(halt) = executed.failure {
            self.0.push((executed.transaction.hash(), Bytes::copy_from_slice(executed.output), halt));
        } else if !executed.success {
            // Not reached in this version: the execution gives a reason for each failed receipt.
            self.0.push((executed.transaction.hash(), Bytes::new(), Some(HaltReason::Other)));
        }
    }
}
