//! Who runs next: long runs are shared out in turn by address and, within an address, by connection.
//!
//! A semaphore serves whoever asks most. Here each connection has a queue of its own, and a free place goes to the next
//! connection of the next address, so that one that sends fifty messages gets as many runs as one that sends one. Brief
//! messages do not come here.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::service::Peer;

/// By how much more than a run lasts a connection's debt grows with it; the debt shrinks with the time.
const DEBT_FACTOR: u32 = 4;

/// Debt up to which a connection counts as fresh: that of a run of a quarter of a second.
const FREE_DEBT: Duration = Duration::from_secs(1);

/// Connections remembered as busy; beyond them all are forgotten, which makes them fresh again.
const MAX_BUSY: usize = 4_096;

/// Places for long runs.
#[derive(Debug)]
pub struct Runs {
    state: Mutex<State>,
    /// For connections that have not run for long lately. There is one more than could all be taken by a single
    /// connection, which has at most one of them.
    fresh: usize,
    /// For the others. Together with the fresh ones a few more than processors, so that nobody waits long for a place,
    /// and few enough that what runs hold stays small: some tens of MiB each at worst.
    busy: usize,
}

#[derive(Debug, Default)]
struct State {
    fresh: Lane,
    busy: Lane,
    /// Connections by when they will have no debt left.
    until: BTreeMap<Peer, Instant>,
    /// Connections that have a fresh place.
    placed: BTreeMap<Peer, usize>,
}

/// Taken places and the queue for them.
#[derive(Debug, Default)]
struct Lane {
    taken: usize,
    queue: BTreeMap<IpAddr, BTreeMap<u64, VecDeque<oneshot::Sender<Place>>>>,
    /// Who was served last, by address, and in each address by connection.
    last: Option<IpAddr>,
    last_of: BTreeMap<IpAddr, u64>,
}

/// The right to run; the next one's turn comes when it is dropped.
#[derive(Debug)]
pub struct Place {
    runs: Arc<Runs>,
    peer: Peer,
    is_fresh: bool,
    since: Instant,
    /// Whether it was given to somebody.
    given: bool,
}

impl Runs {
    /// Places for a machine with so many processors.
    #[must_use]
    pub fn new(processors: usize) -> Arc<Self> {
        let fresh = processors.clamp(2, 4);
        Arc::new(Self { state: Mutex::default(), fresh, busy: processors.saturating_sub(1).clamp(1, 4) })
    }

    /// One place, for what runs alone.
    #[must_use]
    pub fn one_at_a_time() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), fresh: 0, busy: 1 })
    }

    /// Places for this machine.
    #[must_use]
    pub fn for_this_machine() -> Arc<Self> {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a connection's turn.
    pub async fn enter(self: &Arc<Self>, peer: Peer) -> Place {
        loop {
            let turn = {
                let mut state = self.state();
                let state = &mut *state;
                let is_fresh = self.fresh > 0 && state.is_fresh(peer, Instant::now());
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
            // Only a place that is lost with its sender ends this with nothing.
            if let Ok(place) = turn.await {
                return place;
            }
        }
    }

    fn place(self: &Arc<Self>, peer: Peer, is_fresh: bool) -> Place {
        Place { runs: self.clone(), peer, is_fresh, since: Instant::now(), given: true }
    }

    /// Gives a place back, and to the next one in turn.
    fn leave(self: &Arc<Self>, peer: Peer, is_fresh: bool, ran: Duration) {
        let mut state = self.state();
        let state = &mut *state;
        state.ran(peer, is_fresh, ran);
        let lane = if is_fresh { &mut state.fresh } else { &mut state.busy };
        lane.taken = lane.taken.saturating_sub(1);
        while let Some((next, sender)) = lane.next() {
            // Who has given up waiting hands the place back.
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
    /// Whether a connection has run little lately and has no fresh place.
    fn is_fresh(&self, peer: Peer, now: Instant) -> bool {
        let debt = self.until.get(&peer).map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        debt <= FREE_DEBT && !self.placed.contains_key(&peer)
    }

    fn ran(&mut self, peer: Peer, is_fresh: bool, ran: Duration) {
        if is_fresh {
            if let Some(count) = self.placed.get_mut(&peer) {
                *count -= 1;
                if *count == 0 {
                    self.placed.remove(&peer);
                }
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

    /// The first of the next connection of the next address.
    fn next(&mut self) -> Option<(Peer, oneshot::Sender<Place>)> {
        let address = *after(&self.queue, self.last)?;
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

/// The key after one, around the end.
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

    /// In which order connections get the places of the busy lane, all of whose places are taken at first.
    async fn order(asked: &[Peer]) -> Vec<u64> {
        let runs = Runs::new(2);
        // Nobody is fresh.
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
        assert!(one.is_fresh && !two.is_fresh, "one fresh place for a connection");
        let third = tokio::time::timeout(Duration::from_millis(20), runs.enter(greedy)).await;
        assert!(third.is_err(), "and no third place");
        let other = tokio::time::timeout(Duration::from_secs(5), runs.enter(peer([127, 0, 0, 1], 2))).await;
        assert!(other.unwrap().is_fresh);
        drop((one, two));
        assert!(runs.enter(greedy).await.is_fresh, "short runs make no debt");
        runs.state().ran(greedy, false, Duration::from_millis(300));
        assert!(!runs.enter(greedy).await.is_fresh, "it has just run for long");
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(runs.enter(greedy).await.is_fresh, "that is forgotten");
    }

    /// A place handed to somebody who no longer waits goes on to the next one.
    #[tokio::test]
    async fn who_gives_up_does_not_keep_the_place() {
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
