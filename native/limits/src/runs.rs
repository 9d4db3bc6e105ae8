//! Scheduling of long runs of handlers; brief messages do not queue. Each connection has its own queue, and a free permit goes to
//! the next connection of the next address or API key. Within an address its programs take turns with all pages of other
//! origins, then these pages with each other, then single calls with batches: fifty messages at once get as many turns as one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rootlight::rpc::Message;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::caller_id::CallerId;
use crate::priority;

/// A run adds its duration times this factor to the debt of its connection. Debt decreases by a second each second.
const DEBT_FACTOR: u32 = 4;

/// The largest debt of a fresh connection, in time: that of a run of a quarter of a second.
const FREE_DEBT: Duration = Duration::from_secs(1);

/// The largest number of connections whose debt is stored. Beyond it all debts are cleared, which bounds memory.
const MAX_DEBTORS: usize = 4_096;

/// Whether a message is one call or a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// One call.
    Single,
    /// A list of calls.
    Batch,
}

impl Size {
    /// The size of a message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        if message.is_batch() { Self::Batch } else { Self::Single }
    }
}

/// The permits for long runs, which limit how many run at the same time.
#[derive(Debug)]
pub struct RunQueue {
    state: Mutex<RunState>,
    /// Number of permits for fresh connections, those with little debt. A connection has at most one of them, an address all but
    /// one, and the pages of other origins of an address all but two, so that another caller gets one at once.
    fresh: usize,
    /// Number of permits for the other, busy connections. With [`Self::new`] all permits together are four on one processor, and
    /// at most nine on any machine, which bounds the memory of runs: some tens of MiB each at worst.
    busy: usize,
}

#[derive(Debug, Default)]
struct RunState {
    fresh: PermitPool,
    busy: PermitPool,
    /// The time at which each connection's debt will be zero.
    debt_free_at: BTreeMap<CallerId, Instant>,
    /// The connections that have a permit for fresh ones.
    holders: BTreeSet<CallerId>,
}

/// One kind of permits: the number taken, and the waiting runs by address, whether they are of pages, page, size and connection.
#[derive(Debug, Default)]
struct PermitPool {
    taken: usize,
    queue: RoundRobin<IpAddr, RoundRobin<bool, WaitingByPage>>,
}

/// The runs that wait, by page, size and connection.
type WaitingByPage = RoundRobin<u128, RoundRobin<Size, WaitingRuns>>;

/// The runs that wait, by connection, oldest first. A run gets its permit through the sender.
type WaitingRuns = RoundRobin<u64, VecDeque<oneshot::Sender<RunPermit>>>;

/// A queue with an entry for each key, and the key that was served last; the next key in order is served next.
#[derive(Debug)]
pub struct RoundRobin<K, V> {
    waiting: BTreeMap<K, V>,
    last: Option<K>,
}

/// The right to run. Dropping it gives the permit to the next one in the queue.
#[derive(Debug)]
pub struct RunPermit {
    runs: Arc<RunQueue>,
    caller: CallerId,
    is_fresh: bool,
    since: Instant,
    /// Whether dropping the permit frees it: not if the waiting run was cancelled, because another run gets the permit then.
    counted: bool,
}

impl RunQueue {
    /// The permits for a machine with this number of processors.
    #[must_use]
    pub fn new(processors: usize) -> Arc<Self> {
        let fresh = processors.clamp(2, 4) + 1;
        Arc::new(Self { state: Mutex::default(), fresh, busy: processors.saturating_sub(1).clamp(1, 4) })
    }

    /// A single permit, for runs that exclude each other. Without fresh permits every run takes a busy one.
    #[must_use]
    pub fn one_at_a_time() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), fresh: 0, busy: 1 })
    }

    /// The permits for work that cannot pause for other threads (`Pauses::pause`): processors less one, from one to four.
    pub fn for_work_without_pauses() -> Arc<Self> {
        let processors = priority::processors();
        Arc::new(Self { state: Mutex::default(), fresh: 0, busy: processors.saturating_sub(1).clamp(1, 4) })
    }

    /// The permits for messages of megabytes, whose parameters take tens of MiB: three, of which one address gets at most two.
    pub fn for_long_messages() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), fresh: 2, busy: 1 })
    }

    /// The permits for this machine.
    #[must_use]
    pub fn for_this_machine() -> Arc<Self> {
        Self::new(priority::processors())
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a message of a connection may run.
    pub async fn enter(self: &Arc<Self>, caller: CallerId, size: Size) -> RunPermit {
        loop {
            let receiver = {
                let mut state = self.state();
                let state = &mut *state;
                let is_fresh = is_fresh(&state.debt_free_at, &state.holders, caller, Instant::now())
                    && may_hold(&state.holders, caller, self.fresh);
                let (pool, most) =
                    if is_fresh { (&mut state.fresh, self.fresh) } else { (&mut state.busy, self.busy) };
                if pool.taken < most {
                    pool.taken += 1;
                    if is_fresh {
                        state.holders.insert(caller);
                    }
                    return self.permit(caller, is_fresh);
                }
                let (sender, receiver) = oneshot::channel();
                pool.wait(caller, size, sender);
                receiver
            };
            // The receiver fails only if the sender was dropped ([`PermitPool::dismiss`]); then the run queues again.
            if let Ok(permit) = receiver.await {
                return permit;
            }
        }
    }

    fn permit(self: &Arc<Self>, caller: CallerId, is_fresh: bool) -> RunPermit {
        RunPermit { runs: self.clone(), caller, is_fresh, since: Instant::now(), counted: true }
    }

    /// Frees a permit after a run of this duration, and gives it to the next waiting run.
    fn leave(self: &Arc<Self>, caller: CallerId, is_fresh: bool, ran: Duration) {
        let mut state = self.state();
        let state = &mut *state;
        state.note_run(caller, is_fresh, ran);
        let pool = if is_fresh { &mut state.fresh } else { &mut state.busy };
        pool.taken = pool.taken.saturating_sub(1);
        while let Some((next, sender)) =
            if is_fresh { state.next_fresh(self.fresh) } else { state.busy.next(|_| true) }
        {
            // Sending fails if the waiting run was cancelled; then the next run gets the permit.
            match sender.send(self.permit(next, is_fresh)) {
                Err(mut permit) => permit.counted = false,
                Ok(()) => {
                    let pool = if is_fresh { &mut state.fresh } else { &mut state.busy };
                    pool.taken += 1;
                    if is_fresh {
                        state.holders.insert(next);
                        state.fresh.dismiss(next);
                    }
                    return;
                }
            }
        }
    }
}

impl RunState {
    /// Takes the next run for a free fresh permit (of `fresh`): one that waits for such a permit, or else one of a fresh connection
    /// that waits with busy ones because its address had as many fresh permits as it may. An address with that many is skipped.
    fn next_fresh(&mut self, fresh: usize) -> Option<(CallerId, oneshot::Sender<RunPermit>)> {
        let Self { fresh: pool, busy, debt_free_at, holders } = self;
        let (now, debt_free_at, holders) = (Instant::now(), &*debt_free_at, &*holders);
        let next = pool.next(|caller| may_hold(holders, caller, fresh));
        let may = |caller| is_fresh(debt_free_at, holders, caller, now) && may_hold(holders, caller, fresh);
        next.or_else(|| busy.next(may))
    }

    fn note_run(&mut self, caller: CallerId, is_fresh: bool, ran: Duration) {
        if is_fresh {
            self.holders.remove(&caller);
        }
        let now = Instant::now();
        self.debt_free_at.retain(|_, at| *at > now);
        if self.debt_free_at.len() >= MAX_DEBTORS {
            self.debt_free_at.clear();
        }
        let at = self.debt_free_at.entry(caller).or_insert(now);
        *at += ran * DEBT_FACTOR;
    }
}

// `sides` are those of an address: its programs, and its pages of other origins.
impl PermitPool {
    fn wait(&mut self, caller: CallerId, size: Size, sender: oneshot::Sender<RunPermit>) {
        let pages = self.queue.of(caller.address).of(caller.page != 0);
        pages.of(caller.page).of(size).of(caller.connection).push_back(sender);
    }

    /// Drops the waiting runs of a connection, so that they queue again.
    fn dismiss(&mut self, caller: CallerId) {
        self.queue.clear(caller.address, |sides| {
            sides.clear(caller.page != 0, |pages| {
                pages.clear(caller.page, |sizes| {
                    sizes.waiting.retain(|_, connections| !connections.clear(caller.connection, |_| true));
                    sizes.waiting.is_empty()
                })
            })
        });
    }

    /// Takes the first waiting run of the next connection, in the order of turns, that may have a permit.
    fn next(&mut self, may: impl Fn(CallerId) -> bool) -> Option<(CallerId, oneshot::Sender<RunPermit>)> {
        let (size, caller) = self.in_turn().find(|(_, caller)| may(*caller))?;
        let sender = self.queue.serve(caller.address, |sides| {
            sides.serve(caller.page != 0, |pages| {
                pages.serve(caller.page, |sizes| {
                    sizes.serve(size, |connections| {
                        connections
                            .serve(caller.connection, |senders| (senders.pop_front(), senders.is_empty()))
                    })
                })
            })
        });
        Some((caller, sender.0?))
    }

    /// The connections with waiting runs, in the order of their turns.
    fn in_turn(&self) -> impl Iterator<Item = (Size, CallerId)> {
        let sides = self.queue.in_turn();
        let pages = sides.flat_map(|(address, sides)| {
            sides
                .in_turn()
                .flat_map(|(_, pages)| pages.in_turn())
                .map(|(page, sizes)| (*address, *page, sizes))
        });
        let sizes = pages.flat_map(|(address, page, sizes)| {
            sizes.in_turn().map(move |(size, connections)| (*size, address, page, connections))
        });
        sizes.flat_map(|(size, address, page, connections)| {
            let caller = move |connection: &u64| CallerId { address, page, connection: *connection };
            connections.in_turn().map(move |(connection, _)| (size, caller(connection)))
        })
    }
}

impl<K: Ord + Copy, V: Default> RoundRobin<K, V> {
    /// The entry of a key, which is made if it is missing.
    pub fn of(&mut self, key: K) -> &mut V {
        self.waiting.entry(key).or_default()
    }

    /// Returns all entries in the order of their turns.
    pub fn in_turn(&self) -> impl Iterator<Item = (&K, &V)> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let first = self.last.map(|last| self.waiting.range(..=last));
        self.waiting.range((after, Bound::Unbounded)).chain(first.into_iter().flatten())
    }

    /// Removes the entry of a key if `clear` says that nothing is left in it. Returns whether the whole queue is empty.
    fn clear(&mut self, key: K, clear: impl FnOnce(&mut V) -> bool) -> bool {
        if self.waiting.get_mut(&key).is_some_and(clear) {
            self.waiting.remove(&key);
        }
        self.waiting.is_empty()
    }

    /// Serves one entry. `take` returns a value, and whether nothing waits under its key any more. Returns
    /// the value, and whether the whole queue is empty.
    pub fn serve<T>(&mut self, key: K, take: impl FnOnce(&mut V) -> (Option<T>, bool)) -> (Option<T>, bool) {
        let Some(value) = self.waiting.get_mut(&key) else { return (None, self.waiting.is_empty()) };
        let (taken, is_empty) = take(value);
        self.last = Some(key);
        if is_empty {
            self.waiting.remove(&key);
        }
        (taken, self.waiting.is_empty())
    }
}

impl<K, V> Default for RoundRobin<K, V> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), last: None }
    }
}

/// Whether a connection has little debt and holds no fresh permit.
fn is_fresh(
    debt_free_at: &BTreeMap<CallerId, Instant>,
    holders: &BTreeSet<CallerId>,
    caller: CallerId,
    now: Instant,
) -> bool {
    let debt = debt_free_at.get(&caller).map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
    debt <= FREE_DEBT && !holders.contains(&caller)
}

/// Whether the address of a caller, and its pages if the caller is one, may have a further fresh permit ([`RunQueue::fresh`]).
fn may_hold(holders: &BTreeSet<CallerId>, caller: CallerId, fresh: usize) -> bool {
    let CallerId { address, page, .. } = caller;
    // The number of permits of the connections with a page from `first` to `last`.
    let permits = |first: u128, last: u128| {
        let [first, last] = [(first, u64::MIN), (last, u64::MAX)].map(|(page, connection)| CallerId {
            address,
            page,
            connection,
        });
        holders.range(first..=last).count()
    };
    permits(0, u128::MAX).saturating_add(1) < fresh
        && (page == 0 || permits(1, u128::MAX).saturating_add(2) < fresh)
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        if self.counted {
            self.runs.leave(self.caller, self.is_fresh, self.since.elapsed());
        }
    }
}

#[cfg(test)]
#[path = "runs_test.rs"]
mod tests;
