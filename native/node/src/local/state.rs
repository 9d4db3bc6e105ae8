//! The state of a [`super::LocalService`] that all its messages share: the writer with the node and its store, the snapshot for readers,
//! and the options. [`Writer::change`] makes a change and stores it, or does neither.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use rootlight::dev::SimulatedBitcoin;
use rootlight::engine::{HostInput, Snapshot};
use rootlight::exec::Interrupts;
use rootlight::rpc::LocalClient;
use rootlight_limits::Limits;
use rootlight_limits::unix_time::unix_time;
use rootlight_server::service::Counts;
use tokio::sync::watch;
use tracing::{error, info};

use super::watchdog::{BlockClock, BlockLimits};
use super::{indexing, report};
use crate::fork::{Fork, ForkError};
use crate::scripts::EngineProgram;
use crate::store::{ChainPersistence, ChainStoreError};

/// The options of a local chain, which its host sets: time limits, the log, and its environment.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Limit of one message, as the reference node's `rpc.timeout`.
    pub run_timeout: Duration,
    /// Limit of the execution of one block that is mined or imported here; a transaction that needs more is dropped.
    /// `None` for a follower, which must import the blocks of its chain.
    pub block_timeout: Option<Duration>,
    /// Limit of all blocks that one message mines, because other writers wait meanwhile.
    pub mining_timeout: Option<Duration>,
    /// Whether calls that fail are logged, for the developer of a contract. On other chains the callers are strangers, whose failures
    /// would fill the log.
    pub logs_calls: bool,
    /// The program that runs tracers in JavaScript; `None` refuses such tracers.
    pub scripts: Option<EngineProgram>,
    /// The limits of memory and threads that the chain shares with its server.
    pub limits: Arc<Limits>,
    /// The data of the network on which the chain begins, if it is a fork.
    pub fork: Option<Arc<Fork>>,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            run_timeout: Duration::from_secs(5),
            block_timeout: Some(Duration::from_secs(5)),
            mining_timeout: Some(Duration::from_secs(30)),
            logs_calls: true,
            scripts: None,
            limits: Limits::new(),
            fork: None,
        }
    }
}

impl LocalOptions {
    /// The options of a follower: the execution of blocks has no time limit and is interrupted only when the program
    /// stops.
    #[must_use]
    pub fn follower() -> Self {
        Self { block_timeout: None, mining_timeout: None, logs_calls: false, ..Self::default() }
    }

    /// The time limits for executing blocks.
    pub(super) const fn blocks(&self) -> BlockLimits {
        BlockLimits { block: self.block_timeout, message: self.mining_timeout }
    }
}

/// Random numbers for messages, derived from one secret of the operating system.
#[derive(Debug)]
pub struct Entropy {
    secret: [u8; 32],
    /// How often a number was derived.
    used: AtomicU64,
}

impl Entropy {
    /// Reads a secret from the operating system.
    ///
    /// # Errors
    /// The system provides no random numbers. Keys generated without them would not be secret.
    pub fn from_system() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self { secret, used: AtomicU64::new(0) })
    }

    /// Returns 32 bytes that differ for every call.
    fn next(&self) -> B256 {
        let count = self.used.fetch_add(1, Ordering::Relaxed);
        keccak256([&self.secret[..], &count.to_be_bytes()].concat())
    }
}

/// Why a message has no answer, or the chain is not changed.
#[derive(Debug, thiserror::Error)]
pub enum NoChange {
    /// The change cannot be written to disk.
    #[error("the change could not be written to disk, and was not made: {0}")]
    NotStored(#[from] ChainStoreError),
    /// Data of the network on which a fork begins cannot be fetched.
    #[error("Resource unavailable: {0}")]
    NotFetched(#[from] ForkError),
}

/// The state that only one message or clock tick at a time may use.
pub(super) struct Writer {
    /// The node, with the handlers of messages.
    pub(super) client: LocalClient,
    /// The store; `None` for a chain in memory.
    pub(super) persist: Option<ChainPersistence>,
}

/// Why the writer may not change the chain: the program stops, or the disk failed. Other threads read it while the writer is locked.
#[derive(Default)]
pub(super) struct WriterStatus {
    /// The program is shutting down.
    pub(super) stopping: Arc<AtomicBool>,
    /// Why the last change could not be written to disk; `None` after a successful write.
    write_failure: RwLock<Option<String>>,
}

impl WriterStatus {
    /// Why the last change could not be written to disk.
    pub(super) fn write_failure(&self) -> Option<String> {
        self.write_failure.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_write_failure(&self, reason: Option<String>) {
        *self.write_failure.write().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

/// State that all messages of a service need.
pub(super) struct LocalState {
    pub(super) writer: Mutex<Writer>,
    /// The chain after the last change, for readers.
    pub(super) snapshot: RwLock<Arc<dyn Snapshot>>,
    /// Counts the changes of which subscribers may be notified.
    pub(super) changes: watch::Sender<u64>,
    pub(super) options: LocalOptions,
    pub(super) counts: Counts,
    pub(super) entropy: Entropy,
    pub(super) writer_status: WriterStatus,
    pub(super) chain_id: u64,
}

impl LocalState {
    /// The chain after the last change.
    pub(super) fn view(&self) -> Arc<dyn Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A change in progress of the Bitcoin chain beside a development chain. Dropping it, which only a panic does, leaves the changed chain,
/// as the development chain is left too.
struct BitcoinChange(Option<Arc<dyn SimulatedBitcoin>>);

impl BitcoinChange {
    fn begin(bitcoin: Option<Arc<dyn SimulatedBitcoin>>) -> Self {
        if let Some(bitcoin) = &bitcoin {
            // `true`: readers may see the blocks of the change before it has ended.
            bitcoin.begin(true);
        }
        Self(bitcoin)
    }

    fn end(mut self, stays: bool) {
        if let Some(bitcoin) = self.0.take() {
            bitcoin.end(stays);
        }
    }
}

impl Drop for BitcoinChange {
    fn drop(&mut self) {
        if let Some(bitcoin) = self.0.take() {
            bitcoin.end(true);
        }
    }
}

impl Writer {
    /// Changes the chain and writes the change to disk, or does neither. On a fork, `work` runs again, each time on the unchanged chain,
    /// until it lacks no data.
    pub(super) fn change<T>(
        &mut self,
        status: &WriterStatus,
        limits: BlockLimits,
        fork: Option<&Fork>,
        mut work: impl FnMut(&mut LocalClient) -> T,
    ) -> Result<T, NoChange> {
        // After a failed write the database is opened again before the next change.
        let ready = self.persist.as_mut().map_or(Ok(()), |persist| persist.ready());
        let saved = ready.and_then(|()| {
            // A copy is needed only where the change may have to be undone.
            let before = (self.persist.is_some() || fork.is_some()).then(|| self.client.node().copy());
            let bitcoin = self.client.node().dev().and_then(|chain| chain.bitcoin().cloned());
            let bitcoin = BitcoinChange::begin(bitcoin.filter(|_| before.is_some()));
            let mut run = |client: &mut LocalClient| {
                let clock = BlockClock::start(limits, status.stopping.clone());
                client.node().interrupt_by(Interrupts::by(Arc::new(clock)));
                work(client)
            };
            let result = match fork.zip(before.as_ref()) {
                None => run(&mut self.client),
                Some((fork, before)) => {
                    let fetched = fork.run(|| {
                        self.client.replace_node(before.copy());
                        run(&mut self.client)
                    });
                    fork.settle();
                    match fetched {
                        Ok(result) => result,
                        Err(failure) => {
                            self.client.replace_node(before.copy());
                            bitcoin.end(false);
                            return Ok(Err(failure));
                        }
                    }
                }
            };
            let saved = self.save();
            bitcoin.end(saved.is_ok());
            if let (Err(_), Some(before)) = (&saved, before) {
                self.client.replace_node(before);
            }
            saved.map(|()| Ok(result))
        });
        if let Err(failure) = &saved {
            error!("{failure}");
            status.set_write_failure(Some(failure.to_string()));
        } else if status.write_failure().is_some() {
            status.set_write_failure(None);
        }
        Ok(saved??)
    }

    /// Writes the changes to disk before readers can see them, then logs the events.
    fn save(&mut self) -> Result<(), ChainStoreError> {
        let node = self.client.node();
        let block_states = node.take_block_states();
        if let Some(persist) = &mut self.persist {
            let settings = node.dev().map(|chain| chain.settings());
            persist.save(node.local(), block_states, settings.as_ref())?;
        } else {
            indexing::renew(node);
        }
        for event in node.dev().map(|chain| chain.take_events()).unwrap_or_default() {
            info!("{}", report::event(&event));
        }
        Ok(())
    }
}

/// Locks the writer, also after a panic: a panicking handler is a defect, but it leaves the chain as it was after the
/// last complete change.
pub(super) fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the present chain visible to readers.
pub(super) fn publish(snapshot: &RwLock<Arc<dyn Snapshot>>, client: &LocalClient) {
    *snapshot.write().unwrap_or_else(PoisonError::into_inner) = client.snapshot();
}

/// Counts a change, so that subscribers are notified.
pub(super) fn changed(changes: &watch::Sender<u64>) {
    changes.send_modify(|count| *count = count.wrapping_add(1));
}

/// Time and randomness for one message.
#[must_use]
pub fn host_input(entropy: &Entropy) -> HostInput {
    HostInput { now: unix_time(), entropy: entropy.next() }
}
