//! The core's light client as the tasks of a service share it: with locks for threads, the store of headers, and a counter of
//! changes.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, TryLockError};
use std::time::Instant;

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight::light::{ClientConfig, HeaderSync, Now, SyncOptions, UpstreamResponse};
use rootlight::rpc::{AuxiliarySource, Lock, LockKind, SharedClient};
use rootlight_limits::unix_time::unix_time;
use rootlight_server::methods::dispatcher;
use rootlight_server::service::Counts;
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use super::checkpoint::LightStart;
use super::header_store::HeaderStore;
use crate::store::ChainStoreError;

/// Locks for use by several threads.
pub(super) enum ThreadLocks {}

impl LockKind for ThreadLocks {
    type Lock<T> = LockedPart<T>;
}

/// A part of the client with its lock. A panic of a handler leaves the part as it was after the last complete change, so a poisoned
/// lock stays in use.
pub(super) struct LockedPart<T>(RwLock<T>);

impl<T> Lock<T> for LockedPart<T> {
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
pub(super) struct SharedLight {
    pub(super) client: SharedClient<ThreadLocks>,
    /// The limits and counters of messages and of upstreams' responses.
    pub(super) counts: Counts,
    /// Seconds by which the client's clock is behind the machine's ([`super::LightOptions::behind`]).
    behind: u64,
    /// Ends the pauses of the loops that follow upstreams: after a caller has sent a transaction, and after each response before the
    /// head is reached.
    pub(super) wakes: Notify,
    /// Counts changes that may cause notifications.
    changes: watch::Sender<u64>,
    /// Storage of verified headers; `None` if they are not stored.
    store: Mutex<Option<HeaderStore>>,
}

impl SharedLight {
    /// Creates a client. Filter ids are derived from `secret`, so that callers cannot guess each other's.
    pub(super) fn new(
        network: Network,
        start: LightStart,
        config: ClientConfig,
        options: SyncOptions,
        (secret, counts): (B256, Counts),
        (auxiliary_source, behind): (Option<Arc<dyn AuxiliarySource>>, u64),
    ) -> Self {
        let (network, upstreams) = (Arc::new(network), config.upstreams.len());
        let sync = match start {
            LightStart::At(checkpoint) => HeaderSync::with_upstreams(network, checkpoint, upstreams, options),
            LightStart::Work(work) => HeaderSync::by_work(network, work, upstreams, options),
            LightStart::Window(work) => HeaderSync::by_window(network, work, upstreams, options),
        };
        let client = SharedClient::following(sync, config);
        client.hide_filters(secret);
        let client = client.with_dispatcher(dispatcher().clone());
        let client = match auxiliary_source {
            Some(source) => client.with_auxiliary_source(source),
            None => client,
        };
        Self {
            client,
            counts,
            behind,
            wakes: Notify::new(),
            changes: watch::Sender::new(0),
            store: Mutex::new(None),
        }
    }

    /// Returns the client's time and a monotonic time.
    pub(super) fn now(&self) -> Now {
        // All clients of the process measure from the same moment.
        static START: OnceLock<Instant> = OnceLock::new();
        let elapsed = START.get_or_init(Instant::now).elapsed();
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        Now { unix: unix_time().saturating_sub(self.behind), millis }
    }

    /// Restores the headers that an earlier run stored in this folder, and stores new ones from now on. A start by work neither reads
    /// nor writes headers: otherwise a program that can write to the folder could choose its start.
    pub(super) fn store_headers_in(&mut self, folder: &Path) -> Result<(), ChainStoreError> {
        let mut sync = self.client.sync_mut();
        if sync.is_by_work() && !sync.is_by_window() {
            info!("{}: no headers are kept: each start by work is made anew", folder.display());
            return Ok(());
        }
        let store = HeaderStore::open(folder, &mut sync)?;
        drop(sync);
        self.store = Mutex::new(Some(store));
        Ok(())
    }

    /// Restores the headers of a start by window that another program has stored in this folder, and stores none.
    pub(super) fn read_headers_in(&mut self, folder: &Path) {
        let mut sync = self.client.sync_mut();
        let store = HeaderStore::open_copy(folder, &mut sync);
        drop(sync);
        self.store = Mutex::new(store);
    }

    /// Writes the headers that are new since the last call.
    fn save(&self) {
        // The store is locked from the export to the write, so that an older state never replaces a newer one.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = store.as_ref() else { return };
        let (pages, record) = {
            let mut sync = self.client.sync_mut();
            (sync.export(), sync.window_record())
        };
        let written = match &record {
            Some(record) => open.write_window(&pages, record),
            None => open.write(&pages),
        };
        if let Err(error) = written {
            warn!("{}: {error}; nothing more is kept", open.path().display());
            *store = None;
        }
    }

    /// Proves some more of the restored headers; returns whether more remain. If a header fails, all restored
    /// headers are dropped and synchronization starts from the checkpoint.
    pub(super) fn prove_restored(&self) -> bool {
        let wanted = self.client.sync().wanted_page();
        let page = wanted.and_then(|index| {
            let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
            store.as_ref().map(|store| store.page(index))
        });
        // The page is read before the chain's lock is taken. No other task proves stored headers.
        let mut page = page.unwrap_or(Ok(None));
        match self.client.prove_restored(&mut |_| std::mem::replace(&mut page, Ok(None))) {
            Ok(more) => more,
            Err(fault) => {
                warn!("stored headers are invalid and not used: {fault}; starting anew");
                self.changed();
                false
            }
        }
    }

    /// Feeds an upstream's responses to the requests of its last synchronization step.
    pub(super) fn sync_feed(&self, upstream: usize, answers: Vec<UpstreamResponse>, now: Now) {
        if self.client.sync_feed(upstream, answers, now) {
            self.changed();
        }
        self.save();
    }

    /// Counts a change, which wakes the receivers of [`Self::changes`].
    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns a receiver that changes when there may be notifications to send.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use rootlight::rpc::{MAX_WAITING, SessionStep};

    use super::*;

    /// Sends other messages in the middle of a long run; the test would hang if they waited for the run's
    /// locks.
    #[test]
    fn a_long_run_does_not_block_other_messages() {
        let network = Network::regtest();
        let genesis = crate::light::start_checkpoint(Some("none"), &network).unwrap();
        let shared = SharedLight::new(
            network,
            genesis.into(),
            ClientConfig::default(),
            SyncOptions::default(),
            (B256::ZERO, Counts::default()),
            (None, 0),
        );
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"net_version"}"#;
        let mut running = shared.client.open(call, Now::default());
        let count = std::cell::Cell::new(0);
        // Called in the middle of the run.
        let step = shared.client.step(&mut running, &|| {
            for _ in 0..MAX_WAITING + 10 {
                let mut session = shared.client.open(message, Now::default());
                assert!(matches!(shared.client.step(&mut session, &|| false), SessionStep::Done(_)));
                shared.client.close(session);
            }
            shared.client.sync_next(0, Now::default());
            count.set(count.get() + 1);
            false
        });
        assert!(matches!(step, SessionStep::Done(_)) && count.get() > 0);
    }
}
