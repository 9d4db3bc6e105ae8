//! The light client as a host sees it: a synchronization machine, a cache of proven facts, and sessions.

use alloc::sync::Arc;

use alloy_primitives::B256;

use super::{
    dispatch::Dispatcher,
    session::{Session, Step},
};
use crate::{
    consensus::{Checkpoint, Network, WorkStart},
    engine::Filters,
    light::{
        Answer, FactCache, Identity, KeptFault, Now, Page, Pin, ReadPage, Restoring, Sync, SyncOptions,
        SyncStep,
    },
};

/// A light client of one network. It does no I/O: the host asks [`Self::sync_next`] what to fetch, and runs a
/// [`Session`] for each message of its own clients. All messages come from the host itself: ids of filters can be
/// guessed, and subscriptions are the host's to ask ([`Self::sync_next`] may have changed the head).
#[derive(Debug)]
pub struct Client {
    sync: Sync,
    cache: FactCache,
    filters: Filters,
    dispatcher: Arc<Dispatcher>,
    identity: Arc<Identity>,
}

impl Client {
    /// A client that trusts the checkpoint and nothing else.
    pub fn new(network: Arc<Network>, checkpoint: Checkpoint, identity: Identity) -> Self {
        Self {
            sync: Sync::new(network, checkpoint),
            cache: FactCache::new(),
            filters: Filters::new(B256::ZERO),
            dispatcher: Arc::new(Dispatcher::with_notifications()),
            identity: Arc::new(identity),
        }
    }

    /// A client of several upstreams, numbered from 0.
    pub fn with_upstreams(
        network: Arc<Network>,
        checkpoint: Checkpoint,
        identity: Identity,
        options: SyncOptions,
    ) -> Self {
        let upstreams = identity.upstreams.len();
        let sync = Sync::with_upstreams(network.clone(), checkpoint, upstreams, options);
        Self { sync, ..Self::new(network, checkpoint, identity) }
    }

    /// A client that trusts no block; see [`Sync::by_work`].
    pub fn by_work(network: Arc<Network>, work: WorkStart, identity: Identity, options: SyncOptions) -> Self {
        let sync = Sync::by_work(network.clone(), work, identity.upstreams.len(), options);
        let checkpoint = *sync.checkpoint();
        Self { sync, ..Self::new(network, checkpoint, identity) }
    }

    /// Sets how many headers one window may have.
    pub fn set_batch(&mut self, batch: usize) {
        self.sync.set_batch(batch);
    }

    /// The synchronization machine, for progress.
    pub fn sync(&self) -> &Sync {
        &self.sync
    }

    /// What synchronization wants of an upstream next.
    pub fn sync_next(&mut self, upstream: usize, now: Now) -> SyncStep {
        self.sync.next(upstream, now)
    }

    /// Hands in the answers to an upstream's last [`SyncStep::Fetch`].
    pub fn sync_feed(&mut self, upstream: usize, answers: alloc::vec::Vec<Answer>, now: Now) {
        self.sync.feed(upstream, answers, now);
    }

    /// Looks for new blocks at once, or tries again after a failure.
    pub fn sync_poll(&mut self) {
        self.sync.poll();
    }

    /// Takes back what was kept of an earlier run, before anything else; see [`Sync::restore`].
    ///
    /// # Errors
    /// What was kept is of no use; the client starts from nothing then.
    pub fn restore(&mut self, pages: u64, read: ReadPage<'_>) -> Result<Option<u64>, KeptFault> {
        self.sync.restore(pages, read)
    }

    /// Takes back the next page of an earlier run, before anything else; see [`Sync::restoring`].
    ///
    /// # Errors
    /// The page does not hold; no further one can follow it.
    pub fn restore_page(&mut self, restoring: &mut Restoring, page: &[u8]) -> Result<(), KeptFault> {
        self.sync.restore_page(restoring, page)
    }

    /// Ends taking back page by page; see [`Sync::restored`].
    ///
    /// # Errors
    /// What was taken back is of no use; the client starts from nothing then.
    pub fn restored(&mut self, restoring: Restoring) -> Result<Option<u64>, KeptFault> {
        self.sync.restored(restoring)
    }

    /// Has the pages from this number on handed out again by [`Self::export`], as far as their headers are in memory.
    pub fn keep_again(&mut self, page: u64) {
        self.sync.keep_again(page);
    }

    /// Proves some more of what was taken back; see [`Sync::prove_kept`].
    ///
    /// # Errors
    /// What was kept does not hold; the client starts from the checkpoint then.
    pub fn prove_kept(&mut self, read: ReadPage<'_>) -> Result<bool, KeptFault> {
        self.sync.prove_kept(read)
    }

    /// What is to be kept; see [`Sync::export`].
    pub fn export(&mut self) -> alloc::vec::Vec<Page> {
        self.sync.export()
    }

    /// Starts answering a message that comes now; it will see the present head until it is done.
    pub fn open(&self, message: &[u8], now: Now) -> Session {
        Session::new(self.dispatcher.clone(), Pin::new(&self.sync, self.identity.clone(), now), message)
    }

    /// Goes on with a message; `interrupt` ends long runs.
    pub fn step(&mut self, session: &mut Session, interrupt: &dyn Fn() -> bool) -> Step {
        session.step(&self.cache, Some(&mut self.filters), interrupt)
    }

    /// Hands in the answers to the last [`Step::Fetch`].
    pub fn feed(&self, session: &mut Session, answers: alloc::vec::Vec<Answer>) {
        session.feed(answers, &self.cache);
    }

    /// What earlier sessions have proven and sent.
    pub fn cache(&self) -> &FactCache {
        &self.cache
    }

    /// An upstream says that there is something new.
    pub fn sync_hint(&mut self, upstream: usize) {
        self.sync.hint(upstream);
    }

    /// Keeps what a finished session has proven.
    pub fn close(&mut self, session: Session) {
        let (learned, observations) = session.finish();
        learned.sent().for_each(|transaction| self.filters.pending(transaction.hash()));
        self.cache.absorb(learned);
        self.sync.observe(observations);
    }
}
