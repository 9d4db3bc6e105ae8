//! A socket that counts the bytes read and written, so that memory is limited and clients that do not read their answers are
//! detected. All connections of a server are wrapped in it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rootlight_limits::budget::BUDGET_USED_UP;
use rootlight_limits::processors;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_slots::ClientConnection;

/// The number of bytes written at a time, and read or written between two pauses in which the thread serves other
/// connections. Copying a body of megabytes takes milliseconds; over loopback the writer also does the work of the
/// receiving socket.
const PIECE: usize = 128 * 1024;

/// The number of bytes up to which several parts, such as the head and the body of a response, are joined: the system takes less
/// time to write one part.
const SHORT: usize = 1024;

/// The bytes of a connection: TCP, TLS over TCP, or a Unix socket.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A socket that reports the bytes read and written to its [`ClientConnection`].
pub(crate) struct Metered {
    stream: Box<dyn Stream>,
    connection: Arc<ClientConnection>,
    /// The number of bytes read and written since the last pause.
    moved: usize,
}

impl Metered {
    /// Reports the bytes of `stream` to `connection`.
    pub(crate) fn new(stream: Box<dyn Stream>, connection: Arc<ClientConnection>) -> Self {
        Self { stream, connection, moved: 0 }
    }

    /// Reports the bytes of a write that has succeeded.
    fn count(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.connection.wrote(bytes);
            self.connection.counts.metrics.sent.inc_by(bytes as u64);
            self.moved = self.moved.saturating_add(bytes);
        }
        written
    }

    /// Whether the task has to let other tasks run first. If so, the task is also woken, so that it continues after them.
    fn pauses(&mut self, context: &Context<'_>) -> bool {
        let pauses = self.moved >= PIECE;
        if pauses {
            self.moved = 0;
            context.waker().wake_by_ref();
        }
        pauses
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // This thread serves connections.
        processors::join_serving_threads();
        if self.pauses(context) {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len().saturating_sub(before);
        self.moved = self.moved.saturating_add(bytes);
        if bytes > 0 {
            self.connection.counts.metrics.received.inc_by(bytes as u64);
        }
        if !self.connection.received(bytes) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::QuotaExceeded, BUDGET_USED_UP)));
        }
        read
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.pauses(context) {
            return Poll::Pending;
        }
        let piece = bytes.get(..PIECE).unwrap_or(bytes);
        let written = Pin::new(&mut self.stream).poll_write(context, piece);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(long) = parts.iter().find(|part| !part.is_empty()).filter(|part| part.len() > PIECE) {
            return self.poll_write(context, long);
        }
        if self.pauses(context) {
            return Poll::Pending;
        }
        let whole: usize = parts.iter().map(|part| part.len()).sum();
        let mut joined = [0; SHORT];
        if let Some(joined) = joined.get_mut(..whole) {
            let mut rest = &mut *joined;
            for part in parts {
                let (to, after) = std::mem::take(&mut rest).split_at_mut(part.len());
                to.copy_from_slice(part);
                rest = after;
            }
            let written = Pin::new(&mut self.stream).poll_write(context, joined);
            return self.count(written);
        }
        // Parts after a short first one are written with it as far as they are short too.
        let mut bytes = 0_usize;
        let short = parts.iter().take_while(|part| {
            bytes = bytes.saturating_add(part.len());
            bytes <= PIECE
        });
        let short = parts.get(..short.count()).unwrap_or(parts);
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, short);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
