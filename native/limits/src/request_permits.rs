//! Permits for requests to one peer, node or index, by caller.
//!
//! A peer takes few requests at a time, and sends no response about data that it lacks: such a request keeps its permit until
//! its time limit. So callers take turns, and no caller gets all permits. A caller whose requests got no response counts as
//! doubtful for a while, and all doubtful callers together have few permits. Synchronization has permits of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::quota_owner::QuotaOwner;
use crate::runs::RoundRobin;

/// Most requests of one caller that wait for a permit; bounds memory. Further ones fail at once.
const MAX_WAITING: usize = 1_024;

/// How long each request without a response makes a caller doubtful: four times as long as the request waited for a response
/// of a peer (6 s).
const DOUBT: Duration = Duration::from_secs(24);

/// The longest time for which a caller stays doubtful after its last request without a response.
const LONGEST_DOUBT: Duration = Duration::from_secs(120);

/// Most callers that are doubtful. Beyond it all are forgotten, which bounds memory.
const MAX_DOUBTFUL: usize = 1_024;

/// How many permits there are, and how they are shared.
#[derive(Debug, Clone, Copy)]
pub struct PermitLimits {
    /// All permits.
    pub all: usize,
    /// The most that one caller has at a time.
    pub each: usize,
    /// The most that all doubtful callers have together.
    pub doubtful: usize,
}

/// The permits for one kind of request.
pub struct RequestPermits {
    limits: PermitLimits,
    state: Mutex<PermitState>,
}

#[derive(Default)]
struct PermitState {
    /// The number of permits of each caller that has some; `None` is the program itself, here and below.
    taken: BTreeMap<Option<QuotaOwner>, usize>,
    /// The waiting requests of each caller, in the order in which they came. A permit is given through the sender.
    waiting: RoundRobin<Option<QuotaOwner>, VecDeque<oneshot::Sender<RequestPermit>>>,
    /// The time until which each doubtful caller counts as doubtful.
    doubtful: BTreeMap<Option<QuotaOwner>, Instant>,
}

/// The right to send one request. Dropping it gives the permit to the next caller.
pub struct RequestPermit {
    permits: Arc<RequestPermits>,
    owner: Option<QuotaOwner>,
    /// Whether the permit is still counted in `taken`. If the waiting caller is gone, the permit is given back before it is
    /// dropped, and dropping it must not free it again.
    counted: bool,
}

impl RequestPermits {
    /// All permits are free at first.
    #[must_use]
    pub fn new(limits: PermitLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, PermitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit; `None` if the caller would have to wait.
    pub fn try_acquire(self: &Arc<Self>, owner: Option<QuotaOwner>) -> Option<RequestPermit> {
        self.take(&mut self.state(), owner)
    }

    /// Waits for a permit; `None` if too many requests of this caller wait.
    pub async fn acquire(self: &Arc<Self>, owner: Option<QuotaOwner>) -> Option<RequestPermit> {
        let receiver = {
            let mut state = self.state();
            if let Some(permit) = self.take(&mut state, owner) {
                return Some(permit);
            }
            let queue = state.waiting.of(owner);
            if queue.len() >= MAX_WAITING {
                // Requests that were cancelled while they waited do not count.
                queue.retain(|waiting| !waiting.is_closed());
            }
            if queue.len() >= MAX_WAITING {
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            queue.push_back(sender);
            receiver
        };
        receiver.await.ok()
    }

    /// Takes a permit if the caller may have one now.
    fn take(self: &Arc<Self>, state: &mut PermitState, owner: Option<QuotaOwner>) -> Option<RequestPermit> {
        state.may_take(owner, self.limits, Instant::now()).then(|| self.give(state, owner))
    }

    /// Makes a permit and counts it as taken.
    fn give(self: &Arc<Self>, state: &mut PermitState, owner: Option<QuotaOwner>) -> RequestPermit {
        *state.taken.entry(owner).or_default() += 1;
        RequestPermit { permits: self.clone(), owner, counted: true }
    }

    /// Frees a permit, and gives permits to all waiting requests that may have one now.
    fn leave(self: &Arc<Self>, owner: Option<QuotaOwner>) {
        let (mut state, now) = (self.state(), Instant::now());
        state.give_back(owner);
        while let Some((next, sender)) = state.next(self.limits, now) {
            // Sending fails if the waiting request was cancelled. The permit must not lock the state again when it is dropped.
            if let Err(mut permit) = sender.send(self.give(&mut state, next)) {
                permit.counted = false;
                state.give_back(next);
            }
        }
    }

    /// Notes that a request of this caller got no response.
    fn doubt(&self, owner: Option<QuotaOwner>) {
        let (mut state, now) = (self.state(), Instant::now());
        state.doubtful.retain(|_, until| *until > now);
        if state.doubtful.len() >= MAX_DOUBTFUL {
            state.doubtful.clear();
        }
        let until = state.doubtful.entry(owner).or_insert(now);
        *until = (*until + DOUBT).min(now + LONGEST_DOUBT);
    }
}

impl PermitState {
    /// Whether a caller may have a further permit.
    fn may_take(&self, owner: Option<QuotaOwner>, limits: PermitLimits, now: Instant) -> bool {
        let is_doubtful =
            |owner: &Option<QuotaOwner>| self.doubtful.get(owner).is_some_and(|until| *until > now);
        let taken_in_doubt = || -> usize {
            self.taken.iter().filter(|(owner, _)| is_doubtful(owner)).map(|(_, taken)| taken).sum()
        };
        self.taken.values().sum::<usize>() < limits.all
            && self.taken.get(&owner).is_none_or(|taken| *taken < limits.each)
            && (!is_doubtful(&owner) || taken_in_doubt() < limits.doubtful)
    }

    /// Counts a permit as free.
    fn give_back(&mut self, owner: Option<QuotaOwner>) {
        let taken = self.taken.get(&owner).map_or(0, |taken| taken.saturating_sub(1));
        match taken {
            0 => drop(self.taken.remove(&owner)),
            taken => drop(self.taken.insert(owner, taken)),
        }
    }

    /// Takes the first waiting request of the next caller, in the order of turns, that may have a permit.
    fn next(
        &mut self,
        limits: PermitLimits,
        now: Instant,
    ) -> Option<(Option<QuotaOwner>, oneshot::Sender<RequestPermit>)> {
        let next = self.waiting.in_turn().map(|(owner, _)| *owner);
        // The braces end the life of the iterator with this statement: it borrows the queue, which `serve` changes.
        let owner = { next }.find(|owner| self.may_take(*owner, limits, now))?;
        let (sender, _) = self.waiting.serve(owner, |queue| (queue.pop_front(), queue.is_empty()));
        Some((owner, sender?))
    }
}

impl RequestPermit {
    /// The caller; `None` is the program itself.
    #[must_use]
    pub const fn quota_owner(&self) -> Option<QuotaOwner> {
        self.owner
    }

    /// Notes that the request got no response, which makes the caller doubtful.
    pub fn unanswered(&self) {
        self.permits.doubt(self.owner);
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        if self.counted {
            self.permits.leave(self.owner);
        }
    }
}

#[cfg(test)]
#[path = "request_permits_test.rs"]
mod tests;
