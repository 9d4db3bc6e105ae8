//! Discovery of nodes over a UDP socket. The protocol is the machine `Discovery` of `rootlight-p2p`; this file moves its datagrams,
//! tells it the time, and adds the nodes that it finds to the `NodeList`.

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

use super::boot::{BootHost, look_up};
use super::list::NodeList;
use super::state_servers;
use crate::p2p::{Identity, PeerAddress};

/// Interval at which the machine is told the time.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval between two writes of the file of nodes.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// For how long only the stored nodes of an earlier run are asked. Boot hosts are looked up afterwards, if too few of these nodes
/// answer.
const STORED_NODES_FIRST: Duration = Duration::from_secs(10);

/// Boot hosts are not looked up while this many nodes answer.
const ENOUGH_NODES: usize = 16;

/// Pause after a failed read of the socket, so that the loop does not spin.
const READ_PAUSE: Duration = Duration::from_millis(100);

/// How nodes are found.
#[derive(Debug, Clone)]
pub struct FinderOptions {
    /// The address to which the socket is bound.
    pub bind: SocketAddr,
    /// Hosts that are asked first. Without any, and without stored nodes, the finder only answers others.
    pub boot: Vec<BootHost>,
    /// State servers: nodes that serve states in chunks (snapshot service). They are added to the list as soon as DNS has their
    /// addresses, and are the first nodes that a slot takes for state.
    pub state_servers: Vec<PeerAddress>,
}

/// Finds nodes and answers the requests of others, until the value is dropped. The nodes are in [`Self::list`].
pub struct Finder {
    list: Arc<NodeList>,
    boot: BootAnswers,
    /// The task of the [`Driver`].
    driving: JoinHandle<()>,
    // The look-ups of state servers, which end when the value is dropped.
    _state_servers: JoinSet<()>,
}

/// Addresses of boot hosts that are asked, IPv4 ones not mapped into IPv6 (`canonical`), and whether each has answered. The machine limits their number.
type BootAnswers = Arc<Mutex<BTreeMap<SocketAddr, bool>>>;

impl Finder {
    /// Starts to look for nodes, with the key of a server of the peer-to-peer protocol. The UDP socket must have the number of the
    /// server's TCP port, because the machine announces one number for both. Must be called inside a runtime.
    ///
    /// # Errors
    /// The socket cannot be bound, or the system gives no randomness.
    pub async fn serve(identity: &Identity, options: FinderOptions, list: Arc<NodeList>) -> io::Result<Self> {
        Self::start(identity.key().clone(), options, list).await
    }

    /// Starts to look for nodes with a new key. A node remembers the port of each key, and does not answer the key at another port.
    /// A program that no node dials need not keep its key or its port, so that it takes a new key at each start. Must be called
    /// inside a runtime.
    ///
    /// # Errors
    /// As of [`Self::serve`].
    pub async fn roam(options: FinderOptions, list: Arc<NodeList>) -> io::Result<Self> {
        let key = crate::p2p::node::random_key().map_err(io::Error::other)?;
        Self::start(key, options, list).await
    }

    /// Binds the socket and starts the tasks.
    async fn start(key: NodeKey, options: FinderOptions, list: Arc<NodeList>) -> io::Result<Self> {
        let socket = UdpSocket::bind(options.bind).await?;
        let address = socket.local_addr()?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let config = DiscoveryConfig {
            allow_private: list.allows_private(),
            ..DiscoveryConfig::new(list.network(), address.port())
        };
        let mut machine = Discovery::new(key, config, seed);
        let mut stored = list.nodes();
        // Nodes that answered last come first, in case there are more than the machine takes.
        stored.sort_by_key(|known| std::cmp::Reverse(known.seen));
        let stored_count = stored.into_iter().filter(|known| machine.add_node(known.node)).count();
        let seeks = stored_count > 0 || !options.boot.is_empty();
        let answers = BootAnswers::default();
        let driver = Driver {
            socket,
            machine,
            list: list.clone(),
            boot: answers.clone(),
            started: Instant::now(),
            seeks,
        };
        let driving = tokio::spawn(
            driver.run(options.boot, if stored_count > 0 { STORED_NODES_FIRST } else { Duration::ZERO }),
        );
        let state_servers = state_servers::look_up_all(options.state_servers, &list);
        Ok(Self { list, boot: answers, driving, _state_servers: state_servers })
    }

    /// The addresses of boot hosts that have answered with a PONG.
    pub fn boot_answers(&self) -> Vec<SocketAddr> {
        let boot = self.boot.lock().unwrap_or_else(PoisonError::into_inner);
        boot.iter().filter(|(_, answered)| **answered).map(|(address, _)| *address).collect()
    }

    /// The nodes that were found.
    pub const fn list(&self) -> &Arc<NodeList> {
        &self.list
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        self.driving.abort();
        self.list.save();
    }
}

/// Moves data between the socket, the machine and the list of nodes.
struct Driver {
    socket: UdpSocket,
    machine: Discovery,
    list: Arc<NodeList>,
    boot: BootAnswers,
    started: Instant,
    /// Whether there is any node to ask, so that silence means a fault.
    seeks: bool,
}

impl Driver {
    /// Runs for ever. Boot hosts are looked up after `first`, unless enough nodes answer.
    async fn run(mut self, boot: Vec<BootHost>, first: Duration) {
        let (found, mut addresses) = mpsc::channel(16);
        // The look-ups end when this future is dropped.
        let mut looking = JoinSet::new();
        let mut boot = Some((boot, found));
        let mut ticks = interval(TICK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut saves = interval(SAVE_INTERVAL);
        // With one byte more than the longest datagram, the machine notices a datagram that is too long.
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
                _ = saves.tick() => self.save_nodes(),
            }
            self.handle_outputs().await;
        }
    }

    /// Gives the addresses of a boot host to the machine.
    fn add_boot_host(&mut self, addresses: Vec<SocketAddr>) {
        for address in addresses {
            if self.machine.add_boot_address(address) {
                self.boot_answers().entry(canonical(address)).or_default();
                debug!("discovery: boot host at {address}");
                self.machine.tick(self.now());
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Gives a datagram to the machine.
    fn take(&mut self, from: SocketAddr, datagram: &[u8]) {
        let now = self.now();
        match self.machine.receive(from, datagram, now) {
            Ok(()) => self.note_boot_host(from, datagram),
            Err(reason) => trace!("discovery: datagram from {from} ignored: {reason}"),
        }
    }

    fn boot_answers(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, bool>> {
        self.boot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a boot host has answered, if a datagram that the machine has accepted is its PONG.
    fn note_boot_host(&self, from: SocketAddr, datagram: &[u8]) {
        if let Some(answered) = self.boot_answers().get_mut(&canonical(from)).filter(|answered| !**answered) {
            let taken = Datagram::decode(datagram).map(|datagram| datagram.packet);
            *answered = matches!(taken, Ok(Packet::Pong { .. }));
        }
    }

    /// Sends the machine's datagrams, and notes the nodes that it found or lost.
    async fn handle_outputs(&mut self) {
        while let Some(output) = self.machine.next_output() {
            match output {
                Output::Send { to, bytes } => {
                    // The protocol expects lost datagrams, so that one that could not be sent is no error.
                    if let Err(error) = self.socket.send_to(&bytes, to).await {
                        trace!("discovery: nothing sent to {to}: {error}");
                    }
                }
                Output::Found(node) => {
                    debug!("discovery: node {} at {}", node.id, node.address);
                    self.list.found(node);
                }
                Output::Lost(id) => self.list.lost(&id),
            }
        }
    }

    /// Notes which nodes still answer, and writes the file.
    fn save_nodes(&self) {
        // The first call is at the start, when no node can have answered yet.
        if self.seeks && self.machine.nodes().next().is_none() && self.started.elapsed() >= SAVE_INTERVAL {
            warn!("discovery: no node answers; UDP may be blocked, or the boot hosts cannot be reached");
        }
        for (node, ago) in self.machine.answered(self.now()) {
            self.list.seen(&node.id, Duration::from_millis(ago));
        }
        let list = self.list.clone();
        tokio::task::spawn_blocking(move || list.save());
    }
}
