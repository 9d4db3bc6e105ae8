//! A stream between the socket of a WebSocket upstream and tungstenite, the library that reads the messages.
//!
//! Tungstenite keeps a buffer of the longest frame's length, and no budget limits the buffer. This stream therefore reads the heads of
//! frames itself. It reserves bytes of the source's quota for a message before it reads the message's bytes, and hands a long frame
//! on as several short ones (pieces), as an intermediary may (RFC 6455, section 5.4).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rootlight_limits::budget::Reservation;
use tokio::io::{AsyncBufRead as _, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::time::Instant;

use super::UpstreamError;
use super::source_quota::{BudgetUsedUp, PATIENCE, ReceiveQuota, SHORT, SourceQuota};

/// Longest piece that is handed on, in bytes of payload.
pub(super) const LONGEST_FRAME: usize = SHORT;

/// Most bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// Longest head of a frame without a mask, in bytes: two, and a length of eight.
const LONGEST_HEAD: usize = 10;

/// Longest payload of a control frame, in bytes (RFC 6455, section 5.5).
const LONGEST_CONTROL: usize = 125;

/// The bit of a frame's first byte that marks the last frame of a message (FIN).
const LAST: u8 = 0x80;
/// The bit of a frame's first byte that marks a control frame.
const CONTROL: u8 = 0x08;

/// The bit of a frame's second byte for a masked payload. A server masks none (RFC 6455, section 5.1).
const MASKED: u8 = 0x80;

/// A stream that carries the response of a WebSocket handshake and then frames.
pub(super) struct Frames<S> {
    stream: BufReader<S>,
    /// During the response of the handshake, whether its current line is empty so far, because an empty line ends the response;
    /// `None` after the response.
    response: Option<bool>,
    /// The bytes of a frame's head, and how many of them were read.
    head: [u8; LONGEST_HEAD],
    head_read: usize,
    /// The first byte of the head of the frame's next piece.
    first: u8,
    /// Bytes of the frame's payload that belong to later pieces.
    left: usize,
    /// The bytes of the present piece's head that were not handed on yet.
    piece_head: Vec<u8>,
    /// The number of bytes of the present piece's payload that were not handed on yet.
    piece: usize,
    /// The number of bytes of the present message: the lengths of its frames so far.
    message: usize,
    /// Whether more frames of the message follow.
    goes_on: bool,
    /// The longest message, in bytes.
    limit: usize,
    /// The reservation of the present message.
    unread: ReceiveQuota,
    /// When a long message got its reservation.
    begun: Option<Instant>,
    /// The time since which the stream is not read because too few bytes of the budget are free.
    unread_since: Option<Instant>,
    /// For how long the stream was not read before, for the same reason.
    unread_before: Duration,
}

impl<S: AsyncRead> Frames<S> {
    /// A stream whose handshake comes first. Messages have at most `limit` bytes.
    pub(super) fn new(stream: S, limit: usize, quota: SourceQuota) -> Self {
        Self {
            stream: BufReader::with_capacity(READ_BYTES, stream),
            response: Some(false),
            head: [0; LONGEST_HEAD],
            head_read: 0,
            first: 0,
            left: 0,
            piece_head: Vec::new(),
            piece: 0,
            message: 0,
            goes_on: false,
            limit,
            unread: ReceiveQuota::new(quota),
            begun: None,
            unread_since: None,
            unread_before: Duration::ZERO,
        }
    }

    /// Sets the longest message, in bytes, for frames that begin from now on.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Hands over the reservation of a message that has come in as a whole. After a control frame within a message, the message
    /// keeps its reservation, and an empty one is returned.
    pub(super) fn take_reservation(&mut self) -> Reservation {
        let is_whole = self.left == 0 && self.piece == 0 && self.piece_head.is_empty();
        if self.goes_on || !is_whole {
            return Reservation::default();
        }
        (self.message, self.begun) = (0, None);
        self.unread.take()
    }

    /// For how long the stream was not read because too few bytes of the budget were free.
    pub(super) fn unread_for(&self) -> Duration {
        let now = self.unread_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.unread_before.saturating_add(now)
    }

    /// Fails if the stream has waited for bytes of the budget for too long, or if a long message takes more than `longest` to come
    /// in, or less while others wait for the bytes that it holds.
    pub(super) fn check(&self, longest: Duration) -> Result<(), UpstreamError> {
        if self.unread_since.is_some_and(|since| since.elapsed() >= PATIENCE) {
            return Err(UpstreamError::BudgetUsedUp);
        }
        let Some(taken) = self.begun.map(|begun| begun.elapsed()) else { return Ok(()) };
        if taken >= longest {
            return Err(UpstreamError::Timeout(longest.as_millis()));
        }
        self.unread.check_pace(taken)
    }
}

impl<S: AsyncRead + Unpin> Frames<S> {
    /// Hands on the response of the handshake up to its empty line, and nothing of what follows.
    fn poll_response(
        &mut self,
        mut is_empty: bool,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = ready!(Pin::new(&mut self.stream).poll_fill_buf(context))?;
        let bytes = &bytes[..bytes.len().min(out.remaining())];
        let mut count = 0;
        let mut is_over = false;
        for byte in bytes {
            count += 1;
            is_over = *byte == b'\n' && is_empty;
            if is_over {
                break;
            }
            is_empty = *byte == b'\n' || (*byte == b'\r' && is_empty);
        }
        out.put_slice(&bytes[..count]);
        Pin::new(&mut self.stream).consume(count);
        self.response = (!is_over).then_some(is_empty);
        Poll::Ready(Ok(()))
    }

    /// Reads the head of the next frame. Returns `false` at the end of the stream.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.head_read < head_bytes(&self.head[..self.head_read]) {
            let bytes = ready!(Pin::new(&mut self.stream).poll_fill_buf(context))?;
            let Some(byte) = bytes.first() else { return Poll::Ready(Ok(false)) };
            self.head[self.head_read] = *byte;
            self.head_read += 1;
            Pin::new(&mut self.stream).consume(1);
        }
        self.head_read = 0;
        Poll::Ready(self.begin_frame().map(|()| true))
    }

    /// Reads the fields of a frame's head, and checks the length of the message with this frame.
    fn begin_frame(&mut self) -> io::Result<()> {
        let [first, second, rest @ ..] = self.head;
        // A length of 126 or 127 stands for one in the two or eight bytes that follow.
        let length = match second {
            126 => u64::from(u16::from_be_bytes([rest[0], rest[1]])),
            127 => u64::from_be_bytes(rest),
            length => u64::from(length),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let is_control = first & CONTROL != 0;
        if second & MASKED != 0 || (is_control && length > LONGEST_CONTROL) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame that no server may send"));
        }
        (self.first, self.left) = (first, length);
        if !is_control {
            let before = if self.goes_on { self.message } else { 0 };
            self.message = before.saturating_add(length);
            self.goes_on = first & LAST == 0;
        }
        match self.message > self.limit {
            true => Err(io::Error::other(UpstreamError::TooLarge(self.limit))),
            false => Ok(()),
        }
    }

    /// Waits for the reservation of the present message.
    fn poll_reservation(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Poll::Ready(found) = self.unread.poll_more(context, self.message) else {
            self.unread_since.get_or_insert_with(Instant::now);
            return Poll::Pending;
        };
        self.unread_before = self.unread_for();
        self.unread_since = None;
        if self.message > SHORT {
            self.begun.get_or_insert_with(Instant::now);
        }
        Poll::Ready(found.map_err(|BudgetUsedUp| io::Error::other(UpstreamError::BudgetUsedUp)))
    }

    /// Makes the head of the frame's next piece.
    fn begin_piece(&mut self) {
        self.piece = self.left.min(LONGEST_FRAME);
        self.left -= self.piece;
        let first = if self.left == 0 { self.first } else { self.first & !LAST };
        match u8::try_from(self.piece) {
            Ok(length) if length < 126 => self.piece_head.extend([first, length]),
            _ => {
                // A piece has fewer than 2^16 bytes.
                let length = u16::try_from(self.piece).unwrap_or(u16::MAX);
                self.piece_head.extend([first, 126]);
                self.piece_head.extend(length.to_be_bytes());
            }
        }
        // The further pieces have the opcode 0, which continues the message.
        self.first &= LAST;
    }

    /// Hands on bytes of the present piece.
    fn poll_piece(&mut self, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.piece_head.is_empty() {
            let count = self.piece_head.len().min(out.remaining());
            out.put_slice(&self.piece_head[..count]);
            self.piece_head.drain(..count);
            return Poll::Ready(Ok(()));
        }
        let bytes = ready!(Pin::new(&mut self.stream).poll_fill_buf(context))?;
        let count = bytes.len().min(self.piece).min(out.remaining());
        out.put_slice(&bytes[..count]);
        Pin::new(&mut self.stream).consume(count);
        self.piece -= count;
        Poll::Ready(Ok(()))
    }
}

/// The length of a frame's head, as far as the bytes that were read show it: two bytes at first, more after the second byte.
fn head_bytes(read: &[u8]) -> usize {
    match read.get(1).map(|second| second & !MASKED) {
        Some(126) => 4,
        Some(127) => LONGEST_HEAD,
        _ => 2,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Frames<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(is_empty) = this.response {
            return this.poll_response(is_empty, context, out);
        }
        if this.piece == 0 && this.piece_head.is_empty() {
            if this.left == 0 && !ready!(this.poll_head(context))? {
                return Poll::Ready(Ok(()));
            }
            ready!(this.poll_reservation(context))?;
            this.begin_piece();
        }
        this.poll_piece(context, out)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Frames<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[path = "ws_frames_test.rs"]
mod tests;
