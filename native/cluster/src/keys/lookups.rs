//! Look-ups of keys that a front end has not cached: in the hot store, then in PostgreSQL.
//!
//! Look-ups are collected: one statement asks for all ids that came up while the last one ran, and every id is asked for
//! once however many requests wait for it. So the database gets one statement at a time from a front end, even if
//! a client sends keys that do not exist as fast as possible. The store is asked by a task of its own, so that keys that it
//! has do not wait behind keys that do not exist, also while the database stalls.
//!
//! A copy in the store is used at once if it was right at the last revision of the keys that this front end has read. A copy
//! of another revision may be an old one that an attacker has put back: the database is asked first, and the copy is used
//! only if the database does not answer. Copies that were used are compared with the database afterwards.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use rootlight_server::keys::Unavailable;
use tokio::sync::{Notify, oneshot};
use tracing::debug;

use super::connection::LazyConnection;
use super::key_cache::{CacheVersion, CachedLookup, KeyCache};
use super::key_copies::{self, KeyCopy};
use super::metrics::{LookupOutcome, ServiceMetrics};
use super::rows::{self, VersionedKey};
use crate::Seal;
use crate::store::HotStore;

/// Most ids that wait for the store, and most that wait for the database.
const MAX_IDS: usize = 4_096;
/// Most requests that wait for one id.
const MAX_WAITING: usize = 1_024;
/// Most ids in one statement.
const BATCH: usize = 256;
/// Most keys that were read from the store and are still to be compared with the database. Beyond this number, a key of the
/// store is used once and not cached.
const MAX_UNCHECKED: usize = 16_384;
/// Pause after the database failed to compare keys.
const CHECK_PAUSE: Duration = Duration::from_millis(250);

/// A key, or that there is none; [`Unavailable`] if this could not be found out.
type LookupResult = Result<CachedLookup, Unavailable>;

/// The look-ups that wait or run.
#[derive(Default)]
struct PendingLookups {
    /// Where each id's answer is sent.
    waiting: HashMap<String, Vec<oneshot::Sender<LookupResult>>>,
    /// Ids that the store is to be asked for.
    queue: VecDeque<String>,
    /// Ids that the database is to be asked for, each with the copy in the store, if there is one.
    missing: VecDeque<(String, Option<KeyCopy>)>,
    /// Keys of the store that are not compared with the database yet.
    unchecked: HashSet<String>,
}

/// Look-ups of keys.
pub(super) struct Lookups {
    store: Arc<HotStore>,
    seal: Seal,
    connection: LazyConnection,
    cache: Arc<KeyCache>,
    metrics: ServiceMetrics,
    pending: Mutex<PendingLookups>,
    /// Whether the database answered when it was asked last.
    database_answers: AtomicBool,
    /// Notified when an id is added to `pending.queue`.
    queued: Notify,
    /// Notified when an id is added to `pending.missing`.
    missing: Notify,
    /// Notified when an id is added to `pending.unchecked`.
    unchecked: Notify,
}

impl Lookups {
    pub(super) fn new(
        (store, seal): (Arc<HotStore>, Seal),
        connection: LazyConnection,
        cache: Arc<KeyCache>,
        metrics: ServiceMetrics,
    ) -> Self {
        let (pending, queued) = (Mutex::default(), Notify::new());
        let (missing, unchecked) = (Notify::new(), Notify::new());
        let database_answers = AtomicBool::new(true);
        Self {
            store,
            seal,
            connection,
            cache,
            metrics,
            pending,
            database_answers,
            queued,
            missing,
            unchecked,
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingLookups> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks a key up in the store, and in the database if needed.
    pub(super) async fn find(&self, id: &str) -> LookupResult {
        let receiver = self.wait(id, |pending| {
            let fits = pending.queue.len() < MAX_IDS;
            if fits {
                pending.queue.push_back(id.to_owned());
            }
            fits
        });
        self.queued.notify_one();
        receiver?.await.unwrap_or(Err(Unavailable))
    }

    /// Does the look-ups of a key that does not exist, in the store and in the database, and discards the result. So the time
    /// of the refusal of a key with a wrong secret does not show that its id exists.
    pub(super) async fn refuse(&self, id: &str) -> Result<(), Unavailable> {
        // Only the time matters; the database is asked in any case.
        let _ = key_copies::get(&self.store, &self.seal, id).await;
        let receiver = self.wait(id, |pending| {
            let fits = pending.missing.len() < MAX_IDS;
            if fits {
                pending.missing.push_back((id.to_owned(), None));
            }
            fits
        });
        self.missing.notify_one();
        receiver?.await.unwrap_or(Err(Unavailable)).map(drop)
    }

    /// Makes a request wait for an id. If no other request waits for the id yet, `enqueue` puts it into a queue, and returns
    /// `false` if that queue is full.
    fn wait(
        &self,
        id: &str,
        enqueue: impl FnOnce(&mut PendingLookups) -> bool,
    ) -> Result<oneshot::Receiver<LookupResult>, Unavailable> {
        let (sender, receiver) = oneshot::channel();
        let mut pending = self.pending();
        let waits = match pending.waiting.get_mut(id) {
            Some(senders) if senders.len() < MAX_WAITING => {
                senders.push(sender);
                true
            }
            Some(_) => false,
            None => {
                let fits = enqueue(&mut pending);
                if fits {
                    pending.waiting.insert(id.to_owned(), vec![sender]);
                }
                fits
            }
        };
        drop(pending);
        if !waits {
            self.metrics.count_lookup(LookupOutcome::Refused);
        }
        waits.then_some(receiver).ok_or(Unavailable)
    }

    /// Answers look-ups from the store, for ever, and queues the ids for the database that the store cannot answer.
    pub(super) async fn serve_from_store(&self) {
        loop {
            let ids = self.next_batch(|pending| &mut pending.queue);
            if ids.is_empty() {
                self.queued.notified().await;
                continue;
            }
            let asked_at = self.cache.version();
            let missing = self.ask_store(ids, asked_at).await;
            for (id, copied) in self.queue_for_database(missing) {
                self.answer_without_database(&id, copied, LookupOutcome::Refused);
            }
        }
    }

    /// Answers look-ups from the database, for ever.
    pub(super) async fn serve_from_database(&self) {
        loop {
            let ids = self.next_batch(|pending| &mut pending.missing);
            if ids.is_empty() {
                self.missing.notified().await;
                continue;
            }
            let asked_at = self.cache.version();
            self.ask_database(ids, asked_at).await;
        }
    }

    /// Takes the first ids of a queue.
    fn next_batch<T>(&self, queue: impl FnOnce(&mut PendingLookups) -> &mut VecDeque<T>) -> Vec<T> {
        let mut pending = self.pending();
        let queue = queue(&mut pending);
        let count = queue.len().min(BATCH);
        queue.drain(..count).collect()
    }

    /// Queues ids for the database; returns those that exceed the queue.
    fn queue_for_database(&self, mut ids: Vec<(String, Option<KeyCopy>)>) -> Vec<(String, Option<KeyCopy>)> {
        let mut pending = self.pending();
        let free = MAX_IDS.saturating_sub(pending.missing.len());
        let refused = ids.split_off(ids.len().min(free));
        // Keys that the store has do not wait behind ids that may not exist.
        let (with_copy, without_copy): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|(_, copied)| copied.is_some());
        with_copy.into_iter().for_each(|id| pending.missing.push_front(id));
        pending.missing.extend(without_copy);
        drop(pending);
        self.missing.notify_one();
        refused
    }

    /// Sends the result to all requests that wait for an id.
    fn answer(&self, id: &str, found: &LookupResult) {
        let senders = self.pending().waiting.remove(id);
        for sender in senders.into_iter().flatten() {
            // Sending fails if the request was given up, which needs no handling.
            let _ = sender.send(found.clone());
        }
    }

    /// Answers from the store; returns the ids that the database must be asked for.
    async fn ask_store(&self, ids: Vec<String>, asked_at: CacheVersion) -> Vec<(String, Option<KeyCopy>)> {
        let found = join_all(ids.iter().map(|id| key_copies::get(&self.store, &self.seal, id))).await;
        let mut missing = Vec::new();
        for (id, found) in ids.into_iter().zip(found) {
            match found {
                Ok(Some(found)) if found.right_at == self.cache.newest_revision() => {
                    self.metrics.count_lookup(LookupOutcome::Store);
                    let record = if self.check_later(&id) {
                        self.cache.put(found.key, asked_at)
                    } else {
                        Arc::new(found.key.record)
                    };
                    self.answer(&id, &Ok(CachedLookup::Key(record)));
                }
                // The copy may be an old one, but the database did not answer last. `recheck` asks the database again.
                Ok(Some(found)) if !self.database_answers.load(Ordering::Relaxed) => {
                    self.check_later(&id);
                    self.answer_without_database(&id, Some(found), LookupOutcome::Failed);
                }
                found => missing.push((id, found.ok().flatten())),
            }
        }
        missing
    }

    /// Answers without the database: with the copy in the store, if there is one. Otherwise counts `outcome`.
    fn answer_without_database(&self, id: &str, copied: Option<KeyCopy>, outcome: LookupOutcome) {
        let found = match copied {
            Some(KeyCopy { key: VersionedKey { mut record, .. }, .. }) => {
                self.metrics.count_lookup(LookupOutcome::Store);
                // The database does not answer, so the key may have lost these rights.
                record.rules.operator = false;
                // The record is not remembered, so that the next look-up asks again.
                Ok(CachedLookup::Key(Arc::new(record)))
            }
            None => {
                self.metrics.count_lookup(outcome);
                Err(Unavailable)
            }
        };
        self.answer(id, &found);
    }

    /// Has a key of the store compared with the database later; returns `false` if too many wait for that.
    fn check_later(&self, id: &str) -> bool {
        let mut pending = self.pending();
        let fits = pending.unchecked.len() < MAX_UNCHECKED;
        if fits {
            pending.unchecked.insert(id.to_owned());
            self.unchecked.notify_one();
        }
        fits
    }

    /// Answers from the database, and puts the keys that it has into the store.
    async fn ask_database(&self, ids: Vec<(String, Option<KeyCopy>)>, asked_at: CacheVersion) {
        let (ids, copies): (Vec<String>, Vec<_>) = ids.into_iter().unzip();
        // The rows that the database returns after this line are at least of this revision.
        let right_at = self.cache.newest_revision();
        let found = self.connection.run(async |client| rows::find(client, &ids).await).await;
        self.database_answers.store(found.is_ok(), Ordering::Relaxed);
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                debug!("{} keys cannot be asked for: {error}", ids.len());
                for (id, copied) in ids.iter().zip(copies) {
                    self.answer_without_database(id, copied, LookupOutcome::Failed);
                }
                return;
            }
        };
        let mut missing: HashSet<&String> = ids.iter().collect();
        for key in &found {
            missing.remove(&key.record.id);
            self.metrics.count_lookup(LookupOutcome::Database);
            self.cache.note_revision(key.revision);
            let record = self.cache.put(key.clone(), asked_at);
            self.answer(&key.record.id, &Ok(CachedLookup::Key(record)));
        }
        for id in missing {
            self.metrics.count_lookup(LookupOutcome::Absent);
            self.cache.put_absent(id);
            self.answer(id, &Ok(CachedLookup::Absent));
        }
        self.put_all(&found, right_at).await;
    }

    /// Puts copies into the store.
    async fn put_all(&self, found: &[VersionedKey], right_at: i64) {
        // An error does no harm: for a key that the store lacks, the database is asked.
        let _ =
            join_all(found.iter().map(|key| key_copies::put(&self.store, &self.seal, key, right_at))).await;
    }

    /// Compares keys of the store with the database, for ever: a server of the store that took over may have lost the
    /// newest changes.
    pub(super) async fn recheck(&self) {
        loop {
            let ids: Vec<String> = self.pending().unchecked.iter().take(BATCH).cloned().collect();
            if ids.is_empty() {
                self.unchecked.notified().await;
                continue;
            }
            let (asked_at, right_at) = (self.cache.version(), self.cache.newest_revision());
            let found = self.connection.run(async |client| rows::find(client, &ids).await).await;
            self.database_answers.store(found.is_ok(), Ordering::Relaxed);
            match found {
                Ok(found) => {
                    let wrong = self.correct_cache(&ids, &found, asked_at);
                    let _ = join_all(wrong.iter().map(|id| key_copies::remove(&self.store, id))).await;
                    self.put_all(&found, right_at).await;
                }
                Err(error) => {
                    debug!("keys of the store are not compared: {error}");
                    tokio::time::sleep(CHECK_PAUSE).await;
                }
            }
        }
    }

    /// Corrects the cache by rows of the database; returns the ids for which the store is wrong.
    fn correct_cache(&self, ids: &[String], found: &[VersionedKey], asked_at: CacheVersion) -> Vec<String> {
        let mut absent: HashSet<&String> = ids.iter().collect();
        let (mut wrong, mut again) = (Vec::new(), Vec::new());
        for key in found {
            let id = &key.record.id;
            absent.remove(id);
            match self.cache.correct(key, asked_at) {
                Some(true) => wrong.push(id.clone()),
                Some(false) => {}
                None => again.push(id),
            }
        }
        for id in &absent {
            self.cache.put_absent(id);
        }
        wrong.extend(absent.into_iter().cloned());
        let mut pending = self.pending();
        for id in ids.iter().filter(|id| !again.contains(id)) {
            pending.unchecked.remove(id);
        }
        wrong
    }
}
