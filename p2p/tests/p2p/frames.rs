//! Our initiator against our responder: any split of the bytes, any message, any change on the way.

use proptest::prelude::*;
use rootlight_p2p::rlpx::{
    AuthForm, Connection, Frame, HandshakeSecrets, MAX_FRAME_READ, MAX_FRAME_SENT, MAX_UNREAD, NodeKey,
    RANDOM_BYTES, READ_BEFORE_HELLO, RlpxError,
};

/// Secrets of a handshake that differ for each seed.
pub(crate) fn secrets(seed: u8) -> HandshakeSecrets {
    let mut random = [seed; RANDOM_BYTES];
    random.iter_mut().enumerate().for_each(|(at, byte)| *byte = byte.wrapping_add((at / 32) as u8));
    HandshakeSecrets::from_random(&random)
}

fn ends(form: AuthForm) -> (Connection, Connection) {
    let (ours, theirs) = (NodeKey::from_bytes(&[1; 32]).unwrap(), NodeKey::from_bytes(&[2; 32]).unwrap());
    let dialled = Connection::dial_in(form, &ours, theirs.id(), &secrets(3)).unwrap();
    (dialled, Connection::accept(&theirs, secrets(40)).unwrap())
}

/// Both ends after the handshake.
fn open(form: AuthForm) -> (Connection, Connection) {
    let (mut dialled, mut accepted) = ends(form);
    accepted.feed(&dialled.take_output()).unwrap();
    dialled.feed(&accepted.take_output()).unwrap();
    assert!(dialled.is_open() && accepted.is_open());
    assert_eq!(accepted.remote_id(), Some(NodeKey::from_bytes(&[1; 32]).unwrap().id()));
    (dialled, accepted)
}

fn any_form() -> impl Strategy<Value = AuthForm> {
    prop_oneof![Just(AuthForm::Plain), Just(AuthForm::Eip8)]
}

fn messages() -> impl Strategy<Value = Vec<Frame>> {
    let payload = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..60),
        proptest::collection::vec(any::<u8>(), 1000..4000),
    ];
    let message = (prop_oneof![0u64..200, any::<u64>().prop_map(|code| code >> 1)], payload)
        .prop_map(|(code, payload)| Frame { code, payload });
    proptest::collection::vec(message, 1..6)
}

/// Feeds bytes in pieces of these lengths, repeated, and gives what came of them.
fn deliver(to: &mut Connection, mut bytes: &[u8], pieces: &[usize]) -> Result<Vec<Frame>, RlpxError> {
    let mut frames = Vec::new();
    for length in pieces.iter().cycle() {
        let (piece, rest) = bytes.split_at((*length).min(bytes.len()));
        to.feed(piece)?;
        while let Some(frame) = to.next_frame()? {
            frames.push(frame);
        }
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    Ok(frames)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn messages_arrive_whatever_the_pieces(
        form in any_form(), there in messages(), back in messages(), pieces in proptest::collection::vec(1usize..700, 1..8),
    ) {
        let (mut dialled, mut accepted) = ends(form);
        prop_assert_eq!(deliver(&mut accepted, &dialled.take_output(), &pieces), Ok(vec![]));
        // The responder's first frames may follow its ack at once.
        for frame in &back {
            accepted.send(frame.code, &frame.payload).unwrap();
        }
        prop_assert_eq!(deliver(&mut dialled, &accepted.take_output(), &pieces), Ok(back));
        for frame in &there {
            dialled.send(frame.code, &frame.payload).unwrap();
        }
        prop_assert_eq!(deliver(&mut accepted, &dialled.take_output(), &pieces), Ok(there));
    }

    #[test]
    fn a_changed_bit_is_never_read_as_something_else(
        sent in messages(), at in any::<prop::sample::Index>(), bit in 0u8..8, piece in 1usize..5000,
    ) {
        let (mut dialled, mut accepted) = open(AuthForm::Eip8);
        for frame in &sent {
            dialled.send(frame.code, &frame.payload).unwrap();
        }
        let mut bytes = dialled.take_output();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let mut read = Vec::new();
        let mut failed = false;
        for piece in bytes.chunks(piece) {
            if accepted.feed(piece).is_err() {
                break;
            }
            loop {
                match accepted.next_frame() {
                    Ok(Some(frame)) => read.push(frame),
                    Ok(None) => break,
                    Err(error) => {
                        prop_assert!(matches!(error, RlpxError::HeaderMac | RlpxError::BodyMac), "{}", error);
                        failed = true;
                        break;
                    }
                }
            }
        }
        prop_assert!(failed);
        prop_assert!(read.len() < sent.len());
        prop_assert_eq!(&sent[..read.len()], &read[..]);
    }

    #[test]
    fn a_changed_handshake_never_opens(form in any_form(), ack in any::<bool>(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let (mut dialled, mut accepted) = ends(form);
        let mut packet = dialled.take_output();
        if ack {
            accepted.feed(&packet).unwrap();
            packet = accepted.take_output();
        }
        let at = at.index(packet.len());
        packet[at] ^= 1 << bit;
        let reader = if ack { &mut dialled } else { &mut accepted };
        // An error, or a longer size that waits for more.
        let _ = reader.feed(&packet);
        prop_assert!(!reader.is_open());
    }

    #[test]
    fn bytes_of_a_stranger_open_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..2000), ack in any::<bool>()) {
        let (mut dialled, mut accepted) = ends(AuthForm::Eip8);
        dialled.take_output();
        let reader = if ack { &mut dialled } else { &mut accepted };
        let failed = reader.feed(&bytes).is_err();
        prop_assert!(!reader.is_open());
        prop_assert_eq!(reader.output_len(), 0);
        // A handshake packet is never longer than 1,025 bytes.
        prop_assert!(failed || bytes.len() < 1025);
    }
}

#[test]
fn a_frame_is_read_up_to_the_limit_only() {
    let (mut dialled, mut accepted) = open(AuthForm::Eip8);
    let limit = READ_BEFORE_HELLO;
    dialled.send(1, &vec![0; limit - 1]).unwrap();
    accepted.feed(&dialled.take_output()).unwrap();
    assert_eq!(accepted.next_frame().unwrap().map(|frame| frame.payload.len()), Some(limit - 1));
    dialled.send(1, &vec![0; limit]).unwrap();
    let bytes = dialled.take_output();
    // The header alone decides: no byte of the body is waited for.
    accepted.feed(&bytes[..32]).unwrap();
    assert_eq!(accepted.next_frame(), Err(RlpxError::FrameSize { size: limit + 1, limit }));
}

#[test]
fn the_limit_of_reading_is_raised_after_hello() {
    let (mut dialled, mut accepted) = open(AuthForm::Eip8);
    accepted.set_read_limit(usize::MAX);
    let payload: Vec<u8> = (0..3_000_000u32).map(|at| at as u8).collect();
    dialled.send(0x18, &payload).unwrap();
    let mut read = None;
    for piece in dialled.take_output().chunks(60_000) {
        assert_eq!(read, None);
        accepted.feed(piece).unwrap();
        read = accepted.next_frame().unwrap();
    }
    assert_eq!(read, Some(Frame { code: 0x18, payload }));
}

#[test]
fn more_than_the_reference_reads_is_never_sent() {
    let (mut dialled, mut accepted) = open(AuthForm::Eip8);
    let size = MAX_FRAME_SENT + 1;
    let refused = dialled.send(0x18, &vec![0; MAX_FRAME_SENT]);
    assert_eq!(refused, Err(RlpxError::FrameSize { size, limit: MAX_FRAME_SENT }));
    assert_eq!(dialled.output_len(), 0);
    // The stream goes on.
    dialled.send(0x18, &vec![1; MAX_FRAME_SENT - 1]).unwrap();
    accepted.set_read_limit(MAX_FRAME_READ);
    accepted.feed(&dialled.take_output()).unwrap();
    assert!(accepted.next_frame().unwrap().is_some());
}

#[test]
fn unread_frames_are_bounded() {
    let (_, mut accepted) = open(AuthForm::Eip8);
    let most = READ_BEFORE_HELLO + MAX_UNREAD;
    accepted.feed(&vec![0; most]).unwrap();
    assert_eq!(accepted.feed(&[0]), Err(RlpxError::Unread(most)));
    assert_eq!(accepted.feed(&[]), Err(RlpxError::Failed));
}

#[test]
fn the_wrong_node_is_found_by_the_handshake() {
    let (mut dialled, _) = ends(AuthForm::Eip8);
    let other = NodeKey::from_bytes(&[5; 32]).unwrap();
    let mut accepted = Connection::accept(&other, secrets(40)).unwrap();
    assert_eq!(accepted.feed(&dialled.take_output()), Err(RlpxError::HandshakeTag));
}

#[test]
fn padding_out_of_range_is_refused() {
    let key = NodeKey::from_bytes(&[1; 32]).unwrap();
    for length in [0, 99, 300] {
        let secrets = HandshakeSecrets { padding: vec![0; length], ..secrets(3) };
        assert_eq!(Connection::dial(&key, key.id(), &secrets).err(), Some(RlpxError::Padding(length)));
        assert_eq!(Connection::accept(&key, secrets).err(), Some(RlpxError::Padding(length)));
    }
}
