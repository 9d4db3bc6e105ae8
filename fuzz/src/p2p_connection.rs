//! Handshakes, frames and sessions of the peer-to-peer network: strangers, changed streams, and peers that say anything.

use std::sync::OnceLock;

use alloy_primitives::{B256, U256};
use rootlight_p2p::rlpx::{
    AuthForm, Connection, Frame, HandshakeSecrets, MAX_UNREAD, NodeKey, RANDOM_BYTES, READ_BEFORE_HELLO,
};
use rootlight_p2p::session::{
    Capability, DisconnectReason, Event, Hello, RateLimits, Session, SessionConfig, SessionStatus,
};

use crate::input::{Input, change};
use crate::limit::{with_at_most, with_limit};

const NETWORK: u64 = 7771;
const GENESIS: B256 = B256::repeat_byte(7);
/// Messages of a peer in one run.
const MESSAGES: usize = 40;

/// The keys of both ends.
fn keys() -> &'static (NodeKey, NodeKey) {
    static KEYS: OnceLock<(NodeKey, NodeKey)> = OnceLock::new();
    let key = |byte| NodeKey::from_bytes(&[byte; 32]).expect("a key");
    KEYS.get_or_init(|| (key(1), key(2)))
}

fn secrets(seed: u8) -> HandshakeSecrets {
    HandshakeSecrets::from_random(&[seed; RANDOM_BYTES])
}

fn ends(form: AuthForm) -> (Connection, Connection) {
    let (ours, theirs) = keys();
    let dialled = Connection::dial_in(form, ours, theirs.id(), &secrets(3)).expect("dialled");
    (dialled, Connection::accept(theirs, secrets(4)).expect("accepted"))
}

fn config() -> SessionConfig {
    // Few, so that they are reached.
    let limits = RateLimits { sent: 20, received: 30, received_bytes: 60_000 };
    SessionConfig { limits, ..SessionConfig::new("fuzz", NETWORK, GENESIS, U256::from(1)) }
}

/// First byte: what is fuzzed, and the form of the handshake.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let choice = input.byte();
    let form = if choice & 0x80 == 0 { AuthForm::Eip8 } else { AuthForm::Plain };
    match choice % 4 {
        0 => strangers_open_nothing(form, input),
        1 => changed_packets_open_nothing(form, input),
        2 => changed_streams_are_never_read_wrongly(form, input),
        _ => sessions_end_in_order(input),
    }
}

/// Bytes that know neither key.
fn strangers_open_nothing(form: AuthForm, mut input: Input<'_>) {
    let (mut dialled, mut accepted) = ends(form);
    dialled.take_output();
    let reader = if input.byte() & 1 == 0 { &mut dialled } else { &mut accepted };
    let rest = input.clone().rest().len();
    with_limit(rest, || {
        while !input.is_empty() {
            let len = input.short();
            if reader.feed(input.take(len)).is_err() {
                break;
            }
            assert_eq!(reader.next_frame(), Ok(None));
        }
    });
    assert!(!reader.is_open() && reader.output_len() == 0);
    assert!(reader.remote_id().is_none_or(|id| id == keys().1.id()));
}

/// An honest packet with changes. What leaves the packet as it was may open the connection, nothing else.
fn changed_packets_open_nothing(form: AuthForm, mut input: Input<'_>) {
    let (mut dialled, mut accepted) = ends(form);
    let mut packet = dialled.take_output();
    let ack = input.byte() & 1 == 1;
    if ack {
        accepted.feed(&packet).expect("honest");
        packet = accepted.take_output();
    }
    let honest = packet.clone();
    for _ in 0..1 + input.below(4) {
        change(&mut packet, &mut input);
    }
    let reader = if ack { &mut dialled } else { &mut accepted };
    let _ = with_limit(packet.len(), || reader.feed(&packet));
    assert_eq!(reader.is_open(), packet.starts_with(&honest));
}

/// Frames of any kind, then changes of the stream: what is read is what was sent, up to the first change.
fn changed_streams_are_never_read_wrongly(form: AuthForm, mut input: Input<'_>) {
    let (mut dialled, mut accepted) = ends(form);
    accepted.feed(&dialled.take_output()).expect("honest");
    dialled.feed(&accepted.take_output()).expect("honest");
    let mut sent = Vec::new();
    for _ in 0..1 + input.below(5) {
        let len = input.short() % READ_BEFORE_HELLO;
        let frame = Frame { code: input.byte().into(), payload: vec![input.byte(); len] };
        // A code takes at most two bytes.
        if len + 2 <= READ_BEFORE_HELLO {
            dialled.send(frame.code, &frame.payload).expect("open");
            sent.push(frame);
        }
    }
    let mut stream = dialled.take_output();
    let honest = stream.clone();
    for _ in 0..input.below(4) {
        change(&mut stream, &mut input);
    }
    let mut read = Vec::new();
    let mut failed = false;
    with_limit(stream.len(), || {
        for piece in stream.chunks(1 + input.short()) {
            failed |= accepted.feed(piece).is_err();
            while let Ok(Some(frame)) = accepted.next_frame() {
                read.push(frame);
            }
            failed |= accepted.next_frame().is_err();
        }
    });
    assert!(read.len() <= sent.len() && read[..] == sent[..read.len()]);
    if stream == honest {
        assert!(!failed && read.len() == sent.len());
    }
}

/// A session that one of both ends has dialled, and its peer.
fn connected(dials: bool) -> (Session, Connection) {
    let (ours, theirs) = keys();
    let (mut session, mut peer) = if dials {
        let session = Session::dial(ours, theirs.id(), &secrets(3), config(), 0).expect("dialled");
        (session, Connection::accept(theirs, secrets(4)).expect("accepted"))
    } else {
        let peer = Connection::dial(theirs, ours.id(), &secrets(3)).expect("dialled");
        (Session::accept(ours, secrets(4), config(), 0).expect("accepted"), peer)
    };
    for _ in 0..2 {
        let _ = peer.feed(&session.take_output());
        session.receive(&peer.take_output(), 0);
    }
    assert!(peer.is_open());
    peer.set_read_limit(usize::MAX);
    (session, peer)
}

/// A peer with the right keys that says anything: one end at most, nothing after it, messages only in between.
fn sessions_end_in_order(mut input: Input<'_>) {
    let (_, theirs) = keys();
    let (mut session, mut peer) = connected(input.byte() & 1 == 0);
    let (mut now_ms, mut ready, mut ended) = (0, false, false);
    for _ in 0..MESSAGES {
        if input.is_empty() {
            break;
        }
        let (code, payload) = said(&mut input, theirs);
        peer.send(code, &payload).expect("open");
        let bytes = peer.take_output();
        now_ms += input.short() as u64;
        assert!(bytes.len() < MAX_UNREAD);
        with_at_most(bytes.len() * 8, || session.receive(&bytes, now_ms));
        session.tick(now_ms);
        while let Some(event) = session.next_event(now_ms) {
            assert!(!ended);
            match event {
                Event::Ready(said) => {
                    assert!(!ready && said.id == *theirs.id() && said.hello.node_id == said.id);
                    assert!(said.hello.speaks_rsk());
                    assert_eq!((said.status.network_id, said.status.genesis_hash), (NETWORK, GENESIS));
                    ready = true;
                }
                Event::Message(message) => assert!(ready && code == 0x18 && message == payload),
                Event::Closed(reason) => {
                    assert!(!reason.to_string().is_empty());
                    ended = true;
                }
            }
        }
        assert_eq!(session.is_closed(), ended);
        let left = session.sends_left(now_ms);
        assert!(left == 0 || ready && !ended);
        assert_eq!(session.send_message(&payload, now_ms).is_ok(), left > 0);
        peer.feed(&session.take_output()).expect("our own frames");
        while let Some(frame) = peer.next_frame().expect("our own frames") {
            assert!(matches!(frame.code, 0..=3 | 0x10 | 0x18));
        }
    }
}

/// A message of a peer: what the protocol has in its place, or anything.
fn said(input: &mut Input<'_>, key: &NodeKey) -> (u64, Vec<u8>) {
    match input.byte() % 8 {
        0 | 1 => {
            let capabilities = vec![Capability { name: "rsk".into(), version: 62 }];
            let (version, node_id) = (4 + u64::from(input.byte() == 255), *key.id());
            let hello = Hello { version, client_id: "peer".into(), capabilities, listen_port: 1, node_id };
            (0, changed(hello.encode(), input))
        }
        2 | 3 => {
            let status = SessionStatus {
                version: 62,
                network_id: NETWORK,
                total_difficulty: U256::from(input.byte()),
                best_hash: B256::ZERO,
                genesis_hash: GENESIS,
            };
            (0x10, changed(status.encode(), input))
        }
        4 => (1, DisconnectReason::from_byte(input.byte()).encode()),
        5 => (2 + u64::from(input.byte() % 14), vec![0xc0]),
        6 => (0x18, input.take(64).to_vec()),
        _ => {
            let code = input.byte();
            let len = input.short();
            (code.into(), vec![input.byte(); len])
        }
    }
}

fn changed(mut payload: Vec<u8>, input: &mut Input<'_>) -> Vec<u8> {
    if input.byte() >= 224 {
        change(&mut payload, input);
    }
    payload
}
