//! Datagrams of discovery, and the machine among nodes that say anything.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use alloy_primitives::keccak256;
use rootlight_p2p::discovery::{
    Datagram, Discovery, DiscoveryConfig, Endpoint, MAX_NODES, MAX_OUTPUTS, MessageId, Neighbor, NodeRecord,
    Output, PER_SLASH_16, PER_SLASH_24, Packet,
};
use rootlight_p2p::rlpx::{NodeId, NodeKey};

use crate::input::{Input, change};
use crate::limit::{with_at_most, with_limit};

const NETWORK: u64 = 7771;
/// Steps of one run.
const STEPS: usize = 200;
/// Bytes that the machine may hold beside a megabyte: its tables are bounded.
const HELD: usize = 4 << 20;

/// Our key and those of other nodes.
fn keys() -> &'static [NodeKey] {
    static KEYS: OnceLock<Vec<NodeKey>> = OnceLock::new();
    KEYS.get_or_init(|| (1..=32).map(|byte| NodeKey::from_bytes(&[byte; 32]).expect("a key")).collect())
}

/// First byte: a datagram of any content, or steps of a machine.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => datagram(input.rest().to_vec()),
        1 => {
            // The hash is made right, so that the content is reached.
            let rest = input.rest();
            datagram([keccak256(rest).as_slice(), rest].concat());
        }
        _ => machine(input),
    }
}

/// A datagram that is read is written in the same way by the owner of the key, and no changed datagram has the same sender and
/// another content.
fn datagram(bytes: Vec<u8>) {
    let Ok(read) = with_limit(bytes.len(), || Datagram::decode(&bytes)) else { return };
    let _ = read.sender();
    let key = &keys()[0];
    let ours = Datagram::encode(&read.packet, key).expect("signed");
    // Hosts that are no UTF-8 take more bytes when they are written again.
    if let Ok(again) = Datagram::decode(&ours) {
        assert_eq!(again.packet, read.packet);
        assert_eq!(again.sender(), Ok(*key.id()));
    }
}

struct DiscoveryRun {
    machine: Discovery,
    now_ms: u64,
    /// Questions of the machine: to whom, and their ids.
    asked: Vec<(SocketAddr, MessageId)>,
    /// Addresses to which a question of the machine went whose answer would show them.
    found: Vec<NodeRecord>,
}

fn machine(mut input: Input<'_>) {
    let config =
        DiscoveryConfig { allow_private: input.byte() & 1 == 1, ..DiscoveryConfig::new(NETWORK, 5050) };
    let private = config.allow_private;
    let machine = Discovery::new(keys()[0].clone(), config, [9; 32]);
    let mut run = DiscoveryRun { machine, now_ms: 0, asked: Vec::new(), found: Vec::new() };
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        with_at_most(HELD, || run.step(&mut input));
        run.check_table(private);
    }
}

impl DiscoveryRun {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 8 {
            0 => {
                self.now_ms += input.short() as u64;
                self.machine.tick(self.now_ms);
                self.outputs(None);
            }
            1 => {
                let address = address(input);
                self.machine.add_boot_address(address);
            }
            2 => {
                let node = NodeRecord { id: id(input), address: address(input) };
                self.machine.add_node(node);
            }
            _ => self.receive(input),
        }
    }

    fn receive(&mut self, input: &mut Input<'_>) {
        let (mut from, mut packet) = (address(input), packet(input));
        // Mostly an answer to a question.
        let chosen = input.below(self.asked.len().max(1) * 2);
        if let Some((to, id)) = self.asked.get(chosen) {
            from = *to;
            match &mut packet {
                Packet::Pong { message_id, .. } | Packet::Neighbors { message_id, .. } => *message_id = *id,
                _ => {}
            }
        }
        let key = &keys()[input.below(keys().len())];
        let mut bytes = Datagram::encode(&packet, key).expect("signed");
        if input.byte() >= 240 {
            change(&mut bytes, input);
        }
        let bonded = self.machine.nodes().any(|node| node.address == from);
        let _ = self.machine.receive(from, &bytes, self.now_ms);
        self.outputs(Some((from, bytes.len(), bonded)));
    }

    /// Takes the outputs; after a datagram, all go to its sender, and an unknown one gets at most three times its bytes.
    fn outputs(&mut self, after: Option<(SocketAddr, usize, bool)>) {
        let (mut count, mut bytes_sent) = (0, 0);
        while let Some(output) = self.machine.next_output() {
            match output {
                Output::Send { to, bytes } => {
                    count += 1;
                    bytes_sent += bytes.len();
                    let datagram = Datagram::decode(&bytes).expect("our own");
                    assert_eq!(datagram.sender(), Ok(*keys()[0].id()));
                    assert!(bytes.len() <= 1280);
                    if matches!(datagram.packet, Packet::Ping { .. } | Packet::FindNode { .. }) {
                        self.asked.push((to, *datagram.packet.message_id()));
                    }
                    if let Some((from, _, bonded)) = after {
                        assert_eq!(to.ip(), from.ip().to_canonical());
                        assert!(bonded || !matches!(datagram.packet, Packet::Neighbors { .. }));
                    }
                }
                Output::Found(node) => self.found.push(node),
                Output::Lost(id) => self.found.retain(|node| node.id != id),
            }
        }
        assert!(count <= MAX_OUTPUTS);
        if let Some((_, len, false)) = after {
            assert!(bytes_sent <= 3 * len);
        }
        let surplus = self.asked.len().saturating_sub(100);
        self.asked.drain(..surplus);
    }

    /// The table is what was found and not lost, within its limits.
    fn check_table(&self, private: bool) {
        let nodes: Vec<NodeRecord> = self.machine.nodes().collect();
        assert!(nodes.len() <= MAX_NODES && nodes.len() == self.found.len());
        for node in &nodes {
            assert!(self.found.contains(node));
            let own = |count: usize| {
                let prefix = |ip: IpAddr| match ip {
                    IpAddr::V4(ip) => ip.octets()[..count].to_vec(),
                    IpAddr::V6(ip) => ip.octets()[..count * 2].to_vec(),
                };
                let of = prefix(node.address.ip());
                nodes.iter().filter(|other| prefix(other.address.ip()) == of).count()
            };
            assert!(private || own(3) <= PER_SLASH_24 && own(2) <= PER_SLASH_16);
        }
    }
}

fn id(input: &mut Input<'_>) -> NodeId {
    match input.byte() {
        255 => NodeId::from_bytes([input.byte(); 64]),
        byte => *keys()[usize::from(byte) % keys().len()].id(),
    }
}

/// Addresses of which many are close to each other.
fn address(input: &mut Input<'_>) -> SocketAddr {
    let [kind, a, b, c] = input.array();
    let port = 5050 + u16::from(kind >> 6);
    let ip: IpAddr = match kind % 8 {
        0 => Ipv4Addr::from([a, b, c, kind]).into(),
        1 => Ipv4Addr::new(127, 0, 0, a).into(),
        2 => [0x2600, 1, u16::from(a % 4), u16::from(b), 0, 0, 0, 1].into(),
        3 => Ipv4Addr::new(44, 1, a % 4, b).to_ipv6_mapped().into(),
        _ => Ipv4Addr::new(40 + a % 8, b % 4, c % 4, 1).into(),
    };
    SocketAddr::new(ip, if a == 255 { 0 } else { port })
}

fn endpoint(input: &mut Input<'_>) -> Endpoint {
    let address = address(input);
    let host = match input.byte() {
        0 => String::new(),
        1 => "localhost".into(),
        _ => address.ip().to_string(),
    };
    Endpoint { host, udp_port: address.port(), tcp_port: address.port() }
}

fn packet(input: &mut Input<'_>) -> Packet {
    let message_id = MessageId::from_random([input.byte(); 16]);
    let network_id = match input.byte() {
        0 => None,
        1 => Some(775),
        _ => Some(NETWORK),
    };
    let short = Endpoint { host: String::new(), udp_port: 0, tcp_port: 0 };
    match input.byte() % 8 {
        0 => Packet::Ping { from: short.clone(), to: short, message_id, network_id },
        1 | 2 => Packet::Ping { from: endpoint(input), to: endpoint(input), message_id, network_id },
        3..=5 => Packet::Pong { from: endpoint(input), to: endpoint(input), message_id, network_id },
        6 => Packet::FindNode { target: id(input), message_id, network_id },
        _ => {
            let count = input.below(21);
            let nodes = (0..count).map(|_| Neighbor { endpoint: endpoint(input), id: id(input) }).collect();
            Packet::Neighbors { nodes, message_id, network_id }
        }
    }
}
