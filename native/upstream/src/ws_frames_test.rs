//! Frames on their way to the library, on a stopped clock.

use futures::{SinkExt as _, StreamExt as _};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{self, Message};

use super::super::ws_open::config;
use super::*;

const MIB: usize = 1 << 20;

/// The longest message of these tests, in bytes.
const LIMIT: usize = 4 * MIB;

const TEXT: u8 = 1;
const PING: u8 = 9;

/// A stream whose handshake is over, and its other end. Few bytes are under way between them.
fn frames(quota: &SourceQuota) -> (Frames<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(4096);
    let mut frames = Frames::new(ours, LIMIT, quota.clone());
    frames.response = None;
    (frames, theirs)
}

async fn socket(quota: &SourceQuota) -> (WebSocketStream<Frames<DuplexStream>>, DuplexStream) {
    let (frames, theirs) = frames(quota);
    (WebSocketStream::from_raw_socket(frames, Role::Client, Some(config(LIMIT))).await, theirs)
}

/// A frame with a head of ten bytes.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 127];
    frame.extend((payload.len() as u64).to_be_bytes());
    frame.extend(payload);
    frame
}

/// Writes bytes as fast as they are read.
fn write(mut to: DuplexStream, bytes: Vec<u8>) {
    tokio::spawn(async move {
        let _ = to.write_all(&bytes).await;
        std::future::pending::<()>().await;
    });
}

/// The error that this stream made.
fn own(error: tungstenite::Error) -> UpstreamError {
    let tungstenite::Error::Io(error) = error else { panic!("{error}") };
    error.downcast().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_response_of_the_handshake_is_handed_on_alone() {
    for response in
        ["HTTP/1.1 101 X\r\na: b\r\n\r\n", "HTTP/1.1 101 X\na: b\n\n", "\r\nHTTP/1.1 101 X\r\n\r\n"]
    {
        let (mut frames, mut theirs) = frames(&SourceQuota::alone(8 * MIB, 8 * MIB));
        frames.response = Some(false);
        theirs.write_all(response.as_bytes()).await.unwrap();
        theirs.write_all(&[LAST | TEXT, 127, 0, 0, 0, 0, 0, 0, 0, 2, b'o', b'k']).await.unwrap();
        drop(theirs);
        let mut read = Vec::new();
        frames.read_to_end(&mut read).await.unwrap();
        // The head of the frame is written anew, so it went through this stream.
        assert_eq!(read, [response.as_bytes(), &[LAST | TEXT, 2, b'o', b'k']].concat());
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_frame_is_handed_on_in_short_ones() {
    let (mut frames, theirs) = frames(&SourceQuota::alone(8 * MIB, 8 * MIB));
    write(theirs, frame(LAST | TEXT, &[b'x'; 2 * LONGEST_FRAME + 7]));
    let full = [(LONGEST_FRAME >> 8) as u8, LONGEST_FRAME as u8];
    for head in [vec![TEXT, 126, full[0], full[1]], vec![0, 126, full[0], full[1]], vec![LAST, 7]] {
        let mut read = vec![0; head.len()];
        frames.read_exact(&mut read).await.unwrap();
        assert_eq!(read, head);
        let bytes = if head.len() == 4 { LONGEST_FRAME } else { 7 };
        let mut payload = vec![0; bytes];
        frames.read_exact(&mut payload).await.unwrap();
        assert!(payload.iter().all(|byte| *byte == b'x'));
    }
}

#[tokio::test(start_paused = true)]
async fn messages_of_every_length_arrive_as_they_were_sent() {
    let (mut socket, theirs) = socket(&SourceQuota::alone(8 * MIB, 8 * MIB)).await;
    let lengths = [0, 1, 125, 126, LONGEST_FRAME - 1, LONGEST_FRAME, LONGEST_FRAME + 1, 65_535, 65_536, MIB];
    let texts = lengths.map(|length| "0123456789".chars().cycle().take(length).collect::<String>());
    let sent = texts.clone();
    tokio::spawn(async move {
        let mut server = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
        for text in sent {
            server.send(Message::text(text)).await.unwrap();
        }
    });
    for text in texts {
        let message = socket.next().await.unwrap().unwrap();
        assert!(message.to_text().unwrap() == text, "{} bytes", text.len());
        drop(socket.get_mut().take_reservation());
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_takes_its_room_before_its_bytes_and_until_it_is_dropped() {
    let quota = SourceQuota::alone(8 * MIB, 8 * MIB);
    let (mut socket, mut theirs) = socket(&quota).await;
    theirs.write_all(&frame(LAST | TEXT, &[b'x'; 3 * MIB])[..10]).await.unwrap();
    assert!(tokio::time::timeout(PATIENCE, socket.next()).await.is_err(), "it has not come in");
    assert_eq!(quota.taken(), 6 * MIB);
    write(theirs, vec![b'x'; 3 * MIB]);
    let message = socket.next().await.unwrap().unwrap();
    assert_eq!(message.len(), 3 * MIB);
    let reserved = socket.get_mut().take_reservation();
    assert_eq!((reserved.bytes(), quota.taken()), (6 * MIB, 6 * MIB));
    drop(reserved);
    assert_eq!(quota.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn pings_within_a_message_leave_it_its_room() {
    let quota = SourceQuota::alone(8 * MIB, 8 * MIB);
    let (mut socket, theirs) = socket(&quota).await;
    let parts = [frame(TEXT, &[b'x'; MIB]), frame(LAST | PING, b"?"), frame(LAST, &[b'x'; MIB])];
    write(theirs, parts.concat());
    assert!(matches!(socket.next().await, Some(Ok(Message::Ping(_)))));
    assert_eq!(socket.get_mut().take_reservation().bytes(), 0);
    assert_eq!(quota.taken(), 2 * MIB);
    assert_eq!(socket.next().await.unwrap().unwrap().len(), 2 * MIB);
    assert_eq!(socket.get_mut().take_reservation().bytes(), 4 * MIB);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_budget_is_not_read_and_this_is_reported() {
    let quota = SourceQuota::alone(8 * MIB, 8 * MIB);
    let other = quota.beside(8 * MIB).try_reserve(6 * MIB).unwrap();
    let (mut socket, theirs) = socket(&quota).await;
    write(theirs, frame(LAST | TEXT, &[b'x'; 3 * MIB]));
    assert!(tokio::time::timeout(Duration::from_secs(4), socket.next()).await.is_err());
    assert_eq!(quota.taken(), 6 * MIB, "nothing is held meanwhile");
    assert!(socket.get_ref().stream.buffer().len() <= READ_BYTES, "nothing is read meanwhile");
    assert_eq!(socket.get_ref().unread_for().as_secs(), 4);
    assert_eq!(socket.get_ref().check(Duration::from_secs(1)), Ok(()));
    drop(other);
    assert_eq!(socket.next().await.unwrap().unwrap().len(), 3 * MIB);
    assert_eq!(socket.get_ref().unread_for().as_secs(), 4);
    // Not for ever.
    let other = socket.get_mut().take_reservation();
    let (mut socket, theirs) = self::socket(&quota).await;
    write(theirs, frame(LAST | TEXT, &[b'x'; 3 * MIB]));
    assert!(tokio::time::timeout(PATIENCE, socket.next()).await.is_err());
    assert_eq!(socket.get_ref().check(Duration::from_secs(60)), Err(UpstreamError::BudgetUsedUp));
    drop(other);
}

/// A message that holds bytes of the budget does not wait for more.
#[tokio::test(start_paused = true)]
async fn a_message_whose_later_frames_find_no_room_ends() {
    let quota = SourceQuota::alone(8 * MIB, 8 * MIB);
    let _other = quota.beside(8 * MIB).try_reserve(4 * MIB).unwrap();
    let (mut socket, theirs) = socket(&quota).await;
    let parts = [frame(TEXT, &[b'x'; MIB]), frame(0, &[b'x'; MIB]), frame(LAST, &[b'x'; MIB])];
    write(theirs, parts.concat());
    let started = Instant::now();
    let error = own(socket.next().await.unwrap().unwrap_err());
    assert_eq!((error, started.elapsed()), (UpstreamError::BudgetUsedUp, Duration::ZERO));
    drop(socket);
    assert_eq!(quota.taken(), 4 * MIB);
}

#[tokio::test(start_paused = true)]
async fn a_message_may_take_long_unless_others_want_its_room() {
    let quota = SourceQuota::alone(8 * MIB, 8 * MIB);
    let beside = quota.beside(8 * MIB);
    let other = beside.try_reserve(8 * MIB).unwrap();
    let (mut socket, mut theirs) = socket(&quota).await;
    theirs.write_all(&frame(LAST | TEXT, &[b'x'; 3 * MIB])[..20]).await.unwrap();
    let longest = Duration::from_secs(20);
    assert!(tokio::time::timeout(Duration::from_secs(1), socket.next()).await.is_err());
    drop(other);
    assert!(tokio::time::timeout(Duration::from_millis(100), socket.next()).await.is_err());
    assert_eq!(quota.taken(), 6 * MIB);
    for _ in 0..100 {
        sleep(Duration::from_millis(100)).await;
        assert_eq!(socket.get_ref().check(longest), Ok(()), "that it had to wait itself does not count");
    }
    assert!(beside.try_reserve(4 * MIB).is_err());
    assert_eq!(socket.get_ref().check(longest), Err(UpstreamError::BudgetUsedUp));
    sleep(longest).await;
    assert_eq!(socket.get_ref().check(longest), Err(UpstreamError::Timeout(20_000)));
}

#[tokio::test(start_paused = true)]
async fn messages_above_the_limit_and_masked_frames_take_no_room() {
    let quota = SourceQuota::alone(8 * MIB, 8 * MIB);
    let too_large = UpstreamError::TooLarge(LIMIT);
    for parts in [
        vec![frame(LAST | TEXT, &[b'x'; LIMIT + 1])],
        vec![frame(TEXT, b""), frame(0, &[b'x'; 10]), frame(LAST, &[b'x'; LIMIT - 9])],
        vec![vec![LAST | TEXT, 127, 255, 255, 255, 255, 255, 255, 255, 255]],
    ] {
        let (mut socket, theirs) = socket(&quota).await;
        write(theirs, parts.concat());
        assert_eq!(own(socket.next().await.unwrap().unwrap_err()), too_large);
        assert_eq!(quota.taken(), 0);
    }
    for head in [[LAST | TEXT, MASKED | 126], [LAST | PING, 126]] {
        let (mut socket, theirs) = socket(&quota).await;
        write(theirs, [&head[..], &[255; 100]].concat());
        let error = socket.next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("no server may send"), "{error}");
    }
}

proptest! {
    /// Whatever a server sends, in whatever pieces, ends, becomes no longer, and leaves no room taken.
    #[test]
    fn any_bytes_are_handed_on_or_end_the_stream(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(LAST | TEXT), Just(127)], 0..600),
        piece in 1usize..64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let quota = SourceQuota::alone(8 * MIB, 8 * MIB);
            let (mut frames, mut theirs) = frames(&quota);
            let (sent, mut read) = (bytes.clone(), Vec::new());
            tokio::spawn(async move {
                for piece in sent.chunks(piece) {
                    if theirs.write_all(piece).await.is_err() {
                        return;
                    }
                }
            });
            let _ = frames.read_to_end(&mut read).await;
            prop_assert!(read.len() <= bytes.len(), "{} of {}", read.len(), bytes.len());
            drop(frames);
            prop_assert_eq!(quota.taken(), 0);
            Ok(())
        })?;
    }
}
