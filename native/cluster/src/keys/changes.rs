//! How a front end learns that keys have changed.
//!
//! Changes are announced over the store. Because an announcement can be lost, a front end also asks PostgreSQL for the
//! changes after the last one that it knows, and the store for the revision of the last one, both twice a second.
//!
//! A replica that became the primary may lack the last changes. Its revision is then lower than the one that is known, and
//! its next changes could get revisions that are known already. So a front end goes back to the revision of the database,
//! and asks for all keys again.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::try_join;
use rootlight_server::keys::is_id;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::connection::LazyConnection;
use super::error::ClusterKeyError;
use super::key_cache::KeyCache;
use super::key_copies;
use super::metrics::ServiceMetrics;
use super::rows;
use crate::Seal;
use crate::store::{Announcement, HotStore, HotStoreError};

/// Interval at which PostgreSQL and the store are asked.
const INTERVAL: Duration = Duration::from_millis(500);

/// Time for which known keys are served while neither PostgreSQL nor the store can be asked whether they changed, by default.
pub const GRACE: Duration = Duration::from_secs(60);

/// Changes that are read at a time.
const CHANGES: i64 = 256;

/// No revision.
const NONE: i64 = -1;

/// The changes of keys as a front end knows them.
pub(super) struct KeyChanges {
    store: Arc<HotStore>,
    seal: Seal,
    connection: LazyConnection,
    cache: Arc<KeyCache>,
    metrics: ServiceMetrics,
    grace: Duration,
    /// The last change that was read from PostgreSQL.
    known: AtomicI64,
    /// The last revision of the store that is ahead of PostgreSQL's, as far as it could be read.
    ahead: AtomicI64,
    /// When it was last known that no change was missed.
    checked: Mutex<Instant>,
    /// Number of times that it was read from PostgreSQL that nothing changed or what.
    reads: AtomicU64,
    poll: Notify,
    changed: watch::Sender<u64>,
}

impl KeyChanges {
    /// Starts from the present revision of PostgreSQL; nothing is remembered yet.
    pub(super) async fn open(
        (store, seal): (Arc<HotStore>, Seal),
        connection: LazyConnection,
        cache: Arc<KeyCache>,
        metrics: ServiceMetrics,
        grace: Duration,
    ) -> Result<Self, ClusterKeyError> {
        let known = connection.run(async |client| rows::revision(client).await).await?;
        cache.seen(known);
        Ok(Self {
            store,
            seal,
            connection,
            cache,
            metrics,
            grace,
            known: AtomicI64::new(known),
            ahead: AtomicI64::new(NONE),
            checked: Mutex::new(Instant::now()),
            reads: AtomicU64::new(0),
            poll: Notify::new(),
            changed: watch::Sender::new(0),
        })
    }

    /// Whether keys that are remembered may be served.
    pub(super) fn are_current(&self) -> bool {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < self.grace
    }

    fn note_check(&self) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// A value that differs after each change.
    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(super) fn tell(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Receives announcements, for ever.
    pub(super) async fn receive(&self) -> Result<(), HotStoreError> {
        let mut news = self.store.subscribe(key_copies::CHANNEL)?;
        loop {
            match news.recv().await {
                Ok(Announcement::Message(id)) => {
                    if let Some(id) = std::str::from_utf8(&id).ok().filter(|id| is_id(id)) {
                        self.cache.invalidate(id);
                        self.tell();
                    }
                }
                Ok(Announcement::Gap) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(()),
            }
            self.poll.notify_one();
        }
    }

    /// Asks PostgreSQL for changes, for ever.
    pub(super) async fn read(&self) {
        loop {
            match self.read_once().await {
                Ok(more) => {
                    self.note_check();
                    self.reads.fetch_add(1, Ordering::AcqRel);
                    self.metrics.polled();
                    if more {
                        continue;
                    }
                }
                Err(error) => debug!("changes of keys cannot be read: {error}"),
            }
            // An announcement does not wait for the end of the interval.
            let _ = timeout(INTERVAL, self.poll.notified()).await;
        }
    }

    /// Reads changes; returns whether there may be more.
    async fn read_once(&self) -> Result<bool, ClusterKeyError> {
        let known = self.known.load(Ordering::Acquire);
        // Keys that were asked for one by one may be newer. It is taken before the statement, which cannot see less then.
        let newest = known.max(self.cache.newest());
        let read = self.connection.run(async |client| {
            // Both statements are sent at once, the revision first: a change that is made in between is read twice, not missed.
            let client = &*client;
            try_join(rows::revision(client), rows::changes(client, known, CHANGES)).await
        });
        let (revision, changes) = read.await?;
        if revision < newest {
            self.go_back(newest, revision);
            return Ok(false);
        }
        let rows::Changed { keys, ids, last } = changes;
        let Some(last) = last else { return Ok(false) };
        for id in ids.iter().filter(|id| keys.iter().all(|key| key.record.id != **id)) {
            // The record cannot be read, so its rights are unknown.
            self.cache.invalidate(id);
        }
        for changed in &keys {
            self.cache.renew(changed);
        }
        self.cache.seen(last);
        self.known.store(last, Ordering::Release);
        self.tell();
        let put = keys.iter().map(|changed| key_copies::put(&self.store, &self.seal, changed, revision));
        let _ = futures::future::join_all(put).await;
        Ok(i64::try_from(ids.len()).unwrap_or(CHANGES) >= CHANGES)
    }

    /// Goes back to the revision of a database that lacks changes which were read from it.
    fn go_back(&self, newest: i64, revision: i64) {
        warn!(
            "the database has lost changes of keys (its revision is {revision}, and was {newest}), as a replica does that \
             became the primary: revoke again what was revoked last"
        );
        self.known.fetch_min(revision, Ordering::AcqRel);
        self.cache.go_back(revision);
        self.tell();
    }

    /// Compares the revision of the store with that of PostgreSQL, for ever.
    pub(super) async fn compare(&self) {
        let mut reads = 0;
        // The last revision of the store that was ahead, and the reads before it was seen.
        let mut seen = (NONE, 0);
        loop {
            tokio::time::sleep(INTERVAL).await;
            let known = self.known.load(Ordering::Acquire);
            let now = self.reads.load(Ordering::Acquire);
            let read = std::mem::replace(&mut reads, now) != now;
            match key_copies::revision(&self.store).await {
                Ok(Some(revision)) if revision > known => {
                    if seen.0 != revision {
                        seen = (revision, self.reads.load(Ordering::Acquire));
                    }
                    // The second read after that began after it: the database does not have this revision (any more).
                    if now >= seen.1.saturating_add(2) {
                        self.ahead.store(revision, Ordering::Release);
                    }
                    self.note_ahead(revision, read);
                }
                Ok(Some(revision)) => {
                    self.note_check();
                    if revision < known && read {
                        let _ = key_copies::raise(&self.store, known).await;
                    }
                }
                // The store was flushed: it says nothing about changes.
                Ok(None) if read => drop(key_copies::raise(&self.store, known).await),
                Ok(None) => {}
                Err(error) => debug!("the revision of keys cannot be compared: {error}"),
            }
        }
    }

    /// The store knows of a change that was not read from PostgreSQL.
    fn note_ahead(&self, revision: i64, read: bool) {
        self.poll.notify_one();
        if read {
            // The next statement reads the change from PostgreSQL. No warning, because the store may have been restored from
            // elsewhere.
            return;
        }
        if self.ahead.swap(revision, Ordering::AcqRel) != revision {
            warn!(
                "keys have changed, and the database cannot be asked how: they are read from the store again"
            );
            self.cache.invalidate_all();
            self.tell();
        }
        self.note_check();
    }
}
