//! A front end: a light client whose upstreams are the backends, with filters and a head that it shares with others.

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
use super::calls::{MessageEffects, is_shared, refuse_filters, used};
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
    ahead: Arc<NextBlockWait>,
    fan_out: Arc<FanOut>,
    store: Arc<HotStore>,
    access: Option<Arc<ClusterAccess>>,
    name: String,
    messages: AtomicU64,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The parts of a front end.
pub struct FrontEndParts {
    /// The light client, started with [`host_announces_sent`](rootlight_node::light::LightOptions::host_announces_sent)
    /// on the backends of `new_blocks`.
    pub light: Arc<LightService>,
    /// Makes the backends look for new blocks.
    pub new_blocks: NewBlocks,
    /// The store that all front ends share.
    pub store: Arc<HotStore>,
    /// The same, by connections of its own: reports about the head do not wait behind the commands of messages.
    pub heads_store: Arc<HotStore>,
    /// The same, by connections of its own: limits do not wait behind filters and kept answers, which can be long.
    pub values_store: Arc<HotStore>,
    /// The keys and limits of the front ends, if they have any; for metrics.
    pub access: Option<Arc<ClusterAccess>>,
    /// A secret that only front ends have, and no other program that can write to the store.
    pub secret: B256,
    /// The number of the chain. Services of several chains may share a store.
    pub chain: u64,
    /// The name of this front end, which no other has: letters and digits.
    pub name: String,
    /// Most bytes of answers about final blocks that are kept in memory.
    pub answer_cache_bytes: u64,
}

impl FrontEnd {
    /// Starts a front end. Messages wait until it has agreed on a block with the others. To be called inside a runtime.
    #[must_use]
    pub fn start(parts: FrontEndParts) -> Self {
        let FrontEndParts { light, new_blocks, store, access, secret, chain, name, .. } = parts;
        let (heads_store, values) = (parts.heads_store, parts.values_store);
        let seal = Seal::new(secret);
        let sent = Arc::new(SentTransactions::new(store.clone(), seal.clone(), chain));
        let settings = format!("{chain} {}", light.settings());
        let answer_cache =
            AnswerCache::new(values.clone(), seal.clone(), &settings, parts.answer_cache_bytes);
        let fan_out =
            FanOut::new(light.clone(), new_blocks.clone(), values.clone(), seal.clone(), name.clone(), chain);
        let fan_out = Arc::new(fan_out);
        let filters = SharedFilters::new(values, seal, sent.clone(), chain);
        let ahead = Arc::new(NextBlockWait::new(light.visible_head(), new_blocks.clone()));
        let (head, announced) = (light.visible_head(), ahead.clone());
        let agreement =
            Agreement::new(heads_store, head, announced, fan_out.clone(), new_blocks, name.clone(), chain);
        let tasks = vec![
            tokio::spawn(agreement.run()),
            tokio::spawn(sent.clone().follow(light.clone())),
            tokio::spawn(fan_out.clone().seek_leadership()),
            tokio::spawn(fan_out.clone().tell()),
            tokio::spawn(fan_out.clone().listen()),
        ];
        let messages = AtomicU64::new(0);
        Self { light, filters, sent, answer_cache, ahead, fan_out, store, access, name, messages, tasks }
    }

    /// Answers a message from the block that this front end shows.
    fn answer_now<'a>(&'a self, caller: &'a Arc<Caller>, message: Message) -> BoxFuture<'a, ReservedReply> {
        if is_shared(&message) {
            return Box::pin(self.answer_shared(caller, message));
        }
        match self.answer_cache.cacheable(&message) {
            Some(question) => Box::pin(self.answer_cache.answer(&self.light, caller, message, question)),
            None => self.light.answer_message(caller, message),
        }
    }

    /// Answers a message that concerns filters or the pool.
    async fn answer_shared(&self, caller: &Arc<Caller>, message: Message) -> ReservedReply {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        let (name, owner) = (format!("{}.{number}", self.name), caller.owner().asker);
        let id = message.single_id();
        let (wanted, taker) = (used(&message).into_iter(), (name.clone(), owner));
        let mut taken = match self.filters.take(&self.light, wanted, taker).await {
            Ok(taken) => taken,
            Err(error) => return refused(id, &error),
        };
        let answer = self.light.answer_message(caller, message).await;
        let made = answer.reply.as_ref().map(MessageEffects::by).unwrap_or_default();
        let answer_cache = self.filters.give_back(&self.light, &mut taken).await;
        let added = self.filters.add(&self.light, &made.filters, (&name, owner)).await;
        self.tell(&made, owner.shared_id()).await;
        if let Err(error) = answer_cache.and(added) {
            return refused_in(answer, &error);
        }
        if let Err(error) = self.filters.note(&taken).await {
            // The filter can be polled all the same.
            debug!("the use of a filter was not noted: {error}");
        }
        answer
    }

    /// Tells all front ends of transactions that were sent here; without the store, at least the subscriptions here.
    async fn tell(&self, made: &MessageEffects, asker: u64) {
        for sent in made.sent.iter().map(|hash| (*hash, asker)) {
            if let Err(error) = self.sent.add(sent).await {
                warn!("a transaction is told to subscriptions of this front end only: {error}");
                self.light.announce_sent(&[sent]);
            }
        }
    }
}

/// Tells the log what the store says, which callers are not told.
fn note(error: &FilterError) {
    if let FilterError::Store(error) = error {
        warn!("a message about filters is refused: {error}");
    }
}

fn refused(id: Id, error: &FilterError) -> ReservedReply {
    note(error);
    ReservedReply::failed(id, code(error), &error.to_string())
}

/// As [`refused`], for a message that was answered: what it did apart from filters, such as sending a transaction, is told.
fn refused_in(mut answer: ReservedReply, error: &FilterError) -> ReservedReply {
    note(error);
    if let Some(reply) = &mut answer.reply {
        refuse_filters(reply, (code(error), &error.to_string()));
    }
    answer
}

const fn code(error: &FilterError) -> i32 {
    match error {
        FilterError::TooMany | FilterError::TooLarge(_) => LIMIT_EXCEEDED,
        _ => RESOURCE_UNAVAILABLE,
    }
}

impl Service for FrontEnd {
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Message,
    ) -> BoxFuture<'a, ReservedReply> {
        if !self.ahead.is_unsure() {
            return self.answer_now(caller, message);
        }
        Box::pin(async move {
            self.ahead.wait_for_named(&message).await;
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
