//! The light client as a host uses it: synchronization, a cache of proven facts, and sessions.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::{
    fmt,
    ops::{Deref, DerefMut},
};

use alloy_primitives::B256;

use super::{
    auxiliary::AuxiliarySource,
    caller::Caller,
    lock::{Lock, LockKind, SingleOwner},
    message::{Dispatcher, Message},
    round::PartResponses,
    session::{Session, SessionStep},
};
use crate::{
    consensus::{BodyError, ChainError, ChainView, Checkpoint, Network, VerifiedBody, VerifiedReceipts},
    engine::{ExportedFilter, Filters, MAX_FILTERS},
    light::{
        Batch, ClientConfig, FactCache, FactStore, HeaderPage, HeaderStoreFault, HeaderSync, KnownFacts, Now,
        Outbox, PinnedHead, ReadPage, Restoring, SyncOptions, SyncStep, UpstreamRequest, UpstreamResponse,
        bitcoin::BitcoinFollower,
    },
};

/// Most fact stores that wait until the cache has no readers. Further ones are dropped, and their facts are fetched again when
/// needed. The limit bounds the time for which the cache is locked when it absorbs them.
pub const MAX_WAITING: usize = 256;

/// Most bytes of the waiting fact stores together, approximately. The limit bounds memory during a long run.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;

/// A light client with one owner.
pub type Client = SharedClient<SingleOwner>;

/// A light client of one network. The client does no I/O: the host calls [`Self::sync_next`] to learn what to fetch, and runs a
/// [`Session`] for each message of its callers.
///
/// Each part has a lock of its own, so that a long run blocks no other message. A run holds a read lock of the cache
/// until it ends (seconds, at worst). If the cache were written under the lock of the chain, a waiting writer would
/// block every new message behind that run. Therefore the chain is locked only briefly, and the facts that sessions
/// have proven are written to the cache when it has no readers.
pub struct SharedClient<S: LockKind> {
    sync: S::Lock<HeaderSync>,
    cache: S::Lock<FactCache>,
    /// Fact stores of finished sessions that wait until the cache has no readers.
    waiting: S::Lock<Vec<FactStore>>,
    filters: S::Lock<Filters>,
    /// The chain that messages see in place of the newest one; see [`Self::show`].
    shown: S::Lock<Option<ChainView>>,
    /// The rows of the methods that messages may call.
    dispatcher: Arc<Dispatcher>,
    /// The host's source of unproven answers, if it has one.
    auxiliary: Option<Arc<dyn AuxiliarySource>>,
    config: Arc<ClientConfig>,
    /// The caller of messages that come from the host itself.
    caller: Arc<Caller>,
}

impl<S: LockKind> fmt::Debug for SharedClient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClient").finish_non_exhaustive()
    }
}

impl<S: LockKind> SharedClient<S> {
    /// A client with one upstream that trusts the checkpoint and nothing else. Filter ids can be guessed, which is
    /// harmless while all messages come from the host itself; [`Self::hide_filters`] makes them secret.
    pub fn new(network: Arc<Network>, checkpoint: Checkpoint, config: ClientConfig) -> Self {
        Self::following(HeaderSync::new(network, checkpoint), config)
    }

    /// A client with several upstreams, numbered from 0.
    pub fn with_upstreams(
        network: Arc<Network>,
        checkpoint: Checkpoint,
        config: ClientConfig,
        options: SyncOptions,
    ) -> Self {
        let upstreams = config.upstreams.len();
        Self::following(HeaderSync::with_upstreams(network, checkpoint, upstreams, options), config)
    }

    /// A client that follows the chain with this state machine of header synchronization, which must have as many upstreams as
    /// the configuration. For a start that trusts no block, [`HeaderSync::by_work`] or [`HeaderSync::by_window`] make it.
    pub fn following(sync: HeaderSync, config: ClientConfig) -> Self {
        Self {
            sync: S::Lock::new(sync),
            cache: S::Lock::new(FactCache::new()),
            waiting: S::Lock::new(Vec::new()),
            filters: S::Lock::new(Filters::new(B256::ZERO)),
            shown: S::Lock::new(None),
            dispatcher: Arc::default(),
            auxiliary: None,
            config: Arc::new(config),
            caller: Arc::new(Caller::default().with_subscriptions(MAX_FILTERS)),
        }
    }

    /// The client, with the methods of this dispatcher instead of those of the core.
    #[must_use]
    pub fn with_dispatcher(self, dispatcher: Arc<Dispatcher>) -> Self {
        Self { dispatcher, ..self }
    }

    /// The client, with an auxiliary source of its host.
    #[must_use]
    pub fn with_auxiliary_source(self, auxiliary: Arc<dyn AuxiliarySource>) -> Self {
        Self { auxiliary: Some(auxiliary), ..self }
    }

    /// Derives filter ids from a secret, so that they cannot be guessed. To be called before the first filter is
    /// made.
    pub fn hide_filters(&self, secret: B256) {
        *self.filters.write() = Filters::new(secret);
    }

    /// Sets how many headers are requested at once from an upstream ([`HeaderSync::set_batch`]).
    pub fn set_batch(&self, batch: usize) {
        self.sync.write().set_batch(batch);
    }

    /// The synchronization state, for reporting progress. It is locked while the result exists, which must not be during
    /// another call of this client or during long work.
    pub fn sync(&self) -> impl Deref<Target = HeaderSync> + use<'_, S> {
        self.sync.read()
    }

    /// The synchronization state, for restoring an earlier run. It is locked while the result exists, which must not be during
    /// another call of this client.
    pub fn sync_mut(&self) -> impl DerefMut<Target = HeaderSync> + use<'_, S> {
        self.sync.write()
    }

    /// The next step of synchronization with this upstream.
    pub fn sync_next(&self, upstream: usize, now: Now) -> SyncStep {
        self.sync.write().next(upstream, now)
    }

    /// Passes in the responses to an upstream's last [`SyncStep::Fetch`]. Returns whether subscribers may have to be
    /// notified: of another head, or that the head is the newest now.
    pub fn sync_feed(&self, upstream: usize, responses: Vec<UpstreamResponse>, now: Now) -> bool {
        let mut sync = self.sync.write();
        let before = notified_state(&sync);
        sync.feed(upstream, responses, now);
        before != notified_state(&sync)
    }

    /// Looks for new blocks at once, or retries after a failure.
    pub fn sync_poll(&self) {
        self.sync.write().poll();
    }

    /// To be called when another source, of this name, answers in an upstream's place; see [`HeaderSync::replace`].
    pub fn sync_replace(&self, upstream: usize, name: String) {
        self.sync.write().replace(upstream, name);
    }

    /// To be called when an upstream has announced something new, such as a block: looks for it at once.
    pub fn sync_hint(&self, upstream: usize) {
        self.sync.write().hint(upstream);
    }

    /// Updates the follower of Bitcoin's chain with new data of a source; see [`HeaderSync::update_bitcoin`].
    pub fn bitcoin_feed(&self, update: impl FnOnce(&mut BitcoinFollower), now: Now) {
        self.sync.write().update_bitcoin(update, now);
    }

    /// Takes headers that the host has from another source than the upstreams. Returns whether the uncles of all headers came with
    /// them; `None` before the client has reached the head, because such headers continue only a chain that is up to date. See
    /// [`HeaderSync::take_headers`].
    ///
    /// # Errors
    /// The rule that the first rejected header breaks.
    pub fn take_headers(&self, headers: Batch, now: Now) -> Option<Result<bool, ChainError>> {
        self.sync.write().take_headers(headers, now)
    }

    /// Restores the headers that an earlier run has stored, from `pages` pages. Returns the number of the newest block; `None`
    /// without pages. To be called first; see [`HeaderSync::restore`].
    ///
    /// # Errors
    /// The stored data is unusable; the client starts afresh.
    pub fn restore(&self, pages: u64, read: ReadPage<'_>) -> Result<Option<u64>, HeaderStoreFault> {
        self.sync.write().restore(pages, read)
    }

    /// Restores the next page of an earlier run. To be called before anything else; see [`HeaderSync::restoring`].
    ///
    /// # Errors
    /// The page is invalid; no further page can follow it.
    pub fn restore_page(&self, restoring: &mut Restoring, page: &[u8]) -> Result<(), HeaderStoreFault> {
        self.sync.write().restore_page(restoring, page)
    }

    /// Finishes a restore that read the stored headers page by page. Returns the number of the newest block; see
    /// [`HeaderSync::finish_restore`].
    ///
    /// # Errors
    /// The restored data is unusable; the client starts afresh.
    pub fn finish_restore(&self, restoring: Restoring) -> Result<Option<u64>, HeaderStoreFault> {
        self.sync.write().finish_restore(restoring)
    }

    /// Makes [`Self::export`] return the pages from this number on once more, as far as their headers are in memory.
    pub fn store_again(&self, page: u64) {
        self.sync.write().store_again(page);
    }

    /// Verifies a further part of the restored data. Returns whether more is left; see [`HeaderSync::prove_restored`].
    ///
    /// # Errors
    /// The stored data is invalid; the client starts from the checkpoint.
    pub fn prove_restored(&self, read: ReadPage<'_>) -> Result<bool, HeaderStoreFault> {
        self.sync.write().prove_restored(read)
    }

    /// The pages to be stored; see [`HeaderSync::export`].
    pub fn export(&self) -> Vec<HeaderPage> {
        self.sync.write().export()
    }

    /// The present state of the chain, as a message that arrives now sees it.
    pub fn pin(&self, now: Now) -> PinnedHead {
        let newest = PinnedHead::new(&self.sync.read(), self.config.clone(), now);
        match self.shown.read().as_ref() {
            Some(chain) => newest.with_chain(chain.clone(), now),
            None => newest,
        }
    }

    /// The newest verified state of the chain, even if messages see another one ([`Self::show`]).
    pub fn pin_newest(&self, now: Now) -> PinnedHead {
        PinnedHead::new(&self.sync.read(), self.config.clone(), now)
    }

    /// The state of the chain as a message of this caller sees it: without texts of upstreams for pages of other origins, and
    /// with numbers in place of the upstreams' names for those and for callers of a service.
    pub fn pin_for(&self, caller: &Caller, now: Now) -> PinnedHead {
        let pinned = self.pin(now);
        match caller.foreign_page() {
            Some(_) => pinned.redacted(),
            None if caller.is_selected() => pinned.numbered(),
            None => pinned,
        }
    }

    /// Sets the chain that messages see from now on: one that this client has verified before, or, with `None`, the
    /// newest one. Front ends of one service use it to show the same head.
    pub fn show(&self, chain: Option<ChainView>) {
        *self.shown.write() = chain;
    }

    /// Starts answering a message of the host itself that arrives at `now`. The message sees the present head until it is
    /// answered. The host can receive notifications.
    pub fn open(&self, message: &[u8], now: Now) -> Session {
        let message = self.read(message, &self.caller);
        self.open_from(self.caller.clone(), message, now)
    }

    /// Reads a message of a caller.
    pub fn read(&self, message: &[u8], caller: &Caller) -> Message {
        Message::read(message, &self.dispatcher, caller.batch_limit())
    }

    /// As [`Self::open`], for a message of a caller.
    pub fn open_from(&self, caller: Arc<Caller>, message: Message, now: Now) -> Session {
        let pinned = self.pin_for(&caller, now);
        Session::new(caller, pinned, message, self.auxiliary.clone())
    }

    /// As [`Self::open`], for a message of the host that sees this state of the chain.
    pub fn open_pinned(&self, pinned: PinnedHead, message: Message) -> Session {
        Session::new(self.caller.clone(), pinned, message, self.auxiliary.clone())
    }

    /// Continues a message; `interrupt` ends long runs.
    pub fn step(&self, session: &mut Session, interrupt: &dyn Fn() -> bool) -> SessionStep {
        // Filters are locked only for messages that use them, so that other messages do not wait for the lock.
        let mut filters = session.uses_filters().then(|| self.filters.write());
        session.step(&self.cache.read(), filters.as_deref_mut(), interrupt)
    }

    /// Passes in the responses to the last [`SessionStep::Fetch`].
    pub fn feed(&self, session: &mut Session, parts: Vec<PartResponses>) {
        session.feed(parts, &self.cache.read());
    }

    /// Stores the facts that a finished session has proven: at once if the cache has no readers, else together with a
    /// later session. Returns whether subscribers may have to be notified, because a transaction was sent.
    pub fn close(&self, session: Session) -> bool {
        let (facts, observations, pinned) = session.finish();
        let mut notifies = false;
        for transaction in &facts.sent {
            // Such a host calls `announce_sent` for its own transactions too.
            if self.config.host_announces_sent {
                continue;
            }
            self.filters.write().pending(transaction.hash, transaction.asker);
            notifies = true;
        }
        // New blocks are looked for more often while a sent transaction is in none, and as usual once a session has located
        // the transaction in a block.
        if let Some(newest) = facts.sent.last() {
            self.sync.write().look_for(newest.hash);
        } else if !facts.locations.is_empty() {
            self.sync.write().end_search(|sent| facts.is_mined(sent));
        }
        if !observations.is_empty() {
            self.sync.write().observe_since(&pinned.source_generations(), observations);
        }
        self.keep(facts);
        notifies
    }

    /// The transactions and receipts of a block. `None` unless both were proven.
    pub fn block(&self, hash: &B256) -> Option<(Arc<VerifiedBody>, Arc<VerifiedReceipts>)> {
        let (waiting, cache) = (self.waiting.read(), self.cache.read());
        // With an empty store, the facts are those of the cache alone.
        let none = FactStore::default();
        let find = |store: &FactStore| {
            let known = KnownFacts::new(store, &cache);
            Some((known.body(hash)?.clone(), known.receipts(hash)?.clone()))
        };
        waiting.iter().chain([&none]).find_map(find)
    }

    /// Stores the transactions and receipts of a block that the host has from another source than the upstreams.
    ///
    /// # Errors
    /// Transactions and receipts are not of the same block. Nothing is stored.
    pub fn keep_block(&self, body: VerifiedBody, receipts: VerifiedReceipts) -> Result<(), BodyError> {
        receipts.matches(&body)?;
        let block_bytes = body.bytes().saturating_add(receipts.bytes());
        let mut facts = FactStore { block_bytes, ..FactStore::default() };
        let block = receipts.block();
        facts.bodies.insert(block, Arc::new(body));
        facts.receipts.insert(block, Arc::new(receipts));
        self.keep(facts);
        Ok(())
    }

    /// Stores facts in the cache: at once if it has no readers, else together with later ones.
    fn keep(&self, facts: FactStore) {
        let mut waiting = self.waiting.write();
        match self.cache.try_write() {
            Some(mut cache) => waiting.drain(..).chain([facts]).for_each(|facts| cache.absorb(facts)),
            None if fits(&waiting, &facts) => waiting.push(facts),
            None => {}
        }
    }

    /// Ends the subscriptions of a caller whose connection is closed.
    pub fn disconnect(&self, caller: &Caller) {
        caller.close();
        self.filters.write().close(caller.connection());
    }

    /// Limits the proven blocks and the state that are kept for later messages, in bytes.
    pub fn limit_cache(&self, bytes: usize) {
        self.cache.write().limit(bytes);
    }

    /// Notifies the subscriptions of each asker of its transactions, given by hash, that were sent through this host or
    /// another one. Hosts identify an asker to each other by [`Asker::shared_id`](crate::types::Asker::shared_id).
    pub fn announce_sent(&self, transactions: &[(B256, u64)]) {
        let mut filters = self.filters.write();
        transactions.iter().for_each(|(hash, asker)| filters.pending_for_subscriptions(*hash, *asker));
    }

    /// Removes a filter from this client and returns it for another host ([`Filters::export`]).
    pub fn export_filter(&self, id: u128) -> Option<ExportedFilter> {
        let mut filters = self.filters.write();
        let exported = filters.export(id);
        filters.forget(id);
        exported
    }

    /// Takes over a filter that another host exported; see [`Filters::import`].
    pub fn import_filter(&self, id: u128, filter: ExportedFilter, now: Now) {
        self.filters.write().import(id, filter, now.unix);
    }

    /// The requests to an upstream for the receipts of transactions that callers of this host have sent. Empty while
    /// the upstream is not asked because of a failure.
    pub fn receipt_requests(&self, upstream: usize, outbox: &mut Outbox, now: Now) -> Vec<UpstreamRequest> {
        if self.sync.read().is_resting(upstream) {
            return Vec::new();
        }
        outbox.receipt_requests(&self.cache.read(), now)
    }
}

/// Whether these facts may wait for the cache, given those that wait already.
fn fits(waiting: &[FactStore], facts: &FactStore) -> bool {
    let bytes = waiting.iter().map(FactStore::bytes).fold(facts.bytes(), usize::saturating_add);
    waiting.len() < MAX_WAITING && bytes <= MAX_WAITING_BYTES
}

/// The state of which subscribers are notified: the hash of the head, and whether the head is the newest block.
fn notified_state(sync: &HeaderSync) -> (Option<B256>, bool) {
    (sync.chain().map(|chain| chain.head().hash()), sync.is_synced())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Effect;

    fn client() -> Client {
        let network = Arc::new(Network::regtest());
        let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
        Client::new(network, checkpoint, ClientConfig::default())
    }

    fn finish(client: &Client) {
        let mut session = client.open(br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#, Now::default());
        assert!(matches!(client.step(&mut session, &|| false), SessionStep::Done(_)));
        client.close(session);
    }

    #[test]
    fn facts_that_wait_for_the_cache_are_limited_in_bytes() {
        let of = |block_bytes| FactStore { block_bytes, ..FactStore::default() };
        let half = MAX_WAITING_BYTES / 2;
        assert!(fits(&[of(half)], &of(half)));
        assert!(!fits(&[of(half), of(half)], &of(1)));
    }

    /// Messages arrive during a long run. If one waited for a lock that the run holds, it would hang or panic.
    #[test]
    fn a_long_run_blocks_no_other_message() {
        let client = client();
        let running = client.cache.read();
        for _ in 0..MAX_WAITING + 10 {
            finish(&client);
        }
        client.sync_next(0, Now::default());
        assert_eq!(client.waiting.read().len(), MAX_WAITING);
        drop(running);
        finish(&client);
        assert!(client.waiting.read().is_empty(), "the cache takes the waiting facts when the run is over");
    }

    #[test]
    fn a_resting_upstream_is_not_asked_for_receipts_of_sent_transactions() {
        let (client, mut outbox) = (client(), Outbox::default());
        let at = |millis| Now { unix: 0, millis };
        let transaction = crate::types::Transaction::remasc(1);
        let (hash, sender) = (transaction.hash(), alloy_primitives::Address::ZERO);
        let sent = crate::light::SentTransaction {
            hash,
            sender,
            asker: 7.into(),
            transaction: Arc::new(transaction),
        };
        client.cache.write().absorb(FactStore { sent: alloc::vec![sent], ..FactStore::default() });
        assert!(client.receipt_requests(0, &mut outbox, at(0)).is_empty());
        assert!(client.receipt_requests(0, &mut outbox, at(30_000)).is_empty());
        let SyncStep::Fetch(requests) = client.sync_next(0, at(60_000)) else { panic!("nothing to fetch") };
        let busy = crate::light::RequestFailure::Busy { seconds: Some(60) };
        client.sync_feed(0, alloc::vec![Err(busy); requests.len()], at(60_000));
        assert!(client.receipt_requests(0, &mut outbox, at(60_000)).is_empty());
        assert!(matches!(client.sync_next(0, at(120_001)), SyncStep::Fetch(_)));
        assert_eq!(client.receipt_requests(0, &mut outbox, at(120_001)).len(), 1);
    }

    fn ask(
        client: &Client,
        caller: &Arc<Caller>,
        method: &str,
        params: &str,
    ) -> (Vec<Effect>, alloc::string::String) {
        let message = alloc::format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}"#);
        let message = client.read(message.as_bytes(), caller);
        let mut session = client.open_from(caller.clone(), message, Now::default());
        let SessionStep::Done(reply) = client.step(&mut session, &|| false) else { panic!("no reply") };
        client.close(session);
        (reply.effects().collect(), reply.into_text().unwrap())
    }

    #[test]
    fn subscriptions_belong_to_their_connection() {
        let client = client();
        let caller = |number| Arc::new(Caller::new(7, number).with_subscriptions(2));
        let (one, other) = (caller(1), caller(2));
        let subscribe = |from| ask(&client, from, "eth_subscribe", "\"syncing\"");
        let (effects, body) = subscribe(&one);
        let [Effect::Subscribed(id)] = effects[..] else { panic!("{body}") };
        let quoted = alloc::format!("\"{id:#x}\"");
        assert!(body.contains(&quoted));
        assert_eq!(subscribe(&one).0.len(), 1);
        assert!(subscribe(&one).1.contains("Limit exceeded: 2 subscriptions on this connection"));
        assert_eq!(subscribe(&other).0.len(), 1, "each connection has a limit of its own");
        let (effects, body) = ask(&client, &other, "eth_unsubscribe", &quoted);
        assert!(
            body.contains("false") && effects.is_empty(),
            "a connection cannot end the subscription of another"
        );
        let (effects, body) =
            ask(&client, &one, "eth_unsubscribe", &quoted.to_uppercase().replace("0X", "0x"));
        assert!(body.contains("true"), "{body}");
        assert_eq!((&effects[..], one.unsubscribed()), (&[Effect::Unsubscribed(id)][..], 1));
        assert_eq!(subscribe(&one).0.len(), 1, "there is room again");
        client.disconnect(&one);
        assert_eq!(client.filters.read().len(), 1, "the subscription of the other connection is left");
        assert!(subscribe(&one).1.contains("Limit exceeded"), "a closed connection makes no subscription");
    }

    /// A notification has no answer, so that the caller would not learn the subscription's id.
    #[test]
    fn a_notification_makes_no_subscription() {
        let client = client();
        let caller = Arc::new(Caller::new(0, 1).with_subscriptions(9));
        let message = br#"{"jsonrpc":"2.0","method":"eth_subscribe","params":["newHeads"]}"#;
        let message = client.read(message, &caller);
        let mut session = client.open_from(caller, message, Now::default());
        let SessionStep::Done(reply) = client.step(&mut session, &|| false) else { panic!("no reply") };
        assert!(reply.into_text().is_none());
        assert!(client.filters.read().is_empty());
    }

    #[test]
    fn connections_without_notifications_do_not_subscribe() {
        let client = client();
        for method in ["eth_subscribe", "eth_unsubscribe"] {
            let (_, body) = ask(&client, &Arc::default(), method, "\"newHeads\"");
            assert!(body.contains("-32601") && body.contains("WebSocket"), "{body}");
        }
    }
}
