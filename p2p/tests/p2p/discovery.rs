//! The machine of discovery, alone and in networks of itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rootlight_p2p::discovery::{
    Datagram, Discovery, DiscoveryConfig, Endpoint, Ignored, MAX_OUTPUTS, MessageId, Neighbor, NodeRecord,
    Output, PER_SLASH_16, PER_SLASH_24, Packet,
};
use rootlight_p2p::rlpx::{NodeId, NodeKey};

use crate::vectors::{bytes, json};

const NETWORK: u64 = 7771;

fn key(number: u32) -> NodeKey {
    let mut secret = [1; 32];
    secret[..4].copy_from_slice(&number.to_be_bytes());
    NodeKey::from_bytes(&secret).unwrap()
}

/// Addresses of which no two are in one /16.
fn address(number: u32) -> SocketAddr {
    let [a, b] = u16::try_from(number).unwrap().to_be_bytes();
    SocketAddr::from(([20 + a, b, 1, 1], 5050))
}

fn machine(number: u32) -> Discovery {
    Discovery::new(key(number), DiscoveryConfig::new(NETWORK, 5050), [number as u8; 32])
}

fn outputs(machine: &mut Discovery) -> Vec<Output> {
    std::iter::from_fn(|| machine.next_output()).collect()
}

/// The datagrams among the outputs, with their receivers.
fn sent(machine: &mut Discovery) -> Vec<(SocketAddr, Packet)> {
    let sent = outputs(machine).into_iter().filter_map(|output| match output {
        Output::Send { to, bytes } => Some((to, Datagram::decode(&bytes).unwrap().packet)),
        _ => None,
    });
    sent.collect()
}

/// Machines at addresses; what is sent elsewhere is lost.
#[derive(Default)]
struct Network {
    machines: BTreeMap<SocketAddr, Discovery>,
    found: BTreeMap<SocketAddr, Vec<NodeId>>,
    lost: BTreeMap<SocketAddr, Vec<NodeId>>,
}

impl Network {
    fn of(count: u32) -> Self {
        let machines = (0..count).map(|number| (address(number), machine(number))).collect();
        Self { machines, ..Self::default() }
    }

    fn run(&mut self, from_ms: u64, to_ms: u64) {
        for now_ms in (from_ms..to_ms).step_by(1000) {
            self.machines.values_mut().for_each(|machine| machine.tick(now_ms));
            self.deliver(now_ms);
        }
    }

    fn deliver(&mut self, now_ms: u64) {
        loop {
            let mut datagrams = Vec::new();
            for (from, machine) in &mut self.machines {
                for output in outputs(machine) {
                    match output {
                        Output::Send { to, bytes } => datagrams.push((*from, to, bytes)),
                        Output::Found(node) => self.found.entry(*from).or_default().push(node.id),
                        Output::Lost(id) => self.lost.entry(*from).or_default().push(id),
                    }
                }
            }
            if datagrams.is_empty() {
                return;
            }
            for (from, to, bytes) in datagrams {
                if let Some(machine) = self.machines.get_mut(&to) {
                    let _ = machine.receive(from, &bytes, now_ms);
                }
            }
        }
    }
}

#[test]
fn all_nodes_are_found_from_one_boot_host() {
    let mut network = Network::of(12);
    for number in 1..12 {
        assert!(network.machines.get_mut(&address(number)).unwrap().add_boot_address(address(0)));
    }
    network.run(0, 200_000);
    for (at, machine) in &network.machines {
        let mut nodes: Vec<NodeRecord> = machine.nodes().collect();
        nodes.sort_by_key(|node| node.address);
        let others = (0..12).filter(|number| address(*number) != *at);
        let expected: Vec<NodeRecord> =
            others.map(|number| NodeRecord { id: *key(number).id(), address: address(number) }).collect();
        assert_eq!(nodes, expected, "{at}");
        // Each node was found once.
        assert_eq!(network.found[at].len(), 11);
    }
    assert!(network.lost.is_empty());
}

#[test]
fn a_kept_table_is_found_again_and_the_silent_leave_it() {
    let mut network = Network::of(6);
    let kept: Vec<NodeRecord> =
        (1..6).map(|number| NodeRecord { id: *key(number).id(), address: address(number) }).collect();
    for node in &kept {
        assert!(network.machines.get_mut(&address(0)).unwrap().add_node(*node));
    }
    assert_eq!(network.machines[&address(0)].nodes().count(), 0);
    network.run(0, 10_000);
    assert_eq!(network.machines[&address(0)].nodes().count(), 5);
    network.machines.remove(&address(3));
    // Old after 60 s; three PINGs of 15 s each.
    network.run(10_000, 90_000);
    assert_eq!(network.machines[&address(0)].nodes().count(), 5);
    network.run(90_000, 140_000);
    assert_eq!(network.lost[&address(0)], [*key(3).id()]);
    assert_eq!(network.machines[&address(0)].nodes().count(), 4);
}

fn endpoint() -> Endpoint {
    Endpoint { host: "127.0.0.1".into(), udp_port: 5050, tcp_port: 5050 }
}

fn message_id(number: u8) -> MessageId {
    MessageId::from_random([number; 16])
}

fn ping(number: u8) -> Packet {
    Packet::Ping {
        from: endpoint(),
        to: endpoint(),
        message_id: message_id(number),
        network_id: Some(NETWORK),
    }
}

fn pong(message_id: MessageId) -> Packet {
    Packet::Pong { from: endpoint(), to: endpoint(), message_id, network_id: Some(NETWORK) }
}

fn find_node(number: u8) -> Packet {
    let target = *key(9).id();
    Packet::FindNode { target, message_id: message_id(number), network_id: Some(NETWORK) }
}

/// Has the node with this key send a packet from this address.
fn say(
    machine: &mut Discovery,
    by: u32,
    from: SocketAddr,
    packet: &Packet,
    now_ms: u64,
) -> Result<(), Ignored> {
    machine.receive(from, &Datagram::encode(packet, &key(by)).unwrap(), now_ms)
}

/// Bonds the node with this key at this address: it pings, and answers the challenge.
fn bond(machine: &mut Discovery, by: u32, from: SocketAddr, now_ms: u64) -> bool {
    say(machine, by, from, &ping(1), now_ms).unwrap();
    let challenge = sent(machine).into_iter().find_map(|(to, packet)| match packet {
        Packet::Ping { message_id, .. } => Some((to, message_id)),
        _ => None,
    });
    let Some((to, id)) = challenge else { return false };
    assert_eq!(to, from);
    say(machine, by, from, &pong(id), now_ms).unwrap();
    outputs(machine).contains(&Output::Found(NodeRecord { id: *key(by).id(), address: from }))
}

#[test]
fn nodes_are_asked_for_after_bonding_only() {
    let mut machine = machine(0);
    let from = address(1);
    assert_eq!(say(&mut machine, 1, from, &find_node(1), 0), Err(Ignored::NotBonded));
    say(&mut machine, 1, from, &ping(2), 0).unwrap();
    let answers = sent(&mut machine);
    assert!(
        matches!(&answers[0], (to, Packet::Pong { message_id: id, .. }) if *to == from && *id == message_id(2))
    );
    let Packet::Ping { message_id: challenge, .. } = answers[1].1 else { panic!("no challenge") };
    assert_eq!(answers.len(), 2);
    // The PONG has not come yet.
    assert_eq!(say(&mut machine, 1, from, &find_node(3), 0), Err(Ignored::NotBonded));
    // From elsewhere, by another, with another id, and too late, it is none.
    assert_eq!(say(&mut machine, 1, address(2), &pong(challenge), 0), Err(Ignored::Unasked));
    assert_eq!(say(&mut machine, 2, from, &pong(challenge), 0), Err(Ignored::Unasked));
    assert_eq!(say(&mut machine, 1, from, &pong(message_id(9)), 0), Err(Ignored::Unasked));
    assert_eq!(say(&mut machine, 1, from, &pong(challenge), 15_000), Err(Ignored::Unasked));
    assert_eq!(machine.nodes().count(), 0);
    say(&mut machine, 1, from, &pong(challenge), 14_999).unwrap();
    assert_eq!(outputs(&mut machine), [Output::Found(NodeRecord { id: *key(1).id(), address: from })]);
    assert!(bond(&mut machine, 2, address(2), 15_000));
    say(&mut machine, 1, from, &find_node(4), 15_000).unwrap();
    let answers = sent(&mut machine);
    let Packet::Neighbors { nodes, message_id: id, .. } = &answers[0].1 else { panic!("no nodes") };
    assert_eq!(*id, message_id(4));
    let expected = Endpoint { host: address(2).ip().to_string(), udp_port: 5050, tcp_port: 5050 };
    assert_eq!(nodes, &[Neighbor { endpoint: expected, id: *key(2).id() }]);
    // Another node at the same address, and the same node elsewhere, are not bonded.
    assert_eq!(say(&mut machine, 3, from, &find_node(5), 15_000), Err(Ignored::NotBonded));
    assert_eq!(say(&mut machine, 1, address(5), &find_node(5), 15_000), Err(Ignored::NotBonded));
    // The proof of the address is no longer good after an hour.
    assert_eq!(say(&mut machine, 1, from, &find_node(6), 3_700_000), Err(Ignored::NotBonded));
}

#[test]
fn a_node_that_we_ping_is_asked_after_its_own_ping() {
    let mut machine = machine(0);
    machine.add_boot_address(address(1));
    machine.tick(0);
    let first = sent(&mut machine);
    let [(to, Packet::Ping { message_id, .. })] = &first[..] else { panic!("{first:?}") };
    assert_eq!(*to, address(1));
    say(&mut machine, 1, address(1), &pong(*message_id), 10).unwrap();
    assert_eq!(outputs(&mut machine), [Output::Found(NodeRecord { id: *key(1).id(), address: address(1) })]);
    // Its own PING is answered; no challenge is needed any more.
    say(&mut machine, 1, address(1), &ping(7), 20).unwrap();
    assert!(matches!(&sent(&mut machine)[..], [(_, Packet::Pong { .. })]));
    machine.tick(500);
    assert_eq!(outputs(&mut machine), []);
    machine.tick(1_010);
    assert!(matches!(&sent(&mut machine)[..], [(to, Packet::FindNode { .. })] if *to == address(1)));
}

#[test]
fn the_recorded_asker_is_answered() {
    let Some(recorded) = json("discovery/datagrams.json") else { return };
    let config = DiscoveryConfig { allow_private: true, ..DiscoveryConfig::new(NETWORK, 17_810) };
    let mut machine = Discovery::new(key(0), config, [0; 32]);
    let from = SocketAddr::from(([127, 0, 0, 1], 57_684));
    let by_asker: Vec<_> =
        recorded.as_array().unwrap()[..7].iter().filter(|line| line["dir"] == "out").collect();
    let [early, ping, _pong, _find] = &by_asker[..] else { panic!("other recording") };
    assert_eq!(machine.receive(from, &bytes(&early["datagram"]), 0), Err(Ignored::NotBonded));
    machine.receive(from, &bytes(&ping["datagram"]), 700).unwrap();
    let answers = sent(&mut machine);
    let id = ping["fields"]["id"].as_str().unwrap();
    assert!(matches!(&answers[..], [(to, Packet::Pong { message_id, .. }), (_, Packet::Ping { .. })]
        if *to == from && message_id.to_string() == id));
}

#[test]
fn neighbours_are_tried_where_a_node_can_be() {
    let mut machine = machine(0);
    assert!(bond(&mut machine, 1, address(1), 0));
    machine.tick(2_000);
    let asked = sent(&mut machine);
    let [(_, Packet::FindNode { message_id, .. })] = &asked[..] else { panic!("{asked:?}") };
    let at = |host: &str, udp_port, number| Neighbor {
        endpoint: Endpoint { host: host.into(), udp_port, tcp_port: 1 },
        id: *key(number).id(),
    };
    let nodes = vec![
        at("44.1.1.1", 5050, 10),
        at("2600::1", 50_505, 11),
        at("::ffff:45.1.1.1", 5050, 12),
        at("127.0.0.1", 5050, 13),
        at("192.168.1.1", 5050, 14),
        at("::ffff:10.0.0.1", 5050, 15),
        at("224.0.0.1", 5050, 16),
        at("46.1.1.1", 53, 17),
        at("46.1.1.1", 0, 18),
        at("example.org", 5050, 19),
        at("47.1.1.1", 5050, 0),
        at("48.1.1.1", 5050, 1),
        at("44.1.1.1", 5050, 20),
    ];
    let answer = Packet::Neighbors { nodes, message_id: *message_id, network_id: Some(NETWORK) };
    assert_eq!(say(&mut machine, 2, address(1), &answer, 2_000), Err(Ignored::Unasked));
    assert_eq!(say(&mut machine, 1, address(2), &answer, 2_000), Err(Ignored::Unasked));
    say(&mut machine, 1, address(1), &answer, 2_000).unwrap();
    // Once only.
    assert_eq!(say(&mut machine, 1, address(1), &answer, 2_000), Err(Ignored::Unasked));
    machine.tick(3_000);
    let tried: Vec<String> = sent(&mut machine)
        .into_iter()
        .map(|(to, packet)| {
            assert!(matches!(packet, Packet::Ping { .. }));
            to.to_string()
        })
        .collect();
    assert_eq!(tried, ["44.1.1.1:5050", "[2600::1]:50505", "45.1.1.1:5050"]);
}

#[test]
fn a_node_with_another_key_than_said_is_not_taken() {
    let mut machine = machine(0);
    machine.add_node(NodeRecord { id: *key(1).id(), address: address(1) });
    machine.tick(0);
    let Packet::Ping { message_id, .. } = sent(&mut machine)[0].1 else { panic!("no PING") };
    assert_eq!(say(&mut machine, 2, address(1), &pong(message_id), 0), Err(Ignored::Unasked));
    assert_eq!(machine.nodes().count(), 0);
}

#[test]
fn one_network_gets_few_places() {
    let mut machine = machine(0);
    let mut number = 100;
    let mut next = || {
        number += 1;
        number
    };
    // Many nodes of one /24, then of one /16, then of IPv6.
    for host in 1..=20 {
        bond(&mut machine, next(), SocketAddr::from(([30, 1, 1, host], 5050)), 0);
    }
    assert_eq!(machine.nodes().count(), PER_SLASH_24);
    for third in 2..=40 {
        bond(&mut machine, next(), SocketAddr::from(([30, 1, third, 1], 5050)), 0);
    }
    assert_eq!(machine.nodes().count(), PER_SLASH_16);
    for host in 1..=10u16 {
        bond(&mut machine, next(), SocketAddr::from(([0x2600, 1, 1, host, 0, 0, 0, 1], 5050)), 20_000);
    }
    assert_eq!(machine.nodes().count(), PER_SLASH_16 + PER_SLASH_24);
    // Several keys at one address and port are one node.
    let from = address(1);
    let taken = (0..5).filter(|_| bond(&mut machine, next(), from, 40_000)).count();
    assert_eq!(taken, 1);
}

#[test]
fn private_networks_have_no_limits() {
    let config = DiscoveryConfig { allow_private: true, ..DiscoveryConfig::new(NETWORK, 5050) };
    let mut machine = Discovery::new(key(0), config, [0; 32]);
    let ports = 0..12u16;
    let taken = ports.filter(|port| {
        bond(&mut machine, 1 + u32::from(*port), SocketAddr::from(([127, 0, 0, 1], 6000 + port)), 0)
    });
    assert_eq!(taken.count(), 12);
}

#[test]
fn strangers_get_little_for_much() {
    let mut machine = machine(0);
    assert!(bond(&mut machine, 50, address(50), 0));
    let (mut received, mut answered) = (0, 0);
    let stranger = address(1);
    let minimal = Packet::Ping {
        from: Endpoint { host: String::new(), udp_port: 0, tcp_port: 0 },
        to: Endpoint { host: String::new(), udp_port: 0, tcp_port: 0 },
        message_id: message_id(1),
        network_id: None,
    };
    for number in 0..40 {
        for packet in [&minimal, &find_node(1), &pong(message_id(1))] {
            let datagram = Datagram::encode(packet, &key(100 + number)).unwrap();
            received += datagram.len();
            let before = answered;
            let _ = machine.receive(stranger, &datagram, 0);
            for output in outputs(&mut machine) {
                let Output::Send { to, bytes } = output else { panic!("{output:?}") };
                assert_eq!(to, stranger);
                answered += bytes.len();
            }
            assert!(answered - before <= 3 * datagram.len());
        }
    }
    assert!(answered <= received, "{answered} of {received}");
}

#[test]
fn other_networks_addresses_and_our_own_key_are_ignored() {
    let mut machine = machine(0);
    let from = address(1);
    let foreign =
        Packet::Ping { from: endpoint(), to: endpoint(), message_id: message_id(1), network_id: Some(775) };
    assert_eq!(say(&mut machine, 1, from, &foreign, 0), Err(Ignored::Network(775)));
    assert_eq!(say(&mut machine, 0, from, &ping(1), 0), Err(Ignored::Own));
    let private = SocketAddr::from(([10, 0, 0, 1], 5050));
    assert_eq!(say(&mut machine, 1, private, &ping(1), 0), Err(Ignored::Address));
    assert!(!machine.add_boot_address(private));
    assert!(!machine.add_node(NodeRecord { id: *key(1).id(), address: private }));
    assert_eq!(outputs(&mut machine), []);
    // A missing network is let through.
    let missing =
        Packet::Ping { from: endpoint(), to: endpoint(), message_id: message_id(1), network_id: None };
    say(&mut machine, 1, from, &missing, 0).unwrap();
    assert_eq!(outputs(&mut machine).len(), 2);
}

#[test]
fn floods_are_cut_off() {
    let mut machine = machine(0);
    let datagram = Datagram::encode(&ping(1), &key(1)).unwrap();
    let mut taken = 0;
    for _ in 0..200 {
        match machine.receive(address(1), &datagram, 0) {
            Ok(()) => taken += 1,
            Err(error) => assert_eq!(error, Ignored::TooMany),
        }
    }
    assert_eq!(taken, 50);
    // Outputs that are not taken do not pile up.
    for number in 2..60 {
        for _ in 0..40 {
            let _ = machine.receive(address(number), &datagram, 0);
        }
    }
    assert!(outputs(&mut machine).len() <= MAX_OUTPUTS);
}

/// Datagrams with the address of another node, each of its own content.
fn forged(count: u32) -> impl Iterator<Item = Vec<u8>> {
    let endpoint = Endpoint { host: "20.0.1.1".into(), udp_port: 5050, tcp_port: 5050 };
    (0..count).map(move |number| {
        let packet = Packet::Pong {
            from: endpoint.clone(),
            to: endpoint.clone(),
            message_id: MessageId::from_random([number as u8; 16]),
            network_id: Some(NETWORK),
        };
        Datagram::encode(&packet, &key(900)).unwrap()
    })
}

/// The boot host at address 1 as a machine of its own answers the first PING of machine 0.
fn answered_boot_host(attack: impl Fn(&mut Discovery, u64)) -> bool {
    let (mut client, mut boot) = (machine(0), machine(1));
    assert!(client.add_boot_address(address(1)));
    for now_ms in (0..120_000).step_by(1000) {
        attack(&mut client, now_ms);
        client.tick(now_ms);
        for _ in 0..4 {
            for (to, bytes) in datagrams(&mut client).filter(|(to, _)| *to == address(1)) {
                assert_eq!(to, address(1));
                let _ = boot.receive(address(0), &bytes, now_ms);
            }
            attack(&mut client, now_ms);
            for (_, bytes) in datagrams(&mut boot).filter(|(to, _)| *to == address(0)) {
                let _ = client.receive(address(1), &bytes, now_ms);
            }
        }
        if client.nodes().any(|node| node.id == *key(1).id()) {
            return true;
        }
    }
    false
}

fn datagrams(machine: &mut Discovery) -> impl Iterator<Item = (SocketAddr, Vec<u8>)> + use<> {
    outputs(machine).into_iter().filter_map(|output| match output {
        Output::Send { to, bytes } => Some((to, bytes)),
        _ => None,
    })
}

#[test]
fn forged_datagrams_hide_no_boot_host() {
    assert!(answered_boot_host(|_, _| {}));
    assert!(answered_boot_host(|client, now_ms| {
        forged(120).for_each(|bytes| drop(client.receive(address(1), &bytes, now_ms)));
    }));
}

/// The datagrams of many addresses that do not exist use up what is looked at in all.
#[test]
fn forged_datagrams_of_many_addresses_hide_no_boot_host() {
    let all: Vec<Vec<u8>> = forged(50).collect();
    assert!(answered_boot_host(|client, now_ms| {
        for number in 100..150 {
            all.iter().for_each(|bytes| drop(client.receive(address(number), bytes, now_ms)));
        }
    }));
}

/// A PING with a forged address draws a PING of ours to that address, which must not take the place of our own question.
#[test]
fn a_forged_ping_does_not_keep_a_boot_host_from_being_asked() {
    let endpoint = Endpoint { host: "20.0.1.1".into(), udp_port: 5050, tcp_port: 5050 };
    let packet = Packet::Ping {
        from: endpoint.clone(),
        to: endpoint,
        message_id: MessageId::from_random([7; 16]),
        network_id: Some(NETWORK),
    };
    let ping = Datagram::encode(&packet, &key(900)).unwrap();
    assert!(answered_boot_host(|client, now_ms| drop(client.receive(address(1), &ping, now_ms))));
}

/// An eavesdropper that sees a question can answer it, but not make us look at any number of answers.
#[test]
fn few_datagrams_are_looked_at_as_answers_to_one_question() {
    let mut client = machine(0);
    client.add_boot_address(address(1));
    client.tick(0);
    let pings = sent(&mut client);
    let [(to, Packet::Ping { from, message_id, .. })] = &pings[..] else { panic!("a PING") };
    let answer = |by: u32| {
        let (from, to) = (from.clone(), from.clone());
        let packet = Packet::Pong { from, to, message_id: *message_id, network_id: Some(NETWORK + 1) };
        Datagram::encode(&packet, &key(by)).unwrap()
    };
    let looked_at = (0..1000).filter(|_| client.receive(*to, &answer(9), 0) != Err(Ignored::TooMany)).count();
    assert!(looked_at <= 4 + 400, "{looked_at}");
}
