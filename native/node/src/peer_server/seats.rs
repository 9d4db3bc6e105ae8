//! Seats: the connections that a server for peers admits, shared out by site and address ([`NetworkCounts`]).
//!
//! All addresses of an IPv6 /64 network count as one, because one node controls all of them. When all seats are taken, a newcomer takes
//! the seat of a peer that was not useful lately, or of a peer whose site or address has more seats than the newcomer's.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rootlight_limits::caller_id::CallerId;
use rootlight_limits::network_counts::NetworkCounts;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many seats there are, and which peers may be replaced.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeatLimits {
    /// Most connections.
    all: usize,
    /// Most connections from one address, which several nodes behind one router share.
    of_address: usize,
    /// A peer that for this long got no response and sent no transaction can be replaced.
    idle: Duration,
}

/// The limits for connections that have not shaken hands. All of them count as idle, because they may never shake hands, so a newcomer
/// finds a seat.
pub(super) const HANDSHAKING: SeatLimits = SeatLimits { all: 64, of_address: 8, idle: Duration::ZERO };

/// The limits for peers that have shaken hands.
pub(super) const READY: SeatLimits = SeatLimits { all: 32, of_address: 8, idle: Duration::from_secs(30) };

/// The seats of a server, of one kind.
pub(super) struct Seats {
    limits: SeatLimits,
    /// The holders, by the number of their connection.
    taken: Mutex<BTreeMap<u64, SeatHolder>>,
}

/// The peer that has a seat.
struct SeatHolder {
    address: IpAddr,
    /// When the peer was useful last, or came.
    last_useful: Instant,
    /// Notified when another peer takes the seat.
    leave: Arc<Notify>,
}

/// A seat that is free again when the value is dropped.
pub(super) struct Seat {
    seats: Arc<Seats>,
    peer: CallerId,
    leave: Arc<Notify>,
}

impl Seats {
    pub(super) fn new(limits: SeatLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// Locks the seats that are taken.
    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, SeatHolder>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a seat for a new connection; `None` if the connection is refused.
    pub(super) fn enter(self: &Arc<Self>, peer: CallerId) -> Option<Seat> {
        let mut taken = self.taken();
        if let Some(number) = self.limits.connection_to_close(&taken, peer.address, Instant::now())? {
            let left = taken.remove(&number)?;
            left.leave.notify_one();
        }
        let leave = Arc::<Notify>::default();
        let holder = SeatHolder { address: peer.address, last_useful: Instant::now(), leave: leave.clone() };
        taken.insert(peer.connection, holder);
        Some(Seat { seats: self.clone(), peer, leave })
    }
}

impl SeatLimits {
    /// The connection that has to leave for a newcomer of this address: `Some(None)` if a seat is free, `None` if the newcomer is
    /// refused.
    fn connection_to_close(
        self,
        taken: &BTreeMap<u64, SeatHolder>,
        address: IpAddr,
        now: Instant,
    ) -> Option<Option<u64>> {
        let networks = NetworkCounts::of(taken.values().map(|holder| holder.address));
        let is_idle = |holder: &SeatHolder| now.duration_since(holder.last_useful) >= self.idle;
        let (_, own) = networks.counts(address);
        if own < self.of_address && taken.len() < self.all {
            return Some(None);
        }
        // One seat more is not enough, or two addresses would replace each other without end.
        let has_more = |holder: &SeatHolder| {
            let (theirs, own) = networks.compare(holder.address, address);
            theirs > own.saturating_add(1)
        };
        let may_go = |holder: &SeatHolder| match own >= self.of_address {
            true => holder.address == address && is_idle(holder),
            false => is_idle(holder) || has_more(holder),
        };
        // Idle peers go first, then those of the site with the most seats and in it of the address with the most, then the peer that was
        // useful longest ago.
        let rank = |holder: &SeatHolder| {
            (!is_idle(holder), Reverse(networks.counts(holder.address)), holder.last_useful)
        };
        let go = taken.iter().filter(|(_, holder)| may_go(holder)).min_by_key(|(_, holder)| rank(holder));
        go.map(|(number, _)| Some(*number))
    }
}

impl Seat {
    /// Notes that the peer was useful.
    pub(super) fn note_useful(&self) {
        if let Some(holder) = self.seats.taken().get_mut(&self.peer.connection) {
            holder.last_useful = Instant::now();
        }
    }

    /// Waits until another peer takes the seat.
    pub(super) async fn replaced(&self) {
        self.leave.notified().await;
    }

    pub(super) const fn peer(&self) -> CallerId {
        self.peer
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken().remove(&self.peer.connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> CallerId {
        CallerId::new(address.parse().unwrap())
    }

    /// As many seats of this address as it may have.
    fn fill(seats: &Arc<Seats>, address: &str) -> Vec<Seat> {
        (0..READY.of_address).map(|_| seats.enter(at(address)).unwrap()).collect()
    }

    async fn has_left(seat: &Seat) -> bool {
        tokio::time::timeout(Duration::ZERO, seat.replaced()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_does_not_take_all_seats() {
        let seats = Seats::new(READY);
        let mut own = fill(&seats, "192.0.2.1");
        assert!(seats.enter(at("192.0.2.1")).is_none());
        assert!(seats.enter(at("::ffff:192.0.2.1")).is_none(), "the same address of a listener for both");
        own.pop();
        assert!(seats.enter(at("192.0.2.1")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_addresses_of_a_64_network_are_one() {
        let seats = Seats::new(READY);
        let own: Vec<Seat> =
            (0..64).filter_map(|last| seats.enter(at(&format!("2001:db8:0:1::{last}")))).collect();
        assert_eq!(own.len(), READY.of_address);
        assert!(seats.enter(at("2001:db8:0:2::1")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_replaces_a_peer_of_an_address_with_more_seats() {
        let seats = Seats::new(READY);
        let reserved: Vec<Vec<Seat>> = (1..=4).map(|last| fill(&seats, &format!("192.0.2.{last}"))).collect();
        reserved.iter().flatten().for_each(Seat::note_useful);
        let newcomers: Vec<Seat> =
            (5..=200).filter_map(|last| seats.enter(at(&format!("192.0.2.{last}")))).collect();
        let mut left = 0;
        for seat in reserved.iter().flatten() {
            left += usize::from(has_left(seat).await);
        }
        assert_eq!(seats.taken().len(), READY.all);
        assert_eq!((left, newcomers.len()), (28, 28), "one seat at least stays to each address");
    }

    #[tokio::test(start_paused = true)]
    async fn the_networks_of_a_site_are_counted_together() {
        let seats = Seats::new(READY);
        let many: Vec<Seat> =
            (1..=READY.all).map(|net| seats.enter(at(&format!("2001:db8:0:{net:x}::1"))).unwrap()).collect();
        many.iter().for_each(Seat::note_useful);
        assert!(seats.enter(at("2001:db8:0:100::1")).is_none(), "its site has all seats");
        // A house with three nodes at one address.
        let house = [(); 3].map(|()| seats.enter(at("2001:db8:7::1")).unwrap());
        house.iter().for_each(Seat::note_useful);
        let more: Vec<Seat> =
            (0x100..0x200).filter_map(|net| seats.enter(at(&format!("2001:db8:0:{net:x}::1")))).collect();
        assert!(more.is_empty(), "the site has more seats than any other");
        for seat in &house {
            assert!(!has_left(seat).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_replaces_a_peer_that_is_of_no_use_and_not_another_one() {
        let seats = Seats::new(READY);
        let reserved: Vec<Seat> =
            (1..=READY.all).map(|last| seats.enter(at(&format!("192.0.{last}.1"))).unwrap()).collect();
        assert!(seats.enter(at("198.51.100.1")).is_none(), "all came a moment ago");
        tokio::time::advance(READY.idle).await;
        reserved[1..].iter().for_each(Seat::note_useful);
        let newcomer = seats.enter(at("198.51.100.1")).unwrap();
        assert!(has_left(&reserved[0]).await);
        assert!(seats.enter(at("198.51.100.2")).is_none());
        // Dropping the seat of a peer that has left does not free the seat that another peer has now.
        drop(reserved);
        assert_eq!(seats.taken().len(), 1);
        drop(newcomer);
        assert!(seats.taken().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_with_all_its_seats_replaces_its_own_idle_peers_only() {
        let seats = Seats::new(READY);
        let other = seats.enter(at("192.0.2.2")).unwrap();
        let own = fill(&seats, "192.0.2.1");
        tokio::time::advance(READY.idle).await;
        own[1..].iter().for_each(Seat::note_useful);
        assert!(seats.enter(at("192.0.2.1")).is_some());
        assert!(has_left(&own[0]).await && !has_left(&other).await);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_without_a_handshake_do_not_block_new_peers() {
        let seats = Seats::new(HANDSHAKING);
        let mut reserved: Vec<Seat> =
            (0..100).map(|number| seats.enter(at(&format!("192.0.2.{}", number % 20))).unwrap()).collect();
        let newcomer = seats.enter(at("198.51.100.1")).unwrap();
        for number in 0..100 {
            reserved.push(seats.enter(at(&format!("192.0.2.{}", number % 20))).unwrap());
        }
        assert!(!has_left(&newcomer).await, "addresses with more connections make room for their own");
        let many: Vec<Seat> = (1..=HANDSHAKING.all)
            .map(|number| seats.enter(at(&format!("203.0.113.{number}"))).unwrap())
            .collect();
        assert_eq!(seats.taken().len(), HANDSHAKING.all);
        assert!(!has_left(many.last().unwrap()).await);
    }

    #[tokio::test(start_paused = true)]
    async fn fresh_networks_of_a_site_do_not_end_the_handshakes_of_others() {
        let seats = Seats::new(HANDSHAKING);
        let newcomer = seats.enter(at("192.0.2.1")).unwrap();
        let mut reserved = Vec::new();
        for net in 0..1_000 {
            reserved.push(seats.enter(at(&format!("2001:db8:0:{net:x}::1"))).unwrap());
        }
        assert!(!has_left(&newcomer).await);
    }
}
