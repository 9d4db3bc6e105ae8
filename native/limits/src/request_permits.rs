//! Permits for questions to one peer, node or index, by caller.
//!
//! A peer takes few questions at a time, and says nothing about what it lacks: such a question keeps its permit until its
//! time limit. So callers take turns, none of them gets all permits, and those whose questions were left unanswered have
//! few permits together for a while. Synchronization has permits of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rootlight::types::Asker;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::runs::RoundRobin;

/// Most questions of one caller that wait for a permit.
const MAX_WAITING: usize = 1_024;

/// How long each unanswered question makes a caller doubtful, and the longest that it is.
const DOUBT: Duration = Duration::from_secs(24);
const LONGEST_DOUBT: Duration = Duration::from_secs(120);

/// Most callers that are doubtful. Beyond it, all are forgotten.
const MAX_CALLERS: usize = 1_024;

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

/// The permits for one kind of question.
pub struct RequestPermits {
    sizes: PermitLimits,
    state: Mutex<PermitState>,
}

#[derive(Default)]
struct PermitState {
    /// The number of permits of each caller that has some; `None` is the program itself.
    taken: BTreeMap<Option<Asker>, usize>,
    waiting: RoundRobin<Option<Asker>, VecDeque<oneshot::Sender<RequestPermit>>>,
    /// Until when each doubtful caller is one.
    doubtful: BTreeMap<Option<Asker>, Instant>,
}

/// The right to ask one question. Dropping it gives the permit to the next caller.
pub struct RequestPermit {
    permits: Arc<RequestPermits>,
    asker: Option<Asker>,
    /// Whether its owner received it. If not, dropping it does not free a permit.
    given: bool,
}

impl RequestPermits {
    /// All permits are free at first.
    #[must_use]
    pub fn new(sizes: PermitLimits) -> Arc<Self> {
        Arc::new(Self { sizes, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, PermitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit; `None` if the caller would have to wait.
    pub fn try_acquire(self: &Arc<Self>, asker: Option<Asker>) -> Option<RequestPermit> {
        self.take(&mut self.state(), asker)
    }

    /// Waits for a permit; `None` if too many questions of this caller wait.
    pub async fn acquire(self: &Arc<Self>, asker: Option<Asker>) -> Option<RequestPermit> {
        let turn = {
            let mut state = self.state();
            if let Some(permit) = self.take(&mut state, asker) {
                return Some(permit);
            }
            let queue = state.waiting.of(asker);
            if queue.len() >= MAX_WAITING {
                queue.retain(|waiting| !waiting.is_closed());
            }
            if queue.len() >= MAX_WAITING {
                return None;
            }
            let (sender, turn) = oneshot::channel();
            queue.push_back(sender);
            turn
        };
        turn.await.ok()
    }

    fn take(self: &Arc<Self>, state: &mut PermitState, asker: Option<Asker>) -> Option<RequestPermit> {
        state.has_room(asker, self.sizes, Instant::now()).then(|| self.give(state, asker))
    }

    fn give(self: &Arc<Self>, state: &mut PermitState, asker: Option<Asker>) -> RequestPermit {
        *state.taken.entry(asker).or_default() += 1;
        RequestPermit { permits: self.clone(), asker, given: true }
    }

    /// Frees a permit, and gives permits to all who may have one now.
    fn leave(self: &Arc<Self>, asker: Option<Asker>) {
        let (mut state, now) = (self.state(), Instant::now());
        state.give_back(asker);
        while let Some((next, sender)) = state.next(self.sizes, now) {
            if let Err(mut permit) = sender.send(self.give(&mut state, next)) {
                permit.given = false;
                state.give_back(next);
            }
        }
    }

    /// Notes that a question of this caller was left unanswered.
    fn doubt(&self, asker: Option<Asker>) {
        let (mut state, now) = (self.state(), Instant::now());
        state.doubtful.retain(|_, until| *until > now);
        if state.doubtful.len() >= MAX_CALLERS {
            state.doubtful.clear();
        }
        let until = state.doubtful.entry(asker).or_insert(now);
        *until = (*until + DOUBT).min(now + LONGEST_DOUBT);
    }
}

impl PermitState {
    fn has_room(&self, asker: Option<Asker>, sizes: PermitLimits, now: Instant) -> bool {
        let is_doubtful = |asker: &Option<Asker>| self.doubtful.get(asker).is_some_and(|until| *until > now);
        let held_in_doubt = || -> usize {
            self.taken.iter().filter(|(asker, _)| is_doubtful(asker)).map(|(_, taken)| taken).sum()
        };
        self.taken.values().sum::<usize>() < sizes.all
            && self.taken.get(&asker).is_none_or(|taken| *taken < sizes.each)
            && (!is_doubtful(&asker) || held_in_doubt() < sizes.doubtful)
    }

    fn give_back(&mut self, asker: Option<Asker>) {
        let taken = self.taken.get(&asker).map_or(0, |taken| taken.saturating_sub(1));
        match taken {
            0 => drop(self.taken.remove(&asker)),
            taken => drop(self.taken.insert(asker, taken)),
        }
    }

    /// The first waiting question of the next caller, in the order of turns, that may have a permit.
    fn next(
        &mut self,
        sizes: PermitLimits,
        now: Instant,
    ) -> Option<(Option<Asker>, oneshot::Sender<RequestPermit>)> {
        let next = self.waiting.in_turn().map(|(asker, _)| *asker);
        let asker = { next }.find(|asker| self.has_room(*asker, sizes, now))?;
        let (sender, _) = self.waiting.serve(asker, |queue| (queue.pop_front(), queue.is_empty()));
        Some((asker, sender?))
    }
}

impl RequestPermit {
    /// The caller; `None` is the program itself.
    #[must_use]
    pub const fn asker(&self) -> Option<Asker> {
        self.asker
    }

    /// Notes that the question was left unanswered.
    pub fn unanswered(&self) {
        self.permits.doubt(self.asker);
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        if self.given {
            self.permits.leave(self.asker);
        }
    }
}

#[cfg(test)]
#[path = "request_permits_test.rs"]
mod tests;
