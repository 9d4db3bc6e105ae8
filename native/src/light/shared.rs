//! The light client of the server: the core's, with locks for threads, a folder of headers, and a count of changes.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight::light::{Answer, Identity, Now, SyncOptions};
use rootlight::rpc::{Lock, Session, Share, SharedClient};
use tokio::sync::watch;
use tracing::{info, warn};

use super::checkpoint::Start;
use super::kept::HeaderStore;
use crate::store::StoreError;

/// Locks of threads.
pub(super) enum Threads {}

impl Share for Threads {
    type Lock<T> = Part<T>;
}

/// A part of the client. A handler that panics is a defect, and leaves the part as it was after the last complete change,
/// so a poisoned lock is used further.
pub(super) struct Part<T>(RwLock<T>);

impl<T> Lock<T> for Part<T> {
    fn new(part: T) -> Self {
        Self(RwLock::new(part))
    }

    fn read(&self) -> impl Deref<Target = T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> impl DerefMut<Target = T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_write(&self) -> Option<impl DerefMut<Target = T>> {
        match self.0.try_write() {
            Ok(part) => Some(part),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A light client shared by all tasks.
pub(super) struct Shared {
    pub(super) client: SharedClient<Threads>,
    /// Counts what there may be to notify of.
    changes: watch::Sender<u64>,
    /// Where verified headers are kept, if anywhere.
    store: Mutex<Option<HeaderStore>>,
}

impl Shared {
    /// A client whose filters get ids that nobody can guess without the secret.
    pub(super) fn new(
        network: Network,
        start: Start,
        identity: Identity,
        options: SyncOptions,
        secret: B256,
    ) -> Self {
        let network = Arc::new(network);
        let client = match start {
            Start::At(checkpoint) => SharedClient::with_upstreams(network, checkpoint, identity, options),
            Start::Work(work) => SharedClient::by_work(network, work, identity, options),
        };
        client.hide_filters(secret);
        Self { client, changes: watch::Sender::new(0), store: Mutex::new(None) }
    }

    /// Takes back what an earlier run has kept in this folder, and keeps what comes from now on. A start by work neither
    /// reads nor writes: whoever can write to the folder would choose where it starts.
    pub(super) fn keep_in(&mut self, folder: &Path) -> Result<(), StoreError> {
        let mut sync = self.client.sync_mut();
        if sync.is_by_work() {
            info!("{}: no headers are kept: each start by work is made anew", folder.display());
            return Ok(());
        }
        let store = HeaderStore::open(folder, &mut sync)?;
        drop(sync);
        self.store = Mutex::new(Some(store));
        Ok(())
    }

    /// Writes what is new since the last time.
    fn save(&self) {
        // Held from reading to writing, so that an older state never replaces a newer one.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = store.as_ref() else { return };
        let pages = self.client.export();
        if let Err(error) = open.write(&pages) {
            warn!("{}: {error}; nothing more is kept", open.path().display());
            *store = None;
        }
    }

    /// Proves some more of the headers that were read back; whether there are more. What does not hold is forgotten, and
    /// synchronization starts from the checkpoint.
    pub(super) fn prove_kept(&self) -> bool {
        let wanted = self.client.sync().wanted_page();
        let page = wanted.and_then(|index| {
            let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            store.as_ref().map(|store| store.page(index))
        });
        // Read before the chain is held: nobody else proves anything meanwhile.
        let mut page = page.unwrap_or(Ok(None));
        match self.client.prove_kept(&mut |_| std::mem::replace(&mut page, Ok(None))) {
            Ok(more) => more,
            Err(fault) => {
                warn!("what was kept does not hold: {fault}: not used, starting from the checkpoint");
                self.changed();
                false
            }
        }
    }

    /// Hands in the answers to the last questions of synchronization to an upstream.
    pub(super) fn sync_feed(&self, upstream: usize, answers: Vec<Answer>, now: Now) {
        if self.client.sync_feed(upstream, answers, now) {
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

    /// Keeps what a session has proven.
    pub(super) fn close(&self, session: Session) {
        if self.client.close(session) {
            self.changed();
        }
    }
}

#[cfg(test)]
mod tests {
    use rootlight::rpc::{MAX_WAITING, Step};

    use super::*;

    /// As in the middle of a run that takes long: all of this would hang if a message waited for the run's locks.
    #[test]
    fn a_long_run_holds_no_other_thread_up() {
        let network = Network::regtest();
        let genesis = crate::light::start_checkpoint(Some("none"), &network).unwrap();
        let shared =
            Shared::new(network, genesis.into(), Identity::default(), SyncOptions::default(), B256::ZERO);
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"net_version"}"#;
        let mut running = shared.client.open(call, Now::default());
        let count = std::cell::Cell::new(0);
        // Asked in the middle of the run.
        let step = shared.client.step(&mut running, &|| {
            for _ in 0..MAX_WAITING + 10 {
                let mut session = shared.client.open(message, Now::default());
                assert!(matches!(shared.client.step(&mut session, &|| false), Step::Done(Some(_))));
                shared.close(session);
            }
            shared.client.sync_next(0, Now::default());
            count.set(count.get() + 1);
            false
        });
        assert!(matches!(step, Step::Done(Some(_))) && count.get() > 0);
    }
}
