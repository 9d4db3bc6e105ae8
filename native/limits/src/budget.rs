//! Budgets of memory: limits of the bytes that are held at the same time.
//!
//! Other limits bound one message, one connection or one file; a budget bounds the sum over all of them. When a budget is
//! used up, further requests wait or get the error [`BUDGET_USED_UP`]. The budgets of a server are in [`Limits`](crate::Limits);
//! with them a server under attack stays below 256 MiB of resident memory (`cargo xtask abuse`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::quota_owner::QuotaOwner;

/// For how long a budget counts as contended after a refusal, in milliseconds.
const CONTENDED_AFTER_REFUSAL_MS: u64 = 3_000;

/// For how long a budget counts as contended after a refusal.
pub const CONTENDED_AFTER_REFUSAL: Duration = Duration::from_millis(CONTENDED_AFTER_REFUSAL_MS);

/// The number of unsent bytes of a connection that no budget counts. For 4,096 connections, as many as a server has by default
/// besides WebSockets, they make 64 MiB, but hardly any of them stay in memory: the send buffer of a socket takes more than this
/// at once.
pub const SMALL_ANSWER: usize = 16 * 1024;

/// The largest number of messages that wait in [`Budget::take_soon`]. A waiting message holds other bytes meanwhile, so that
/// too many of them would use up the budgets.
const MAX_WAITING_ANSWERS: usize = 32;

/// The longest time for which a message waits in `take_soon`.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// The error message when too few bytes of a budget are free for a request or an answer.
pub const BUDGET_USED_UP: &str =
    "Limit exceeded: too many bytes of requests and answers are pending; try again";

/// Bytes are counted in units of this size, so that the count of a large budget fits the `u32` with which permits of a
/// semaphore are acquired.
const UNIT: usize = 1024;

/// A limit of the bytes that are reserved at the same time.
#[derive(Debug)]
pub struct Budget {
    /// The units that are free.
    units: Arc<Semaphore>,
    /// The size in units.
    total_units: usize,
    /// The number of callers that wait for bytes.
    waiting: AtomicUsize,
    /// The time of the last refusal, as [`milliseconds`]; zero for none.
    refused: AtomicU64,
}

/// Bytes taken from a budget. Dropping them gives them back.
#[derive(Debug, Default)]
pub struct Reservation {
    /// One permit of the budget's semaphore for each unit; `None` if no bytes are reserved.
    permit: Option<OwnedSemaphorePermit>,
    /// The permits for the same bytes in narrower limits, if they count there too.
    narrower: Vec<(SubBudget, OwnedSemaphorePermit)>,
}

/// A narrower limit that bytes of a budget also count in. A source is an upstream or a peer.
#[derive(Debug, Clone, Copy)]
pub enum SubBudget {
    /// The limit of one caller, or of one source.
    CallerOrSource = 0,
    /// The limit of all sources of a kind, such as all peers.
    Kind = 1,
    /// The limit of the responses that one source sends for callers.
    CallersOfSource = 2,
    /// The limit of the responses that all sources send for callers.
    Callers = 3,
    /// The limit of the pages of other origins of a caller.
    Pages = 4,
}

/// The number of values of [`SubBudget`].
const SUB_BUDGETS: usize = 5;

impl Budget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let total_units = bytes / UNIT;
        Self {
            units: Arc::new(Semaphore::new(total_units)),
            total_units,
            waiting: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Waits for bytes and takes them, in the order of the calls. A request for more than the whole budget takes the
    /// whole budget.
    pub async fn take(&self, bytes: usize) -> Reservation {
        if let Some(reserved) = self.try_take(bytes) {
            return reserved;
        }
        let _waiting = Waiting::new(&self.waiting);
        // The semaphore is never closed.
        let permit = self.units.clone().acquire_many_owned(self.units_of(bytes)).await.ok();
        Reservation { permit, ..Reservation::default() }
    }

    /// As [`Self::take`]; returns `None` after `limit`.
    pub async fn take_within(&self, bytes: usize, limit: Duration) -> Option<Reservation> {
        tokio::time::timeout(limit, self.take(bytes)).await.ok()
    }

    /// Takes bytes for a message that is being answered. Few callers wait, and not for long, because they hold other
    /// bytes meanwhile; the others are refused at once.
    pub async fn take_soon(&self, bytes: usize) -> Option<Reservation> {
        match self.try_take(bytes) {
            None if self.waiting.load(Ordering::Relaxed) < MAX_WAITING_ANSWERS => {
                self.take_within(bytes, ANSWER_WAIT).await
            }
            None => self.take_or_refuse(bytes),
            reserved => reserved,
        }
    }

    /// Takes bytes if they are free now.
    #[must_use]
    pub fn try_take(&self, bytes: usize) -> Option<Reservation> {
        let permit = self.units.clone().try_acquire_many_owned(self.units_of(bytes)).ok()?;
        Some(Reservation { permit: Some(permit), ..Reservation::default() })
    }

    /// As [`Self::try_take`], for callers that cannot wait. A refusal makes the budget contended, as waiting does.
    #[must_use]
    pub fn take_or_refuse(&self, bytes: usize) -> Option<Reservation> {
        let reserved = self.try_take(bytes);
        if reserved.is_none() {
            self.refused.store(milliseconds(), Ordering::Relaxed);
        }
        reserved
    }

    /// The size of the budget in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.total_units * UNIT
    }

    /// The number of bytes that are taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.size().saturating_sub(self.units.available_permits().saturating_mul(UNIT))
    }

    /// Whether a caller waits for bytes or was refused within the last [`CONTENDED_AFTER_REFUSAL`]. Holders of bytes that make no progress
    /// must then give them back.
    #[must_use]
    pub fn is_contended(&self) -> bool {
        let refused = self.refused.load(Ordering::Relaxed);
        self.waiting.load(Ordering::Relaxed) > 0
            || (refused > 0 && milliseconds() < refused + CONTENDED_AFTER_REFUSAL_MS)
    }

    /// The units for this many bytes, at most those of the whole budget.
    fn units_of(&self, bytes: usize) -> u32 {
        // Budgets are far below the 4 TiB whose units exceed a `u32`.
        u32::try_from(bytes.div_ceil(UNIT).min(self.total_units)).unwrap_or(u32::MAX)
    }
}

/// A budget of which one caller ([`QuotaOwner::number`]) gets at most a part, and all its pages of other origins at most half
/// of that part.
#[derive(Debug)]
pub struct SharedBudget {
    all: Budget,
    /// Bytes of one caller.
    each: usize,
    /// The part of each caller, under the owner that is no page, and the part of its pages, under the one that is.
    parts: Mutex<BTreeMap<QuotaOwner, Arc<Budget>>>,
}

/// The number of parts above which those with no reserved bytes are removed.
const MAX_PARTS: usize = 1_024;

impl SharedBudget {
    /// A budget of this many bytes, of which one caller gets `each`.
    pub fn new(bytes: usize, each: usize) -> Self {
        Self { all: Budget::new(bytes), each, parts: Mutex::default() }
    }

    /// Waits for bytes for an owner and takes them; returns `None` after `limit`.
    pub async fn take_within(&self, owner: QuotaOwner, bytes: usize, limit: Duration) -> Option<Reservation> {
        let taking = async {
            let mut reserved = Reservation::default();
            for (sub_budget, part) in self.parts_of(owner) {
                reserved = reserved.also(sub_budget, part.take(bytes).await);
            }
            reserved.merge(self.all.take(bytes).await);
            reserved
        };
        tokio::time::timeout(limit, taking).await.ok()
    }

    /// The budget of all callers together.
    #[must_use]
    pub const fn all(&self) -> &Budget {
        &self.all
    }

    /// As [`Budget::take_soon`], for an owner. The waits for the parts and for the whole budget are together as long as one
    /// wait of [`Budget::take_soon`].
    pub async fn take_soon(&self, owner: QuotaOwner, bytes: usize) -> Option<Reservation> {
        let taking = async {
            let mut reserved = Reservation::default();
            for (sub_budget, part) in self.parts_of(owner) {
                reserved = reserved.also(sub_budget, part.take_soon(bytes).await?);
            }
            reserved.merge(self.all.take_soon(bytes).await?);
            Some(reserved)
        };
        tokio::time::timeout(ANSWER_WAIT, taking).await.ok().flatten()
    }

    /// Takes bytes for an owner if they are free now. A refusal makes the budget contended, as waiting does.
    #[must_use]
    pub fn take_or_refuse(&self, owner: QuotaOwner, bytes: usize) -> Option<Reservation> {
        let mut reserved = Reservation::default();
        for (sub_budget, part) in self.parts_of(owner) {
            reserved = reserved.also(sub_budget, part.take_or_refuse(bytes)?);
        }
        reserved.merge(self.all.take_or_refuse(bytes)?);
        Some(reserved)
    }

    /// Whether a request waits for bytes of this budget or of a part that the owner can take.
    pub fn is_contended(&self, owner: QuotaOwner) -> bool {
        let parts = self.parts();
        let is_contended = |owner: QuotaOwner| parts.get(&owner).is_some_and(|part| part.is_contended());
        self.all.is_contended() || is_contended(owner.number.into()) || is_contended(owner)
    }

    /// The budgets in which the bytes of an owner count, the narrowest first, so that an owner which waits for its own part
    /// holds no bytes of a wider limit meanwhile.
    fn parts_of(&self, owner: QuotaOwner) -> impl Iterator<Item = (SubBudget, Arc<Budget>)> {
        let pages = owner.is_page.then(|| (SubBudget::Pages, self.part(owner, self.each / 2)));
        let caller = (SubBudget::CallerOrSource, self.part(owner.number.into(), self.each));
        pages.into_iter().chain([caller])
    }

    /// The part of an owner, which is made with this size if it is missing.
    fn part(&self, owner: QuotaOwner, bytes: usize) -> Arc<Budget> {
        let mut parts = self.parts();
        if parts.len() > MAX_PARTS {
            // A part with reserved bytes stays: their permits refer to its semaphore, and a new part would not count them.
            parts.retain(|_, part| Arc::strong_count(part) > 1 || Arc::strong_count(&part.units) > 1);
        }
        parts.entry(owner).or_insert_with(|| Arc::new(Budget::new(bytes))).clone()
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<QuotaOwner, Arc<Budget>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// The number of reserved bytes, rounded up to whole units.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, |permit| permit.num_permits() * UNIT)
    }

    /// Adds the reservation of the same bytes in a narrower limit.
    #[must_use]
    pub fn also(mut self, sub_budget: SubBudget, narrower: Self) -> Self {
        self.narrower.extend(narrower.permit.map(|permit| (sub_budget, permit)));
        self
    }

    /// Gives back all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        drop(self.split(self.bytes().saturating_sub(bytes.div_ceil(UNIT) * UNIT)));
    }

    /// Splits off at most `bytes`.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT);
        let part =
            |permit: &mut OwnedSemaphorePermit, units: usize| permit.split(units.min(permit.num_permits()));
        let mut off =
            Self { permit: self.permit.as_mut().and_then(|permit| part(permit, units)), ..Self::default() };
        // One kind of limit can have several permits, each of another semaphore, after reservations of different sources were
        // merged. Together they give up as many units as the whole budget.
        let mut left = [units; SUB_BUDGETS];
        for (sub_budget, permit) in &mut self.narrower {
            let left = &mut left[*sub_budget as usize];
            if let Some(taken) = part(permit, *left) {
                *left -= taken.num_permits();
                off.narrower.push((*sub_budget, taken));
            }
        }
        off
    }

    /// Adds bytes of the same budget.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.permit, other.permit) {
            (Some(mine), Some(more)) => mine.merge(more),
            (mine @ None, more) => *mine = more,
            (Some(_), None) => {}
        }
        for (sub_budget, more) in other.narrower {
            let same = |mine: &OwnedSemaphorePermit| Arc::ptr_eq(mine.semaphore(), more.semaphore());
            match self.narrower.iter_mut().find(|(_, mine)| same(mine)) {
                Some((_, mine)) => mine.merge(more),
                None => self.narrower.push((sub_budget, more)),
            }
        }
    }
}

/// Milliseconds since some moment before the first call of this function, at least one.
pub fn milliseconds() -> u64 {
    // The clock of tokio can be stopped in a test, which then reads earlier times than other tests of its process. The start
    // lies an hour back, so that no test reads a time before it.
    const BEFORE: Duration = Duration::from_secs(3_600);
    // A static, because all readings count from the same moment.
    static START: LazyLock<Instant> =
        LazyLock::new(|| Instant::now().checked_sub(BEFORE).unwrap_or_else(Instant::now));
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

/// Counts a waiting caller until it is dropped, also if the wait is cancelled.
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

    #[tokio::test(start_paused = true)]
    async fn one_caller_gets_at_most_its_part_of_a_shared_budget() {
        let shared = SharedBudget::new(8 * UNIT, 4 * UNIT);
        let moment = Duration::from_millis(20);
        let [one, two, three] = [1, 2, 3].map(QuotaOwner::from);
        let greedy = shared.take_within(one, 3 * UNIT, moment).await.unwrap();
        assert!(shared.take_within(one, 2 * UNIT, moment).await.is_none());
        assert!(shared.take_or_refuse(one, 2 * UNIT).is_none());
        assert!(shared.is_contended(one) && !shared.is_contended(two));
        let mut other = shared.take_or_refuse(two, 3 * UNIT).unwrap();
        other.merge(shared.take_or_refuse(two, UNIT).unwrap());
        assert_eq!((greedy.bytes(), other.bytes()), (3 * UNIT, 4 * UNIT));
        assert!(shared.take_or_refuse(three, 2 * UNIT).is_none(), "the whole budget is limited too");
        drop((greedy, other));
        assert!(shared.take_or_refuse(three, 4 * UNIT).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_its_part_and_the_whole_budget_no_longer_than_for_one() {
        let shared = Arc::new(SharedBudget::new(8 * UNIT, 4 * UNIT));
        let [one, two, three] = [1, 2, 3].map(QuotaOwner::from);
        let own = shared.take_or_refuse(one, 4 * UNIT).unwrap();
        let other = shared.take_or_refuse(two, 4 * UNIT).unwrap();
        let (waiting, began) = (shared.clone(), Instant::now());
        let answer = tokio::spawn(async move { waiting.take_soon(one, UNIT).await });
        tokio::time::sleep(ANSWER_WAIT.mul_f32(0.75)).await;
        // The part of the caller is free now, and the whole budget is not.
        drop(own);
        let _third = shared.take_or_refuse(three, 4 * UNIT).unwrap();
        assert!(answer.await.unwrap().is_none());
        assert_eq!(began.elapsed().as_secs(), ANSWER_WAIT.as_secs());
        assert!(shared.take_or_refuse(one, UNIT).is_none());
        drop(other);
        assert!(shared.take_soon(one, 4 * UNIT).await.is_some(), "the refused answer holds nothing");
    }

    /// A page in the operator's browser has the address of the operator's wallet.
    #[tokio::test(start_paused = true)]
    async fn the_pages_of_a_caller_leave_half_of_its_part_to_its_programs() {
        let shared = SharedBudget::new(16 * UNIT, 8 * UNIT);
        let moment = Duration::from_millis(20);
        let (program, pages) = (QuotaOwner::from(1), QuotaOwner { number: 1, is_page: true });
        let mut reserved = shared.take_or_refuse(pages, 3 * UNIT).unwrap();
        reserved.merge(shared.take_within(pages, UNIT, moment).await.unwrap());
        assert!(shared.take_or_refuse(pages, UNIT).is_none());
        assert!(shared.take_within(pages, UNIT, moment).await.is_none());
        assert!(shared.is_contended(pages) && !shared.is_contended(program), "programs have time");
        let mut own = shared.take_or_refuse(program, 4 * UNIT).unwrap();
        assert!(shared.take_or_refuse(program, UNIT).is_none(), "pages count in the caller's part");
        reserved.shrink_to(UNIT);
        own.merge(shared.take_or_refuse(program, 3 * UNIT).unwrap());
        assert!(shared.take_or_refuse(pages, UNIT).is_none(), "programs may take what pages leave");
        drop((own, reserved));
        assert!(shared.take_or_refuse(pages, 4 * UNIT).is_some());
    }

    #[tokio::test]
    async fn bytes_of_several_shares_are_merged_split_and_given_back() {
        let (all, one, two) = (Budget::new(10 * UNIT), Budget::new(4 * UNIT), Budget::new(4 * UNIT));
        let of = |share: &Budget, units: usize| {
            all.try_take(units * UNIT)
                .unwrap()
                .also(SubBudget::CallerOrSource, share.try_take(units * UNIT).unwrap())
        };
        let mut reserved = of(&one, 3);
        reserved.merge(of(&two, 4));
        reserved.merge(of(&one, 1));
        assert_eq!(
            (reserved.bytes(), all.taken(), one.taken(), two.taken()),
            (8 * UNIT, 8 * UNIT, 4 * UNIT, 4 * UNIT)
        );
        let part = reserved.split(5 * UNIT);
        assert_eq!((part.bytes(), reserved.bytes()), (5 * UNIT, 3 * UNIT));
        drop(part);
        assert_eq!((all.taken(), one.taken() + two.taken()), (3 * UNIT, 3 * UNIT));
        reserved.shrink_to(UNIT);
        assert_eq!((all.taken(), one.taken() + two.taken()), (UNIT, UNIT));
        assert_eq!(reserved.split(9 * UNIT).bytes(), UNIT, "not more than is held");
        assert_eq!((all.taken(), one.taken(), two.taken()), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn reserved_bytes_are_not_available_until_they_are_given_back() {
        let budget = Budget::new(10 * UNIT);
        let mut reserved = budget.take(6 * UNIT).await;
        assert!(budget.try_take(5 * UNIT).is_none() && !budget.is_contended());
        let moment = Duration::from_millis(20);
        assert!(budget.take_within(5 * UNIT, moment).await.is_none());
        reserved.shrink_to(UNIT + 1);
        assert_eq!(reserved.bytes(), 2 * UNIT);
        let more = budget.take_within(8 * UNIT, moment).await.unwrap();
        reserved.merge(more);
        assert_eq!(reserved.bytes(), 10 * UNIT);
        let waiting = budget.take(usize::MAX);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(moment, waiting.as_mut()).await.is_err());
        assert!(budget.is_contended());
        drop(reserved);
        assert_eq!(waiting.await.bytes(), 10 * UNIT, "the whole budget");
        assert!(!budget.is_contended());
    }
}
