//! Keeps the cached keys of a front end up to date when keys change.
//!
//! Changes are announced over the hot store. Because an announcement can be lost, a front end also asks PostgreSQL for the
//! changes after the last one that it has read, and the store for the revision of the last change, both twice a second.
//!
//! A replica of PostgreSQL that became the primary may lack the last changes. Its revision is then lower than the one that the front end
//! has read, and its next changes could get revisions that the front end has read already. So the front end goes back to
//! the revision of the database, and asks for all keys again.

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

/// Time for which cached keys are served while neither PostgreSQL nor the store can be asked whether they changed, by default.
pub const GRACE: Duration = Duration::from_secs(60);

/// Most changes that are read at a time.
const MAX_CHANGES: i64 = 256;

/// Below all revisions: there is none.
const NO_REVISION: i64 = -1;

/// The changes of keys that a front end has read, and whether it may have missed any.
pub(super) struct KeyChanges {
    store: Arc<HotStore>,
    seal: Seal,
    connection: LazyConnection,
    cache: Arc<KeyCache>,
    metrics: ServiceMetrics,
    grace: Duration,
    /// The revision of the last change that was read from PostgreSQL.
    known: AtomicI64,
    /// The last revision of the store above `known` that needs no further warning: PostgreSQL does not have this revision, or the
    /// warning was given while PostgreSQL did not answer.
    ahead: AtomicI64,
    /// When PostgreSQL or the store last confirmed that no change was missed.
    checked: Mutex<Instant>,
    /// Number of times that PostgreSQL was asked for changes and answered.
    reads: AtomicU64,
    /// Makes [`Self::read`] ask PostgreSQL at once.
    poll: Notify,
    /// A count that differs after each change.
    changed: watch::Sender<u64>,
}

impl KeyChanges {
    /// Starts from the present revision of PostgreSQL; no key is cached yet.
    pub(super) async fn open(
        (store, seal): (Arc<HotStore>, Seal),
        connection: LazyConnection,
        cache: Arc<KeyCache>,
        metrics: ServiceMetrics,
        grace: Duration,
    ) -> Result<Self, ClusterKeyError> {
        let known = connection.run(async |client| rows::revision(client).await).await?;
        cache.note_revision(known);
        Ok(Self {
            store,
            seal,
            connection,
            cache,
            metrics,
            grace,
            known: AtomicI64::new(known),
            ahead: AtomicI64::new(NO_REVISION),
            checked: Mutex::new(Instant::now()),
            reads: AtomicU64::new(0),
            poll: Notify::new(),
            changed: watch::Sender::new(0),
        })
    }

    /// Whether cached keys may be served.
    pub(super) fn are_current(&self) -> bool {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < self.grace
    }

    /// Notes that no change was missed up to now.
    fn note_check(&self) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// A count that differs after each change.
    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Tells the receivers of [`Self::listen`] that keys have changed.
    pub(super) fn notify_listeners(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Receives announcements over the store, for ever. Each one also makes [`Self::read`] ask PostgreSQL at once.
    pub(super) async fn receive(&self) -> Result<(), HotStoreError> {
        let mut announcements = self.store.subscribe(key_copies::CHANNEL)?;
        loop {
            match announcements.recv().await {
                Ok(Announcement::Message(id)) => {
                    if let Some(id) = std::str::from_utf8(&id).ok().filter(|id| is_id(id)) {
                        self.cache.invalidate(id);
                        self.notify_listeners();
                    }
                }
                // Announcements were lost: the changes are read from PostgreSQL below.
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
                    self.metrics.count_poll();
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
        // Look-ups may have read keys with higher revisions. The number is taken before the statement, so that a database that
        // has lost nothing cannot return a lower one.
        let newest = known.max(self.cache.newest_revision());
        let read = self.connection.run(async |client| {
            // Both statements are sent at once, the revision first, because the copies that are put into the store below claim to be
            // right at it. In the other order, a copy could lack a change of the revision at which it claims to be right.
            let client = &*client;
            try_join(rows::revision(client), rows::changes(client, known, MAX_CHANGES)).await
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
            self.cache.update(changed);
        }
        self.cache.note_revision(last);
        self.known.store(last, Ordering::Release);
        self.notify_listeners();
        let put = keys.iter().map(|changed| key_copies::put(&self.store, &self.seal, changed, revision));
        let _ = futures::future::join_all(put).await;
        Ok(i64::try_from(ids.len()).unwrap_or(MAX_CHANGES) >= MAX_CHANGES)
    }

    /// Goes back to the revision of a database that has lost changes which were read from it before.
    fn go_back(&self, newest: i64, revision: i64) {
        warn!(
            "the database has lost changes of keys (its revision is {revision}, and was {newest}), as a replica does that \
             became the primary: revoke again what was revoked last"
        );
        self.known.fetch_min(revision, Ordering::AcqRel);
        self.cache.go_back(revision);
        self.notify_listeners();
    }

    /// Compares the revision of the store with that of PostgreSQL, for ever.
    pub(super) async fn compare(&self) {
        let mut last_reads = 0;
        // The last revision of the store that was above `known`, and the number of reads when it was first seen. `self.ahead` is set
        // from it later.
        let mut first_seen = (NO_REVISION, 0);
        loop {
            tokio::time::sleep(INTERVAL).await;
            let known = self.known.load(Ordering::Acquire);
            let reads = self.reads.load(Ordering::Acquire);
            // Whether PostgreSQL has answered since the last comparison.
            let was_read = std::mem::replace(&mut last_reads, reads) != reads;
            match key_copies::revision(&self.store).await {
                Ok(Some(revision)) if revision > known => {
                    if first_seen.0 != revision {
                        first_seen = (revision, self.reads.load(Ordering::Acquire));
                    }
                    // Of two reads since then the second one began after the revision was seen. So the database does not have
                    // this revision (any more), and no warning follows when the database fails later.
                    if reads >= first_seen.1.saturating_add(2) {
                        self.ahead.store(revision, Ordering::Release);
                    }
                    self.note_ahead(revision, was_read);
                }
                Ok(Some(revision)) => {
                    self.note_check();
                    // Without an answer of PostgreSQL since the last comparison, PostgreSQL may have lost `known` meanwhile.
                    if revision < known && was_read {
                        let _ = key_copies::raise(&self.store, known).await;
                    }
                }
                // The store was emptied: it says nothing about changes.
                Ok(None) if was_read => drop(key_copies::raise(&self.store, known).await),
                Ok(None) => {}
                Err(error) => debug!("the revision of keys cannot be compared: {error}"),
            }
        }
    }

    /// Notes that the store has the revision of a change that was not read from PostgreSQL. `was_read`: PostgreSQL has answered
    /// since the last comparison.
    fn note_ahead(&self, revision: i64, was_read: bool) {
        self.poll.notify_one();
        if was_read {
            // The next statement reads the change from PostgreSQL. There is no warning, because the store may have been restored
            // from a copy of another service.
            return;
        }
        if self.ahead.swap(revision, Ordering::AcqRel) != revision {
            warn!(
                "keys have changed, and the database cannot be asked how: they are read from the store again"
            );
            self.cache.invalidate_all();
            self.notify_listeners();
        }
        // The cached keys may be served further: they were read from the store after the warning, or PostgreSQL does not have the
        // revision.
        self.note_check();
    }
}
