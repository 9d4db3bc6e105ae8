//! Discovery as a machine without I/O: it gets datagrams and the time, and gives datagrams to send and nodes that were found or lost.
//!
//! "The reference" is the reference implementation of Rootstock, rskj.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

use super::address::{NodeRecord, allowed, allowed_from_others, canonical};
use super::datagram::Datagram;
use super::error::Ignored;
use super::limits::DatagramMeters;
use super::message_id::MessageId;
use super::packet::{Endpoint, Neighbor, Packet};
use super::pending::{DiscoveryQuery, OpenQueries};
use super::random::Random;
use super::table::Table;
use crate::rlpx::{NodeId, NodeKey};

/// Most addresses of boot hosts.
pub const MAX_BOOT_ADDRESSES: usize = 64;
/// Most candidates: nodes that other nodes named and that were not pinged yet.
pub const MAX_CANDIDATES: usize = 256;
/// Most outputs that wait to be taken; no further datagram is made then.
pub const MAX_OUTPUTS: usize = 256;

/// Milliseconds from a node's first PONG to our FIND_NODE. In between we answer the node's own PING, without which it does not answer
/// a FIND_NODE.
const ASK_DELAY_MS: u64 = 1_000;
/// Milliseconds between two rounds of FIND_NODE, as in the reference.
const REFRESH_MS: u64 = 60_000;
/// Nodes that get a FIND_NODE in a round.
const REFRESH_NODES: usize = 3;
/// Milliseconds between two rounds of PING, as in the reference.
const CLEAN_MS: u64 = 15_000;
/// Milliseconds after a node's last PONG from which on it is pinged again.
const STALE_MS: u64 = 60_000;
/// Nodes that are pinged in a round: the whole table in 8 minutes.
const CLEAN_NODES: usize = 16;
/// Milliseconds for which a PONG counts as proof that a node receives at its address.
const BOND_MS: u64 = 3_600_000;
/// Milliseconds until an address that did not get into the table is pinged again.
const RETRY_MS: u64 = 300_000;
/// Milliseconds until a boot host is pinged again.
const BOOT_RETRY_MS: u64 = 60_000;
/// Boot hosts are pinged while fewer nodes than this are known.
const ENOUGH_NODES: usize = 16;
/// Most addresses of candidates whose PING is noted, so that they are not pinged again soon.
const MAX_TRIED: usize = 1024;
/// Candidates that are pinged, and nodes that get a FIND_NODE, at one tick.
const SENT_PER_TICK: usize = 8;
/// Most nodes in our NEIGHBORS: as many as fit into 1,280 bytes, the packet size that every IPv6 network carries unfragmented, if
/// their addresses are IPv4 (at most 90 bytes for each node).
const NEIGHBORS_SENT: usize = 12;

/// Settings of the machine: its endpoint, its network and the allowed addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// The number of the network; datagrams of other networks are ignored.
    pub network_id: u64,
    /// The host that our datagrams name. Nodes use the address from which a datagram comes instead.
    pub host: String,
    /// The port of our UDP socket. Nodes connect to us by TCP at the same port.
    pub port: u16,
    /// Whether nodes may have private, loopback and other special addresses, as in a test network.
    pub allow_private: bool,
}

impl DiscoveryConfig {
    /// A node that does not name its address in datagrams.
    pub fn new(network_id: u64, port: u16) -> Self {
        Self { network_id, host: "127.0.0.1".into(), port, allow_private: false }
    }
}

/// An output of the machine: a datagram to send, or a change of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes to this address.
    Send {
        /// The receiver; IPv4 is written as IPv4, whatever the socket is.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// A node answered at its address with its key, and is in the table now.
    Found(NodeRecord),
    /// A node did not answer three times and has left the table.
    Lost(NodeId),
}

/// Finds nodes, and answers the questions of other nodes.
///
/// All times are milliseconds of one clock that does not go back. After each [`receive`](Self::receive) and
/// [`tick`](Self::tick), take outputs until there are none. UDP and TCP should be bound to one port, and both port and key should
/// stay the same after a restart: other nodes store them together.
///
/// So that forged addresses cannot direct traffic at others, an address that has not answered our PING gets one PONG for a PING, of
/// about its length, and at most one PING in 15 seconds. NEIGHBORS are sent only to nodes of the table, whose PONG came from the
/// address.
pub struct Discovery {
    key: NodeKey,
    config: DiscoveryConfig,
    random: Random,
    table: Table,
    /// Our questions without an answer.
    pending: OpenQueries,
    meters: DatagramMeters,
    /// Boot hosts, and the time of the next PING to each.
    boot: Vec<(SocketAddr, u64)>,
    /// Nodes to be pinged.
    candidates: VecDeque<NodeRecord>,
    /// Addresses of candidates that were pinged, with the time.
    tried: BTreeMap<SocketAddr, u64>,
    outputs: VecDeque<Output>,
    /// Time of the next round of FIND_NODE.
    refresh_ms: u64,
    /// Time of the next round of PING.
    clean_ms: u64,
}

impl Discovery {
    /// A machine without nodes. `seed` must come from a secure source: the ids of our questions are made from it, and only a node that
    /// receives a question can know its id.
    pub fn new(key: NodeKey, config: DiscoveryConfig, seed: [u8; 32]) -> Self {
        Self {
            table: Table::new(*key.id()),
            key,
            config,
            random: Random::new(seed),
            pending: OpenQueries::default(),
            meters: DatagramMeters::default(),
            boot: Vec::new(),
            candidates: VecDeque::new(),
            tried: BTreeMap::new(),
            outputs: VecDeque::new(),
            refresh_ms: 0,
            clean_ms: 0,
        }
    }

    /// Adds an address of a boot host, whose node id the signature of its PONG shows. Returns `false` if the address is not allowed or
    /// was added before, or if there are [`MAX_BOOT_ADDRESSES`] already.
    pub fn add_boot_address(&mut self, address: SocketAddr) -> bool {
        let address = canonical(address);
        let known = self.boot.iter().any(|(other, _)| *other == address);
        let add =
            !known && self.boot.len() < MAX_BOOT_ADDRESSES && allowed(address, self.config.allow_private);
        if add {
            self.boot.push((address, 0));
        }
        add
    }

    /// Adds a candidate, for instance one of the [`nodes`](Self::nodes) of an earlier run. The node is in the table once it has answered.
    /// Returns whether it was added.
    pub fn add_node(&mut self, node: NodeRecord) -> bool {
        let node = NodeRecord::new(node.id, node.address);
        allowed(node.address, self.config.allow_private) && self.add_candidate(node)
    }

    /// The nodes of the table, to store them or to connect to them. Each has answered, and has not left three PINGs in a row unanswered
    /// since.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRecord> {
        self.table.entries().map(|entry| entry.node)
    }

    /// The nodes of the table, each with the milliseconds since its latest PONG.
    pub fn answered(&self, now_ms: u64) -> impl Iterator<Item = (NodeRecord, u64)> {
        self.table.entries().map(move |entry| (entry.node, now_ms.saturating_sub(entry.answered_ms)))
    }

    /// The next output; `None` until the next datagram or tick.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Handles a datagram from the address that the socket shows. The error, why the datagram was ignored, is for logs only.
    pub fn receive(&mut self, from: SocketAddr, bytes: &[u8], now_ms: u64) -> Result<(), Ignored> {
        let from = canonical(from);
        if !allowed(from, self.config.allow_private) {
            return Err(Ignored::Address);
        }
        if !self.is_answer(from, bytes, now_ms) && !self.meters.take(from.ip(), self.knows(from), now_ms) {
            return Err(Ignored::TooMany);
        }
        let datagram = Datagram::decode(bytes)?;
        match datagram.packet.network_id() {
            Some(network_id) if network_id != self.config.network_id => {
                return Err(Ignored::Network(network_id));
            }
            // Our network, or none is stated, which the reference accepts.
            _ => {}
        }
        match &datagram.packet {
            Packet::Ping { message_id, .. } => self.receive_ping(from, &datagram, *message_id, now_ms),
            Packet::Pong { message_id, .. } => self.receive_pong(from, &datagram, message_id, now_ms),
            Packet::FindNode { message_id, .. } => {
                self.receive_find_node(from, &datagram, *message_id, now_ms)
            }
            Packet::Neighbors { message_id, nodes, .. } => {
                self.receive_neighbors(from, &datagram, message_id, nodes, now_ms)
            }
        }
    }

    /// Notes which questions were not answered in time, and sends the PINGs and FIND_NODEs that are due. To be called about once a
    /// second.
    pub fn tick(&mut self, now_ms: u64) {
        for asked in self.pending.expire(now_ms) {
            let Some(id) = asked.question.node().filter(|_| asked.question.is_ping()) else { continue };
            let is_current = self.table.get(&id).is_some_and(|entry| entry.node.address == asked.address);
            if is_current && self.table.fail(&id) {
                self.push_output(Output::Lost(id));
            }
        }
        self.tried.retain(|_, at| now_ms.saturating_sub(*at) < RETRY_MS);
        self.ping_stale_nodes(now_ms);
        self.ping_boot_hosts(now_ms);
        self.ping_candidates(now_ms);
        self.ask_nodes(now_ms);
    }

    /// Whether a datagram has the id of a question of ours to its address. A node that forges the address does not see the question and
    /// its id. So the limits of datagrams do not apply to answers, and any number of forged datagrams cannot displace them.
    fn is_answer(&mut self, from: SocketAddr, bytes: &[u8], now_ms: u64) -> bool {
        self.pending.waits_at(from)
            && Datagram::decode_unchecked(bytes)
                .is_some_and(|packet| self.pending.is_answer(&packet, from, now_ms))
    }

    /// Whether the address is that of a boot host or of a node of the table.
    fn knows(&self, address: SocketAddr) -> bool {
        self.boot.iter().any(|(boot, _)| *boot == address) || self.table.has_address(address)
    }

    /// The sender of a datagram; an error if we are the sender.
    fn sender(&self, datagram: &Datagram) -> Result<NodeId, Ignored> {
        let sender = datagram.sender()?;
        if sender == *self.key.id() { Err(Ignored::Own) } else { Ok(sender) }
    }

    /// Answers a PING, and pings a sender that the table admits.
    fn receive_ping(
        &mut self,
        from: SocketAddr,
        datagram: &Datagram,
        id: MessageId,
        now_ms: u64,
    ) -> Result<(), Ignored> {
        let sender = self.sender(datagram)?;
        let pong = Packet::Pong {
            from: self.endpoint(),
            to: self.endpoint(),
            message_id: id,
            network_id: Some(self.config.network_id),
        };
        self.send(from, &pong);
        if self.table.admits(&NodeRecord::new(sender, from)) {
            self.send_ping(DiscoveryQuery::Challenge(sender), from, now_ms);
        }
        Ok(())
    }

    /// Adds the sender of a PONG to the table, or notes that it has answered.
    fn receive_pong(
        &mut self,
        from: SocketAddr,
        datagram: &Datagram,
        id: &MessageId,
        now_ms: u64,
    ) -> Result<(), Ignored> {
        let asked = self
            .pending
            .get(id, from, now_ms)
            .filter(|asked| asked.question.is_ping())
            .ok_or(Ignored::Unasked)?;
        let sender = self.sender(datagram)?;
        if asked.question.node().is_some_and(|expected| expected != sender) {
            return Err(Ignored::Unasked);
        }
        self.pending.remove(id);
        let node = NodeRecord::new(sender, from);
        if let Some(entry) = self.table.get_mut(&sender) {
            if entry.node == node {
                (entry.answered_ms, entry.failures) = (now_ms, 0);
            }
        } else if self.table.insert(node, now_ms, now_ms.saturating_add(ASK_DELAY_MS)) {
            self.tried.remove(&from);
            self.push_output(Output::Found(node));
        }
        Ok(())
    }

    /// Answers a FIND_NODE of a node of the table.
    fn receive_find_node(
        &mut self,
        from: SocketAddr,
        datagram: &Datagram,
        id: MessageId,
        now_ms: u64,
    ) -> Result<(), Ignored> {
        // The signature is checked only if a node of the table has the address.
        if !self.table.has_address(from) {
            return Err(Ignored::NotBonded);
        }
        let sender = self.sender(datagram)?;
        let bonded = self.table.get(&sender).is_some_and(|entry| {
            entry.node.address == from && now_ms.saturating_sub(entry.answered_ms) < BOND_MS
        });
        if !bonded {
            return Err(Ignored::NotBonded);
        }
        let nodes = self.table.nearest(&sender, NEIGHBORS_SENT).into_iter().map(|node| Neighbor {
            endpoint: Endpoint {
                host: node.address.ip().to_string(),
                udp_port: node.address.port(),
                tcp_port: node.address.port(),
            },
            id: node.id,
        });
        let answer = Packet::Neighbors {
            nodes: nodes.collect(),
            message_id: id,
            network_id: Some(self.config.network_id),
        };
        self.send(from, &answer);
        Ok(())
    }

    /// Adds the nodes of a NEIGHBORS as candidates.
    fn receive_neighbors(
        &mut self,
        from: SocketAddr,
        datagram: &Datagram,
        id: &MessageId,
        nodes: &[Neighbor],
        now_ms: u64,
    ) -> Result<(), Ignored> {
        let asked = self.pending.get(id, from, now_ms).ok_or(Ignored::Unasked)?;
        let DiscoveryQuery::FindNode(expected) = asked.question else { return Err(Ignored::Unasked) };
        if self.sender(datagram)? != expected {
            return Err(Ignored::Unasked);
        }
        self.pending.remove(id);
        for neighbor in nodes {
            // A host name is not looked up: its owner could make it resolve to any address.
            let Ok(ip) = neighbor.endpoint.host.parse::<IpAddr>() else { continue };
            let node = NodeRecord::new(neighbor.id, SocketAddr::new(ip, neighbor.endpoint.udp_port));
            if allowed_from_others(node.address, self.config.allow_private) {
                self.add_candidate(node);
            }
        }
        Ok(())
    }

    /// Adds a candidate, if the table admits it and its address was not tried lately. Returns whether it was added.
    fn add_candidate(&mut self, node: NodeRecord) -> bool {
        let wanted = self.candidates.len() < MAX_CANDIDATES
            && self.table.admits(&node)
            && !self.tried.contains_key(&node.address)
            && !self.candidates.iter().any(|other| other.address == node.address);
        if wanted {
            self.candidates.push_back(node);
        }
        wanted
    }

    /// Pings the nodes of the table whose last PONG is oldest.
    fn ping_stale_nodes(&mut self, now_ms: u64) {
        if now_ms < self.clean_ms {
            return;
        }
        self.clean_ms = now_ms.saturating_add(CLEAN_MS);
        let stale = self.table.entries().filter(|entry| now_ms.saturating_sub(entry.answered_ms) >= STALE_MS);
        let mut stale: Vec<(u64, NodeRecord)> = stale.map(|entry| (entry.answered_ms, entry.node)).collect();
        stale.sort_by_key(|(answered_ms, _)| *answered_ms);
        for (_, node) in stale.into_iter().take(CLEAN_NODES) {
            self.send_ping(DiscoveryQuery::Ping(Some(node.id)), node.address, now_ms);
        }
    }

    /// Pings boot hosts while the table has few nodes.
    fn ping_boot_hosts(&mut self, now_ms: u64) {
        if self.table.len() >= ENOUGH_NODES {
            return;
        }
        for index in 0..self.boot.len() {
            let Some((address, at)) = self.boot.get(index).copied() else { return };
            let due = now_ms >= at && !self.table.has_address(address);
            if due
                && self.send_ping(DiscoveryQuery::Ping(None), address, now_ms)
                && let Some((_, at)) = self.boot.get_mut(index)
            {
                *at = now_ms.saturating_add(BOOT_RETRY_MS);
            }
        }
    }

    /// Pings the first candidates.
    fn ping_candidates(&mut self, now_ms: u64) {
        for _ in 0..SENT_PER_TICK {
            let Some(node) = self.candidates.pop_front() else { return };
            let wanted = self.table.admits(&node) && self.tried.len() < MAX_TRIED;
            if wanted && self.send_ping(DiscoveryQuery::Ping(Some(node.id)), node.address, now_ms) {
                self.tried.insert(node.address, now_ms);
            }
        }
    }

    /// Sends FIND_NODE to new nodes of the table, and in each round to some that are chosen at random.
    fn ask_nodes(&mut self, now_ms: u64) {
        if now_ms >= self.refresh_ms {
            self.refresh_ms = now_ms.saturating_add(REFRESH_MS);
            for _ in 0..REFRESH_NODES {
                let chosen = self.random.below(self.table.len());
                if let Some(entry) = self.table.entries_mut().nth(chosen) {
                    entry.ask_ms.get_or_insert(now_ms);
                }
            }
        }
        let due = self.table.entries_mut().filter(|entry| entry.ask_ms.is_some_and(|at| now_ms >= at));
        let due: Vec<NodeRecord> = due
            .take(SENT_PER_TICK)
            .map(|entry| {
                entry.ask_ms = None;
                entry.node
            })
            .collect();
        for node in due {
            let (target, network_id) = (*self.key.id(), Some(self.config.network_id));
            self.ask(DiscoveryQuery::FindNode(node.id), node.address, now_ms, |message_id| {
                Packet::FindNode { target, message_id, network_id }
            });
        }
    }

    /// Sends a PING; returns whether it was sent.
    fn send_ping(&mut self, question: DiscoveryQuery, to: SocketAddr, now_ms: u64) -> bool {
        let (endpoint, network_id) = (self.endpoint(), Some(self.config.network_id));
        self.ask(question, to, now_ms, |message_id| Packet::Ping {
            from: endpoint.clone(),
            to: endpoint,
            message_id,
            network_id,
        })
    }

    /// Sends a question, unless too many wait, or one of its kind waits for an answer of this address. Returns whether it was sent.
    fn ask(
        &mut self,
        question: DiscoveryQuery,
        to: SocketAddr,
        now_ms: u64,
        packet: impl FnOnce(MessageId) -> Packet,
    ) -> bool {
        if !self.pending.admits(question, to) {
            return false;
        }
        let id = self.random.message_id();
        let sent = self.send(to, &packet(id));
        if sent {
            self.pending.insert(id, question, to, now_ms);
        }
        sent
    }

    /// Queues a datagram, unless too many outputs wait. Returns whether it was queued.
    fn send(&mut self, to: SocketAddr, packet: &Packet) -> bool {
        if self.outputs.len() >= MAX_OUTPUTS {
            return false;
        }
        // Signing never fails: the key was checked when it was made.
        let Ok(bytes) = Datagram::encode(packet, &self.key) else { return false };
        self.push_output(Output::Send { to, bytes });
        true
    }

    /// Queues an output. Changes of the table are not limited by [`MAX_OUTPUTS`]: there is at most one for each node of the table.
    fn push_output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Our endpoint, as our datagrams name it.
    fn endpoint(&self) -> Endpoint {
        Endpoint { host: self.config.host.clone(), udp_port: self.config.port, tcp_port: self.config.port }
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery")
            .field("config", &self.config)
            .field("nodes", &self.table.len())
            .field("candidates", &self.candidates.len())
            .finish_non_exhaustive()
    }
}
