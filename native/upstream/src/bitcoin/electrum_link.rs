//! Connections to a server of Electrum's protocol: a message is a line over TCP or TLS, or a text message over WebSocket. The
//! memory of received messages counts in the quota of the source.

use std::io;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use rootlight_limits::budget::Reservation;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::MaybeTlsStream;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::UpstreamError;
use crate::source_quota::{BudgetUsedUp, ReceivedBytes, SourceQuota, bytes_to_reserve};
use crate::words;
use crate::ws_open::{Duplex, UpstreamSocket, connect, open};

/// Longest message that is read, in bytes. The longest honest one has 2,016 headers in hexadecimal, 322,560 bytes.
pub(super) const MESSAGE_BYTES: usize = 512 * 1024;

/// Bytes of the budget that are reserved at a time while a long line comes in, whose length is not known before its end.
const READ_STEP: usize = 128 * 1024;

/// How messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// Lines over TCP.
    Lines,
    /// Lines over TLS.
    TlsLines,
    /// Messages over WebSocket, with or without TLS.
    Messages,
}

/// The address of a server, and how messages are sent there.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) transport: Transport,
    pub(super) host: String,
    pub(super) port: u16,
    /// The whole URL, which a WebSocket handshake names.
    pub(super) url: String,
}

/// An open connection.
pub(super) enum Link {
    Lines(Box<Lines<MaybeTlsStream<TcpStream>>>),
    Messages(Box<UpstreamSocket<MaybeTlsStream<TcpStream>>>),
}

impl Link {
    /// Connects to a server.
    pub(super) async fn open(endpoint: &Endpoint, quota: &SourceQuota) -> Result<Self, UpstreamError> {
        let Endpoint { transport, host, port, url } = endpoint;
        if *transport == Transport::Messages {
            let opened = open(url, MESSAGE_BYTES, quota.clone()).await;
            return opened.map(|(socket, _)| Self::Messages(Box::new(socket))).map_err(of_socket);
        }
        let opened = connect(host.clone(), *port, *transport == Transport::TlsLines).await;
        opened.map(|(stream, _)| Self::Lines(Box::new(Lines::new(stream)))).map_err(|error| unopened(&error))
    }

    /// Sends messages without waiting for responses in between.
    pub(super) async fn send(&mut self, messages: Vec<String>) -> Result<(), UpstreamError> {
        match self {
            Self::Lines(lines) => {
                let text: String = messages.into_iter().map(|message| message + "\n").collect();
                let stream = lines.stream.get_mut();
                stream.write_all(text.as_bytes()).await.map_err(|error| of_io(&error))?;
                stream.flush().await.map_err(|error| of_io(&error))
            }
            Self::Messages(socket) => {
                for message in messages {
                    socket.feed(Message::text(message)).await.map_err(of_socket)?;
                }
                socket.flush().await.map_err(of_socket)
            }
        }
    }

    /// Reads the next message; `None` for one that is not a text, such as a ping.
    pub(super) async fn next(
        &mut self,
        quota: &SourceQuota,
    ) -> Result<Option<ReceivedBytes<Bytes>>, UpstreamError> {
        match self {
            Self::Lines(lines) => lines.next(quota).await.map(Some),
            Self::Messages(socket) => {
                let message = socket.next().await.ok_or_else(closed)?.map_err(of_socket)?;
                let reserved = socket.get_mut().take_reservation();
                match message {
                    Message::Text(text) => admit(quota, text.into(), reserved).map(Some),
                    Message::Close(_) => Err(closed()),
                    _ => Ok(None),
                }
            }
        }
    }
}

/// Lines of a stream, each of at most [`MESSAGE_BYTES`].
pub(super) struct Lines<S> {
    stream: BufReader<S>,
}

impl<S: Duplex> Lines<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// Reads the next line. The bytes of a long one are reserved as it comes in: the first may wait for free bytes of the budget,
    /// the further ones may not, because the line holds bytes already.
    pub(super) async fn next(&mut self, quota: &SourceQuota) -> Result<ReceivedBytes<Bytes>, UpstreamError> {
        let (mut line, mut reserved) = (Vec::new(), Reservation::default());
        loop {
            let bytes = self.stream.fill_buf().await.map_err(|error| of_io(&error))?;
            if bytes.is_empty() {
                return Err(closed());
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let length = line.len().saturating_add(part.len());
            if length > MESSAGE_BYTES {
                return Err(UpstreamError::TooLarge(MESSAGE_BYTES));
            }
            let missing = bytes_to_reserve(length).saturating_sub(reserved.bytes());
            if missing > 0 {
                let more = missing.max(READ_STEP);
                reserved.merge(match reserved.bytes() {
                    0 => quota.reserve_when_free(more).await?,
                    _ => quota.try_reserve(more)?,
                });
            }
            line.extend_from_slice(part);
            let read = part.len() + usize::from(end.is_some());
            self.stream.consume(read);
            if end.is_some() {
                return admit(quota, line.into(), reserved);
            }
        }
    }
}

/// Counts a whole message in the quota.
fn admit(
    quota: &SourceQuota,
    bytes: Bytes,
    reserved: Reservation,
) -> Result<ReceivedBytes<Bytes>, UpstreamError> {
    quota.admit(bytes, reserved).map_err(|BudgetUsedUp| UpstreamError::BudgetUsedUp)
}

fn closed() -> UpstreamError {
    UpstreamError::Transport("the source closed the connection".into())
}

/// The error of a connection that could not be opened.
fn unopened(error: &io::Error) -> UpstreamError {
    UpstreamError::Transport(words::unopened(error))
}

/// The error of an open connection.
fn of_io(error: &io::Error) -> UpstreamError {
    UpstreamError::Transport(error.to_string())
}

/// The error of a WebSocket.
fn of_socket(error: tungstenite::Error) -> UpstreamError {
    match error {
        tungstenite::Error::Http(response) => UpstreamError::Status(response.status().as_u16()),
        tungstenite::Error::Capacity(_) => UpstreamError::TooLarge(MESSAGE_BYTES),
        // Errors of the quota come through the WebSocket library.
        tungstenite::Error::Io(error) => {
            error.downcast::<UpstreamError>().unwrap_or_else(|error| unopened(&error))
        }
        other => UpstreamError::Transport(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    /// Reads all lines of these bytes, which are sent in pieces of `piece` bytes. Returns the lengths of the lines, and the error at
    /// the end.
    async fn lines(bytes: Vec<u8>, piece: usize) -> (Vec<usize>, UpstreamError) {
        let (ours, mut theirs) = duplex(64 * 1024);
        tokio::spawn(async move {
            for part in bytes.chunks(piece) {
                if theirs.write_all(part).await.is_err() {
                    return;
                }
            }
        });
        let quota = SourceQuota::alone(8 << 20, 8 << 20);
        let (mut lines, mut lengths) = (Lines::new(ours), Vec::new());
        loop {
            match lines.next(&quota).await {
                Ok(line) => lengths.push(line.len()),
                Err(error) => {
                    assert_eq!(quota.taken(), 0, "the room is given back");
                    return (lengths, error);
                }
            }
        }
    }

    #[tokio::test]
    async fn lines_of_any_pieces_are_read() {
        for piece in [1, 7, 100_000] {
            let text = b"\n{}\nabc\n\nrest".to_vec();
            assert_eq!(lines(text, piece).await, (vec![0, 2, 3, 0], closed()));
        }
        let longest = [vec![b'x'; MESSAGE_BYTES], vec![b'\n'; 2]].concat();
        assert_eq!(lines(longest, 5_000).await, (vec![MESSAGE_BYTES, 0], closed()));
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_refused_at_the_limit() {
        let endless = vec![b'x'; 4 * MESSAGE_BYTES];
        assert_eq!(lines(endless, 5_000).await, (vec![], UpstreamError::TooLarge(MESSAGE_BYTES)));
    }

    #[tokio::test]
    async fn a_line_is_not_read_beyond_the_budget() {
        let (ours, mut theirs) = duplex(64 * 1024);
        tokio::spawn(async move { theirs.write_all(&vec![b'x'; MESSAGE_BYTES]).await });
        let quota = SourceQuota::alone(256 * 1024, 256 * 1024);
        assert_eq!(Lines::new(ours).next(&quota).await.err(), Some(UpstreamError::BudgetUsedUp));
        assert_eq!(quota.taken(), 0);
    }
}
