//! The light client as a service: answers messages. For each message it runs a session of the core in steps, and between two steps
//! sends the requests of the session to the upstreams. Tasks in the background synchronize headers.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use futures::future::BoxFuture;
use rootlight::consensus::{ChainView, Network};
use rootlight::engine::{ExportedFilter, RESOURCE_UNAVAILABLE, Refusal, gate};
use rootlight::light::{ClientConfig, PinnedHead};
use rootlight::rpc::envelope::Id;
use rootlight::rpc::{BitcoinStatus, Caller, Effect, HostAnswer, Message, Session, SessionStep};
use rootlight_limits::Limits;
use rootlight_limits::budget::{BUDGET_USED_UP, Reservation};
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::{self, SHORT_JSON};
use rootlight_limits::runs::{RunQueue, Size};
use rootlight_server::bans::HostBans;
use rootlight_server::methods::dispatcher;
use rootlight_server::metrics::VerifiedKind;
use rootlight_server::service::{
    Counts, Health, INTERNAL_ERROR, LIMIT_EXCEEDED, ReservedReply, Service, ServiceStatus, TIMED_OUT,
};
use rootlight_upstream::bitcoin::BitcoinSource;
use rootlight_upstream::{SharedUpstream, with_caller};
use tokio::sync::{Semaphore, watch};
use tracing::warn;

use super::bitcoin::{BitcoinSync, HeaderFolder};
use super::block_exchange::BlockExchange;
use super::checkpoint::LightStart;
use super::contents::contents;
use super::hedge::SharedHedges;
use super::options::LightOptions;
use super::proven_chain::ProvenChain;
use super::rounds::{RoundResponses, ask_round};
use super::visible_head::{GateState, VisibleHead};
use super::{
    chain_status, renewal,
    shared_light::SharedLight,
    sync::{self, SyncLog},
};
use crate::ban_guard::guard;
use crate::store::ChainStoreError;

/// Brief runs at the same time, per processor.
const BRIEF_RUNS: usize = 4;

/// The bytes of proven blocks and state that one message may hold without a reservation. A message with a few look-ups holds no more.
const SMALL_FACTS: usize = 64 * 1024;

/// Interval between checks whether the head is reached.
const SETTLE_INTERVAL: Duration = Duration::from_millis(10);

/// A light client that follows its upstreams and answers messages from verified data.
pub struct LightService {
    pub(super) shared: Arc<SharedLight>,
    upstreams: Vec<SharedUpstream>,
    hedges: Option<SharedHedges>,
    options: LightOptions,
    /// Long runs of handlers.
    runs: Arc<RunQueue>,
    /// Permits of brief runs, which never wait for long ones.
    brief: Arc<Semaphore>,
    /// The tasks in the background, which end with the service.
    syncing: Vec<tokio::task::JoinHandle<()>>,
    bitcoin: Option<Arc<BitcoinSync>>,
    bans: Arc<HostBans>,
    /// Whether messages are answered.
    gate: Arc<GateState>,
}

/// The inputs of the next step of a session.
enum SessionInput {
    /// A message, and its caller.
    Start(Message, Arc<Caller>),
    /// A session of the host itself, which has not run yet.
    Begin(Box<Session>),
    /// A session that has run, and the responses to its round.
    Feed(Box<Session>, RoundResponses),
}

impl LightService {
    /// Starts following the upstreams; must be called inside a runtime.
    #[must_use]
    pub fn start(
        network: Network,
        start: impl Into<LightStart>,
        upstreams: Vec<SharedUpstream>,
        options: LightOptions,
    ) -> Self {
        let bans = Arc::<HostBans>::default();
        let shared = Self::shared(network, start.into(), &upstreams, &options, &bans);
        Self::launch(shared, upstreams, options, bans, None)
    }

    /// Does what [`Self::start`] does, but continues from the verified headers in a folder, and stores new
    /// ones there. A start by work stores no headers.
    ///
    /// # Errors
    /// The folder cannot be used. Damaged contents or those of another network are not an error: they are set
    /// aside.
    pub fn resume(
        network: Network,
        start: impl Into<LightStart>,
        upstreams: Vec<SharedUpstream>,
        options: LightOptions,
        folder: &Path,
    ) -> Result<Self, ChainStoreError> {
        let bans = Arc::<HostBans>::default();
        let mut shared = Self::shared(network, start.into(), &upstreams, &options, &bans);
        shared.store_headers_in(folder)?;
        Ok(Self::launch(shared, upstreams, options, bans, Some(HeaderFolder { path: folder, is_own: true })))
    }

    /// Makes the client with its options; no task runs yet.
    pub(super) fn shared(
        network: Network,
        start: LightStart,
        upstreams: &[SharedUpstream],
        options: &LightOptions,
        bans: &Arc<HostBans>,
    ) -> SharedLight {
        let config = ClientConfig {
            version: client_version(),
            upstreams: upstreams.iter().map(|upstream| upstream.name().to_owned()).collect(),
            policy: options.policy,
            min_depth: options.min_depth,
            min_bitcoin: options.min_bitcoin,
            max_age: options.max_age,
            unproven: options.unproven,
            own_state: options.own_node.as_ref().map(|node| node.store.clone()),
            host_announces_sent: options.host_announces_sent,
            bodies_by_hash: options.index.is_some(),
            balance: options.spread,
            host: Some(bans.clone()),
            scripts: crate::scripts::engine(options.scripts.as_ref(), options.run_timeout),
        };
        let counts = Counts::within(options.limits.clone());
        let shared = SharedLight::new(
            network,
            start,
            config,
            options.sync,
            (secret(), counts),
            (options.auxiliary_source(), options.behind),
        );
        if let Some(judge) = &options.window_judge {
            shared.client.sync_mut().judge_windows_by(judge.clone());
        }
        if let Some(bytes) = options.cache_bytes {
            shared.client.limit_cache(bytes);
        }
        shared
    }

    /// Starts the tasks in the background. `folder` has the stored headers of Bitcoin's chain.
    pub(super) fn launch(
        shared: SharedLight,
        upstreams: Vec<SharedUpstream>,
        options: LightOptions,
        bans: Arc<HostBans>,
        folder: Option<HeaderFolder<'_>>,
    ) -> Self {
        let upstreams = guard(&bans, upstreams);
        let shared = Arc::new(shared);
        // Bitcoin has a block for 20 of Rootstock's, so its sources are polled a quarter as often.
        let poll = Duration::from_millis(options.sync.poll.saturating_mul(4));
        let judged = !options.bitcoin.is_empty();
        let bitcoin_sync = || BitcoinSync::start(shared.clone(), folder, poll, &options.bitcoin);
        let bitcoin = judged.then(bitcoin_sync).flatten();
        let log = Arc::new(Mutex::new(SyncLog::new(upstreams.len())));
        let mut syncing: Vec<_> = upstreams
            .iter()
            .enumerate()
            .map(|(index, upstream)| {
                tokio::spawn(sync::run(shared.clone(), index, upstream.clone(), log.clone()))
            })
            .collect();
        syncing.push(tokio::spawn(sync::prove_restored(shared.clone())));
        if options.sync.shown_start {
            syncing.push(tokio::spawn(renewal::watch(shared.clone(), upstreams.clone())));
        }
        if let Some(bitcoin_sync) = &bitcoin {
            let follow =
                |source: &Arc<BitcoinSource>| tokio::spawn(bitcoin_sync.clone().follow(source.clone()));
            syncing.extend(options.bitcoin.iter().map(follow));
        }
        let processors = priority::processors();
        let hedges = options.spread.then(|| SharedHedges::new(upstreams.len()));
        let brief = Arc::new(Semaphore::new(processors.saturating_mul(BRIEF_RUNS)));
        Self {
            shared,
            upstreams,
            hedges,
            options,
            runs: RunQueue::for_this_machine(),
            brief,
            syncing,
            bitcoin,
            bans,
            gate: Arc::new(GateState::new()),
        }
    }

    /// The handle by which a host decides which verified block messages see as the newest. Without its use, that is the verified head.
    pub fn visible_head(&self) -> VisibleHead {
        VisibleHead::new(self.shared.clone(), self.gate.clone())
    }

    /// Installs a filter that another light client of the same network has exported ([`Self::export_filter`]), as if it had been
    /// polled now.
    pub fn import_filter(&self, id: u128, filter: ExportedFilter) {
        self.shared.client.import_filter(id, filter, self.shared.now());
    }

    /// Reports transactions, each with its asker, to the asker's subscriptions. They were sent through this light client or another
    /// one.
    pub fn announce_sent(&self, transactions: &[(B256, u64)]) {
        self.shared.client.announce_sent(transactions);
        self.shared.changed();
    }

    /// Removes a filter and returns it for another light client; `None` if it does not exist.
    pub fn export_filter(&self, id: u128) -> Option<ExportedFilter> {
        self.shared.client.export_filter(id)
    }

    /// Whether the head has been reached at least once.
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
        // The caller goes on in either case.
        let _ = tokio::time::timeout(limit, settled).await;
    }

    /// Returns the head's number, and the hash of block `number` on the verified chain.
    ///
    /// # Errors
    /// A description of why no head is reached.
    pub fn canonical(&self, number: u64) -> Result<(u64, Option<B256>), String> {
        let sync = self.shared.client.sync();
        match (sync.chain().filter(|_| sync.is_synced()), sync.fault()) {
            (Some(chain), _) => Ok((chain.head().number, chain.view().hash_at(number))),
            (None, Some(fault)) => Err(fault.to_string()),
            (None, None) => Err("its head was not reached in time".into()),
        }
    }

    /// The proven chain, to compare blocks of other sources with it.
    pub fn proven_chain(&self) -> ProvenChain {
        ProvenChain(self.shared.clone())
    }

    /// The exchange of blocks with other light clients of the same service.
    pub fn block_exchange(&self) -> BlockExchange {
        BlockExchange(self.shared.clone())
    }

    /// Returns the transactions and receipts of a block of the newest verified chain, encoded for
    /// [`BlockExchange::take_contents`]. Data that is not cached is requested from the upstreams; `None` if none of them sends it.
    pub async fn fetch_contents(&self, block: &B256) -> Option<Vec<u8>> {
        let hash = serde_json::value::to_raw_value(block).ok()?;
        let message = Message::of_host("eth_getBlockReceipts", vec![hash], dispatcher());
        let client = &self.shared.client;
        let session = client.open_pinned(client.pin_newest(self.shared.now()), message);
        // The request counts as one of this machine. Its answer is in the cache then, from which `contents` reads.
        let own = CallerId::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
        drop(self.finish(SessionInput::Begin(Box::new(session)), (Id::Unknown, Size::Single), own).await);
        let shared = self.shared.clone();
        let block = *block;
        tokio::task::spawn_blocking(move || contents(&shared.client, &block)).await.ok().flatten()
    }

    /// The chain as a message that arrives now sees it.
    pub(crate) fn pinned(&self) -> PinnedHead {
        self.shared.client.pin(self.shared.now())
    }

    /// The chain that a message which arrives now would see, if it would be answered without a mark: a trusted block leads to
    /// the chain, and Bitcoin does not put it in doubt.
    pub fn trusted_chain(&self) -> Option<ChainView> {
        self.gate.is_open().then_some(())?;
        let pinned = self.pinned();
        let is_marked = pinned.is_by_work() || pinned.bitcoin_doubt().is_some();
        gate::usable_chain(&pinned).ok().filter(|_| !is_marked).cloned()
    }

    /// Number of the newest block that messages are answered about, which is as old as [`LightOptions::min_depth`] and
    /// [`LightOptions::min_bitcoin`] demand. `None` if there is none.
    pub fn newest_allowed(&self) -> Option<u64> {
        gate::newest_allowed(&self.pinned())
    }

    /// The settings that answers about a block may depend on, as a text.
    pub fn settings(&self) -> String {
        let options = &self.options;
        let least = (options.min_depth, options.min_bitcoin);
        format!("{} {:?} {least:?} {:?}", client_version(), options.policy, options.unproven)
    }

    fn faulty(&self) -> bool {
        self.shared.client.sync().fault().is_some()
    }

    /// Runs a session to its end. An error of this host has the given id.
    async fn finish(
        &self,
        mut next: SessionInput,
        (id, size): (Id, Size),
        caller_id: CallerId,
    ) -> ReservedReply {
        let error = |code, text| ReservedReply::failed(id.clone(), code, text);
        // Whether upstreams were asked.
        let mut asked = false;
        let (mut reserved, mut facts) = (Reservation::default(), Reservation::default());
        loop {
            let Some((session, step)) = self.run(next, caller_id, size).await else {
                return error(INTERNAL_ERROR, "Internal server error");
            };
            match step {
                SessionStep::Fetch(round) => {
                    // Finished answers of a batch, and proven data, stay in memory while the rest of the
                    // batch waits for fetches.
                    if !self.reserve(&mut reserved, caller_id, session.finished_bytes()).await
                        || !self.reserve_facts(&mut facts, caller_id, session.fact_bytes()).await
                    {
                        return error(LIMIT_EXCEEDED, BUDGET_USED_UP);
                    }
                    asked = true;
                    let upstreams = (&*self.upstreams, &*self.shared.counts.metrics);
                    let asked = ask_round(upstreams, round, self.hedges.as_ref());
                    let responses = with_caller(caller_id.quota_owner(), asked).await;
                    next = SessionInput::Feed(session, responses);
                }
                SessionStep::Done(reply) => {
                    if self.shared.client.close(*session) {
                        self.shared.changed();
                    }
                    if reply.effects().any(|effect| matches!(effect, Effect::Sent(_))) {
                        self.shared.wakes.notify_waiters();
                    }
                    let metrics = &self.shared.counts.metrics;
                    let source = if asked { &metrics.from_upstreams } else { &metrics.from_cache };
                    source.inc();
                    if !self.reserve(&mut reserved, caller_id, reply.bytes()).await {
                        return error(LIMIT_EXCEEDED, BUDGET_USED_UP);
                    }
                    return ReservedReply { reserved, fetched: asked, ..ReservedReply::of(reply) };
                }
            }
        }
    }

    /// Runs one step of a session on a thread for blocking work. A run that is not brief waits for a permit of the queue, which shares
    /// runs out by caller. `None` if the handler has panicked.
    async fn run(
        &self,
        next: SessionInput,
        caller_id: CallerId,
        size: Size,
    ) -> Option<(Box<Session>, SessionStep)> {
        let brief = match &next {
            // Decoding long parameters takes as long as a run.
            SessionInput::Start(message, _) => message.bytes() <= SHORT_JSON && message.is_brief(),
            SessionInput::Begin(_) => false,
            SessionInput::Feed(session, _) => session.is_brief(),
        };
        // The semaphore is never closed.
        let brief_permit = if brief { Some(self.brief.clone().acquire_owned().await.ok()?) } else { None };
        let permit = if brief { None } else { Some(self.runs.enter(caller_id, size).await) };
        let (shared, limit) = (self.shared.clone(), self.options.run_timeout);
        let work = self.limits().work().spawn_lowered(Some(caller_id.quota_owner()), move |pauses| {
            let _permits = (brief_permit, permit);
            let mut session = match next {
                SessionInput::Start(message, caller) => {
                    Box::new(shared.client.open_from(caller, message, shared.now()))
                }
                SessionInput::Begin(session) => session,
                SessionInput::Feed(mut session, fetched) => {
                    let (count, started) = (fetched.iter().count(), Instant::now());
                    for (number, HostAnswer { answer, .. }) in fetched.answers {
                        session.take_answer(number, answer);
                    }
                    shared.client.feed(&mut session, fetched.parts);
                    shared.counts.metrics.verified(VerifiedKind::Answers, count, started.elapsed());
                    drop(fetched.reserved);
                    session
                }
            };
            let started = Instant::now();
            let interrupt = || {
                pauses.pause();
                started.elapsed() > limit
            };
            let step = shared.client.step(&mut session, &interrupt);
            (session, step)
        });
        work.await.inspect_err(|failure| warn!(%failure, "a handler failed")).ok()
    }

    /// The limits in which messages count.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.counts.limits
    }

    /// Takes bytes from the budget of answers until `bytes` are reserved; returns `false` if the budget is used up.
    async fn reserve(&self, reserved: &mut Reservation, caller_id: CallerId, bytes: usize) -> bool {
        if bytes <= reserved.bytes() {
            reserved.shrink_to(bytes);
            return true;
        }
        let more = self
            .limits()
            .reserve_answer(caller_id.quota_owner(), bytes.saturating_sub(reserved.bytes()))
            .await;
        more.map(|more| reserved.merge(more)).is_some()
    }

    /// Does what [`Self::reserve`] does, for proven blocks and state.
    async fn reserve_facts(&self, reserved: &mut Reservation, caller_id: CallerId, bytes: usize) -> bool {
        let missing = bytes.saturating_sub(reserved.bytes());
        if bytes <= SMALL_FACTS || missing == 0 {
            return true;
        }
        let more = self.limits().facts().take_soon(caller_id.quota_owner(), missing).await;
        more.map(|more| reserved.merge(more)).is_some()
    }
}

impl Drop for LightService {
    fn drop(&mut self) {
        self.syncing.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Service for LightService {
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Message,
    ) -> BoxFuture<'a, ReservedReply> {
        Box::pin(async move {
            let (id, size) = (message.single_id(), Size::of(&message));
            let answered = async {
                if let Err(reason) = self.gate.enter().await {
                    let pinned = self.shared.client.pin_for(caller, self.shared.now());
                    let refusal = gate::usable_chain(&pinned).err().map(|refusal| format!(": {refusal}"));
                    let text = format!("{reason}{}", refusal.unwrap_or_default());
                    return ReservedReply::failed(id.clone(), RESOURCE_UNAVAILABLE, &text);
                }
                let start = SessionInput::Start(message, caller.clone());
                self.finish(start, (id.clone(), size), CallerId::of(caller)).await
            };
            let in_time = tokio::time::timeout(self.options.message_timeout, answered).await;
            in_time
                .unwrap_or_else(|_| ReservedReply::failed(id, TIMED_OUT, &Refusal::Interrupted.to_string()))
        })
    }

    fn counts(&self) -> Counts {
        self.shared.counts.clone()
    }

    fn bans(&self) -> Option<Arc<HostBans>> {
        Some(self.bans.clone())
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.changes())
    }

    fn disconnect<'a>(&'a self, caller: &'a Arc<Caller>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            caller.close();
            let (shared, caller) = (self.shared.clone(), caller.clone());
            // A running handler may have the filters locked.
            let ended = tokio::task::spawn_blocking(move || shared.client.disconnect(&caller));
            if ended.await.is_err() {
                warn!("the subscriptions of a closed connection were not ended");
            }
        })
    }

    fn health(&self) -> Health {
        // The state is that for a message that arrives now. Any client that reaches the port may probe, so upstreams appear with numbers
        // instead of names.
        let pinned = self.shared.client.pin(self.shared.now()).numbered();
        let block_number = pinned.chain().map(|chain| chain.head().number);
        let refusal = gate::usable_chain(&pinned).err();
        let stopped = pinned.stopped().map(|faults| format!("synchronization stopped: {faults}"));
        let shut = self.gate.refusal().map(str::to_owned);
        Health {
            ready: refusal.is_none() && shut.is_none(),
            block_number,
            reason: refusal.map(|refusal| refusal.to_string()).or(stopped).or(shut),
            bitcoin: BitcoinStatus::of(&pinned),
            ..Health::default()
        }
    }

    fn chain_status(&self) -> ServiceStatus {
        let sources = self.bitcoin.as_ref().map_or(0, |bitcoin_sync| bitcoin_sync.answering());
        chain_status::of(&self.shared.client.pin(self.shared.now()), sources)
    }
}

/// Returns the secret that filter ids are derived from.
fn secret() -> B256 {
    let mut secret = [0; 32];
    if let Err(failure) = getrandom::fill(&mut secret) {
        warn!(%failure, "no randomness: callers can guess each other's filters");
    }
    secret.into()
}

/// Returns the value of `web3_clientVersion`.
fn client_version() -> String {
    format!(
        "Rootlight/{}/{}-{}/Rust",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}
