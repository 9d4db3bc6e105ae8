//! A front end: a light client whose upstreams are the backends. It shares filters, sent transactions, cached answers and the shown
//! head with the other front ends, and implements [`Service`] for the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::B256;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use rootlight::engine::RESOURCE_UNAVAILABLE;
use rootlight::rpc::envelope::Id;
use rootlight::rpc::{Message, Notifications};
use rootlight_limits::budget::Reservation;
use rootlight_node::light::LightService;
use rootlight_server::bans::HostBans;
use rootlight_server::service::{
    Caller, Counts, Health, LIMIT_EXCEEDED, ReservedReply, Service, ServiceStatus,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use super::answer_cache::AnswerCache;
use super::backend::NewBlocks;
use super::calls::{MessageEffects, is_shared, refuse_filters, used_filters};
use super::fan_out::FanOut;
use super::filters::{FilterError, SharedFilters};
use super::heads::Agreement;
use super::next_block_wait::NextBlockWait;
use super::sent_transactions::SentTransactions;
use crate::Seal;
use crate::keys::ClusterAccess;
use crate::store::HotStore;

/// A front end of a cluster.
pub struct FrontEnd {
    light: Arc<LightService>,
    filters: SharedFilters,
    sent: Arc<SentTransactions>,
    answer_cache: AnswerCache,
    next_block_wait: Arc<NextBlockWait>,
    fan_out: Arc<FanOut>,
    store: Arc<HotStore>,
    access: Option<Arc<ClusterAccess>>,
    name: String,
    /// Number of messages that used filters or sent transactions, for their names.
    shared_messages: AtomicU64,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// What a front end is made of.
pub struct FrontEndParts {
    /// The light client, started with [`host_announces_sent`](rootlight_node::light::LightOptions::host_announces_sent)
    /// on the backends of `new_blocks`.
    pub light: Arc<LightService>,
    /// Makes the backends look for new blocks.
    pub new_blocks: NewBlocks,
    /// The store that all front ends share.
    pub store: Arc<HotStore>,
    /// The same store, by connections of its own: reports about the head do not wait behind the commands of messages.
    pub heads_store: Arc<HotStore>,
    /// The same store, by connections of its own for filters, cached answers and contents of blocks, which can be long: limits do not
    /// wait behind them.
    pub values_store: Arc<HotStore>,
    /// The keys and limits of the front ends, if they have any; for metrics.
    pub access: Option<Arc<ClusterAccess>>,
    /// A secret that only front ends have, and no other program that can write to the store.
    pub secret: B256,
    /// The number of the chain. Services of several chains may share a store.
    pub chain: u64,
    /// The name of this front end, which no other has: letters and digits.
    pub name: String,
    /// Most bytes of cached answers about final blocks in memory.
    pub answer_cache_bytes: u64,
}

impl FrontEnd {
    /// Starts a front end. Messages wait until it has agreed with the others on the block that they show. To be called inside a
    /// runtime.
    #[must_use]
    pub fn start(parts: FrontEndParts) -> Self {
        let FrontEndParts { light, new_blocks, store, access, secret, chain, name, .. } = parts;
        let (heads_store, values_store) = (parts.heads_store, parts.values_store);
        let seal = Seal::new(secret);
        let sent = Arc::new(SentTransactions::new(store.clone(), seal.clone(), chain));
        let settings = format!("{chain} {}", light.settings());
        let answer_cache =
            AnswerCache::new(values_store.clone(), seal.clone(), &settings, parts.answer_cache_bytes);
        let fan_out = FanOut::new(
            light.clone(),
            new_blocks.clone(),
            values_store.clone(),
            seal.clone(),
            name.clone(),
            chain,
        );
        let fan_out = Arc::new(fan_out);
        let filters = SharedFilters::new(values_store, seal, sent.clone(), chain);
        let next_block_wait = Arc::new(NextBlockWait::new(light.visible_head(), new_blocks.clone()));
        let (head, wait) = (light.visible_head(), next_block_wait.clone());
        let agreement =
            Agreement::new(heads_store, head, wait, fan_out.clone(), new_blocks, name.clone(), chain);
        let tasks = vec![
            tokio::spawn(agreement.run()),
            tokio::spawn(sent.clone().follow(light.clone())),
            tokio::spawn(fan_out.clone().seek_leadership()),
            tokio::spawn(fan_out.clone().announce()),
            tokio::spawn(fan_out.clone().listen()),
        ];
        let shared_messages = AtomicU64::new(0);
        Self {
            light,
            filters,
            sent,
            answer_cache,
            next_block_wait,
            fan_out,
            store,
            access,
            name,
            shared_messages,
            tasks,
        }
    }

    /// Answers a message from the block that this front end shows.
    fn answer_now<'a>(&'a self, caller: &'a Arc<Caller>, message: Message) -> BoxFuture<'a, ReservedReply> {
        if is_shared(&message) {
            return Box::pin(self.answer_shared(caller, message));
        }
        match self.answer_cache.cacheable(&message) {
            Some(request) => Box::pin(self.answer_cache.answer(&self.light, caller, message, request)),
            None => self.light.answer_message(caller, message),
        }
    }

    /// Answers a message that uses filters or sends transactions. Its filters are taken out of the store before, and given back
    /// afterwards; if that fails, the results about filters are replaced by an error.
    async fn answer_shared(&self, caller: &Arc<Caller>, message: Message) -> ReservedReply {
        let number = self.shared_messages.fetch_add(1, Ordering::Relaxed);
        let (name, owner) = (format!("{}.{number}", self.name), caller.owner().asker);
        let id = message.single_id();
        let (wanted, taker) = (used_filters(&message).into_iter(), (name.clone(), owner));
        let mut taken = match self.filters.take(&self.light, wanted, taker).await {
            Ok(taken) => taken,
            Err(error) => return refused(id, &error),
        };
        let answer = self.light.answer_message(caller, message).await;
        // The light client always makes a reply, and never answers in pieces.
        let effects = answer.reply.as_ref().map(MessageEffects::of).unwrap_or_default();
        let given_back = self.filters.give_back(&self.light, &mut taken).await;
        let added = self.filters.add(&self.light, &effects.filters, (&name, owner)).await;
        self.announce_sent(&effects, owner.shared_id()).await;
        if let Err(error) = given_back.and(added) {
            return refused_in(answer, &error);
        }
        if let Err(error) = self.filters.note_used(&taken).await {
            // The filters can be polled nevertheless; they only count as unused for longer.
            debug!("the use of a filter was not noted: {error}");
        }
        answer
    }

    /// Announces transactions that were sent here to all front ends; without the store, at least to the subscriptions of this one.
    async fn announce_sent(&self, effects: &MessageEffects, asker: u64) {
        for sent in effects.sent.iter().map(|hash| (*hash, asker)) {
            if let Err(error) = self.sent.add(sent).await {
                warn!("a transaction is told to subscriptions of this front end only: {error}");
                self.light.announce_sent(&[sent]);
            }
        }
    }
}

/// Logs an error of the store, of which callers get only a short text.
fn log_store_error(error: &FilterError) {
    if let FilterError::Store(error) = error {
        warn!("a message about filters is refused: {error}");
    }
}

/// The answer to a message whose filters could not be taken. Nothing of the message was done.
fn refused(id: Id, error: &FilterError) -> ReservedReply {
    log_store_error(error);
    ReservedReply::failed(id, code(error), &error.to_string())
}

/// As [`refused`], for a message that was answered: only the results about filters are replaced, so that the caller learns what
/// else was done, such as sending a transaction.
fn refused_in(mut answer: ReservedReply, error: &FilterError) -> ReservedReply {
    log_store_error(error);
    if let Some(reply) = &mut answer.reply {
        refuse_filters(reply, (code(error), &error.to_string()));
    }
    answer
}

/// The JSON-RPC code of an error.
const fn code(error: &FilterError) -> i32 {
    match error {
        FilterError::TooMany | FilterError::TooLarge(_) => LIMIT_EXCEEDED,
        // The store, another message or a lack of time or memory is the cause: the same message may succeed later.
        _ => RESOURCE_UNAVAILABLE,
    }
}

impl Service for FrontEnd {
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Message,
    ) -> BoxFuture<'a, ReservedReply> {
        if !self.next_block_wait.is_unsure() {
            return self.answer_now(caller, message);
        }
        Box::pin(async move {
            self.next_block_wait.wait_for_named(&message).await;
            self.answer_now(caller, message).await
        })
    }

    fn counts(&self) -> Counts {
        self.light.counts()
    }

    fn notifications<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        subscription: u128,
    ) -> BoxFuture<'a, (Notifications, Reservation)> {
        self.light.notifications(caller, subscription)
    }

    fn disconnect<'a>(&'a self, caller: &'a Arc<Caller>) -> BoxFuture<'a, ()> {
        self.light.disconnect(caller)
    }

    fn bans(&self) -> Option<Arc<HostBans>> {
        self.light.bans()
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.light.changes()
    }

    fn health(&self) -> Health {
        self.light.health()
    }

    fn chain_status(&self) -> ServiceStatus {
        self.light.chain_status()
    }

    fn register(&self, registry: &mut Registry) {
        self.store.metrics().register(registry);
        self.answer_cache.register(registry);
        self.fan_out.register(registry);
        if let Some(access) = &self.access {
            access.metrics().register(registry);
        }
    }
}
