//! Answering messages from a local chain: readers on snapshots, writers one at a time.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alloy_primitives::{keccak256, B256};
use futures::future::BoxFuture;
use rootlight::engine::{Moment, Node, Snapshot};
use rootlight::rpc::{Dispatcher, LocalClient, LocalMessage, Reply};
use tokio::sync::{watch, Semaphore};
use tracing::{error, info, warn};

use super::report;
use crate::envelope;
use crate::service::{Answer, Health, Service};
use crate::store::{Persist, StoreError};

/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i32 = -32603;

/// Messages that run at the same time. Far more than processors, so that a few calls that run until their time is
/// up leave the others their share; each has a thread of its own.
const MAX_RUNS: usize = 64;

/// Times of a local chain.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Time for one message, as the reference's `rpc.timeout`.
    pub run_timeout: Duration,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self { run_timeout: Duration::from_secs(5) }
    }
}

/// Randomness for messages: one secret of the system's, stretched.
#[derive(Debug)]
pub struct Entropy {
    secret: [u8; 32],
    used: AtomicU64,
}

impl Entropy {
    /// Takes a secret from the operating system.
    ///
    /// # Errors
    /// The system has none to give; keys made without it would not be secret.
    pub fn from_system() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self { secret, used: AtomicU64::new(0) })
    }

    /// 32 bytes that no other call gives.
    fn next(&self) -> B256 {
        let count = self.used.fetch_add(1, Ordering::Relaxed);
        keccak256([&self.secret[..], &count.to_be_bytes()].concat())
    }
}

/// What only one message or tick at a time may use.
struct Writer {
    client: LocalClient,
    persist: Option<Persist>,
}

/// A local chain behind the server.
pub struct LocalService {
    writer: Arc<Mutex<Writer>>,
    /// The chain as it was after the last change.
    snapshot: Arc<RwLock<Arc<dyn Snapshot>>>,
    dispatcher: Arc<Dispatcher>,
    /// For callers to whom notifications can be sent.
    notifying: Arc<Dispatcher>,
    /// Counts what there may be to notify of.
    changes: Arc<watch::Sender<u64>>,
    options: LocalOptions,
    runs: Arc<Semaphore>,
    entropy: Arc<Entropy>,
}

impl LocalService {
    /// Serves a node's chain, and keeps it on disk if there is a place for it.
    #[must_use]
    pub fn new(
        node: Box<dyn Node>,
        options: LocalOptions,
        entropy: Entropy,
        persist: Option<Persist>,
    ) -> Self {
        let client = LocalClient::new(node);
        Self {
            dispatcher: client.dispatcher(),
            notifying: Arc::new(Dispatcher::with_notifications()),
            changes: Arc::new(watch::Sender::new(0)),
            snapshot: Arc::new(RwLock::new(client.snapshot())),
            writer: Arc::new(Mutex::new(Writer { client, persist })),
            options,
            runs: Arc::new(Semaphore::new(MAX_RUNS)),
            entropy: Arc::new(entropy),
        }
    }

    /// Works on the node between messages (a tick of the clock, an import), keeps what has changed and shows it to
    /// readers.
    ///
    /// # Errors
    /// The store cannot be written; readers see the change all the same.
    pub fn with_node<T>(&self, work: impl FnOnce(&mut dyn Node) -> T) -> Result<T, StoreError> {
        let mut writer = lock(&self.writer);
        let before = head(&*writer.client.snapshot());
        writer.client.node().begin(moment(&self.entropy));
        let result = work(writer.client.node());
        let kept = keep(&mut writer);
        publish(&self.snapshot, &writer.client);
        if head(&*writer.client.snapshot()) != before {
            changed(&self.changes);
        }
        kept.map(|()| result)
    }

    /// Answers at once what is brief and need not wait, anything else on a thread of its own: a handler of the
    /// connection's own thread keeps others from it, but the way to another one and back takes longer than a look-up.
    async fn run(&self, message: LocalMessage) -> thread::Result<Option<Reply>> {
        let job = Job {
            message,
            writer: self.writer.clone(),
            snapshot: self.snapshot.clone(),
            entropy: self.entropy.clone(),
            changes: self.changes.clone(),
            limit: self.options.run_timeout,
        };
        if job.is_brief() {
            return catch_unwind(AssertUnwindSafe(|| job.run()));
        }
        // The semaphore is never closed.
        let permit = self.runs.clone().acquire_owned().await.ok();
        let run = move || {
            let _permit = permit;
            job.run()
        };
        tokio::task::spawn_blocking(run).await.map_err(|failure| Box::new(failure) as _)
    }

    async fn answer_by(&self, dispatcher: &Arc<Dispatcher>, message: Vec<u8>) -> Answer {
        let open = LocalMessage::new(dispatcher.clone(), &message);
        match self.run(open).await {
            Ok(None) => Answer::served(None),
            Ok(Some(reply)) if reply.unusable => Answer::unusable(reply.body.into_bytes()),
            Ok(Some(reply)) => {
                if let Some(failure) = report::failed_call(&message, &reply.body) {
                    info!("{failure}");
                }
                Answer::served(Some(reply.body.into_bytes()))
            }
            Err(_) => {
                warn!("a handler failed");
                let text = "Internal server error";
                Answer::served(Some(envelope::error_for(&message, INTERNAL_ERROR, text)))
            }
        }
    }
}

/// A message with all it needs.
struct Job {
    message: LocalMessage,
    writer: Arc<Mutex<Writer>>,
    snapshot: Arc<RwLock<Arc<dyn Snapshot>>>,
    entropy: Arc<Entropy>,
    changes: Arc<watch::Sender<u64>>,
    limit: Duration,
}

impl Job {
    /// Whether it takes no longer than handing it to another thread: a little work, with no other writer to wait for
    /// and no disk.
    fn is_brief(&self) -> bool {
        let free = || self.writer.try_lock().is_ok_and(|writer| writer.persist.is_none());
        self.message.is_brief() && (self.message.reads_only() || free())
    }

    fn run(self) -> Option<Reply> {
        let Self { message, writer, snapshot, entropy, changes, limit } = self;
        if message.reads_only() {
            let view = snapshot.read().unwrap_or_else(PoisonError::into_inner).clone();
            let started = Instant::now();
            return message.read(&*view, now(), &|| started.elapsed() > limit);
        }
        let changes_chain = message.changes_chain();
        let mut writer = lock(&writer);
        // Waiting for other writers does not count.
        let started = Instant::now();
        let reply = writer.client.answer(message, moment(&entropy), &|| started.elapsed() > limit);
        if let Err(failure) = keep(&mut writer) {
            error!("{failure}");
        }
        publish(&snapshot, &writer.client);
        if changes_chain {
            changed(&changes);
        }
        reply
    }
}

/// A handler does not panic; if one did, the chain would still be what it was after the last whole change.
fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes new blocks to the store before anybody is told of them, and tells people what has happened.
fn keep(writer: &mut Writer) -> Result<(), StoreError> {
    let node = writer.client.node();
    for event in node.dev().map(|chain| chain.take_events()).unwrap_or_default() {
        info!("{}", report::event(&event));
    }
    match &mut writer.persist {
        Some(persist) => persist.save(node.local()),
        None => Ok(()),
    }
}

fn publish(snapshot: &RwLock<Arc<dyn Snapshot>>, client: &LocalClient) {
    *snapshot.write().unwrap_or_else(PoisonError::into_inner) = client.snapshot();
}

fn changed(changes: &watch::Sender<u64>) {
    changes.send_modify(|count| *count = count.wrapping_add(1));
}

fn head(snapshot: &dyn Snapshot) -> Option<B256> {
    snapshot.view(now(), &|| false).head().ok().map(|head| head.hash())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Time and randomness for one message.
#[must_use]
pub fn moment(entropy: &Entropy) -> Moment {
    Moment { now: now(), entropy: entropy.next() }
}

impl Service for LocalService {
    fn answer(&self, message: Vec<u8>) -> BoxFuture<'_, Answer> {
        Box::pin(self.answer_by(&self.dispatcher, message))
    }

    fn answer_subscriber(&self, message: Vec<u8>) -> BoxFuture<'_, Answer> {
        Box::pin(self.answer_by(&self.notifying, message))
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn health(&self) -> Health {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone();
        let head = snapshot.view(now(), &|| false).head();
        Health { ready: head.is_ok(), block_number: head.ok().map(|head| head.number), reason: None }
    }
}
