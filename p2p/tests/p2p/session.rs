//! Sessions: the recorded HELLO and STATUS, and our two sides against each other.

use std::io::Read as _;

use alloy_primitives::{B256, U256};
use flate2::read::GzDecoder;
use rootlight_p2p::rlpx::{Connection, Frame, NodeId, NodeKey};
use rootlight_p2p::session::{
    CloseReason, DisconnectReason, Event, HANDSHAKE_TIMEOUT_MS, Hello, Peer, RateLimits, SILENCE_TIMEOUT_MS,
    SendError, Session, SessionConfig, SessionStatus,
};
use serde_json::Value;

use crate::frames::secrets;
use crate::handshake::{id, key, secrets as recorded};
use crate::vectors::{bytes, folder, json};

/// Regtest, as the recordings have it.
const NETWORK: u64 = 7771;
const GENESIS: B256 =
    alloy_primitives::b256!("8ea789fabef0dd4946ed53f001e7b6f8a8d0c22a612a6099fc7f93c990af68fe");

fn config() -> SessionConfig {
    SessionConfig::new("light-check/0.1", NETWORK, GENESIS, U256::from(1))
}

fn events(session: &mut Session, now_ms: u64) -> Vec<Event> {
    std::iter::from_fn(|| session.next_event(now_ms)).collect()
}

#[test]
fn the_recorded_dial_is_spoken_byte_for_byte() {
    let Some(case) = json("handshake/dial.json") else { return };
    let (ours, theirs) = (&case["initiator"], &case["responder"]);
    let mut session = Session::dial(&key(ours), &id(theirs), &recorded(ours), config(), 0).unwrap();
    assert_eq!(session.take_output(), bytes(&case["auth"]));
    session.receive(&bytes(&case["ack"]), 1);
    assert_eq!(session.take_output(), bytes(&case["framesOut"][0]["cipher"]));
    let incoming: Vec<&Value> = case["framesIn"].as_array().unwrap().iter().collect();
    session.receive(&bytes(&incoming[0]["cipher"]), 2);
    assert_eq!(events(&mut session, 2), []);
    assert!(!session.is_ready());
    // STATUS follows the peer's HELLO.
    assert_eq!(session.take_output(), bytes(&case["framesOut"][1]["cipher"]));
    for frame in &incoming[1..] {
        session.receive(&bytes(&frame["cipher"]), 3);
    }
    let mut seen = events(&mut session, 3).into_iter();
    let Some(Event::Ready(peer)) = seen.next() else { panic!("not ready") };
    assert_eq!(peer.id, id(theirs));
    assert!(peer.hello.serves_snap());
    assert_eq!((peer.status.network_id, peer.status.total_difficulty), (NETWORK, U256::from(5069)));
    let messages = incoming.iter().filter(|frame| frame["code"] == 24);
    let expected: Vec<Event> = messages.map(|frame| Event::Message(bytes(&frame["payload"]))).collect();
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    for frame in &case["framesOut"].as_array().unwrap()[2..4] {
        session.send_message(&bytes(&frame["payload"]), 4).unwrap();
    }
    // The answer to their PING came before our messages, in the recording after them.
    let output = session.take_output().len();
    let sizes = case["framesOut"].as_array().unwrap()[2..].iter().map(|frame| bytes(&frame["cipher"]).len());
    assert_eq!(output, sizes.sum::<usize>());
}

#[test]
fn the_recorded_answer_is_spoken_byte_for_byte() {
    let Some(case) = json("handshake/answer.json") else { return };
    let ours = &case["responder"];
    let status = SessionStatus::decode(&bytes(&case["framesOut"][1]["payload"])).unwrap();
    let config = SessionConfig {
        client_id: "test-server/0.1".into(),
        serves_snap: true,
        best_hash: status.best_hash,
        total_difficulty: status.total_difficulty,
        ..config()
    };
    let mut session = Session::accept(&key(ours), recorded(ours), config, 0).unwrap();
    session.receive(&bytes(&case["auth"]), 1);
    assert_eq!(session.take_output(), bytes(&case["ack"]));
    let incoming = case["framesIn"].as_array().unwrap();
    session.receive(&bytes(&incoming[0]["cipher"]), 2);
    assert_eq!(events(&mut session, 2), []);
    let hello_and_status = [bytes(&case["framesOut"][0]["cipher"]), bytes(&case["framesOut"][1]["cipher"])];
    assert_eq!(session.take_output(), hello_and_status.concat());
    for frame in &incoming[1..] {
        session.receive(&bytes(&frame["cipher"]), 3);
    }
    let seen = events(&mut session, 3);
    assert!(
        matches!(&seen[0], Event::Ready(peer) if peer.id == id(&case["initiator"]) && !peer.hello.serves_snap())
    );
    let messages = incoming.iter().filter(|frame| frame["code"] == 24);
    let expected: Vec<Event> = messages.map(|frame| Event::Message(bytes(&frame["payload"]))).collect();
    assert_eq!(seen[1..], expected);
}

/// The lines of a recorded session.
fn recording(name: &str) -> Option<Vec<Value>> {
    let packed = std::fs::read(folder()?.join("sessions").join(name)).expect(name);
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).expect(name);
    Some(text.lines().map(|line| serde_json::from_str(line).expect(name)).collect())
}

const RECORDINGS: [&str; 7] = [
    "answer.jsonl.gz",
    "chunks.jsonl.gz",
    "main.jsonl.gz",
    "push.jsonl.gz",
    "push_hello_only.jsonl.gz",
    "relay_announced.jsonl.gz",
    "relay_hello_only.jsonl.gz",
];

#[test]
fn hello_and_status_of_every_recording_are_read_and_written_alike() {
    for name in RECORDINGS {
        let Some(lines) = recording(name) else { return };
        let mut seen = 0;
        for line in lines.iter().filter(|line| line["payload"].is_string()) {
            let (payload, fields) = (bytes(&line["payload"]), &line["fields"]);
            match line["code"].as_u64().unwrap() {
                0 => {
                    let hello = Hello::decode(&payload).unwrap();
                    assert_eq!(hello.encode(), payload);
                    assert_eq!((&hello.client_id, hello.version), (&text(&fields["client"]), 4));
                    assert_eq!(hello.node_id.to_string(), text(&fields["nodeId"]));
                    assert!(hello.speaks_rsk());
                    assert_eq!(hello.serves_snap(), fields["caps"].as_array().unwrap().len() == 2);
                }
                16 => {
                    let status = SessionStatus::decode(&payload).unwrap();
                    assert_eq!(status.encode(), payload);
                    assert_eq!(U256::from(fields["td"].as_u64().unwrap()), status.total_difficulty);
                    assert_eq!(hex::encode(status.best_hash), text(&fields["best"]));
                    assert_eq!((status.network_id, status.genesis_hash), (NETWORK, GENESIS));
                }
                _ => continue,
            }
            seen += 1;
        }
        assert!(seen >= 3, "{name}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A dialled session and a bare connection at the other end, after the handshake.
fn against_a_connection(config: SessionConfig) -> (Session, Connection, NodeId) {
    let (ours, theirs) = (NodeKey::from_bytes(&[1; 32]).unwrap(), NodeKey::from_bytes(&[2; 32]).unwrap());
    let mut session = Session::dial(&ours, theirs.id(), &secrets(3), config, 0).unwrap();
    let mut other = Connection::accept(&theirs, secrets(40)).unwrap();
    other.feed(&session.take_output()).unwrap();
    session.receive(&other.take_output(), 0);
    (session, other, *theirs.id())
}

/// Feeds what the session wrote and gives the frames of it.
fn read(session: &mut Session, other: &mut Connection) -> Vec<Frame> {
    other.feed(&session.take_output()).unwrap();
    std::iter::from_fn(|| other.next_frame().unwrap()).collect()
}

fn hello(node_id: NodeId) -> Hello {
    let rsk = rootlight_p2p::session::Capability { name: "rsk".into(), version: 62 };
    Hello { version: 4, client_id: "other".into(), capabilities: vec![rsk], listen_port: 50_501, node_id }
}

fn status() -> SessionStatus {
    SessionStatus {
        version: 62,
        network_id: NETWORK,
        total_difficulty: U256::from(9),
        best_hash: B256::ZERO,
        genesis_hash: GENESIS,
    }
}

/// A session that the other end replays the recording's messages to; the payloads of code 0x18 must all arrive.
#[test]
fn the_messages_of_every_recording_arrive() {
    for name in RECORDINGS {
        let Some(lines) = recording(name) else { return };
        let (mut session, mut other, node_id) = against_a_connection(config());
        let (mut expected, mut seen, mut pings) = (Vec::new(), Vec::new(), 0);
        for line in lines.iter().filter(|line| line["dir"] == "in" && line["payload"].is_string()) {
            let (code, mut payload) = (line["code"].as_u64().unwrap(), bytes(&line["payload"]));
            match code {
                0 => {
                    // The same message with the id of this end.
                    payload = Hello { node_id, ..Hello::decode(&payload).unwrap() }.encode();
                }
                2 => pings += 1,
                24 => expected.push(payload.clone()),
                _ => {}
            }
            other.send(code, &payload).unwrap();
            let now = (line["t"].as_f64().unwrap() * 1000.0) as u64;
            for piece in other.take_output().chunks(50_000) {
                session.receive(piece, now);
                seen.extend(events(&mut session, now));
            }
        }
        let ready = seen.remove(0);
        assert!(matches!(ready, Event::Ready(peer) if peer.id == node_id), "{name}");
        let expected: Vec<Event> = expected.into_iter().map(Event::Message).collect();
        assert_eq!(seen, expected, "{name}");
        let codes: Vec<u64> = read(&mut session, &mut other).iter().map(|frame| frame.code).collect();
        assert_eq!(codes, [vec![0, 16], vec![3; pings]].concat(), "{name}");
    }
}

/// Codes and payloads.
type Said = Vec<(u64, Vec<u8>)>;

/// The events of a session with a peer that first says this, and how the session ends.
fn end(config: SessionConfig, said: &[(u64, Vec<u8>)]) -> (Vec<Event>, Option<DisconnectReason>) {
    let (mut session, mut other, _) = against_a_connection(config);
    for (code, payload) in said {
        other.send(*code, payload).unwrap();
    }
    session.receive(&other.take_output(), 5);
    let seen = events(&mut session, 5);
    let answer = read(&mut session, &mut other).into_iter().find(|frame| frame.code == 1);
    (seen, answer.map(|frame| DisconnectReason::decode(&frame.payload)))
}

#[test]
fn a_peer_of_another_kind_is_told_why() {
    let id = *NodeKey::from_bytes(&[2; 32]).unwrap().id();
    let hello = |change: fn(&mut Hello)| {
        let mut hello = hello(id);
        change(&mut hello);
        (0, hello.encode())
    };
    let status = |change: fn(&mut SessionStatus)| {
        let mut status = status();
        change(&mut status);
        (16, status.encode())
    };
    let (good_hello, good_status) = (hello(|_| {}), status(|_| {}));
    let cases: Vec<(Said, CloseReason, DisconnectReason)> = vec![
        (vec![hello(|h| h.version = 3)], CloseReason::BaseVersion(3), DisconnectReason::IncompatibleProtocol),
        (vec![hello(|h| h.version = 6)], CloseReason::BaseVersion(6), DisconnectReason::IncompatibleProtocol),
        (vec![hello(|h| h.capabilities.clear())], CloseReason::NoRsk, DisconnectReason::UselessPeer),
        (vec![hello(|h| h.capabilities[0].version = 63)], CloseReason::NoRsk, DisconnectReason::UselessPeer),
        (
            vec![hello(|h| h.node_id = NodeId::from_bytes([1; 64]))],
            CloseReason::Identity,
            DisconnectReason::UnexpectedIdentity,
        ),
        (vec![good_status.clone()], CloseReason::OutOfOrder(16), DisconnectReason::BadProtocol),
        (vec![(24, vec![0xc0])], CloseReason::OutOfOrder(24), DisconnectReason::BadProtocol),
        (
            vec![good_hello.clone(), good_hello.clone()],
            CloseReason::OutOfOrder(0),
            DisconnectReason::BadProtocol,
        ),
        (
            vec![good_hello.clone(), (24, vec![0xc0])],
            CloseReason::OutOfOrder(24),
            DisconnectReason::BadProtocol,
        ),
        (
            vec![good_hello.clone(), status(|s| s.version = 63)],
            CloseReason::RskVersion(63),
            DisconnectReason::IncompatibleProtocol,
        ),
        (
            vec![good_hello.clone(), status(|s| s.network_id = 775)],
            CloseReason::Network { expected: NETWORK, found: 775 },
            DisconnectReason::NullIdentity,
        ),
        (
            vec![good_hello.clone(), status(|s| s.genesis_hash = B256::ZERO)],
            CloseReason::Genesis { expected: GENESIS, found: B256::ZERO },
            DisconnectReason::OtherGenesis,
        ),
        (
            vec![good_hello.clone(), (0x11, vec![0xc0])],
            CloseReason::UnknownCode(0x11),
            DisconnectReason::BadProtocol,
        ),
        (
            vec![good_hello.clone(), (0x19, vec![0xc0])],
            CloseReason::UnknownCode(0x19),
            DisconnectReason::BadProtocol,
        ),
    ];
    for (said, reason, answer) in cases {
        assert_eq!(end(config(), &said), (vec![Event::Closed(reason.clone())], Some(answer)), "{reason}");
    }
    let (seen, answer) = end(config(), &[good_hello.clone(), good_status, (16, status(|_| {}).1)]);
    assert!(matches!(&seen[..], [Event::Ready(_), Event::Closed(CloseReason::OutOfOrder(16))]));
    assert_eq!(answer, Some(DisconnectReason::BadProtocol));
    let (seen, answer) = end(config(), &[(1, vec![0xc1, 4])]);
    assert_eq!(seen, [Event::Closed(CloseReason::ByPeer(DisconnectReason::TooManyPeers))]);
    assert_eq!(answer, None);
    for malformed in [vec![], vec![0xc0], vec![0x80], hello(|_| {}).1[..50].to_vec()] {
        let (seen, answer) = end(config(), &[(0, malformed)]);
        assert!(matches!(&seen[..], [Event::Closed(CloseReason::Malformed(_))]));
        assert_eq!(answer, Some(DisconnectReason::BadProtocol));
    }
}

#[test]
fn unknown_base_messages_are_ignored() {
    let id = *NodeKey::from_bytes(&[2; 32]).unwrap().id();
    let unknown = (3..16).map(|code| (code, vec![0xc0]));
    let said: Vec<_> =
        unknown.chain([(0, hello(id).encode()), (5, vec![]), (16, status().encode())]).collect();
    let (seen, answer) = end(config(), &said);
    assert_eq!(
        (seen, answer),
        (vec![Event::Ready(Box::new(Peer { id, hello: hello(id), status: status() }))], None)
    );
}

/// Our two sides, ready.
fn pair(limits: RateLimits) -> (Session, Session) {
    let (ours, theirs) = (NodeKey::from_bytes(&[1; 32]).unwrap(), NodeKey::from_bytes(&[2; 32]).unwrap());
    let config = SessionConfig { limits, ..config() };
    let mut dialled = Session::dial(&ours, theirs.id(), &secrets(3), config.clone(), 0).unwrap();
    let mut accepted = Session::accept(&theirs, secrets(40), config, 0).unwrap();
    for _ in 0..3 {
        accepted.receive(&dialled.take_output(), 0);
        let seen = events(&mut accepted, 0);
        assert!(seen.iter().all(|event| matches!(event, Event::Ready(_))));
        dialled.receive(&accepted.take_output(), 0);
        let seen = events(&mut dialled, 0);
        assert!(seen.iter().all(|event| matches!(event, Event::Ready(_))));
    }
    assert!(dialled.is_ready() && accepted.is_ready());
    (dialled, accepted)
}

#[test]
fn a_thousand_messages_a_minute_are_sent_and_no_more() {
    let (mut dialled, mut accepted) = pair(RateLimits::default());
    for _ in 0..1000 {
        dialled.send_message(&[0xc0], 500).unwrap();
    }
    assert_eq!(dialled.sends_left(500), 0);
    assert_eq!(dialled.send_message(&[0xc0], 500), Err(SendError::Rate { wait_ms: 60_500 }));
    accepted.receive(&dialled.take_output(), 600);
    assert_eq!(events(&mut accepted, 600), vec![Event::Message(vec![0xc0]); 1000]);
    dialled.send_message(&[0xc1, 1], 61_000).unwrap();
    accepted.receive(&dialled.take_output(), 61_000);
    assert_eq!(events(&mut accepted, 61_000), [Event::Message(vec![0xc1, 1])]);
}

/// A busy network sends some dozens of transactions a second, most nodes one in a message. That is no flood.
#[test]
fn gossip_does_not_end_a_session() {
    let theirs = RateLimits { sent: u64::MAX, ..RateLimits::default() };
    let (mut dialled, mut accepted) = pair(theirs);
    for second in 0..180 {
        let now_ms = second * 1_000;
        for _ in 0..500 {
            dialled.send_message(&[0; 150], now_ms).unwrap();
        }
        accepted.receive(&dialled.take_output(), now_ms);
        assert_eq!(events(&mut accepted, now_ms).len(), 500, "after {second} s");
    }
}

#[test]
fn a_peer_that_floods_is_closed() {
    // HELLO and STATUS count as well.
    let few = RateLimits { received: 12, ..RateLimits::default() };
    let (mut dialled, mut accepted) = pair(few);
    for _ in 0..11 {
        dialled.send_message(&[0xc0], 0).unwrap();
    }
    accepted.receive(&dialled.take_output(), 0);
    let seen = events(&mut accepted, 0);
    assert_eq!(seen[..10], vec![Event::Message(vec![0xc0]); 10]);
    assert_eq!(seen[10..], [Event::Closed(CloseReason::Flood)]);

    let small = RateLimits { received_bytes: 100_000, ..RateLimits::default() };
    let (mut dialled, mut accepted) = pair(small);
    dialled.send_message(&[0; 120_000], 0).unwrap();
    accepted.receive(&dialled.take_output(), 0);
    assert_eq!(events(&mut accepted, 0), [Event::Closed(CloseReason::Flood)]);
    assert!(accepted.is_closed());
    accepted.receive(&[0; 100], 1);
    assert_eq!(accepted.next_event(1), None);
    assert_eq!(accepted.send_message(&[0xc0], 1), Err(SendError::Closed));
}

#[test]
fn slow_peers_are_closed() {
    let (mut session, _, _) = against_a_connection(config());
    session.tick(HANDSHAKE_TIMEOUT_MS - 1);
    assert_eq!(events(&mut session, 0), []);
    assert_eq!(session.send_message(&[0xc0], 1), Err(SendError::NotReady));
    session.tick(HANDSHAKE_TIMEOUT_MS);
    assert_eq!(events(&mut session, 0), [Event::Closed(CloseReason::HandshakeTimeout)]);

    // A byte now and then does not make it quicker.
    let (mut session, _, _) = against_a_connection(config());
    for at in (0..HANDSHAKE_TIMEOUT_MS).step_by(400) {
        session.receive(&[], at);
    }
    assert_eq!(events(&mut session, HANDSHAKE_TIMEOUT_MS - 1), []);
    session.receive(&[], HANDSHAKE_TIMEOUT_MS);
    assert_eq!(events(&mut session, HANDSHAKE_TIMEOUT_MS), [Event::Closed(CloseReason::HandshakeTimeout)]);

    let (mut dialled, mut accepted) = pair(RateLimits::default());
    dialled.send_message(&[0xc0], 50_000).unwrap();
    accepted.receive(&dialled.take_output(), 50_000);
    accepted.next_event(50_000).unwrap();
    accepted.tick(50_000 + SILENCE_TIMEOUT_MS - 1);
    assert_eq!(accepted.next_event(0), None);
    accepted.tick(50_000 + SILENCE_TIMEOUT_MS);
    assert_eq!(accepted.next_event(0), Some(Event::Closed(CloseReason::Silence)));
    dialled.receive(&accepted.take_output(), 0);
    let answer = CloseReason::ByPeer(DisconnectReason::PingTimeout);
    assert_eq!(events(&mut dialled, 0), [Event::Closed(answer)]);
}

#[test]
fn a_disconnect_is_sent_once() {
    let (mut dialled, mut accepted) = pair(RateLimits::default());
    dialled.disconnect(DisconnectReason::Quitting);
    dialled.disconnect(DisconnectReason::Requested);
    assert_eq!(events(&mut dialled, 0), [Event::Closed(CloseReason::ByUs(DisconnectReason::Quitting))]);
    accepted.receive(&dialled.take_output(), 0);
    let reason = CloseReason::ByPeer(DisconnectReason::Quitting);
    assert_eq!(events(&mut accepted, 0), [Event::Closed(reason)]);
    assert_eq!(accepted.take_output(), Vec::<u8>::new());
}
