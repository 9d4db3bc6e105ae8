//! Answers messages from a local chain: readers use snapshots, writers run one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, keccak256};
use axum::body::Bytes;
use futures::future::BoxFuture;
use rootlight::engine::{Moment, Node, Snapshot, View};
use rootlight::exec::Interrupts;
use rootlight::rpc::{Answer, Dispatcher, LocalClient, LocalMessage, MAX_RESPONSE, Reply};
use tokio::sync::watch;
use tracing::{error, info, warn};

use super::codes::Codes;
use super::watchdog::{BlockClock, BlockLimits};
use super::{indexing, log_stream, report};
use crate::bans::HostBans;
use crate::budget::{self, NO_ROOM};
use crate::priority::{self, SHORT_JSON};
use crate::recovery::AllProcessors;
use crate::runs::{Runs, Size};
use crate::service::{Caller, Health, HeldAnswer, INTERNAL_ERROR, LIMIT_EXCEEDED, Service, Vitals};
use crate::store::{Persist, StoreError, StoredIndex};
use crate::unix_time::unix_time;

/// How long a run waits for bytes of the answer budget.
const ROOM_PATIENCE: Duration = Duration::from_secs(10);

/// The time limits of a local chain.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Limit of one message, as the reference node's `rpc.timeout`.
    pub run_timeout: Duration,
    /// Limit of the execution of one block that is mined or imported here; a transaction that needs more is dropped.
    /// `None` for a follower, which must import the blocks of its chain.
    pub block_timeout: Option<Duration>,
    /// Limit of all blocks that one message mines, because other writers wait meanwhile.
    pub mining_timeout: Option<Duration>,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            run_timeout: Duration::from_secs(5),
            block_timeout: Some(Duration::from_secs(5)),
            mining_timeout: Some(Duration::from_secs(30)),
        }
    }
}

impl LocalOptions {
    /// The limits of a follower: the execution of blocks has no time limit and is interrupted only when the program
    /// stops.
    #[must_use]
    pub fn follower() -> Self {
        Self { block_timeout: None, mining_timeout: None, ..Self::default() }
    }

    const fn blocks(&self) -> BlockLimits {
        BlockLimits { block: self.block_timeout, message: self.mining_timeout }
    }
}

/// Random numbers for messages, derived from one secret of the operating system.
#[derive(Debug)]
pub struct Entropy {
    secret: [u8; 32],
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

/// The state that only one message or clock tick at a time may use.
struct Writer {
    client: LocalClient,
    persist: Option<Persist>,
}

/// Serves a local chain.
pub struct LocalService {
    writer: Arc<Mutex<Writer>>,
    /// The chain as it was after the last change.
    snapshot: Arc<RwLock<Arc<dyn Snapshot>>>,
    dispatcher: Arc<Dispatcher>,
    /// Counts the changes of which subscribers may be notified.
    changes: Arc<watch::Sender<u64>>,
    options: LocalOptions,
    /// Schedules long runs of readers.
    runs: Arc<Runs>,
    /// Schedules the reading of long messages.
    reads: Arc<Runs>,
    /// Schedules long messages of readers.
    long: Arc<Runs>,
    /// Schedules runs of writers, one at a time since they exclude each other.
    writes: Arc<Runs>,
    entropy: Arc<Entropy>,
    state: Arc<State>,
    /// The index of a stored chain.
    index: Option<Arc<StoredIndex>>,
    bans: Arc<HostBans>,
    chain_id: u64,
}

/// Conditions that keep the writer from working.
#[derive(Default)]
struct State {
    /// The program is shutting down.
    stopping: Arc<AtomicBool>,
    /// Why the last change could not be written to disk; `None` after a successful write.
    unkept: RwLock<Option<String>>,
}

impl State {
    fn unkept(&self) -> Option<String> {
        self.unkept.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_unkept(&self, reason: Option<String>) {
        *self.unkept.write().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

impl LocalService {
    /// Serves a node's chain, and stores it on disk if `persist` is given.
    #[must_use]
    pub fn new(
        mut node: Box<dyn Node>,
        options: LocalOptions,
        entropy: Entropy,
        persist: Option<Persist>,
    ) -> Self {
        let state = Arc::<State>::default();
        let index = indexing::attach(&mut *node, persist.as_ref(), &state.stopping);
        node.set_codes(Arc::<Codes>::default());
        let bans = Arc::<HostBans>::default();
        node.set_bans(bans.clone());
        node.set_recovery(Arc::new(AllProcessors));
        let chain_id = node.local().network().chain_id;
        let client = LocalClient::new(node);
        Self {
            dispatcher: client.dispatcher(),
            changes: Arc::new(watch::Sender::new(0)),
            snapshot: Arc::new(RwLock::new(client.snapshot())),
            writer: Arc::new(Mutex::new(Writer { client, persist })),
            options,
            runs: Runs::for_this_machine(),
            reads: Runs::without_pauses(),
            long: Runs::for_long_messages(),
            writes: Runs::one_at_a_time(),
            entropy: Arc::new(entropy),
            state,
            index,
            bans,
            chain_id,
        }
    }

    /// Runs `work` on the node between messages (a clock tick, an import), writes the changes to disk and makes them
    /// visible to readers.
    ///
    /// # Errors
    /// The change cannot be written to disk. The chain is unchanged then.
    pub fn with_node<T>(&self, work: impl FnOnce(&mut dyn Node) -> T) -> Result<T, StoreError> {
        let mut writer = lock(&self.writer);
        let before = writer.client.node().local().events().next();
        let result = writer.change(&self.state, self.options.blocks(), |client| {
            client.node().begin(moment(&self.entropy));
            work(client.node())
        })?;
        publish(&self.snapshot, &writer.client);
        // The head may be the same after a switch of branches and back.
        if writer.client.node().local().events().next() != before {
            changed(&self.changes);
        }
        Ok(result)
    }

    /// Reads the chain as it was after the last change. Does not wait for messages or imports that are under way.
    pub fn read<T>(&self, work: impl FnOnce(&dyn View) -> T) -> T {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone();
        work(&*snapshot.view(unix_time(), &|| false))
    }

    /// Interrupts blocks that are being mined or imported and refuses further ones, because the program is shutting
    /// down.
    pub fn stop(&self) {
        self.state.stopping.store(true, Ordering::Relaxed);
    }

    /// Reads a message. Reading a long one takes milliseconds, so it is done in turn and not on the calling thread.
    async fn open(&self, caller: &Caller, message: &Bytes) -> Result<LocalMessage, Unanswered> {
        let (dispatcher, connection) = (self.dispatcher.clone(), caller.connection.clone());
        let bytes = message.clone();
        let read = move || LocalMessage::new(&dispatcher, connection, &bytes);
        if message.len() <= SHORT_JSON {
            return Ok(read());
        }
        let place = self.reads.enter(caller.peer, Size::of(message)).await;
        let reading = priority::run_last(move || {
            let _place = place;
            read()
        });
        reading.await.ok_or(Unanswered::Failed)
    }

    /// Answers brief messages on the calling thread, because moving one to another thread takes longer than a
    /// look-up. Other messages wait for their turn and run on a thread of their own, so that they do not block other
    /// connections.
    async fn run(
        &self,
        caller: &Caller,
        message: LocalMessage,
        bytes: &[u8],
    ) -> Result<HeldAnswer, Unanswered> {
        let peer = caller.peer;
        let job = Job {
            message,
            takes_pieces: caller.takes_pieces,
            writer: self.writer.clone(),
            snapshot: self.snapshot.clone(),
            entropy: self.entropy.clone(),
            changes: self.changes.clone(),
            state: self.state.clone(),
            options: self.options.clone(),
            chain_id: self.chain_id,
        };
        let brief = match bytes.len() <= SHORT_JSON {
            true => catch_unwind(AssertUnwindSafe(|| job.run_if_brief())).map_err(|_| Unanswered::Failed)?,
            // Hashing a long parameter takes as long as a run.
            false => Err(job),
        };
        let job = match brief {
            Ok(answer) => {
                let answer = answer.map_err(Unanswered::NotKept)?;
                let bytes = answer.as_ref().map_or(0, |answer| answer.body.len());
                let held = budget::hold_answer(bytes).await.ok_or(Unanswered::NoRoom)?;
                return Ok(HeldAnswer { answer, held, pieces: None });
            }
            Err(job) => job,
        };
        let runs = match (job.message.reads_only(), bytes.len() <= SHORT_JSON) {
            (true, true) => &self.runs,
            (true, false) => &self.long,
            (false, _) => &self.writes,
        };
        let place = runs.enter(peer, Size::of(bytes)).await;
        let room = budget::hold_run(peer.asker(), MAX_RESPONSE, ROOM_PATIENCE).await;
        let mut held = room.ok_or(Unanswered::NoRoom)?;
        let run = move || {
            let _place = place;
            job.run()
        };
        // Parameters of megabytes are decoded and hashed without pauses.
        let answer = match bytes.len() <= SHORT_JSON {
            true => priority::spawn_lowered(Some(peer.asker()), run).await.ok(),
            false => priority::run_last(run).await,
        };
        match answer.ok_or(Unanswered::Failed)?.map_err(Unanswered::NotKept)? {
            Reply::Whole(answer) => {
                held.shrink_to(answer.as_ref().map_or(0, |answer| answer.body.len()));
                Ok(HeldAnswer { answer, held, pieces: None })
            }
            Reply::Logs(logs) => {
                let pieces = log_stream::pieces(logs, peer, self.runs.clone(), ROOM_PATIENCE);
                Ok(HeldAnswer { pieces: Some(pieces), ..HeldAnswer::default() })
            }
        }
    }

    async fn answer_in_turn(&self, caller: &Caller, message: Vec<u8>) -> HeldAnswer {
        let message = Bytes::from(message);
        let error = |code, text: &str| HeldAnswer::failed_apart(message.clone(), code, text.to_owned());
        let answered = match self.open(caller, &message).await {
            Ok(open) => self.run(caller, open, &message).await,
            Err(unanswered) => Err(unanswered),
        };
        match answered {
            Ok(held) => {
                if let Some(failure) = held.answer.as_ref().and_then(report::failed_call) {
                    info!("{failure}");
                }
                held
            }
            Err(Unanswered::NoRoom) => error(LIMIT_EXCEEDED, NO_ROOM).await,
            Err(Unanswered::NotKept(failure)) => {
                let text = format!("the change could not be written to disk, and was not made: {failure}");
                error(INTERNAL_ERROR, &text).await
            }
            Err(Unanswered::Failed) => {
                warn!("a handler failed");
                error(INTERNAL_ERROR, "Internal server error").await
            }
        }
    }
}

/// The reason why the node did not answer a message.
enum Unanswered {
    /// A handler panicked, which is a defect.
    Failed,
    /// The change cannot be written to disk.
    NotKept(StoreError),
    /// The answer budget is used up.
    NoRoom,
}

/// A message with everything needed to answer it.
struct Job {
    message: LocalMessage,
    /// Whether the answer may be sent in pieces.
    takes_pieces: bool,
    writer: Arc<Mutex<Writer>>,
    snapshot: Arc<RwLock<Arc<dyn Snapshot>>>,
    entropy: Arc<Entropy>,
    changes: Arc<watch::Sender<u64>>,
    state: Arc<State>,
    options: LocalOptions,
    chain_id: u64,
}

impl Job {
    /// Answers the message if that takes no longer than moving it to another thread: it is brief, needs no disk and
    /// does not wait for another writer. Returns the job otherwise.
    fn run_if_brief(self) -> Result<Result<Option<Answer>, StoreError>, Self> {
        if !self.message.is_brief() {
            return Err(self);
        }
        if self.message.reads_only() {
            return Ok(Ok(self.read_whole()));
        }
        let shared = self.writer.clone();
        let Ok(mut writer) = shared.try_lock() else { return Err(self) };
        if writer.persist.is_some() {
            return Err(self);
        }
        Ok(self.write(&mut writer))
    }

    fn run(self) -> Result<Reply, StoreError> {
        if self.message.reads_only() {
            return Ok(if self.takes_pieces {
                self.read(LocalMessage::read_or_stream)
            } else {
                Reply::Whole(self.read_whole())
            });
        }
        if self.message.changes_chain() {
            self.message.recover(self.chain_id, &AllProcessors);
        }
        let shared = self.writer.clone();
        let mut writer = lock(&shared);
        self.write(&mut writer).map(Reply::Whole)
    }

    fn read_whole(self) -> Option<Answer> {
        self.read(LocalMessage::read)
    }

    fn read<T>(self, read: impl FnOnce(LocalMessage, &dyn Snapshot, u64, &dyn Fn() -> bool) -> T) -> T {
        let view = self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (started, limit) = (Instant::now(), self.options.run_timeout);
        let interrupt = || {
            priority::pause();
            started.elapsed() > limit
        };
        read(self.message, &*view, unix_time(), &interrupt)
    }

    fn write(self, writer: &mut Writer) -> Result<Option<Answer>, StoreError> {
        let Self { message, snapshot, entropy, changes, state, options, .. } = self;
        let changes_chain = message.changes_chain();
        // The time limit does not include waiting for other writers.
        let (started, limit) = (Instant::now(), options.run_timeout);
        let interrupt = || {
            priority::pause();
            started.elapsed() > limit || state.stopping.load(Ordering::Relaxed)
        };
        let answer = writer.change(&state, options.blocks(), |client| {
            client.answer(message, moment(&entropy), &interrupt)
        })?;
        publish(&snapshot, &writer.client);
        if changes_chain {
            changed(&changes);
        }
        Ok(answer)
    }
}

impl Writer {
    /// Changes the chain and writes the change to disk, or does neither.
    fn change<T>(
        &mut self,
        state: &State,
        limits: BlockLimits,
        work: impl FnOnce(&mut LocalClient) -> T,
    ) -> Result<T, StoreError> {
        // After a failed write the database is opened again before the next change.
        let ready = self.persist.as_mut().map_or(Ok(()), |persist| persist.ready());
        let kept = ready.and_then(|()| {
            let before = self.persist.is_some().then(|| self.client.node().copy());
            let clock = BlockClock::start(limits, state.stopping.clone());
            self.client.node().interrupt_by(Interrupts::by(Arc::new(clock)));
            let result = work(&mut self.client);
            let kept = self.keep();
            if let (Err(_), Some(before)) = (&kept, before) {
                self.client.replace_node(before);
            }
            kept.map(|()| result)
        });
        if let Err(failure) = &kept {
            error!("{failure}");
            state.set_unkept(Some(failure.to_string()));
        } else if state.unkept().is_some() {
            state.set_unkept(None);
        }
        kept
    }

    /// Writes the changes to disk before readers can see them, then logs the events.
    fn keep(&mut self) -> Result<(), StoreError> {
        let node = self.client.node();
        let settled = node.take_settled();
        if let Some(persist) = &mut self.persist {
            persist.save(node.local(), settled)?;
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
fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn publish(snapshot: &RwLock<Arc<dyn Snapshot>>, client: &LocalClient) {
    *snapshot.write().unwrap_or_else(PoisonError::into_inner) = client.snapshot();
}

fn changed(changes: &watch::Sender<u64>) {
    changes.send_modify(|count| *count = count.wrapping_add(1));
}

/// Time and randomness for one message.
#[must_use]
pub fn moment(entropy: &Entropy) -> Moment {
    Moment { now: unix_time(), entropy: entropy.next() }
}

impl Service for LocalService {
    fn answer_to<'a>(&'a self, caller: &'a Caller, message: Vec<u8>) -> BoxFuture<'a, HeldAnswer> {
        Box::pin(self.answer_in_turn(caller, message))
    }

    fn disconnect<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            caller.connection.close();
            let place = self.writes.enter(caller.peer, Size::Single).await;
            let (writer, connection) = (self.writer.clone(), caller.connection.clone());
            let ended = tokio::task::spawn_blocking(move || {
                let _place = place;
                lock(&writer).client.disconnect(&connection);
            });
            if ended.await.is_err() {
                warn!("the subscriptions of a closed connection were not ended");
            }
        })
    }

    fn bans(&self) -> Option<Arc<HostBans>> {
        Some(self.bans.clone())
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn health(&self) -> Health {
        let head = self.read(|chain| chain.head());
        let unkept = self.state.unkept();
        let reason = unkept.map(|reason| format!("the last change could not be written to disk: {reason}"));
        Health {
            ready: head.is_ok() && reason.is_none(),
            block_number: head.ok().map(|head| head.number),
            reason,
            log_index: self.index.as_ref().and_then(|index| index.progress()),
        }
    }

    fn vitals(&self) -> Vitals {
        let (head, syncing) = self.read(|chain| (chain.head(), chain.syncing()));
        let head = head.ok().map(|head| (head.number, head.timestamp));
        let target = syncing.as_ref().map(|progress| progress.highest).or(head.map(|(number, _)| number));
        Vitals { head, target, synced: syncing.is_none(), upstreams: Vec::new() }
    }
}

#[cfg(test)]
#[path = "disk_test.rs"]
mod disk_test;
#[cfg(test)]
#[path = "index_test.rs"]
mod index_test;
