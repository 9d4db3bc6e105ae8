//! Look-ups of keys that a front end does not remember: in the store, then in PostgreSQL.
//!
//! Look-ups are collected: one statement asks for all ids that came up while the last one ran, and every id is asked for
//! once however many requests wait for it. So the database gets one statement at a time from a front end, even if
//! somebody sends keys that do not exist as fast as possible. The store is asked by a task of its own, so that keys that it
//! has do not wait behind those, also while the database stalls.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::{Notify, oneshot};
use tracing::debug;

use super::line::Line;
use super::memory::{Known, Mark, Memory};
use super::metrics::{Level, ServiceMetrics};
use super::rows::{self, Versioned};
use super::shared;
use crate::cluster::store::HotStore;
use crate::keys::Unavailable;

/// Most ids that wait for the store, and most that wait for the database.
const MAX_IDS: usize = 4_096;
/// Most requests that wait for one id.
const MAX_WAITING: usize = 1_024;
/// Ids of one statement.
const BATCH: usize = 256;
/// Most keys that were read from the store and are still to be compared with the database. Beyond it, a key of the store
/// is used once and not remembered.
const MAX_UNCHECKED: usize = 16_384;
/// Pause after the database failed to compare keys.
const CHECK_PAUSE: Duration = Duration::from_millis(250);

type Found = Result<Known, Unavailable>;

/// The look-ups that wait or run.
#[derive(Default)]
struct Pending {
    waiting: HashMap<String, Vec<oneshot::Sender<Found>>>,
    /// Ids that the store is to be asked for.
    queue: VecDeque<String>,
    /// Ids that the store does not have, and the database is to be asked for.
    missing: VecDeque<String>,
    /// Keys of the store that are not compared with the database yet.
    unchecked: HashSet<String>,
}

/// Look-ups of keys.
pub(super) struct Lookups {
    store: Arc<HotStore>,
    line: Line,
    memory: Arc<Memory>,
    metrics: ServiceMetrics,
    pending: Mutex<Pending>,
    asked: Notify,
    missing: Notify,
    unchecked: Notify,
}

impl Lookups {
    pub(super) fn new(
        store: Arc<HotStore>,
        line: Line,
        memory: Arc<Memory>,
        metrics: ServiceMetrics,
    ) -> Self {
        let (pending, asked) = (Mutex::default(), Notify::new());
        let (missing, unchecked) = (Notify::new(), Notify::new());
        Self { store, line, memory, metrics, pending, asked, missing, unchecked }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a key.
    pub(super) async fn find(&self, id: &str) -> Found {
        let (sender, receiver) = oneshot::channel();
        {
            let mut pending = self.pending();
            let Pending { waiting, queue, .. } = &mut *pending;
            let room = queue.len() < MAX_IDS;
            match waiting.get_mut(id) {
                Some(senders) if senders.len() < MAX_WAITING => senders.push(sender),
                None if room => {
                    waiting.insert(id.to_owned(), vec![sender]);
                    queue.push_back(id.to_owned());
                }
                _ => {
                    self.metrics.lookup(Level::Refused);
                    return Err(Unavailable);
                }
            }
        }
        self.asked.notify_one();
        receiver.await.unwrap_or(Err(Unavailable))
    }

    /// Answers look-ups from the store, for ever, and passes on what it does not have.
    pub(super) async fn run(&self) {
        loop {
            let ids = self.next(|pending| &mut pending.queue);
            if ids.is_empty() {
                self.asked.notified().await;
                continue;
            }
            let asked = self.memory.mark();
            let missing = self.ask_store(ids, asked).await;
            for id in self.pass_on(missing) {
                self.metrics.lookup(Level::Refused);
                self.answer(&id, &Err(Unavailable));
            }
        }
    }

    /// Answers look-ups from the database, for ever.
    pub(super) async fn run_database(&self) {
        loop {
            let ids = self.next(|pending| &mut pending.missing);
            if ids.is_empty() {
                self.missing.notified().await;
                continue;
            }
            let asked = self.memory.mark();
            self.ask_database(ids, asked).await;
        }
    }

    fn next(&self, queue: impl FnOnce(&mut Pending) -> &mut VecDeque<String>) -> Vec<String> {
        let mut pending = self.pending();
        let queue = queue(&mut pending);
        let count = queue.len().min(BATCH);
        queue.drain(..count).collect()
    }

    /// Has the database asked for ids; returns those for which there is no room.
    fn pass_on(&self, mut ids: Vec<String>) -> Vec<String> {
        let mut pending = self.pending();
        let room = MAX_IDS.saturating_sub(pending.missing.len());
        let refused = ids.split_off(ids.len().min(room));
        pending.missing.extend(ids);
        drop(pending);
        self.missing.notify_one();
        refused
    }

    fn answer(&self, id: &str, found: &Found) {
        let senders = self.pending().waiting.remove(id);
        for sender in senders.into_iter().flatten() {
            // The request may have been given up.
            let _ = sender.send(found.clone());
        }
    }

    /// Answers from the store; returns the ids that it does not have.
    async fn ask_store(&self, ids: Vec<String>, asked: Mark) -> Vec<String> {
        let found = join_all(ids.iter().map(|id| shared::get(&self.store, id))).await;
        let mut missing = Vec::new();
        for (id, found) in ids.into_iter().zip(found) {
            match found {
                Ok(Some(found)) => {
                    self.metrics.lookup(Level::Store);
                    let record = if self.check_later(&id) {
                        self.memory.put(found, asked)
                    } else {
                        Arc::new(found.record)
                    };
                    self.answer(&id, &Ok(Known::Key(record)));
                }
                _ => missing.push(id),
            }
        }
        missing
    }

    fn check_later(&self, id: &str) -> bool {
        let mut pending = self.pending();
        let room = pending.unchecked.len() < MAX_UNCHECKED;
        if room {
            pending.unchecked.insert(id.to_owned());
            self.unchecked.notify_one();
        }
        room
    }

    async fn ask_database(&self, ids: Vec<String>, asked: Mark) {
        let found = self.line.run(async |client| rows::find(client, &ids).await).await;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                debug!("{} keys cannot be asked for: {error}", ids.len());
                for id in &ids {
                    self.metrics.lookup(Level::Failed);
                    self.answer(id, &Err(Unavailable));
                }
                return;
            }
        };
        let mut missing: HashSet<&String> = ids.iter().collect();
        for key in &found {
            missing.remove(&key.record.id);
            self.metrics.lookup(Level::Database);
            self.memory.seen(key.revision);
            let record = self.memory.put(key.clone(), asked);
            self.answer(&key.record.id, &Ok(Known::Key(record)));
        }
        for id in missing {
            self.metrics.lookup(Level::Absent);
            self.memory.put_absent(id);
            self.answer(id, &Ok(Known::Absent));
        }
        self.put_all(&found).await;
    }

    async fn put_all(&self, found: &[Versioned]) {
        // The store is a copy: what it misses is asked for again.
        let _ = join_all(found.iter().map(|key| shared::put(&self.store, key))).await;
    }

    /// Compares keys of the store with the database, for ever: a server of the store that took over may have lost the
    /// newest changes.
    pub(super) async fn check(&self) {
        loop {
            let ids: Vec<String> = self.pending().unchecked.iter().take(BATCH).cloned().collect();
            if ids.is_empty() {
                self.unchecked.notified().await;
                continue;
            }
            let asked = self.memory.mark();
            match self.line.run(async |client| rows::find(client, &ids).await).await {
                Ok(found) => {
                    let wrong = self.compared(&ids, &found, asked);
                    let _ = join_all(wrong.iter().map(|id| shared::remove(&self.store, id))).await;
                    self.put_all(&found).await;
                }
                Err(error) => {
                    debug!("keys of the store are not compared: {error}");
                    tokio::time::sleep(CHECK_PAUSE).await;
                }
            }
        }
    }

    /// Corrects what is remembered; returns the ids for which the store is wrong.
    fn compared(&self, ids: &[String], found: &[Versioned], asked: Mark) -> Vec<String> {
        let mut absent: HashSet<&String> = ids.iter().collect();
        let (mut wrong, mut again) = (Vec::new(), Vec::new());
        for key in found {
            let id = &key.record.id;
            absent.remove(id);
            match self.memory.correct(key, asked) {
                Some(true) => wrong.push(id.clone()),
                Some(false) => {}
                None => again.push(id),
            }
        }
        for id in &absent {
            self.memory.put_absent(id);
        }
        wrong.extend(absent.into_iter().cloned());
        let mut pending = self.pending();
        for id in ids.iter().filter(|id| !again.contains(id)) {
            pending.unchecked.remove(id);
        }
        wrong
    }
}
