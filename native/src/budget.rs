//! How many bytes outsiders can make this process hold: one named budget each for what they send, what they are
//! answered, what upstreams answer, and what recordings are read into.
//!
//! The limits elsewhere hold for one message, one connection or one file; these hold for all of them together. Beyond a
//! budget somebody waits, or gets an error that says so. The sum stays well under 256 MiB with what a process needs
//! besides.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const MIB: usize = 1 << 20;

/// Request bodies and WebSocket messages that are being read or worked on. Six of the longest (5 MiB) fit beside each
/// other; what is read out of one takes about as much again.
static REQUESTS: LazyLock<Shared> = LazyLock::new(|| Shared::new(32 * MIB));

/// Answers being made and answers that clients have not taken yet. Four of the longest (10 MiB) fit beside each other;
/// while one is made, its parts and the memory of its run take about as much again.
static ANSWERS: LazyLock<Budget> = LazyLock::new(|| Budget::new(48 * MIB));

/// Answers of upstreams from their first byte until they are checked. One of the longest fits twice, which is what
/// taking it apart needs, beside many of usual length.
static UPSTREAMS: LazyLock<Budget> = LazyLock::new(|| Budget::new(64 * MIB));

/// All recordings of a process: what compressed files come to in memory, and the index of every file. Files that are
/// not compressed are read where they are and only indexed.
static RECORDINGS: LazyLock<Budget> = LazyLock::new(|| Budget::new(192 * MIB));

/// The budget of what clients send, half of it at most for one address.
pub fn requests() -> &'static Shared {
    &REQUESTS
}

/// The budget of what clients are answered.
pub fn answers() -> &'static Budget {
    &ANSWERS
}

/// The budget of what upstreams answer.
pub fn upstreams() -> &'static Budget {
    &UPSTREAMS
}

/// How long a refusal is remembered.
const REFUSAL_MS: u64 = 3_000;

/// Answers up to this long are not counted: even one for each connection there can be comes to 64 MiB, and hardly any
/// stays here, since the system takes more than that for sending at once.
const SMALL_ANSWER: usize = 16 * 1024;

/// Answers that may wait at the same time to be counted after they were made, and for how long.
const LATE_ANSWERS: usize = 32;
const LATE_ANSWER: Duration = Duration::from_secs(5);

/// Bytes for an answer that is made already; `None` where too many answers are waiting to be taken.
pub async fn hold_answer(bytes: usize) -> Option<Held> {
    if bytes <= SMALL_ANSWER {
        return Some(Held::default());
    }
    match ANSWERS.try_take(bytes) {
        None if ANSWERS.waiting.load(Ordering::Relaxed) < LATE_ANSWERS => {
            ANSWERS.take_within(bytes, LATE_ANSWER).await
        }
        None => ANSWERS.take_or_refuse(bytes),
        held => held,
    }
}

/// What somebody is told for whose request or answer there is no room.
pub const NO_ROOM: &str = "Limit exceeded: too many bytes are waiting to be read or taken; try again";

/// The budget of recordings.
pub fn recordings() -> &'static Budget {
    &RECORDINGS
}

/// Bytes are counted in units of this many, so that the count fits a semaphore.
const UNIT: usize = 1024;

/// A number of bytes that may be held at the same time.
#[derive(Debug)]
pub struct Budget {
    units: Arc<Semaphore>,
    all: usize,
    waiting: AtomicUsize,
    /// When somebody was last refused, milliseconds.
    refused: AtomicU64,
}

/// Bytes of a budget; given back when dropped.
#[derive(Debug, Default)]
pub struct Held(Option<OwnedSemaphorePermit>);

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let all = bytes / UNIT;
        Self {
            units: Arc::new(Semaphore::new(all)),
            all,
            waiting: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes bytes, in the order of those who ask; more than all of them are taken for all.
    pub async fn take(&self, bytes: usize) -> Held {
        if let Some(held) = self.try_take(bytes) {
            return held;
        }
        let _waiting = Waiting::new(&self.waiting);
        // The semaphore is never closed.
        Held(self.units.clone().acquire_many_owned(self.units_of(bytes)).await.ok())
    }

    /// As [`Self::take`], for no longer than a while.
    pub async fn take_within(&self, bytes: usize, limit: Duration) -> Option<Held> {
        tokio::time::timeout(limit, self.take(bytes)).await.ok()
    }

    /// Takes bytes if they are free.
    #[must_use]
    pub fn try_take(&self, bytes: usize) -> Option<Held> {
        let permit = self.units.clone().try_acquire_many_owned(self.units_of(bytes)).ok()?;
        Some(Held(Some(permit)))
    }

    /// As [`Self::try_take`] for somebody who cannot wait: others notice it as they notice who waits.
    #[must_use]
    pub fn take_or_refuse(&self, bytes: usize) -> Option<Held> {
        let held = self.try_take(bytes);
        if held.is_none() {
            self.refused.store(milliseconds(), Ordering::Relaxed);
        }
        held
    }

    /// All bytes there are.
    #[must_use]
    pub fn all(&self) -> usize {
        self.all * UNIT
    }

    /// Whether somebody waits for bytes, or was just refused some: then those who hold some without making use of them
    /// have to give way.
    #[must_use]
    pub fn is_contended(&self) -> bool {
        let refused = self.refused.load(Ordering::Relaxed);
        self.waiting.load(Ordering::Relaxed) > 0 || (refused > 0 && milliseconds() < refused + REFUSAL_MS)
    }

    fn units_of(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT).min(self.all)).unwrap_or(u32::MAX)
    }
}

/// A budget of which one asker gets half at most.
#[derive(Debug)]
pub struct Shared {
    all: Budget,
    /// What each asker may take, as long as anybody takes any.
    each: Mutex<BTreeMap<u64, Arc<Budget>>>,
}

/// Bytes of a shared budget; given back when dropped.
#[derive(Debug, Default)]
pub struct Share {
    held: Held,
    own: Held,
    of: Option<Arc<Budget>>,
}

/// Askers whose shares are remembered although they hold nothing.
const MAX_SHARES: usize = 1_024;

impl Shared {
    fn new(bytes: usize) -> Self {
        Self { all: Budget::new(bytes), each: Mutex::default() }
    }

    fn share_of(&self, asker: u64) -> Arc<Budget> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if each.len() > MAX_SHARES {
            each.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = || Arc::new(Budget::new(self.all.all() / 2));
        each.entry(asker).or_insert_with(share).clone()
    }

    /// Takes bytes for an asker, for no longer than a while.
    pub async fn take_within(&self, asker: u64, bytes: usize, limit: Duration) -> Option<Share> {
        let of = self.share_of(asker);
        let taking = async {
            let own = of.take(bytes).await;
            (own, self.all.take(bytes).await)
        };
        let (own, held) = tokio::time::timeout(limit, taking).await.ok()?;
        Some(Share { held, own, of: Some(of) })
    }

    /// Takes bytes for an asker who cannot wait: others notice it as they notice who waits.
    #[must_use]
    pub fn take_or_refuse(&self, asker: u64, bytes: usize) -> Option<Share> {
        let of = self.share_of(asker);
        let own = of.take_or_refuse(bytes)?;
        Some(Share { held: self.all.take_or_refuse(bytes)?, own, of: Some(of) })
    }
}

impl Share {
    /// Bytes held, rounded up.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Whether somebody waits for what is held here.
    #[must_use]
    pub fn is_contended(&self) -> bool {
        REQUESTS.all.is_contended() || self.of.as_ref().is_some_and(|of| of.is_contended())
    }

    /// Adds other bytes of the same asker.
    pub fn merge(&mut self, other: Self) {
        self.held.merge(other.held);
        self.own.merge(other.own);
        self.of = self.of.take().or(other.of);
    }
}

impl Held {
    /// Bytes held, rounded up.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |permit| permit.num_permits() * UNIT)
    }

    /// Gives back all but so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes().saturating_sub(bytes.div_ceil(UNIT) * UNIT) / UNIT;
        if let Some(permit) = &mut self.0 {
            drop(permit.split(surplus));
        }
    }

    /// Adds other bytes of the same budget.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(mine), Some(more)) => mine.merge(more),
            (mine @ None, more) => *mine = more,
            (Some(_), None) => {}
        }
    }
}

/// Milliseconds since the process began to count, at least one.
pub(crate) fn milliseconds() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

/// Counts somebody who waits, however the waiting ends.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_asker_gets_half() {
        let shared = Shared::new(8 * UNIT);
        let moment = Duration::from_millis(20);
        let greedy = shared.take_within(1, 3 * UNIT, moment).await.unwrap();
        assert!(shared.take_within(1, 2 * UNIT, moment).await.is_none());
        assert!(shared.take_or_refuse(1, 2 * UNIT).is_none() && greedy.is_contended());
        let mut other = shared.take_or_refuse(2, 3 * UNIT).unwrap();
        other.merge(shared.take_or_refuse(2, UNIT).unwrap());
        assert_eq!((greedy.bytes(), other.bytes()), (3 * UNIT, 4 * UNIT));
        assert!(shared.take_or_refuse(3, 2 * UNIT).is_none(), "there is an end to all of it");
        drop((greedy, other));
        assert!(shared.take_or_refuse(3, 4 * UNIT).is_some());
    }

    #[tokio::test]
    async fn what_is_held_is_missing_until_it_is_given_back() {
        let budget = Budget::new(10 * UNIT);
        let mut held = budget.take(6 * UNIT).await;
        assert!(budget.try_take(5 * UNIT).is_none() && !budget.is_contended());
        let moment = Duration::from_millis(20);
        assert!(budget.take_within(5 * UNIT, moment).await.is_none());
        held.shrink_to(UNIT + 1);
        assert_eq!(held.bytes(), 2 * UNIT);
        let more = budget.take_within(8 * UNIT, moment).await.unwrap();
        held.merge(more);
        assert_eq!(held.bytes(), 10 * UNIT);
        let waiting = budget.take(usize::MAX);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(moment, waiting.as_mut()).await.is_err());
        assert!(budget.is_contended());
        drop(held);
        assert_eq!(waiting.await.bytes(), 10 * UNIT, "all there is");
        assert!(!budget.is_contended());
    }
}
