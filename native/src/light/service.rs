//! Answering messages: sessions of the core, fed from the upstream.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use axum::body::Bytes;
use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::engine::gate;
use rootlight::exec::CallPolicy;
use rootlight::light::{Identity, MAX_AGE, SyncOptions, Unproven};
use rootlight::rpc::{Connection, Session, Step};
use tokio::sync::{Semaphore, watch};
use tracing::warn;

use super::ask::{Fetched, ask_each};
use super::checkpoint::Start;
use super::{
    shared::Shared,
    sync::{self, Log},
};
use crate::budget::{self, Held, NO_ROOM};
use crate::priority::{self, SHORT_JSON};
use crate::runs::Runs;
use crate::service::{Answer, Caller, Health, INTERNAL_ERROR, LIMIT_EXCEEDED, Peer, Service, TIMED_OUT};
use crate::store::StoreError;
use crate::upstream::SharedUpstream;

/// Brief runs at the same time for each processor.
const BRIEF_RUNS: usize = 4;

/// Blocks and state up to these bytes are not counted: those of a few look-ups.
const SMALL_FACTS: usize = 64 * 1024;

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
    shared: Arc<Shared>,
    upstreams: Vec<SharedUpstream>,
    options: LightOptions,
    /// Long runs of handlers.
    runs: Arc<Runs>,
    /// Brief ones, which never wait for long ones: a few per processor.
    brief: Arc<Semaphore>,
    syncing: Vec<tokio::task::JoinHandle<()>>,
}

/// What the next step of a session needs.
enum Next {
    /// A message, and the connection that it comes from.
    Start(Bytes, Arc<Connection>),
    /// A session that is not brief, and has not run yet.
    Begin(Box<Session>),
    Feed(Box<Session>, Fetched),
}

impl LightService {
    /// Starts following the upstreams; must be called inside a runtime.
    #[must_use]
    pub fn start(
        network: Network,
        start: impl Into<Start>,
        upstreams: Vec<SharedUpstream>,
        options: LightOptions,
    ) -> Self {
        let shared = Self::shared(network, start.into(), &upstreams, &options);
        Self::launch(shared, upstreams, options)
    }

    /// Like [`Self::start`], but goes on from the verified headers kept in a folder, and keeps those to come. A start by
    /// work keeps none.
    ///
    /// # Errors
    /// The folder cannot be used. Damaged or foreign contents are no error: they are set aside.
    pub fn resume(
        network: Network,
        start: impl Into<Start>,
        upstreams: Vec<SharedUpstream>,
        options: LightOptions,
        folder: &Path,
    ) -> Result<Self, StoreError> {
        let mut shared = Self::shared(network, start.into(), &upstreams, &options);
        shared.keep_in(folder)?;
        Ok(Self::launch(shared, upstreams, options))
    }

    fn shared(
        network: Network,
        start: Start,
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
        Shared::new(network, start, identity, options.sync, secret())
    }

    fn launch(shared: Shared, upstreams: Vec<SharedUpstream>, options: LightOptions) -> Self {
        let shared = Arc::new(shared);
        let log = Arc::new(Mutex::new(Log::new(upstreams.len())));
        let mut syncing: Vec<_> = upstreams
            .iter()
            .enumerate()
            .map(|(index, upstream)| {
                tokio::spawn(sync::run(shared.clone(), index, upstream.clone(), log.clone()))
            })
            .collect();
        syncing.push(tokio::spawn(sync::prove_kept(shared.clone())));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let brief = Arc::new(Semaphore::new(processors.saturating_mul(BRIEF_RUNS)));
        Self { shared, upstreams, options, runs: Runs::for_this_machine(), brief, syncing }
    }

    /// Whether the head has been reached at least once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.shared.client.sync().is_synced()
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

    /// The head's number, and the hash of the block of this number on the verified chain.
    ///
    /// # Errors
    /// Why no head is reached, in words.
    pub fn canonical(&self, number: u64) -> Result<(u64, Option<B256>), String> {
        let sync = self.shared.client.sync();
        match (sync.chain().filter(|_| sync.is_synced()), sync.fault()) {
            (Some(chain), _) => Ok((chain.head().number, chain.view().hash_at(number))),
            (None, Some(fault)) => Err(fault.to_string()),
            (None, None) => Err("its head was not reached in time".into()),
        }
    }

    fn faulty(&self) -> bool {
        self.shared.client.sync().fault().is_some()
    }

    async fn converse(&self, message: &Bytes, caller: &Caller) -> Answer {
        let error = |code, text| Answer::failed(message, code, text);
        let mut next = Next::Start(message.clone(), caller.connection.clone());
        let (mut held, mut facts) = (Held::default(), Held::default());
        loop {
            let Some((session, step)) = self.run(next, caller.peer).await else {
                return error(INTERNAL_ERROR, "Internal server error");
            };
            match step {
                None => next = Next::Begin(session),
                Some(Step::Fetch(questions)) => {
                    // Answers of a batch that are finished wait for those that are not, and what is proven for what is
                    // not.
                    if !hold(&mut held, session.finished_bytes()).await
                        || !hold_facts(&mut facts, session.fact_bytes()).await
                    {
                        return error(LIMIT_EXCEEDED, NO_ROOM);
                    }
                    next = Next::Feed(session, ask_each(&self.upstreams, questions).await);
                }
                Some(Step::Done(reply)) => {
                    self.shared.close(*session);
                    let bytes = reply.as_ref().map_or(0, |reply| reply.body.len());
                    if !hold(&mut held, bytes).await {
                        return error(LIMIT_EXCEEDED, NO_ROOM);
                    }
                    return Answer { reply, held };
                }
            }
        }
    }

    async fn converse_in_time(&self, message: Vec<u8>, caller: &Caller) -> Answer {
        let message = Bytes::from(message);
        match tokio::time::timeout(self.options.message_timeout, self.converse(&message, caller)).await {
            Ok(answer) => answer,
            Err(_) => {
                // The reference's own words.
                Answer::failed(&message, TIMED_OUT, "Execution has got timeout out.")
            }
        }
    }

    /// Runs one step on a thread for CPU work, what is not brief in its turn. A message that turns out not to be brief
    /// comes back without a step.
    async fn run(&self, next: Next, peer: Peer) -> Option<(Box<Session>, Option<Step>)> {
        let brief = match &next {
            // Reading a long one takes as long as a run.
            Next::Start(message, _) => message.len() <= SHORT_JSON,
            Next::Begin(_) => false,
            Next::Feed(session, _) => session.is_brief(),
        };
        // The semaphore is never closed.
        let permit = if brief { Some(self.brief.clone().acquire_owned().await.ok()?) } else { None };
        let place = if brief { None } else { Some(self.runs.enter(peer).await) };
        let (shared, limit) = (self.shared.clone(), self.options.run_timeout);
        let work = priority::spawn_lowered(move || {
            let _turn = (permit, place);
            let mut session = match next {
                Next::Start(message, connection) => {
                    let session = Box::new(shared.client.open_from(connection, &message, sync::now()));
                    if !session.is_brief() {
                        return (session, None);
                    }
                    session
                }
                Next::Begin(session) => session,
                Next::Feed(mut session, fetched) => {
                    let Fetched { answers, held } = fetched;
                    shared.client.feed(&mut session, answers);
                    drop(held);
                    session
                }
            };
            let started = Instant::now();
            let step = shared.client.step(&mut session, &|| started.elapsed() > limit);
            (session, Some(step))
        });
        work.await.inspect_err(|failure| warn!(%failure, "a handler failed")).ok()
    }
}

/// Makes sure that so many bytes are held; `false` where there is no room for them.
async fn hold(held: &mut Held, bytes: usize) -> bool {
    if bytes <= held.bytes() {
        held.shrink_to(bytes);
        return true;
    }
    let more = budget::hold_answer(bytes.saturating_sub(held.bytes())).await;
    more.map(|more| held.merge(more)).is_some()
}

/// As [`hold`], for proven blocks and state.
async fn hold_facts(held: &mut Held, bytes: usize) -> bool {
    let missing = bytes.saturating_sub(held.bytes());
    if bytes <= SMALL_FACTS || missing == 0 {
        return true;
    }
    let more = budget::facts().take_soon(missing).await;
    more.map(|more| held.merge(more)).is_some()
}

impl Drop for LightService {
    fn drop(&mut self) {
        self.syncing.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Service for LightService {
    fn answer_to<'a>(&'a self, caller: &'a Caller, message: Vec<u8>) -> BoxFuture<'a, Answer> {
        Box::pin(self.converse_in_time(message, caller))
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.changes())
    }

    fn disconnect<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            caller.connection.close();
            let (shared, connection) = (self.shared.clone(), caller.connection.clone());
            // The filters may be held by a run.
            let ended = tokio::task::spawn_blocking(move || shared.client.disconnect(&connection));
            if ended.await.is_err() {
                warn!("the subscriptions of a closed connection were not ended");
            }
        })
    }

    fn health(&self) -> Health {
        // As a question that came now would find it.
        let pin = self.shared.client.pin(sync::now());
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
