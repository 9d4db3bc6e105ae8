//! A local chain as a service: chooses the thread on which each message runs. Messages that read use snapshots; messages that change
//! the chain run one at a time.

use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::dev::DevError;
use rootlight::engine::{LocalNode, RESOURCE_UNAVAILABLE, View};
use rootlight::rpc::envelope::Id;
use rootlight::rpc::{LocalClient, MAX_RESPONSE, Message, Notifications, Reply, ReplyOrLogs, notification};
use rootlight_limits::Limits;
use rootlight_limits::budget::{BUDGET_USED_UP, Reservation, SMALL_ANSWER};
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::Pauses;
use rootlight_limits::runs::{RunQueue, Size};
use rootlight_limits::unix_time::unix_time;
use rootlight_server::bans::HostBans;
use rootlight_server::methods::dispatcher;
use rootlight_server::service::{
    Caller, Counts, Health, INTERNAL_ERROR, LIMIT_EXCEEDED, ReservedReply, Service, ServiceStatus,
    notifications_by_message,
};
use tokio::sync::watch;
use tracing::{info, warn};

use super::codes::Codes;
use super::inline_poll::{HeaderJsonCache, PollResult};
use super::inline_runs::InlineRuns;
use super::message_run::MessageRun;
use super::state::{
    Entropy, LocalOptions, LocalState, NoChange, Writer, WriterStatus, changed, host_input, lock, publish,
};
use super::{indexing, log_stream, mined, report};
use crate::fork::Fork;
use crate::recovery::AllProcessors;
use crate::store::{ChainPersistence, ChainStoreError, StoredIndex};

/// How long a run waits for bytes of the answer budget.
const BUDGET_PATIENCE: Duration = Duration::from_secs(10);

/// Serves a local chain.
pub struct LocalService {
    parts: Arc<LocalState>,
    /// Decides which messages are tried on the thread that serves their connection.
    inline_runs: InlineRuns,
    /// Locked while a subscription is polled on the thread that serves its connection, so that polls wait for each other and not
    /// for the writer.
    polls: Mutex<HeaderJsonCache>,
    /// Schedules runs of readers whose messages have a short text.
    runs: Arc<RunQueue>,
    /// Schedules runs of readers whose messages have long parameters, which take long to decode and hash.
    long: Arc<RunQueue>,
    /// Schedules runs of writers, one at a time since they exclude each other.
    writes: Arc<RunQueue>,
    /// The index of logs of a stored chain, for its progress.
    index: Option<Arc<StoredIndex>>,
    bans: Arc<HostBans>,
}

impl LocalService {
    /// Serves a node's chain, and stores it on disk if `persist` is given.
    #[must_use]
    pub fn new(
        mut node: Box<dyn LocalNode>,
        options: LocalOptions,
        entropy: Entropy,
        persist: Option<ChainPersistence>,
    ) -> Self {
        let writer_status = WriterStatus::default();
        let index = indexing::attach(&mut *node, persist.as_ref(), &writer_status.stopping);
        let settings = persist.as_ref().and_then(ChainPersistence::settings);
        if let (Some(chain), Some(settings)) = (node.dev(), settings) {
            chain.set_settings(&settings);
        }
        node.set_codes(Arc::<Codes>::default());
        let bans = Arc::<HostBans>::default();
        node.set_host(bans.clone());
        node.set_recovery(Arc::new(AllProcessors));
        let scripts = crate::scripts::engine(options.scripts.as_ref(), options.run_timeout);
        if let Some(scripts) = scripts {
            node.set_scripts(scripts);
        }
        let chain_id = node.local().network().chain_id;
        let client = LocalClient::new(node).with_dispatcher(dispatcher().clone());
        Self {
            parts: Arc::new(LocalState {
                changes: watch::Sender::new(0),
                snapshot: RwLock::new(client.snapshot()),
                writer: Mutex::new(Writer { client, persist }),
                counts: Counts::within(options.limits.clone()),
                options,
                entropy,
                writer_status,
                chain_id,
            }),
            inline_runs: InlineRuns::new(),
            polls: Mutex::default(),
            runs: RunQueue::for_this_machine(),
            long: RunQueue::for_long_messages(),
            writes: RunQueue::one_at_a_time(),
            index,
            bans,
        }
    }

    /// Runs `work` on the node between messages (a clock tick, an import), writes the changes to disk and makes them
    /// visible to readers.
    ///
    /// # Errors
    /// The change cannot be written to disk. The chain is unchanged then.
    pub fn with_node<T>(&self, work: impl FnOnce(&mut dyn LocalNode) -> T) -> Result<T, ChainStoreError> {
        let mut work = Some(work);
        let ran = self.change_node(None, |node| work.take().map(|work| work(node)));
        match ran {
            Ok(result) => Ok(result.unwrap_or_else(|| unreachable!("it runs once"))),
            Err(NoChange::NotStored(failure)) => Err(failure),
            // Only a fork fetches, and none is given here.
            Err(NoChange::NotFetched(_)) => unreachable!("nothing is fetched"),
        }
    }

    /// Mines a block if one is due. Returns whether it did. The inner result is that of mining.
    ///
    /// # Errors
    /// As [`Self::with_node`]; or data of the network on which a fork begins cannot be fetched.
    pub fn tick(&self) -> Result<Result<bool, DevError>, NoChange> {
        let mine = |node: &mut dyn LocalNode| {
            let now = node.now();
            node.dev().map_or(Ok(false), |chain| chain.tick(now))
        };
        self.change_node(self.parts.options.fork.as_deref(), mine)
    }

    /// Runs `work` on the node as [`Self::with_node`]; on a fork repeatedly, until no data is missing.
    fn change_node<T>(
        &self,
        fork: Option<&Fork>,
        mut work: impl FnMut(&mut dyn LocalNode) -> T,
    ) -> Result<T, NoChange> {
        let parts = &*self.parts;
        let mut writer = lock(&parts.writer);
        let before = writer.client.node().local().events().next();
        let result = writer.change(&parts.writer_status, parts.options.blocks(), fork, |client| {
            client.node().begin(host_input(&parts.entropy));
            work(client.node())
        })?;
        publish(&parts.snapshot, &writer.client);
        // Events are compared instead of heads, because the head may be the same after a switch of branches and back.
        if writer.client.node().local().events().next() != before {
            changed(&parts.changes);
        }
        Ok(result)
    }

    /// Reads the chain as it was after the last change. Does not wait for messages or imports that are under way.
    pub fn read<T>(&self, work: impl FnOnce(&dyn View) -> T) -> T {
        let snapshot = self.parts.view();
        work(&*snapshot.view(unix_time(), &|| false))
    }

    /// Interrupts blocks that are being mined or imported and refuses further ones, because the program is shutting
    /// down.
    pub fn stop(&self) {
        self.parts.writer_status.stopping.store(true, Ordering::Relaxed);
    }

    /// Reserves bytes of the answer budget for a reply.
    async fn reserve(&self, caller_id: CallerId, reply: Reply) -> Result<ReservedReply, Unanswered> {
        let reserved = self.limits().reserve_answer(caller_id.quota_owner(), reply.bytes()).await;
        let reserved = reserved.ok_or(Unanswered::BudgetUsedUp)?;
        Ok(ReservedReply { reserved, ..ReservedReply::of(reply) })
    }

    /// Finishes a message on another thread, so that the message does not block other connections. It first waits for a permit, and for
    /// the bytes that an answer may have at most.
    async fn finish(
        &self,
        caller_id: CallerId,
        run: MessageRun,
        size: Size,
    ) -> Result<ReservedReply, Unanswered> {
        let has_short_text = run.has_short_text;
        let runs = match (run.message.reads_only(), has_short_text) {
            (true, true) => &self.runs,
            (true, false) => &self.long,
            (false, _) => &self.writes,
        };
        let permit = runs.enter(caller_id, size).await;
        let reserved =
            self.limits().reserve_run(caller_id.quota_owner(), MAX_RESPONSE, BUDGET_PATIENCE).await;
        let mut reserved = reserved.ok_or(Unanswered::BudgetUsedUp)?;
        let work = move |pauses: &Pauses<'_>| {
            let _permit = permit;
            run.run(pauses)
        };
        // A long message decodes and hashes megabytes of parameters without pauses, so it runs on a thread of lower priority.
        let ran = match has_short_text {
            true => self.limits().work().spawn_lowered(Some(caller_id.quota_owner()), work).await.ok(),
            false => self.limits().work().run_last(work).await,
        };
        match ran.ok_or(Unanswered::Failed)?.map_err(Unanswered::from)? {
            ReplyOrLogs::Reply(reply) => {
                reserved.shrink_to(reply.bytes());
                Ok(ReservedReply { reserved, ..ReservedReply::of(reply) })
            }
            ReplyOrLogs::Logs(logs) => {
                let shared = (self.runs.clone(), self.limits().clone());
                let pieces = log_stream::pieces(logs, caller_id, shared, BUDGET_PATIENCE);
                Ok(ReservedReply { pieces: Some(pieces), ..ReservedReply::default() })
            }
        }
    }

    fn limits(&self) -> &Arc<Limits> {
        &self.parts.options.limits
    }

    /// Polls a subscription on the calling thread. Returns `None` if a writer is at work, or if the poll is not short
    /// ([`HeaderJsonCache::poll`]).
    fn poll_inline(&self, caller: &Arc<Caller>, id: u128) -> Option<Notifications> {
        let mut heads = self.polls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = self.parts.writer.try_lock().ok()?;
        let snapshot = self.parts.view();
        let poll = || heads.poll(&mut writer.client, caller, id, &*snapshot, unix_time());
        let polled = catch_unwind(AssertUnwindSafe(poll)).ok()?;
        drop((writer, heads));
        match polled? {
            PollResult::News(news) => {
                let texts = news.iter().map(|result| notification(id, result)).collect();
                Some(Notifications { texts, ..Notifications::default() })
            }
            PollResult::Gone => Some(Notifications { is_gone: true, ..Notifications::default() }),
        }
    }

    /// The reply to the message with this id; a call that failed is logged.
    fn replied(&self, id: Id, answered: Result<ReservedReply, Unanswered>) -> ReservedReply {
        let reserved = match answered {
            Ok(reserved) => reserved,
            Err(Unanswered::BudgetUsedUp) => {
                return ReservedReply::failed(id, LIMIT_EXCEEDED, BUDGET_USED_UP);
            }
            Err(Unanswered::Unchanged(failure)) => {
                let code = match failure {
                    NoChange::NotStored(_) => INTERNAL_ERROR,
                    NoChange::NotFetched(_) => RESOURCE_UNAVAILABLE,
                };
                return ReservedReply::failed(id, code, &failure.to_string());
            }
            Err(Unanswered::Failed) => {
                warn!("a handler failed");
                return ReservedReply::failed(id, INTERNAL_ERROR, "Internal server error");
            }
        };
        let reply = reserved.reply.as_ref().filter(|_| self.parts.options.logs_calls);
        if let Some(failure) = reply.and_then(report::failed_call) {
            info!("{failure}");
        }
        reserved
    }
}

/// The reason why the node did not answer a message.
enum Unanswered {
    /// A handler panicked, which is a defect.
    Failed,
    /// The change cannot be written to disk, or data of a fork's network cannot be fetched.
    Unchanged(NoChange),
    /// The answer budget is used up.
    BudgetUsedUp,
}

impl From<NoChange> for Unanswered {
    fn from(failure: NoChange) -> Self {
        Self::Unchanged(failure)
    }
}

impl Service for LocalService {
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Message,
    ) -> BoxFuture<'a, ReservedReply> {
        let (id, size) = (message.single_id(), Size::of(&message));
        let awaited = mined::Awaited::of(&message, &self.parts.changes);
        let caller_id = CallerId::of(caller);
        self.inline_runs.sent(caller_id);
        let run = MessageRun::new(caller, message, self.parts.clone());
        let begun = match catch_unwind(AssertUnwindSafe(|| run.begin(&self.inline_runs, caller_id))) {
            Ok(begun) => begun.map(|reply| reply.map_err(Unanswered::from)),
            Err(_) => Ok(Err(Unanswered::Failed)),
        };
        let answered: BoxFuture<'a, ReservedReply> = match begun {
            Ok(Ok(reply)) if reply.bytes() > SMALL_ANSWER => {
                Box::pin(async move { self.replied(id, self.reserve(caller_id, reply).await) })
            }
            // Most messages end here, without the larger future of a long message.
            Ok(reply) => Box::pin(ready(self.replied(id, reply.map(ReservedReply::of)))),
            Err(run) => Box::pin(async move { self.replied(id, self.finish(caller_id, run, size).await) }),
        };
        match awaited {
            Some(awaited) => {
                Box::pin(awaited.after(answered, move |question| self.answer_message(caller, question)))
            }
            None => answered,
        }
    }

    fn counts(&self) -> Counts {
        self.parts.counts.clone()
    }

    fn notifications<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        subscription: u128,
    ) -> BoxFuture<'a, (Notifications, Reservation)> {
        match self.poll_inline(caller, subscription) {
            Some(news) => Box::pin(ready((news, Reservation::default()))),
            None => Box::pin(notifications_by_message(self, caller, subscription)),
        }
    }

    fn disconnect<'a>(&'a self, caller: &'a Arc<Caller>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            caller.close();
            let permit = self.writes.enter(CallerId::of(caller), Size::Single).await;
            let (parts, caller) = (self.parts.clone(), caller.clone());
            let ended = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                lock(&parts.writer).client.disconnect(&caller);
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
        Some(self.parts.changes.subscribe())
    }

    fn health(&self) -> Health {
        let head = self.read(|chain| chain.head());
        let write_failure = self.parts.writer_status.write_failure();
        let reason =
            write_failure.map(|reason| format!("the last change could not be written to disk: {reason}"));
        Health {
            ready: head.is_ok() && reason.is_none(),
            block_number: head.ok().map(|head| head.number),
            reason,
            log_index: self.index.as_ref().and_then(|index| index.progress()),
            ..Health::default()
        }
    }

    fn chain_status(&self) -> ServiceStatus {
        let (head, syncing) = self.read(|chain| (chain.head(), chain.syncing()));
        let head = head.ok().map(|head| (head.number, head.timestamp));
        let target = syncing.as_ref().map(|progress| progress.highest).or(head.map(|(number, _)| number));
        ServiceStatus { head, target, synced: syncing.is_none(), ..ServiceStatus::default() }
    }
}

#[cfg(test)]
#[path = "disk_test.rs"]
mod disk_test;
#[cfg(test)]
#[path = "index_test.rs"]
mod index_test;
#[cfg(test)]
#[path = "mined_test.rs"]
mod mined_test;
#[cfg(test)]
#[path = "poll_test.rs"]
mod poll_test;
