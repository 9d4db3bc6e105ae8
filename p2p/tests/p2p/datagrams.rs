//! The recorded datagrams: read, remade byte for byte, and spoiled; what is tolerated and what is not.

use alloy_primitives::keccak256;
use proptest::prelude::*;
use rootlight::types::rlp::{put_list, put_str, put_u64};
use rootlight_p2p::discovery::{
    DATAGRAM_MAX, DATAGRAM_MIN, Datagram, DatagramError, Endpoint, MessageId, NEIGHBORS_MAX, Neighbor,
    Packet, distance,
};
use rootlight_p2p::rlpx::{NodeId, NodeKey};
use serde_json::Value;

use crate::vectors::{array, bytes, json};

fn read(bytes: &[u8]) -> Result<(Packet, NodeId), DatagramError> {
    let datagram = Datagram::decode(bytes)?;
    let sender = datagram.sender()?;
    Ok((datagram.packet, sender))
}

/// The packet that the fields of a recording say.
fn packet(name: &str, fields: &Value) -> Packet {
    let text = |name: &str| fields[name].as_str().unwrap();
    let endpoint = |value: &Value| Endpoint {
        host: value["host"].as_str().unwrap().to_owned(),
        udp_port: u16::try_from(value["udp"].as_u64().unwrap()).unwrap(),
        tcp_port: u16::try_from(value["tcp"].as_u64().unwrap()).unwrap(),
    };
    let message_id = MessageId::from_text(text("id").as_bytes()).unwrap();
    let network_id = fields["network"].as_u64();
    let (from, to) = (&fields["from"], &fields["to"]);
    match name {
        "PING" => Packet::Ping { from: endpoint(from), to: endpoint(to), message_id, network_id },
        "PONG" => Packet::Pong { from: endpoint(from), to: endpoint(to), message_id, network_id },
        "FIND_NODE" => Packet::FindNode { target: text("target").parse().unwrap(), message_id, network_id },
        "NEIGHBORS" => {
            let node = |value: &Value| Neighbor {
                endpoint: endpoint(value),
                id: value["nodeId"].as_str().unwrap().parse().unwrap(),
            };
            let nodes = fields["nodes"].as_array().unwrap().iter().map(node).collect();
            Packet::Neighbors { nodes, message_id, network_id }
        }
        other => panic!("type {other}"),
    }
}

#[test]
fn recorded_datagrams_are_read_and_remade() {
    let Some(recorded) = json("discovery/datagrams.json") else { return };
    let (mut good, mut spoiled) = (0, 0);
    for line in recorded.as_array().unwrap() {
        let datagram = bytes(&line["datagram"]);
        if line["verdict"] == "refuse" {
            assert!(read(&datagram).is_err(), "{}", line["case"]);
            spoiled += 1;
            continue;
        }
        let key = NodeKey::from_bytes(&array(&line["secret"])).unwrap();
        let expected = packet(line["name"].as_str().unwrap(), &line["fields"]);
        assert_eq!(expected.type_byte(), u8::try_from(line["type"].as_u64().unwrap()).unwrap());
        assert_eq!(key.id().to_string(), line["sender"].as_str().unwrap());
        assert_eq!(read(&datagram), Ok((expected.clone(), *key.id())));
        assert_eq!(Datagram::encode(&expected, &key).unwrap(), datagram);
        good += 1;
    }
    assert_eq!((good, spoiled), (17, 11));
}

/// The recorded NEIGHBORS of many nodes starts with the 14 nearest to the asker, in order.
#[test]
fn recorded_neighbours_are_in_the_order_of_our_distance() {
    let Some(recorded) = json("discovery/datagrams.json") else { return };
    let lines = recorded.as_array().unwrap();
    let asker = |line: &Value| {
        let asked =
            lines.iter().find(|other| other["type"] == 3 && other["fields"]["id"] == line["fields"]["id"]);
        asked.unwrap()["sender"].as_str().unwrap().parse::<NodeId>().unwrap()
    };
    let mut longest = 0;
    for line in lines.iter().filter(|line| line["type"] == 4) {
        let asker = asker(line);
        let ids = line["fields"]["nodes"].as_array().unwrap().iter();
        let distances: Vec<u32> =
            ids.map(|node| distance(&asker, &node["nodeId"].as_str().unwrap().parse().unwrap())).collect();
        longest = longest.max(distances.len());
        if distances.len() == 19 {
            assert!(distances[..14].is_sorted(), "{distances:?}");
            assert!(distances[14..].iter().all(|distance| *distance >= distances[13]), "{distances:?}");
        }
    }
    assert_eq!(longest, 19);
}

fn signed(type_byte: u8, data: &[u8], key: &NodeKey) -> Vec<u8> {
    let content = [&[type_byte], data].concat();
    let secret = k256::ecdsa::SigningKey::from_slice(&key.to_bytes()).unwrap();
    let (signature, id) = secret.sign_prehash_recoverable(keccak256(&content).as_slice()).unwrap();
    let hashed = [&signature.to_bytes()[..], &[id.to_byte()], &content].concat();
    [keccak256(&hashed).as_slice(), &hashed].concat()
}

fn key() -> NodeKey {
    NodeKey::from_bytes(&[6; 32]).unwrap()
}

const ID: &str = "578e3de2-7b80-460a-bf1e-ff131830076f";

/// A PING of these items, given as their encodings, and what follows the list.
fn ping(items: &[Vec<u8>], after: &[u8]) -> Result<Packet, DatagramError> {
    let mut list = Vec::new();
    put_list(&mut list, &items.concat());
    list.extend_from_slice(after);
    read(&signed(1, &list, &key())).map(|(packet, sender)| {
        assert_eq!(sender, *key().id());
        packet
    })
}

fn string(bytes: &[u8]) -> Vec<u8> {
    let mut item = Vec::new();
    put_str(&mut item, bytes);
    item
}

fn number(value: u64) -> Vec<u8> {
    let mut item = Vec::new();
    put_u64(&mut item, value);
    item
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let mut item = Vec::new();
    put_list(&mut item, &items.concat());
    item
}

#[test]
fn packets_that_the_reference_node_tolerates_are_read() {
    let endpoint = list(&[string(b"::1"), number(5050), number(0)]);
    let good = [endpoint.clone(), endpoint.clone(), string(ID.as_bytes()), number(775)];
    let read = ping(&good, &[]).unwrap();
    assert_eq!(read.network_id(), Some(775));
    assert_eq!(read.message_id().to_string(), ID);
    // Without network id, with more items, with bytes after the list.
    assert_eq!(ping(&good[..3], &[]).unwrap().network_id(), None);
    assert_eq!(ping(&[&good[..], &[number(7), list(&[])]].concat(), &[]), Ok(read.clone()));
    assert_eq!(ping(&good, &[1, 2, 3]), Ok(read.clone()));
    // The endpoint may have more items, and the host may be no text.
    let long = list(&[string(b"a\xff"), number(1), number(2), number(3)]);
    assert!(ping(&[long, endpoint.clone(), good[2].clone(), good[3].clone()], &[]).is_ok());
}

#[test]
fn packets_that_the_reference_node_refuses_are_refused() {
    let endpoint = list(&[string(b"127.0.0.1"), number(5050), number(5050)]);
    let id = string(ID.as_bytes());
    let with = |items: &[Vec<u8>]| ping(items, &[]).unwrap_err();
    let rlp = |error: DatagramError| matches!(error, DatagramError::Content(_));
    assert!(rlp(with(&[list(&[]), list(&[]), id.clone(), number(1)])), "empty endpoints");
    assert!(rlp(with(&[endpoint.clone(), endpoint.clone()])), "no message id");
    let port = list(&[string(b"a"), number(65_536), number(1)]);
    assert!(rlp(with(&[port, endpoint.clone(), id.clone(), number(1)])), "port of 17 bits");
    let port = list(&[string(b"a"), string(&[0, 1]), number(1)]);
    assert!(rlp(with(&[port, endpoint.clone(), id.clone(), number(1)])), "leading zero");
    let host = list(&[string(&[b'a'; 254]), number(1), number(1)]);
    assert!(rlp(with(&[host, endpoint.clone(), id.clone(), number(1)])), "long host");
    for other in ["578e3de2-7b80-160a-bf1e-ff131830076f", "message", ""] {
        let items = [endpoint.clone(), endpoint.clone(), string(other.as_bytes()), number(1)];
        assert_eq!(with(&items), DatagramError::MessageId);
    }
    assert_eq!(read(&signed(0, &[0xc0], &key())), Err(DatagramError::Type(0)));
    let node = list(&[string(b"1.2.3.4"), number(1), number(1), string(&[1; 64])]);
    let nodes = |count| list(&[list(&vec![node.clone(); count]), id.clone(), number(1)]);
    assert!(read(&signed(4, &nodes(NEIGHBORS_MAX), &key())).is_ok());
    assert!(read(&signed(4, &nodes(NEIGHBORS_MAX + 1), &key())).is_err());
    assert_eq!(read(&[0; DATAGRAM_MIN - 1]), Err(DatagramError::Size(DATAGRAM_MIN - 1)));
    assert_eq!(read(&[0; DATAGRAM_MIN]), Err(DatagramError::Hash));
    assert_eq!(read(&[0; DATAGRAM_MAX + 1]), Err(DatagramError::Size(DATAGRAM_MAX + 1)));
}

fn any_endpoint() -> impl Strategy<Value = Endpoint> {
    ("[a-z0-9.:]{0,40}", any::<u16>(), any::<u16>()).prop_map(|(host, udp_port, tcp_port)| Endpoint {
        host,
        udp_port,
        tcp_port,
    })
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let neighbor = (any_endpoint(), any::<[u8; 32]>()).prop_map(|(endpoint, half)| Neighbor {
        endpoint,
        id: NodeId::from_bytes([half, half].concat().try_into().unwrap()),
    });
    let tail = (any::<[u8; 16]>(), proptest::option::of(0..=i64::MAX as u64))
        .prop_map(|(random, network_id)| (MessageId::from_random(random), network_id));
    let parts = (0u8..4, any_endpoint(), any_endpoint(), proptest::collection::vec(neighbor, 0..=12), tail);
    parts.prop_map(|(kind, from, to, nodes, (message_id, network_id))| match kind {
        0 => Packet::Ping { from, to, message_id, network_id },
        1 => Packet::Pong { from, to, message_id, network_id },
        2 => Packet::FindNode { target: NodeId::from_bytes([3; 64]), message_id, network_id },
        _ => Packet::Neighbors { nodes, message_id, network_id },
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn written_packets_are_read_and_a_changed_bit_is_refused(packet in any_packet(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let bytes = Datagram::encode(&packet, &key()).unwrap();
        prop_assert_eq!(read(&bytes), Ok((packet, *key().id())));
        let mut changed = bytes.clone();
        changed[at.index(bytes.len())] ^= 1 << bit;
        prop_assert_eq!(Datagram::decode(&changed), Err(DatagramError::Hash));
    }

    #[test]
    fn a_changed_packet_with_a_right_hash_has_another_sender(packet in any_packet(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = Datagram::encode(&packet, &key()).unwrap();
        let at = 32 + at.index(bytes.len() - 32);
        bytes[at] ^= 1 << bit;
        let hash = keccak256(&bytes[32..]);
        bytes[..32].copy_from_slice(hash.as_slice());
        if let Ok((_, sender)) = read(&bytes) {
            prop_assert_ne!(sender, *key().id());
        }
    }

    #[test]
    fn any_content_with_a_right_hash_is_read_without_fault(rest in proptest::collection::vec(any::<u8>(), 66..400)) {
        let bytes = [keccak256(&rest).as_slice(), &rest].concat();
        let _ = read(&bytes);
    }
}
