//! The recorded handshakes and frames: remade byte for byte, read, and spoiled.

use rootlight_p2p::rlpx::{Connection, Frame, HandshakeSecrets, NodeId, NodeKey, RlpxError};
use serde_json::Value;

use crate::vectors::{array, bytes, json};

/// The random values of our side of a recording.
pub(crate) fn secrets(side: &Value) -> HandshakeSecrets {
    HandshakeSecrets {
        ephemeral: array(&side["ephemeral"]),
        nonce: array(&side["nonce"]),
        ecies_ephemeral: array(&side["eciesEphemeral"]),
        ecies_iv: array(&side["eciesIv"]),
        padding: bytes(&side["padding"]),
    }
}

pub(crate) fn key(side: &Value) -> NodeKey {
    NodeKey::from_bytes(&array(&side["static"])).unwrap()
}

pub(crate) fn id(side: &Value) -> NodeId {
    side["id"].as_str().unwrap().parse().unwrap()
}

/// Dials as the recording did, up to the auth packet.
pub(crate) fn dialled(case: &Value) -> Connection {
    let (ours, theirs) = (&case["initiator"], &case["responder"]);
    Connection::dial(&key(ours), &id(theirs), &secrets(ours)).unwrap()
}

fn frames(list: &Value) -> impl Iterator<Item = (Frame, Vec<u8>)> {
    list.as_array().unwrap().iter().map(|frame| {
        let code = frame["code"].as_u64().unwrap();
        (Frame { code, payload: bytes(&frame["payload"]) }, bytes(&frame["cipher"]))
    })
}

fn exchange(mut connection: Connection, case: &Value, pieces: usize) {
    for (frame, cipher) in frames(&case["framesOut"]) {
        connection.send(frame.code, &frame.payload).unwrap();
        assert_eq!(connection.take_output(), cipher);
    }
    for (frame, cipher) in frames(&case["framesIn"]) {
        let mut read = None;
        for piece in cipher.chunks(pieces) {
            assert_eq!(read, None);
            connection.feed(piece).unwrap();
            read = connection.next_frame().unwrap();
        }
        assert_eq!(read, Some(frame));
        assert_eq!(connection.next_frame(), Ok(None));
    }
}

#[test]
fn a_dialled_connection_is_remade_byte_for_byte() {
    let Some(case) = json("handshake/dial.json") else { return };
    for pieces in [1, 7, 1 << 20] {
        let mut connection = dialled(&case);
        let auth = connection.take_output();
        assert_eq!(auth, bytes(&case["auth"]));
        assert!(auth.len() > 307);
        assert_eq!(connection.send(0, &[0xc0]), Err(RlpxError::NotReady));
        for piece in bytes(&case["ack"]).chunks(pieces) {
            assert!(!connection.is_open());
            connection.feed(piece).unwrap();
        }
        assert_eq!(connection.remote_id(), Some(&id(&case["responder"])));
        exchange(connection, &case, pieces);
    }
}

#[test]
fn an_answered_connection_is_remade_byte_for_byte() {
    let Some(case) = json("handshake/answer.json") else { return };
    for pieces in [1, 100, 1 << 20] {
        let mut connection =
            Connection::accept(&key(&case["responder"]), secrets(&case["responder"])).unwrap();
        assert_eq!((connection.remote_id(), connection.output_len()), (None, 0));
        for piece in bytes(&case["auth"]).chunks(pieces) {
            assert_eq!(connection.output_len(), 0);
            connection.feed(piece).unwrap();
        }
        assert_eq!(connection.take_output(), bytes(&case["ack"]));
        assert_eq!(connection.remote_id(), Some(&id(&case["initiator"])));
        exchange(connection, &case, pieces);
    }
}

/// Feeds bytes in pieces and counts the frames until an error.
fn count(connection: &mut Connection, stream: &[u8], pieces: usize) -> (usize, Option<RlpxError>) {
    let mut frames = 0;
    for piece in stream.chunks(pieces) {
        if let Err(error) = connection.feed(piece) {
            return (frames, Some(error));
        }
        loop {
            match connection.next_frame() {
                Ok(Some(_)) => frames += 1,
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

#[test]
fn spoiled_handshakes_and_streams_are_refused() {
    let (Some(dial), Some(cases)) = (json("handshake/dial.json"), json("handshake/hostile.json")) else {
        return;
    };
    let cases = cases.as_array().unwrap();
    for case in cases {
        let name = case["case"].as_str().unwrap();
        let expected = usize::try_from(case["expect"].as_u64().unwrap()).unwrap();
        for pieces in [1, 333, 1 << 20] {
            let mut connection = dialled(&dial);
            assert_eq!(connection.take_output(), bytes(&case["auth"]));
            let stream = [bytes(&case["ack"]), bytes(&case["stream"])].concat();
            let (frames, error) = count(&mut connection, &stream, pieces);
            match case["verdict"].as_str().unwrap() {
                "accept" => assert_eq!((frames, error), (expected, None), "{name}"),
                "refuse" => {
                    assert!(frames < expected, "{name}: {frames}");
                    assert!(error.is_some(), "{name}");
                    assert_eq!(connection.feed(&[]), Err(RlpxError::Failed), "{name}");
                    assert_eq!(connection.next_frame(), Err(RlpxError::Failed), "{name}");
                    assert_eq!(connection.send(0, &[]), Err(RlpxError::Failed), "{name}");
                }
                other => panic!("verdict {other}"),
            }
        }
    }
    assert_eq!(cases.len(), 24);
}
