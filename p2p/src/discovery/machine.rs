//! Discovery as a machine: datagrams and milliseconds in, datagrams and nodes out.

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

/// Most addresses of boot hosts that are kept.
pub const MAX_BOOT_ADDRESSES: usize = 64;
/// Most nodes that others told of and that were not tried yet.
pub const MAX_CANDIDATES: usize = 256;
/// Most outputs that wait; beyond, nothing is sent.
pub const MAX_OUTPUTS: usize = 256;

/// Milliseconds from a node's first PONG to the FIND_NODE: its own PING of us is answered in between.
const ASK_DELAY_MS: u64 = 1_000;
/// Milliseconds between two rounds of FIND_NODE, as in the reference.
const REFRESH_MS: u64 = 60_000;
/// Nodes that are asked in a round.
const REFRESH_NODES: usize = 3;
/// Milliseconds between two rounds of PING, as in the reference.
const CLEAN_MS: u64 = 15_000;
/// Milliseconds after which an answer is old, and the node pinged again.
const STALE_MS: u64 = 60_000;
/// Nodes that are pinged in a round: the whole table in 8 minutes.
const CLEAN_NODES: usize = 16;
/// Milliseconds for which a PONG shows that an address is its node's own.
const BOND_MS: u64 = 3_600_000;
/// Milliseconds until an address that did not get into the table is pinged again.
const RETRY_MS: u64 = 300_000;
/// Milliseconds until a boot host is pinged again.
const BOOT_RETRY_MS: u64 = 60_000;
/// Boot hosts are pinged while fewer nodes than this are known.
const ENOUGH_NODES: usize = 16;
/// Addresses whose latest PING is remembered.
const MAX_TRIED: usize = 1024;
/// Candidates that are pinged at one tick.
const TRIES_PER_TICK: usize = 8;
/// Nodes in our NEIGHBORS: as many as fit into 1,280 bytes, which every network carries in one piece.
const NEIGHBORS_SENT: usize = 12;

/// Settings of the machine: its endpoint, its network and the allowed addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// The network; others are ignored.
    pub network_id: u64,
    /// The host that we say is ours. Nodes use the address of the socket instead.
    pub host: String,
    /// The port of our UDP socket. Nodes dial us by TCP at the same.
    pub port: u16,
    /// Whether nodes may be at private, loopback and other special addresses: for networks of one's own.
    pub allow_private: bool,
}

impl DiscoveryConfig {
    /// A node that keeps its address to itself.
    pub fn new(network_id: u64, port: u16) -> Self {
        Self { network_id, host: "127.0.0.1".into(), port, allow_private: false }
    }
}

/// An output of the machine: a datagram to send, or news of a node.
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

/// Finds nodes and answers others.
///
/// All times are milliseconds of one clock that does not go back. After each [`receive`](Self::receive) and
/// [`tick`](Self::tick), take outputs until there are none. UDP and TCP should be bound to one port, and the key kept with
/// it: nodes know a key by its port.
///
/// An address that has not shown to be its node's own gets one PONG for a PING, of about its length, and at most one PING
/// in 15 seconds. NEIGHBORS go only to nodes of the table, whose PONG came from the address.
pub struct Discovery {
    key: NodeKey,
    config: DiscoveryConfig,
    random: Random,
    table: Table,
    pending: OpenQueries,
    meters: DatagramMeters,
    /// Boot hosts and when to ping them.
    boot: Vec<(SocketAddr, u64)>,
    candidates: VecDeque<NodeRecord>,
    /// When each address was pinged that was not in the table.
    tried: BTreeMap<SocketAddr, u64>,
    outputs: VecDeque<Output>,
    refresh_ms: u64,
    clean_ms: u64,
}

impl Discovery {
    /// A machine without nodes. `seed` comes from a secure source: it makes the ids of messages, by which an address is
    /// shown to be a node's own.
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

    /// Adds an address of a boot host. Its id is learnt from the signature of its PONG. `false` if the address is not
    /// allowed, known, or one too many.
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

    /// Adds a node to try, for instance one of an earlier [`nodes`](Self::nodes). It is in the table once it has answered.
    pub fn add_node(&mut self, node: NodeRecord) -> bool {
        let node = NodeRecord::new(node.id, node.address);
        allowed(node.address, self.config.allow_private) && self.add_candidate(node)
    }

    /// The nodes of the table, for keeping and dialling: all have answered, none for longer than three unanswered PINGs.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRecord> {
        self.table.entries().map(|entry| entry.node)
    }

    /// The nodes of the table, each with the milliseconds since its latest PONG.
    pub fn answered(&self, now_ms: u64) -> impl Iterator<Item = (NodeRecord, u64)> {
        self.table.entries().map(move |entry| (entry.node, now_ms.saturating_sub(entry.answered_ms)))
    }

    /// The next thing to do, or `None` until the next datagram or tick.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Takes a datagram with the address that the socket shows. The reason for which it was ignored is for logs only.
    pub fn receive(&mut self, from: SocketAddr, bytes: &[u8], now_ms: u64) -> Result<(), Ignored> {
        let from = canonical(from);
        if !allowed(from, self.config.allow_private) {
            return Err(Ignored::Address);
        }
        if !self.answers(from, bytes, now_ms) && !self.meters.take(from.ip(), self.knows(from), now_ms) {
            return Err(Ignored::TooMany);
        }
        let datagram = Datagram::decode(bytes)?;
        match datagram.packet.network_id() {
            Some(network_id) if network_id != self.config.network_id => {
                return Err(Ignored::Network(network_id));
            }
            _ => {}
        }
        match &datagram.packet {
            Packet::Ping { message_id, .. } => self.ping(from, &datagram, *message_id, now_ms),
            Packet::Pong { message_id, .. } => self.pong(from, &datagram, message_id, now_ms),
            Packet::FindNode { message_id, .. } => self.find_node(from, &datagram, *message_id, now_ms),
            Packet::Neighbors { message_id, nodes, .. } => {
                self.neighbors(from, &datagram, message_id, nodes, now_ms)
            }
        }
    }

    /// Does what is due. To be called about once a second.
    pub fn tick(&mut self, now_ms: u64) {
        for asked in self.pending.expire(now_ms) {
            let Some(id) = asked.question.node().filter(|_| asked.question.is_ping()) else { continue };
            let there = self.table.get(&id).is_some_and(|entry| entry.node.address == asked.address);
            if there && self.table.fail(&id) {
                self.put(Output::Lost(id));
            }
        }
        self.tried.retain(|_, at| now_ms.saturating_sub(*at) < RETRY_MS);
        self.ping_stale_nodes(now_ms);
        self.ping_boot_hosts(now_ms);
        self.ping_candidates(now_ms);
        self.ask_nodes(now_ms);
    }

    /// Whether a datagram answers a question of ours. Its id shows that: whoever forges addresses does not see the
    /// question. So forged datagrams, however many, hide no answer.
    fn answers(&mut self, from: SocketAddr, bytes: &[u8], now_ms: u64) -> bool {
        self.pending.waits_at(from)
            && Datagram::decode_unchecked(bytes)
                .is_some_and(|packet| self.pending.is_answer(&packet, from, now_ms))
    }

    /// Whether the address is that of a boot host or of a node of the table.
    fn knows(&self, address: SocketAddr) -> bool {
        self.boot.iter().any(|(boot, _)| *boot == address) || self.table.has_address(address)
    }

    fn sender(&self, datagram: &Datagram) -> Result<NodeId, Ignored> {
        let sender = datagram.sender()?;
        if sender == *self.key.id() { Err(Ignored::Own) } else { Ok(sender) }
    }

    fn ping(
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
        if self.table.has_room(&NodeRecord::new(sender, from)) {
            self.send_ping(DiscoveryQuery::Challenge(sender), from, now_ms);
        }
        Ok(())
    }

    fn pong(
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
            self.put(Output::Found(node));
        }
        Ok(())
    }

    fn find_node(
        &mut self,
        from: SocketAddr,
        datagram: &Datagram,
        id: MessageId,
        now_ms: u64,
    ) -> Result<(), Ignored> {
        // No signature is looked at for addresses that no node of the table has.
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

    fn neighbors(
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
            // A name is not looked up: whoever controls it could point it anywhere.
            let Ok(ip) = neighbor.endpoint.host.parse::<IpAddr>() else { continue };
            let node = NodeRecord::new(neighbor.id, SocketAddr::new(ip, neighbor.endpoint.udp_port));
            if allowed_from_others(node.address, self.config.allow_private) {
                self.add_candidate(node);
            }
        }
        Ok(())
    }

    fn add_candidate(&mut self, node: NodeRecord) -> bool {
        let wanted = self.candidates.len() < MAX_CANDIDATES
            && self.table.has_room(&node)
            && !self.tried.contains_key(&node.address)
            && !self.candidates.iter().any(|other| other.address == node.address);
        if wanted {
            self.candidates.push_back(node);
        }
        wanted
    }

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

    fn ping_candidates(&mut self, now_ms: u64) {
        for _ in 0..TRIES_PER_TICK {
            let Some(node) = self.candidates.pop_front() else { return };
            let wanted = self.table.has_room(&node) && self.tried.len() < MAX_TRIED;
            if wanted && self.send_ping(DiscoveryQuery::Ping(Some(node.id)), node.address, now_ms) {
                self.tried.insert(node.address, now_ms);
            }
        }
    }

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
            .take(TRIES_PER_TICK)
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

    fn send_ping(&mut self, question: DiscoveryQuery, to: SocketAddr, now_ms: u64) -> bool {
        let (endpoint, network_id) = (self.endpoint(), Some(self.config.network_id));
        self.ask(question, to, now_ms, |message_id| Packet::Ping {
            from: endpoint.clone(),
            to: endpoint,
            message_id,
            network_id,
        })
    }

    /// Sends a question, if there is room for it and none of its kind waits there.
    fn ask(
        &mut self,
        question: DiscoveryQuery,
        to: SocketAddr,
        now_ms: u64,
        packet: impl FnOnce(MessageId) -> Packet,
    ) -> bool {
        if !self.pending.has_room(question, to) {
            return false;
        }
        let id = self.random.message_id();
        let sent = self.send(to, &packet(id));
        if sent {
            self.pending.insert(id, question, to, now_ms);
        }
        sent
    }

    fn send(&mut self, to: SocketAddr, packet: &Packet) -> bool {
        if self.outputs.len() >= MAX_OUTPUTS {
            return false;
        }
        // Signing fails for no key that was accepted.
        let Ok(bytes) = Datagram::encode(packet, &self.key) else { return false };
        self.put(Output::Send { to, bytes });
        true
    }

    /// News of nodes are few: at most one for each node of the table.
    fn put(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

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
