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
    pub fn without_pauses() -> Arc<Self> {
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
mod tests {
    use rootlight::rpc::Dispatcher;
    use rootlight::rpc::envelope::MAX_BATCH;

    use super::*;

    fn caller(address: [u8; 4], connection: u64) -> CallerId {
        CallerId { address: address.into(), page: 0, connection }
    }

    /// Returns the order in which connections get the permits for busy connections when all are taken at first.
    async fn order(asked: &[CallerId]) -> Vec<u64> {
        let runs = RunQueue::new(2);
        // Gives every connection a debt, so that none is fresh.
        let until = Instant::now() + Duration::from_secs(60);
        let first = caller([9; 4], 0);
        runs.state().debt_free_at.extend(asked.iter().chain([&first]).map(|caller| (*caller, until)));
        let taken = runs.enter(first, Size::Single).await;
        let finished = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for caller in asked {
            let (runs, finished, caller) = (runs.clone(), finished.clone(), *caller);
            tasks.push(tokio::spawn(async move {
                let permit = runs.enter(caller, Size::Single).await;
                finished.lock().unwrap().push(caller.connection);
                tokio::task::yield_now().await;
                drop(permit);
            }));
            tokio::task::yield_now().await;
        }
        drop(taken);
        for task in tasks {
            task.await.unwrap();
        }
        let finished = finished.lock().unwrap().clone();
        assert_eq!(runs.state().busy.taken, 0);
        finished
    }

    #[tokio::test(start_paused = true)]
    async fn connections_take_turns() {
        let (greedy, other) = (caller([127, 0, 0, 1], 1), caller([127, 0, 0, 1], 2));
        let finished = order(&[greedy, greedy, greedy, greedy, other]).await;
        assert!(finished.iter().position(|connection| *connection == 2).unwrap() <= 1, "{finished:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_take_turns_however_many_connections_they_have() {
        let many = (1..=6).map(|connection| caller([10, 0, 0, 1], connection));
        let asked: Vec<CallerId> = many.chain([caller([10, 0, 0, 2], 99)]).collect();
        let finished = order(&asked).await;
        assert!(finished.iter().position(|connection| *connection == 99).unwrap() <= 1, "{finished:?}");
    }

    /// All pages in a browser, and all programs of this machine, have one address.
    #[tokio::test(start_paused = true)]
    async fn programs_take_turns_with_all_pages_of_their_address_and_pages_with_each_other() {
        let page = |page, connection| CallerId { page, ..caller([127, 0, 0, 1], connection) };
        let greedy = || (1..=6).map(|connection| page(7, connection));
        let at =
            |finished: &[u64], wanted| finished.iter().position(|connection| *connection == wanted).unwrap();
        let asked: Vec<CallerId> = greedy().chain([page(0, 99)]).collect();
        let finished = order(&asked).await;
        assert!(at(&finished, 99) <= 1, "{finished:?}");
        let asked: Vec<CallerId> = greedy().chain([page(5, 98), page(9, 99)]).collect();
        let finished = order(&asked).await;
        assert!(at(&finished, 98) <= 2 && at(&finished, 99) <= 2, "{finished:?}");
        let many = (1..=6).map(|number| page(number.into(), number)).chain([page(0, 98), page(0, 99)]);
        let finished = order(&many.collect::<Vec<_>>()).await;
        assert!(at(&finished, 98) <= 1 && at(&finished, 99) <= 3, "{finished:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn pages_leave_a_fresh_permit_to_the_programs_of_their_address() {
        let runs = RunQueue::new(2);
        let at = |page, connection| CallerId { page, ..caller([127, 0, 0, 1], connection) };
        let one = runs.enter(at(7, 1), Size::Single).await;
        let two = runs.enter(at(8, 2), Size::Single).await;
        assert!(one.is_fresh && !two.is_fresh);
        let third = tokio::time::timeout(Duration::from_millis(20), runs.enter(at(9, 3), Size::Single)).await;
        assert!(third.is_err());
        assert!(runs.enter(at(0, 4), Size::Single).await.is_fresh, "a program does not wait");
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_connection_leaves_permits_to_fresh_ones() {
        let runs = RunQueue::new(2);
        let greedy = caller([127, 0, 0, 1], 1);
        let one = runs.enter(greedy, Size::Single).await;
        let two = runs.enter(greedy, Size::Single).await;
        assert!(one.is_fresh && !two.is_fresh, "a connection gets one fresh permit");
        let third = tokio::time::timeout(Duration::from_millis(20), runs.enter(greedy, Size::Single)).await;
        assert!(third.is_err(), "and no third permit");
        let other =
            tokio::time::timeout(Duration::from_secs(5), runs.enter(caller([127, 0, 0, 1], 2), Size::Single))
                .await;
        assert!(other.unwrap().is_fresh);
        drop((one, two));
        assert!(runs.enter(greedy, Size::Single).await.is_fresh, "short runs leave little debt");
        runs.state().note_run(greedy, false, Duration::from_millis(300));
        assert!(!runs.enter(greedy, Size::Single).await.is_fresh, "the connection has debt after a long run");
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(runs.enter(greedy, Size::Single).await.is_fresh, "the debt has decreased with time");
    }

    /// An address that opens a connection for each run has no debt on any of them.
    #[tokio::test(start_paused = true)]
    async fn an_address_leaves_a_permit_to_others_however_many_connections_it_has() {
        let runs = RunQueue::new(2);
        let greedy = |connection| caller([127, 0, 0, 1], connection);
        let other = |connection| caller([127, 0, 0, 2], connection);
        let soon = |caller| tokio::time::timeout(Duration::from_secs(5), runs.enter(caller, Size::Single));
        let one = runs.enter(greedy(1), Size::Single).await;
        let two = runs.enter(greedy(2), Size::Single).await;
        let three = runs.enter(greedy(3), Size::Single).await;
        assert!(one.is_fresh && two.is_fresh && !three.is_fresh, "two fresh permits of three");
        let waiting =
            tokio::time::timeout(Duration::from_millis(20), runs.enter(greedy(4), Size::Single)).await;
        assert!(waiting.is_err());
        assert!(soon(other(5)).await.unwrap().is_fresh, "another address does not wait");
        // The same holds if connections of the first address have waited for longer.
        drop((one, two));
        let reserved = [
            runs.enter(other(6), Size::Single).await,
            runs.enter(other(7), Size::Single).await,
            runs.enter(caller([9; 4], 8), Size::Single).await,
        ];
        let queued = [9, 10, 11].map(|connection| {
            let (runs, caller) = (runs.clone(), greedy(connection));
            tokio::spawn(async move { runs.enter(caller, Size::Single).await })
        });
        tokio::task::yield_now().await;
        drop(reserved);
        assert!(soon(other(12)).await.unwrap().is_fresh);
        let mut fresh = 0;
        for task in queued {
            fresh += u32::from(tokio::time::timeout(Duration::from_millis(100), task).await.is_ok());
        }
        assert_eq!(fresh, 3, "each of the others in its turn");
        drop(three);
    }

    /// A permit that was given to a client that no longer waits goes to the next one.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_stopped_waiting_gets_no_permit() {
        let runs = RunQueue::new(1);
        let until = Instant::now() + Duration::from_secs(60);
        let (one, two) = (caller([127, 0, 0, 1], 1), caller([127, 0, 0, 1], 2));
        runs.state().debt_free_at.extend([(one, until), (two, until)]);
        let taken = runs.enter(one, Size::Single).await;
        let given_up = tokio::time::timeout(Duration::from_millis(10), runs.enter(two, Size::Single)).await;
        assert!(given_up.is_err());
        let waiting = tokio::spawn({
            let runs = runs.clone();
            async move { runs.enter(one, Size::Single).await }
        });
        tokio::task::yield_now().await;
        drop(taken);
        drop(waiting.await.unwrap());
        assert_eq!(runs.state().busy.taken, 0);
    }

    /// Batches of an address have all permits that the address may have. A single call from a new connection of the address waits
    /// for one batch to end, not for the batches that wait already, and takes the first permit that becomes free.
    #[tokio::test(start_paused = true)]
    async fn a_single_call_does_not_wait_for_all_batches_of_its_address() {
        let runs = RunQueue::new(2);
        let at = |connection| caller([127, 0, 0, 1], connection);
        for first_to_end in [0, 2] {
            let mut running = Vec::new();
            for connection in 1..=3 {
                running.push(runs.enter(at(connection), Size::Batch).await);
            }
            let ended = Arc::new(Mutex::new(Vec::new()));
            let mut tasks = Vec::new();
            for (connection, size) in
                (4..=9).map(|connection| (connection, Size::Batch)).chain([(10, Size::Single)])
            {
                let (runs, ended) = (runs.clone(), ended.clone());
                tasks.push(tokio::spawn(async move {
                    let permit = runs.enter(at(connection), size).await;
                    ended.lock().unwrap().push(connection);
                    drop(permit);
                }));
                tokio::task::yield_now().await;
            }
            drop(running.remove(first_to_end));
            for task in tasks {
                tokio::time::timeout(Duration::from_secs(5), task).await.unwrap().unwrap();
            }
            let ended = ended.lock().unwrap().clone();
            assert!(ended.iter().position(|connection| *connection == 10).unwrap() <= 1, "{ended:?}");
        }
    }

    /// One client controls all addresses of an IPv6 network of 64 bits.
    #[tokio::test(start_paused = true)]
    async fn addresses_of_one_ipv6_network_share_their_permits() {
        let runs = RunQueue::new(2);
        let at = |address: &str| CallerId::new(address.parse().unwrap());
        let one = runs.enter(at("2001:db8:0:1::1"), Size::Single).await;
        let two = runs.enter(at("2001:db8:0:1::2"), Size::Single).await;
        let three = runs.enter(at("2001:db8:0:1:ffff::3"), Size::Single).await;
        assert!(one.is_fresh && two.is_fresh && !three.is_fresh, "two fresh permits of three");
        assert!(runs.enter(at("2001:db8:0:2::1"), Size::Single).await.is_fresh, "another network");
    }

    /// A customer with many addresses has no more permits than one with a single address, and customers behind one address
    /// do not wait for each other.
    #[tokio::test(start_paused = true)]
    async fn the_addresses_of_an_api_key_share_its_permits() {
        let runs = RunQueue::new(2);
        let of_key = |address: &str, key| CallerId::new(address.parse().unwrap()).of_key(key);
        let one = runs.enter(of_key("192.0.2.1", 1), Size::Single).await;
        let two = runs.enter(of_key("198.51.100.1", 1), Size::Single).await;
        let three = runs.enter(of_key("203.0.113.1", 1), Size::Single).await;
        assert!(one.is_fresh && two.is_fresh && !three.is_fresh, "two fresh permits of three");
        assert!(
            runs.enter(of_key("192.0.2.1", 2), Size::Single).await.is_fresh,
            "another key at the same address"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waited_with_two_messages_gets_one_fresh_permit() {
        let runs = RunQueue::new(2);
        let mut reserved = Vec::new();
        for address in 1..=3 {
            reserved.push(runs.enter(caller([10, 0, 0, address], 1), Size::Single).await);
        }
        let queued = [Size::Single, Size::Batch].map(|size| {
            let runs = runs.clone();
            tokio::spawn(async move { runs.enter(caller([10, 0, 0, 9], 2), size).await })
        });
        tokio::task::yield_now().await;
        reserved.pop();
        let mut fresh = Vec::new();
        for task in queued {
            // The second message takes the free permit for busy connections, before another fresh permit is free.
            fresh.push(tokio::time::timeout(Duration::from_secs(5), task).await.unwrap().unwrap());
        }
        assert_eq!(fresh.iter().filter(|permit| permit.is_fresh).count(), 1);
        drop((reserved, fresh));
        let state = runs.state();
        assert_eq!((state.fresh.taken, state.busy.taken), (0, 0));
    }

    #[test]
    fn a_batch_is_a_size_of_its_own() {
        let methods = Dispatcher::default();
        let read = |text: &str| Message::read(text.as_bytes(), &methods, MAX_BATCH);
        let sizes = ["[{}]", "{}", ""].map(|text| Size::of(&read(text)));
        assert_eq!(sizes, [Size::Batch, Size::Single, Size::Single]);
    }
}
