//! Discovery over a UDP socket.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rootlight_p2p::discovery::{
    DATAGRAM_MAX, Datagram, Discovery, DiscoveryConfig, Output, Packet, canonical,
};
use rootlight_p2p::rlpx::NodeKey;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, trace, warn};

use super::book::NodeBook;
use super::boot::{BootHost, look_up};
use super::state_servers;
use crate::p2p::{Identity, PeerAddress};

/// Interval between two calls of the machine's clock.
const TICK: Duration = Duration::from_secs(1);

/// Interval between two writes of the file.
const SAVE: Duration = Duration::from_secs(60);

/// Kept nodes are asked this long before boot hosts are looked up.
const KEPT_FIRST: Duration = Duration::from_secs(10);

/// Boot hosts are not looked up while this many nodes answer.
const ENOUGH_NODES: usize = 16;

/// Pause after the socket failed to read.
const READ_PAUSE: Duration = Duration::from_millis(100);

/// How nodes are found.
#[derive(Debug, Clone)]
pub struct FinderOptions {
    /// Where the socket is bound.
    pub bind: SocketAddr,
    /// Hosts to begin with; none waits for others to ask.
    pub boot: Vec<BootHost>,
    /// Nodes with snapshot service. They come into the book as soon as their names have addresses, and are the first that
    /// a slot takes for state.
    pub state_servers: Vec<PeerAddress>,
}

/// Finds nodes and answers those who look for some, until the value is dropped. What is found is in the book.
pub struct Finder {
    book: Arc<NodeBook>,
    boot: BootAnswers,
    driving: JoinHandle<()>,
    // Ends with the value.
    _state_servers: JoinSet<()>,
}

/// Addresses of boot hosts that are asked, and whether each has answered. The machine limits their number.
type BootAnswers = Arc<Mutex<BTreeMap<SocketAddr, bool>>>;

impl Finder {
    /// Starts to look for nodes with the key of a server, whose TCP port the socket must have. Must be called inside a
    /// runtime.
    ///
    /// # Errors
    /// The socket cannot be bound, or the system gives no randomness.
    pub async fn serve(identity: &Identity, options: FinderOptions, book: Arc<NodeBook>) -> io::Result<Self> {
        Self::start(identity.key().clone(), options, book).await
    }

    /// Starts to look for nodes under a new key. Nodes know a key by its port, and do not answer it at another one; a
    /// program that no node dials needs neither to be the same for long. Must be called inside a runtime.
    ///
    /// # Errors
    /// As of [`Self::serve`].
    pub async fn roam(options: FinderOptions, book: Arc<NodeBook>) -> io::Result<Self> {
        let key = crate::p2p::node::random_key().map_err(io::Error::other)?;
        Self::start(key, options, book).await
    }

    async fn start(key: NodeKey, options: FinderOptions, book: Arc<NodeBook>) -> io::Result<Self> {
        let socket = UdpSocket::bind(options.bind).await?;
        let address = socket.local_addr()?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let config = DiscoveryConfig {
            allow_private: book.allows_private(),
            ..DiscoveryConfig::new(book.network(), address.port())
        };
        let mut machine = Discovery::new(key, config, seed);
        let mut kept = book.nodes();
        // Nodes that answered last come first, in case there are more than the machine takes.
        kept.sort_by_key(|known| std::cmp::Reverse(known.seen));
        let kept = kept.into_iter().filter(|known| machine.add_node(known.node)).count();
        let seeks = kept > 0 || !options.boot.is_empty();
        let answers = BootAnswers::default();
        let driver = Driver {
            socket,
            machine,
            book: book.clone(),
            boot: answers.clone(),
            started: Instant::now(),
            seeks,
        };
        let driving =
            tokio::spawn(driver.run(options.boot, if kept > 0 { KEPT_FIRST } else { Duration::ZERO }));
        let state_servers = state_servers::look_up_all(options.state_servers, &book);
        Ok(Self { book, boot: answers, driving, _state_servers: state_servers })
    }

    /// The addresses of boot hosts that have answered with a PONG.
    pub fn boot_answers(&self) -> Vec<SocketAddr> {
        let boot = self.boot.lock().unwrap_or_else(PoisonError::into_inner);
        boot.iter().filter(|(_, answered)| **answered).map(|(address, _)| *address).collect()
    }

    /// The nodes that were found.
    pub const fn book(&self) -> &Arc<NodeBook> {
        &self.book
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        self.driving.abort();
        self.book.save();
    }
}

struct Driver {
    socket: UdpSocket,
    machine: Discovery,
    book: Arc<NodeBook>,
    boot: BootAnswers,
    started: Instant,
    /// Whether there is any node to ask, so that silence means a fault.
    seeks: bool,
}

impl Driver {
    async fn run(mut self, boot: Vec<BootHost>, first: Duration) {
        let (found, mut addresses) = mpsc::channel(16);
        // Ends with the driver.
        let mut looking = JoinSet::new();
        let mut boot = Some((boot, found));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut saves = interval(SAVE);
        // One byte more shows that a datagram is too long.
        let mut buffer = vec![0; DATAGRAM_MAX + 1];
        loop {
            tokio::select! {
                read = self.socket.recv_from(&mut buffer) => match read {
                    Ok((count, from)) => self.take(from, buffer.get(..count).unwrap_or_default()),
                    Err(error) => {
                        trace!("discovery: {error}");
                        sleep(READ_PAUSE).await;
                    }
                },
                _ = ticks.tick() => {
                    let due = self.started.elapsed() >= first && self.machine.nodes().count() < ENOUGH_NODES;
                    if let Some((boot, found)) = boot.take_if(|_| due) {
                        for host in boot {
                            looking.spawn(look_up(host, found.clone()));
                        }
                    }
                    self.machine.tick(self.now());
                }
                Some(addresses) = addresses.recv() => self.add_boot_host(addresses),
                _ = saves.tick() => self.keep(),
            }
            self.put_out().await;
        }
    }

    fn add_boot_host(&mut self, addresses: Vec<SocketAddr>) {
        for address in addresses {
            if self.machine.add_boot_address(address) {
                self.boots().entry(canonical(address)).or_default();
                debug!("discovery: boot host at {address}");
                self.machine.tick(self.now());
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn take(&mut self, from: SocketAddr, datagram: &[u8]) {
        let now = self.now();
        match self.machine.receive(from, datagram, now) {
            Ok(()) => self.note_boot_host(from, datagram),
            Err(reason) => trace!("discovery: datagram from {from} ignored: {reason}"),
        }
    }

    fn boots(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, bool>> {
        self.boot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a boot host has answered, for a datagram that the machine has taken.
    fn note_boot_host(&self, from: SocketAddr, datagram: &[u8]) {
        if let Some(answered) = self.boots().get_mut(&canonical(from)).filter(|answered| !**answered) {
            let taken = Datagram::decode(datagram).map(|datagram| datagram.packet);
            *answered = matches!(taken, Ok(Packet::Pong { .. }));
        }
    }

    /// Sends what is to be sent, and notes what was found.
    async fn put_out(&mut self) {
        while let Some(output) = self.machine.next_output() {
            match output {
                Output::Send { to, bytes } => {
                    // A datagram that does not leave is one that is lost.
                    if let Err(error) = self.socket.send_to(&bytes, to).await {
                        trace!("discovery: nothing sent to {to}: {error}");
                    }
                }
                Output::Found(node) => {
                    debug!("discovery: node {} at {}", node.id, node.address);
                    self.book.found(node);
                }
                Output::Lost(id) => self.book.lost(&id),
            }
        }
    }

    /// Notes which nodes still answer, and writes the file.
    fn keep(&self) {
        if self.seeks && self.machine.nodes().next().is_none() && self.started.elapsed() >= SAVE {
            warn!("discovery: no node answers; UDP may be blocked, or the boot hosts cannot be reached");
        }
        for (node, ago) in self.machine.answered(self.now()) {
            self.book.seen(&node.id, Duration::from_millis(ago));
        }
        let book = self.book.clone();
        tokio::task::spawn_blocking(move || book.save());
    }
}
