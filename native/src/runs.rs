//! Scheduling of long runs: addresses take turns, and within an address its connections do.
//!
//! A semaphore favours the client with the most requests. Here each connection has its own queue, and a free place
//! goes to the next connection of the next address, so a client that sends fifty messages at once gets as many turns
//! as one that sends a single message. Brief messages are not scheduled.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::service::Peer;

/// A run adds its duration times this factor to the debt of its connection. Debt decreases as time passes.
const DEBT_FACTOR: u32 = 4;

/// The largest debt of a fresh connection: that of a run of a quarter of a second.
const FREE_DEBT: Duration = Duration::from_secs(1);

/// The largest number of connections whose debt is kept. Beyond it all debts are cleared.
const MAX_BUSY: usize = 4_096;

/// The places for long runs, which limit how many run at the same time.
#[derive(Debug)]
pub struct Runs {
    state: Mutex<State>,
    /// Number of places for fresh connections, those with little debt. A connection has at most one of them, and an
    /// address all but one, however many connections it opens, so that another address finds a place at once. At least
    /// three, so that a second connection of the same address finds one too.
    fresh: usize,
    /// Number of places for the other connections. All places together are slightly more than the processors, so that
    /// waits are short, and few enough to bound the memory of runs, which is some tens of MiB each at worst.
    busy: usize,
}

#[derive(Debug, Default)]
struct State {
    fresh: Lane,
    busy: Lane,
    /// The time at which each connection's debt will be zero.
    until: BTreeMap<Peer, Instant>,
    /// Number of fresh places that each connection holds.
    placed: BTreeMap<Peer, usize>,
}

/// One kind of places: the number taken, and the queue of those who wait.
#[derive(Debug, Default)]
struct Lane {
    taken: usize,
    queue: BTreeMap<IpAddr, BTreeMap<u64, VecDeque<oneshot::Sender<Place>>>>,
    /// The address served last, and the connection served last of each address.
    last: Option<IpAddr>,
    last_of: BTreeMap<IpAddr, u64>,
}

/// The right to run. Dropping it gives the place to the next one in the queue.
#[derive(Debug)]
pub struct Place {
    runs: Arc<Runs>,
    peer: Peer,
    is_fresh: bool,
    since: Instant,
    /// Whether its owner received it. If not, dropping it does not free a place.
    given: bool,
}

impl Runs {
    /// The places for a machine with this number of processors.
    #[must_use]
    pub fn new(processors: usize) -> Arc<Self> {
        let fresh = processors.clamp(2, 4) + 1;
        Arc::new(Self { state: Mutex::default(), fresh, busy: processors.saturating_sub(1).clamp(1, 4) })
    }

    /// A single place, for runs that exclude each other.
    #[must_use]
    pub fn one_at_a_time() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), fresh: 0, busy: 1 })
    }

    /// The places for this machine.
    #[must_use]
    pub fn for_this_machine() -> Arc<Self> {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of a connection.
    pub async fn enter(self: &Arc<Self>, peer: Peer) -> Place {
        loop {
            let turn = {
                let mut state = self.state();
                let state = &mut *state;
                let is_fresh = self.fresh > 0
                    && state.is_fresh(peer, Instant::now())
                    && state.has_room(peer.address, self.fresh);
                let (lane, most) =
                    if is_fresh { (&mut state.fresh, self.fresh) } else { (&mut state.busy, self.busy) };
                if lane.taken < most {
                    lane.taken += 1;
                    if is_fresh {
                        *state.placed.entry(peer).or_default() += 1;
                    }
                    return self.place(peer, is_fresh);
                }
                let (sender, turn) = oneshot::channel();
                lane.wait(peer, sender);
                turn
            };
            // The receiver fails only if the sender was dropped; then the loop queues again.
            if let Ok(place) = turn.await {
                return place;
            }
        }
    }

    fn place(self: &Arc<Self>, peer: Peer, is_fresh: bool) -> Place {
        Place { runs: self.clone(), peer, is_fresh, since: Instant::now(), given: true }
    }

    /// Frees a place and gives it to the next one in the queue.
    fn leave(self: &Arc<Self>, peer: Peer, is_fresh: bool, ran: Duration) {
        let mut state = self.state();
        let state = &mut *state;
        state.ran(peer, is_fresh, ran);
        let lane = if is_fresh { &mut state.fresh } else { &mut state.busy };
        lane.taken = lane.taken.saturating_sub(1);
        // Addresses that already hold as many fresh places as they may are skipped.
        let placed = &state.placed;
        let most = if is_fresh { self.fresh } else { usize::MAX };
        while let Some((next, sender)) =
            lane.next(|address| places_of(placed, address).saturating_add(1) < most)
        {
            // If the receiver no longer waits, the place comes back and the next one gets it.
            match sender.send(self.place(next, is_fresh)) {
                Err(mut place) => place.given = false,
                Ok(()) => {
                    lane.taken += 1;
                    if is_fresh {
                        *state.placed.entry(next).or_default() += 1;
                    }
                    return;
                }
            }
        }
    }
}

impl State {
    /// Whether a connection has little debt and holds no fresh place.
    fn is_fresh(&self, peer: Peer, now: Instant) -> bool {
        let debt = self.until.get(&peer).map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        debt <= FREE_DEBT && !self.placed.contains_key(&peer)
    }

    /// Whether an address has fewer fresh places than it may.
    fn has_room(&self, address: IpAddr, fresh: usize) -> bool {
        places_of(&self.placed, address).saturating_add(1) < fresh
    }

    fn ran(&mut self, peer: Peer, is_fresh: bool, ran: Duration) {
        if is_fresh && let Some(count) = self.placed.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.placed.remove(&peer);
            }
        }
        let now = Instant::now();
        self.until.retain(|_, until| *until > now);
        if self.until.len() >= MAX_BUSY {
            self.until.clear();
        }
        let until = self.until.entry(peer).or_insert(now);
        *until += ran * DEBT_FACTOR;
    }
}

impl Lane {
    fn wait(&mut self, peer: Peer, sender: oneshot::Sender<Place>) {
        self.queue.entry(peer.address).or_default().entry(peer.connection).or_default().push_back(sender);
    }

    /// Takes the first waiting run of the next connection of the next address that may have a place.
    fn next(&mut self, may: impl Fn(IpAddr) -> bool) -> Option<(Peer, oneshot::Sender<Place>)> {
        let mut address = *after(&self.queue, self.last)?;
        for _ in 0..self.queue.len() {
            if may(address) {
                break;
            }
            address = *after(&self.queue, Some(address))?;
        }
        if !may(address) {
            return None;
        }
        let connections = self.queue.get_mut(&address)?;
        let connection = *after(connections, self.last_of.get(&address).copied())?;
        let waiting = connections.get_mut(&connection)?;
        let sender = waiting.pop_front();
        self.last = Some(address);
        self.last_of.insert(address, connection);
        if waiting.is_empty() {
            connections.remove(&connection);
        }
        if connections.is_empty() {
            self.queue.remove(&address);
            self.last_of.remove(&address);
        }
        Some((Peer { address, connection }, sender?))
    }
}

/// The number of fresh places that the connections of an address hold.
fn places_of(placed: &BTreeMap<Peer, usize>, address: IpAddr) -> usize {
    let [first, last] = [u64::MIN, u64::MAX].map(|connection| Peer { address, connection });
    placed.range(first..=last).map(|(_, count)| count).sum()
}

/// The key after `last`, or the first key after the end.
fn after<K: Ord, V>(map: &BTreeMap<K, V>, last: Option<K>) -> Option<&K> {
    let next = last.and_then(|last| map.range((Bound::Excluded(last), Bound::Unbounded)).next());
    next.or_else(|| map.first_key_value()).map(|(key, _)| key)
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.given {
            self.runs.leave(self.peer, self.is_fresh, self.since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: [u8; 4], connection: u64) -> Peer {
        Peer { address: address.into(), connection }
    }

    /// Returns the order in which connections get the places for busy connections when all are taken at first.
    async fn order(asked: &[Peer]) -> Vec<u64> {
        let runs = Runs::new(2);
        // Gives every connection a debt, so that none is fresh.
        let until = Instant::now() + Duration::from_secs(60);
        let first = peer([9; 4], 0);
        runs.state().until.extend(asked.iter().chain([&first]).map(|peer| (*peer, until)));
        let taken = runs.enter(first).await;
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for peer in asked {
            let (runs, told, peer) = (runs.clone(), told.clone(), *peer);
            tasks.push(tokio::spawn(async move {
                let place = runs.enter(peer).await;
                told.lock().unwrap().push(peer.connection);
                tokio::task::yield_now().await;
                drop(place);
            }));
            tokio::task::yield_now().await;
        }
        drop(taken);
        for task in tasks {
            task.await.unwrap();
        }
        let told = told.lock().unwrap().clone();
        assert_eq!(runs.state().busy.taken, 0);
        told
    }

    #[tokio::test]
    async fn connections_take_turns() {
        let (greedy, other) = (peer([127, 0, 0, 1], 1), peer([127, 0, 0, 1], 2));
        let told = order(&[greedy, greedy, greedy, greedy, other]).await;
        assert!(told.iter().position(|connection| *connection == 2).unwrap() <= 1, "{told:?}");
    }

    #[tokio::test]
    async fn addresses_take_turns_however_many_connections_they_have() {
        let many = (1..=6).map(|connection| peer([10, 0, 0, 1], connection));
        let asked: Vec<Peer> = many.chain([peer([10, 0, 0, 2], 99)]).collect();
        let told = order(&asked).await;
        assert!(told.iter().position(|connection| *connection == 99).unwrap() <= 1, "{told:?}");
    }

    #[tokio::test]
    async fn a_busy_connection_leaves_places_to_fresh_ones() {
        let runs = Runs::new(2);
        let greedy = peer([127, 0, 0, 1], 1);
        let one = runs.enter(greedy).await;
        let two = runs.enter(greedy).await;
        assert!(one.is_fresh && !two.is_fresh, "a connection gets one fresh place");
        let third = tokio::time::timeout(Duration::from_millis(20), runs.enter(greedy)).await;
        assert!(third.is_err(), "and no third place");
        let other = tokio::time::timeout(Duration::from_secs(5), runs.enter(peer([127, 0, 0, 1], 2))).await;
        assert!(other.unwrap().is_fresh);
        drop((one, two));
        assert!(runs.enter(greedy).await.is_fresh, "short runs leave little debt");
        runs.state().ran(greedy, false, Duration::from_millis(300));
        assert!(!runs.enter(greedy).await.is_fresh, "the connection has debt after a long run");
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(runs.enter(greedy).await.is_fresh, "the debt has decreased with time");
    }

    /// An address that opens a connection for each run has no debt on any of them.
    #[tokio::test]
    async fn an_address_leaves_a_place_to_others_however_many_connections_it_has() {
        let runs = Runs::new(2);
        let greedy = |connection| peer([127, 0, 0, 1], connection);
        let other = |connection| peer([127, 0, 0, 2], connection);
        let soon = |peer| tokio::time::timeout(Duration::from_secs(5), runs.enter(peer));
        let one = runs.enter(greedy(1)).await;
        let two = runs.enter(greedy(2)).await;
        let three = runs.enter(greedy(3)).await;
        assert!(one.is_fresh && two.is_fresh && !three.is_fresh, "two fresh places of three");
        let waiting = tokio::time::timeout(Duration::from_millis(20), runs.enter(greedy(4))).await;
        assert!(waiting.is_err());
        assert!(soon(other(5)).await.unwrap().is_fresh, "another address does not wait");
        // The same holds if connections of the first address have waited for longer.
        drop((one, two));
        let held =
            [runs.enter(other(6)).await, runs.enter(other(7)).await, runs.enter(peer([9; 4], 8)).await];
        let queued = [9, 10, 11].map(|connection| {
            let (runs, peer) = (runs.clone(), greedy(connection));
            tokio::spawn(async move { runs.enter(peer).await })
        });
        tokio::task::yield_now().await;
        drop(held);
        assert!(soon(other(12)).await.unwrap().is_fresh);
        let mut fresh = 0;
        for task in queued {
            fresh += u32::from(tokio::time::timeout(Duration::from_millis(100), task).await.is_ok());
        }
        assert_eq!(fresh, 3, "each of the others in its turn");
        drop(three);
    }

    /// A place that was given to a client that no longer waits goes to the next one.
    #[tokio::test]
    async fn a_client_that_stopped_waiting_gets_no_place() {
        let runs = Runs::new(1);
        let until = Instant::now() + Duration::from_secs(60);
        let (one, two) = (peer([127, 0, 0, 1], 1), peer([127, 0, 0, 1], 2));
        runs.state().until.extend([(one, until), (two, until)]);
        let taken = runs.enter(one).await;
        let given_up = tokio::time::timeout(Duration::from_millis(10), runs.enter(two)).await;
        assert!(given_up.is_err());
        let waiting = tokio::spawn({
            let runs = runs.clone();
            async move { runs.enter(one).await }
        });
        tokio::task::yield_now().await;
        drop(taken);
        drop(waiting.await.unwrap());
        assert_eq!(runs.state().busy.taken, 0);
    }
}
