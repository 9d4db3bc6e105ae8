//! What all messages and the synchronization share, locked so that nobody waits for a long run.
//!
//! A run reads the cache for as long as it takes (seconds, at worst). Were the cache written under
//! the same lock as the chain, a waiting writer would hold up every new message behind that run.
//! So the chain has a lock of its own, held for moments only, and what sessions have learned goes
//! into the cache when nobody is reading it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight::engine::Filters;
use rootlight::light::{
    Answer, FactCache, FactStore, Identity, Now, Outbox, Pin, Sync, SyncOptions, SyncStep, UpstreamCall,
};
use rootlight::rpc::{Dispatcher, Session, Step};
use tokio::sync::watch;
use tracing::{info, warn};

use super::checkpoint::Start;
use super::kept::HeaderStore;
use crate::store::StoreError;

/// Most stores of facts that wait for the cache; more are forgotten and will be fetched again.
const MAX_WAITING: usize = 256;

/// A light client shared by all tasks.
pub(super) struct Shared {
    sync: RwLock<Sync>,
    cache: RwLock<FactCache>,
    learned: Mutex<Vec<FactStore>>,
    filters: Mutex<Filters>,
    dispatcher: Arc<Dispatcher>,
    /// For callers to whom notifications can be sent.
    notifying: Arc<Dispatcher>,
    /// Counts what there may be to notify of.
    changes: watch::Sender<u64>,
    identity: Arc<Identity>,
    /// Where verified headers are kept, if anywhere.
    store: Mutex<Option<HeaderStore>>,
}

impl Shared {
    pub(super) fn new(
        network: Network,
        start: Start,
        identity: Identity,
        options: SyncOptions,
        secret: B256,
    ) -> Self {
        let upstreams = identity.upstreams.len();
        let network = Arc::new(network);
        let sync = match start {
            Start::At(checkpoint) => Sync::with_upstreams(network, checkpoint, upstreams, options),
            Start::Work(work) => Sync::by_work(network, work, upstreams, options),
        };
        Self {
            sync: RwLock::new(sync),
            cache: RwLock::new(FactCache::new()),
            learned: Mutex::new(Vec::new()),
            filters: Mutex::new(Filters::new(secret)),
            dispatcher: Arc::new(Dispatcher::new()),
            notifying: Arc::new(Dispatcher::with_notifications()),
            changes: watch::Sender::new(0),
            identity: Arc::new(identity),
            store: Mutex::new(None),
        }
    }

    /// Takes back what an earlier run has kept in this folder, and keeps what comes from now on. A start by work neither
    /// reads nor writes: whoever can write to the folder would choose where it starts.
    pub(super) fn keep_in(&mut self, folder: &Path) -> Result<(), StoreError> {
        let sync = self.sync.get_mut().unwrap_or_else(PoisonError::into_inner);
        if sync.is_by_work() {
            info!("{}: no headers are kept: each start by work is made anew", folder.display());
            return Ok(());
        }
        let store = HeaderStore::open(folder, sync)?;
        self.store = Mutex::new(Some(store));
        Ok(())
    }

    /// Writes what is new since the last time.
    fn save(&self) {
        // Held from reading to writing, so that an older state never replaces a newer one.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = store.as_ref() else { return };
        let pages = self.sync.write().unwrap_or_else(PoisonError::into_inner).export();
        if let Err(error) = open.write(&pages) {
            warn!("{}: {error}; nothing more is kept", open.path().display());
            *store = None;
        }
    }

    /// Proves some more of the headers that were read back; whether there are more. What does not hold is forgotten, and
    /// synchronization starts from the checkpoint.
    pub(super) fn prove_kept(&self) -> bool {
        let wanted = self.sync().wanted_page();
        let page = wanted.and_then(|index| {
            let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            store.as_ref().map(|store| store.page(index))
        });
        // Read before the chain is held: nobody else proves anything meanwhile.
        let mut page = page.unwrap_or(Ok(None));
        let mut sync = self.sync.write().unwrap_or_else(PoisonError::into_inner);
        match sync.prove_kept(&mut |_| std::mem::replace(&mut page, Ok(None))) {
            Ok(more) => more,
            Err(fault) => {
                warn!("what was kept does not hold: {fault}: not used, starting from the checkpoint");
                drop(sync);
                self.changed();
                false
            }
        }
    }

    /// An upstream says that there is something new.
    pub(super) fn sync_hint(&self, upstream: usize) {
        self.sync.write().unwrap_or_else(PoisonError::into_inner).hint(upstream);
    }

    /// The synchronization machine; not to be held across waiting or long work.
    pub(super) fn sync(&self) -> RwLockReadGuard<'_, Sync> {
        self.sync.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to ask an upstream for the sake of synchronization.
    pub(super) fn sync_next(&self, upstream: usize, now: Now) -> SyncStep {
        self.sync.write().unwrap_or_else(PoisonError::into_inner).next(upstream, now)
    }

    /// Hands in the answers to the last questions of synchronization to an upstream.
    pub(super) fn sync_feed(&self, upstream: usize, answers: Vec<Answer>, now: Now) {
        let changed = {
            let mut sync = self.sync.write().unwrap_or_else(PoisonError::into_inner);
            let before = standing(&sync);
            sync.feed(upstream, answers, now);
            before != standing(&sync)
        };
        if changed {
            self.changed();
        }
        self.save();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Changes when there may be something to notify of.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The present state, as a message that came now would see it.
    pub(super) fn pin(&self, now: Now) -> Pin {
        Pin::new(&self.sync(), self.identity.clone(), now)
    }

    /// Starts a message; it sees the present head until it is done. `notified`: whether its sender can be.
    pub(super) fn open(&self, message: &[u8], notified: bool, now: Now) -> Session {
        let pin = self.pin(now);
        let dispatcher = if notified { &self.notifying } else { &self.dispatcher };
        Session::new(dispatcher.clone(), pin, message)
    }

    pub(super) fn feed(&self, session: &mut Session, answers: Vec<Answer>) {
        session.feed(answers, &self.cache.read().unwrap_or_else(PoisonError::into_inner));
    }

    /// Goes on with a session; filters that it installs are this asker's.
    pub(super) fn step(&self, session: &mut Session, asker: u64, interrupt: &dyn Fn() -> bool) -> Step {
        // A message without filters waits for nobody who polls.
        let mut filters =
            session.watches().then(|| self.filters.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(filters) = &mut filters {
            filters.ask_as(asker);
        }
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        session.step(&cache, filters.as_deref_mut(), interrupt)
    }

    /// What to ask an upstream about the transactions that clients of this program have sent.
    pub(super) fn sent_questions(&self, outbox: &mut Outbox, now: Now) -> Vec<UpstreamCall> {
        outbox.questions(&self.cache.read().unwrap_or_else(PoisonError::into_inner), now)
    }

    /// Keeps what a session has proven: now if nobody reads the cache, else with a later one.
    pub(super) fn close(&self, session: Session) {
        let (facts, observations) = session.finish();
        for transaction in facts.sent() {
            self.filters.lock().unwrap_or_else(PoisonError::into_inner).pending(transaction.hash());
            self.changed();
        }
        if !observations.is_empty() {
            self.sync.write().unwrap_or_else(PoisonError::into_inner).observe(observations);
        }
        let mut waiting = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MAX_WAITING {
            waiting.push(facts);
        }
        if let Ok(mut cache) = self.cache.try_write() {
            waiting.drain(..).for_each(|facts| cache.absorb(facts));
        }
    }
}

/// What subscribers are notified of: the head, and whether it is the newest.
fn standing(sync: &Sync) -> (Option<B256>, bool) {
    (sync.chain().map(|chain| chain.head().hash()), sync.is_synced())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> Shared {
        let network = Network::regtest();
        let genesis = crate::light::start_checkpoint(Some("none"), &network).unwrap();
        Shared::new(network, genesis.into(), Identity::default(), SyncOptions::default(), B256::ZERO)
    }

    fn finish(shared: &Shared) {
        let mut session =
            shared.open(br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#, false, Now::default());
        assert!(matches!(shared.step(&mut session, 0, &|| false), Step::Done(Some(_))));
        shared.close(session);
    }

    /// As in the middle of a run that takes long: all of this would hang on a shared lock.
    #[test]
    fn a_long_run_holds_nobody_up() {
        let shared = shared();
        let running = shared.cache.read().unwrap();
        for _ in 0..MAX_WAITING + 10 {
            finish(&shared);
        }
        shared.sync_next(0, Now::default());
        assert_eq!(shared.learned.lock().unwrap().len(), MAX_WAITING);
        drop(running);
        finish(&shared);
        assert!(shared.learned.lock().unwrap().is_empty(), "learned when the run is over");
    }
}
