//! Answering messages: sessions of the core, fed from the upstream.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use axum::body::Bytes;
use futures::future::BoxFuture;
use rootlight::consensus::{Checkpoint, Network};
use rootlight::engine::gate;
use rootlight::exec::CallPolicy;
use rootlight::light::{Answer as Fetched, Identity, SyncOptions, Unproven, MAX_AGE};
use rootlight::rpc::{Session, Step};
use tokio::sync::{watch, Semaphore};
use tracing::warn;

use super::convert::ask_each;
use super::{
    shared::Shared,
    sync::{self, Log},
};
use crate::envelope;
use crate::service::{Answer, Health, Service};
use crate::store::StoreError;
use crate::upstream::SharedUpstream;

/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i32 = -32603;
/// JSON-RPC code of a timeout (the reference's own).
const TIMED_OUT: i32 = -32011;

/// Time between two looks at whether the head is reached.
const SETTLE_INTERVAL: Duration = Duration::from_millis(10);

/// Times of the light client.
#[derive(Debug, Clone)]
pub struct LightOptions {
    /// Times and bounds of synchronization.
    pub sync: SyncOptions,
    /// CPU time between two fetches of one message, as the reference's `rpc.timeout`.
    pub run_timeout: Duration,
    /// Time for one message, fetches included.
    pub message_timeout: Duration,
    /// What is decided about calls.
    pub policy: CallPolicy,
    /// Blocks with fewer blocks on top are refused.
    pub min_depth: u64,
    /// Oldest age of the head in seconds at which questions are answered; 0 for any.
    pub max_age: u64,
    /// What is done where nobody gives a proof.
    pub unproven: Unproven,
}

impl Default for LightOptions {
    fn default() -> Self {
        Self {
            sync: SyncOptions::default(),
            run_timeout: Duration::from_secs(5),
            message_timeout: Duration::from_secs(60),
            policy: CallPolicy::default(),
            min_depth: 0,
            max_age: MAX_AGE,
            unproven: Unproven::Refuse,
        }
    }
}

/// A light client that follows an upstream and answers from what it has verified.
pub struct LightService {
    client: Arc<Shared>,
    upstreams: Vec<SharedUpstream>,
    options: LightOptions,
    /// Runs of handlers at the same time: one per processor, so that heavy calls queue up instead
    /// of slowing everything down.
    runs: Arc<Semaphore>,
    syncing: Vec<tokio::task::JoinHandle<()>>,
}

/// What the next step of a session needs.
enum Next {
    /// A message, and whether its sender can be notified.
    Start(Bytes, bool),
    Feed(Box<Session>, Vec<Fetched>),
}

impl LightService {
    /// Starts following the upstreams; must be called inside a runtime.
    #[must_use]
    pub fn start(
        network: Network,
        checkpoint: Checkpoint,
        upstreams: Vec<SharedUpstream>,
        options: LightOptions,
    ) -> Self {
        let client = Self::client(network, checkpoint, &upstreams, &options);
        Self::launch(client, upstreams, options)
    }

    /// Like [`Self::start`], but goes on from the verified headers kept in a folder, and keeps those to come.
    ///
    /// # Errors
    /// The folder cannot be used. Damaged or foreign contents are no error: they are set aside.
    pub fn resume(
        network: Network,
        checkpoint: Checkpoint,
        upstreams: Vec<SharedUpstream>,
        options: LightOptions,
        folder: &Path,
    ) -> Result<Self, StoreError> {
        let mut client = Self::client(network, checkpoint, &upstreams, &options);
        client.keep_in(folder)?;
        Ok(Self::launch(client, upstreams, options))
    }

    fn client(
        network: Network,
        checkpoint: Checkpoint,
        upstreams: &[SharedUpstream],
        options: &LightOptions,
    ) -> Shared {
        let identity = Identity {
            version: client_version(),
            upstreams: upstreams.iter().map(|upstream| upstream.name().to_owned()).collect(),
            policy: options.policy,
            min_depth: options.min_depth,
            max_age: options.max_age,
            unproven: options.unproven,
        };
        Shared::new(network, checkpoint, identity, options.sync, secret())
    }

    fn launch(client: Shared, upstreams: Vec<SharedUpstream>, options: LightOptions) -> Self {
        let client = Arc::new(client);
        let log = Arc::new(Mutex::new(Log::new(upstreams.len())));
        let syncing = upstreams
            .iter()
            .enumerate()
            .map(|(index, upstream)| {
                tokio::spawn(sync::run(client.clone(), index, upstream.clone(), log.clone()))
            })
            .collect();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { client, upstreams, options, runs: Arc::new(Semaphore::new(processors)), syncing }
    }

    /// Whether the head has been reached at least once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.client.sync().is_synced()
    }

    /// Waits until the head is verified or a fault is known, but no longer than `limit`.
    pub async fn settled(&self, limit: Duration) {
        let settled = async {
            loop {
                if self.is_synced() || self.faulty() {
                    return;
                }
                tokio::time::sleep(SETTLE_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(limit, settled).await;
    }

    fn faulty(&self) -> bool {
        self.client.sync().fault().is_some()
    }

    async fn converse(&self, message: &Bytes, notified: bool) -> Answer {
        let mut next = Next::Start(message.clone(), notified);
        loop {
            let Some((session, step)) = self.run(next).await else {
                let text = "Internal server error";
                return Answer::served(Some(envelope::error_for(message, INTERNAL_ERROR, text)));
            };
            match step {
                Step::Fetch(questions) => {
                    next = Next::Feed(session, ask_each(&self.upstreams, questions).await);
                }
                Step::Done(reply) => {
                    self.client.close(*session);
                    return match reply {
                        None => Answer::served(None),
                        Some(reply) if reply.unusable => Answer::unusable(reply.body.into_bytes()),
                        Some(reply) => Answer::served(Some(reply.body.into_bytes())),
                    };
                }
            }
        }
    }

    async fn converse_in_time(&self, message: Vec<u8>, notified: bool) -> Answer {
        let message = Bytes::from(message);
        match tokio::time::timeout(self.options.message_timeout, self.converse(&message, notified)).await {
            Ok(answer) => answer,
            Err(_) => {
                let text = "Execution has got timeout out.";
                Answer::served(Some(envelope::error_for(&message, TIMED_OUT, text)))
            }
        }
    }

    /// Runs one step on a thread for CPU work.
    async fn run(&self, next: Next) -> Option<(Box<Session>, Step)> {
        // The semaphore is never closed.
        let permit = self.runs.clone().acquire_owned().await.ok()?;
        let (client, limit) = (self.client.clone(), self.options.run_timeout);
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut session = match next {
                Next::Start(message, notified) => Box::new(client.open(&message, notified)),
                Next::Feed(mut session, answers) => {
                    client.feed(&mut session, answers);
                    session
                }
            };
            let started = Instant::now();
            let step = client.step(&mut session, &|| started.elapsed() > limit);
            (session, step)
        });
        work.await.inspect_err(|failure| warn!(%failure, "a handler failed")).ok()
    }
}

impl Drop for LightService {
    fn drop(&mut self) {
        self.syncing.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Service for LightService {
    fn answer(&self, message: Vec<u8>) -> BoxFuture<'_, Answer> {
        Box::pin(self.converse_in_time(message, false))
    }

    fn answer_subscriber(&self, message: Vec<u8>) -> BoxFuture<'_, Answer> {
        Box::pin(self.converse_in_time(message, true))
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.client.changes())
    }

    fn health(&self) -> Health {
        // As a question that came now would find it.
        let pin = self.client.pin();
        let block_number = pin.chain().map(|chain| chain.head().number);
        let refusal = gate::chain(&pin).err();
        let stopped = pin.fault().map(|fault| format!("synchronization stopped at {fault}"));
        Health {
            ready: refusal.is_none(),
            block_number,
            reason: refusal.map(|refusal| refusal.to_string()).or(stopped),
        }
    }
}

/// What ids of filters are made of.
fn secret() -> B256 {
    let mut secret = [0; 32];
    if let Err(failure) = getrandom::fill(&mut secret) {
        warn!(%failure, "no randomness: callers can guess each other's filters");
    }
    secret.into()
}

/// `web3_clientVersion`.
fn client_version() -> String {
    format!(
        "Rootlight/{}/{}-{}/Rust",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}
