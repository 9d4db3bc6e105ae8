//! All bytes that a server sends to clients go through this file. Over HTTP, hyper sends a [`CountedBody`]; over WebSocket,
//! [`Frames`] sends. Both take only [`Unsent`] bytes, which count as unsent on their connection, so that the write time limit
//! applies, and in the budget of answers.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body as ResponseBody, Bytes, to_bytes};
use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderValue, Response as Head, StatusCode, header};
use axum::response::Response;
use futures::stream::{BoxStream, SplitSink};
use futures::{SinkExt as _, StreamExt as _};
use hyper::body::{Body, Frame, SizeHint};
use rootlight::rpc::Reply;
use rootlight::rpc::envelope::{Id, write_error};
use rootlight_limits::budget::{BUDGET_USED_UP, Reservation};
use rootlight_limits::priority::{LongWork, SHORT_JSON};
use rootlight_limits::quota_owner::QuotaOwner;
use tokio::time::timeout;
use tungstenite::Message;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::Frame as Part;
use tungstenite::protocol::frame::coding::{Data, OpCode};

use super::connection_slots::{ClientConnection, Unsent};
use super::handshake::WebSocket;
use crate::service::{LIMIT_EXCEEDED, Pieces};

/// Longest frame of a WebSocket message, in bytes. The library keeps a buffer of the longest frame that it has sent until the
/// connection ends, so that one long answer in a single frame would take its memory until then.
const FRAME: usize = 32 * 1024;

/// Time limit for sending a last message or a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The answer that is sent instead of one for which too few bytes of the budget are free. All connections share its bytes.
static BUDGET_USED_UP_ANSWER: LazyLock<Bytes> =
    LazyLock::new(|| Bytes::from(write_error(&Id::Unknown, LIMIT_EXCEEDED, BUDGET_USED_UP)));

/// A response over HTTP that is not counted yet.
pub(crate) struct OutgoingResponse {
    head: Parts,
    content: ResponseContent,
}

/// The body of a response, by the way in which it counts in the answer budget.
enum ResponseContent {
    /// An answer, with the reservation that was made when it was computed. Bytes without one take it when they are sent.
    Answer(Bytes, Reservation),
    /// A body that the server itself made, such as an error, which takes a reservation when it is sent.
    Counted(ResponseBody),
    /// A body that does not count in the budget: a file of the program, whose bytes all clients share, or an answer on one of
    /// the few connections of operators.
    Free(ResponseBody),
    /// A body that is made while it is sent; each piece has its own reservation.
    Pieces(Pieces),
}

impl From<Response> for OutgoingResponse {
    fn from(response: Response) -> Self {
        let (head, body) = response.into_parts();
        Self { head, content: ResponseContent::Counted(body) }
    }
}

impl OutgoingResponse {
    /// An answer in JSON, with its reservation of the budget.
    pub(super) fn answer(status: StatusCode, body: Bytes, reserved: Reservation) -> Self {
        Self { head: json_head(status), content: ResponseContent::Answer(body, reserved) }
    }

    /// A response with a body that does not count in the budget.
    pub(crate) fn free(response: Response) -> Self {
        let (head, body) = response.into_parts();
        Self { head, content: ResponseContent::Free(body) }
    }

    /// An answer in JSON that is made while it is sent.
    pub(super) fn in_pieces(pieces: Pieces) -> Self {
        Self { head: json_head(StatusCode::OK), content: ResponseContent::Pieces(pieces) }
    }

    /// The status, the headers and the extensions of the response.
    pub(super) const fn head(&self) -> &Parts {
        &self.head
    }

    pub(super) const fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.head.headers
    }
}

/// Writes a reply as text: a long one on a thread of lower priority. Returns `None` if nothing is to be sent.
pub(super) async fn write(reply: Reply, owner: QuotaOwner, work: &Arc<LongWork>) -> Option<String> {
    if reply.bytes() <= SHORT_JSON {
        return reply.into_text();
    }
    // Awaiting the thread fails only if the writing panics, which is a defect; nothing is sent then.
    work.spawn_lowered(Some(owner), |_| reply.into_text()).await.ok()?
}

/// The content type of answers.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

fn json_head(status: StatusCode) -> Parts {
    let (mut head, ()) = Head::new(()).into_parts();
    head.status = status;
    head.headers.insert(header::CONTENT_TYPE, JSON);
    head
}

/// The body of a response that hyper sends to a client.
pub(crate) struct CountedBody(BodyState);

enum BodyState {
    /// Bytes that [`Unsent`] owns; empty after hyper has taken them.
    Whole(Bytes),
    /// The pieces of an answer, each of whose bytes [`Unsent`] owns.
    Pieces(BoxStream<'static, io::Result<Bytes>>),
}

/// Makes a response that hyper can send, after its body has taken its reservation of the answer budget. If too few bytes of the
/// budget are free, the response is [`BUDGET_USED_UP_ANSWER`].
pub(crate) async fn count_until_sent(
    connection: &Arc<ClientConnection>,
    reply: OutgoingResponse,
) -> Head<CountedBody> {
    let OutgoingResponse { mut head, content } = reply;
    // All bodies are in memory already, so that this neither waits nor copies nor fails. Boxed, because most responses are answers.
    let in_memory = async |body| Box::pin(to_bytes(body, usize::MAX)).await.unwrap_or_default();
    let unsent = match content {
        ResponseContent::Answer(bytes, reserved) => connection.sending(bytes, reserved).await,
        ResponseContent::Counted(body) => {
            connection.sending(in_memory(body).await, Reservation::default()).await
        }
        ResponseContent::Free(body) => Some(connection.sending_uncounted(in_memory(body).await)),
        ResponseContent::Pieces(pieces) => {
            return Head::from_parts(
                head,
                CountedBody(BodyState::Pieces(piece_by_piece(connection, pieces))),
            );
        }
    };
    let unsent = unsent.unwrap_or_else(|| {
        head.status = StatusCode::SERVICE_UNAVAILABLE;
        head.headers.remove(header::CONTENT_ENCODING);
        head.headers.insert(header::CONTENT_TYPE, JSON);
        connection.sending_uncounted(BUDGET_USED_UP_ANSWER.clone())
    });
    Head::from_parts(head, CountedBody(BodyState::Whole(Bytes::from_owner(unsent))))
}

/// The stream of an answer that is made while it is sent. The connection of a client that reads too slowly is closed, as with
/// any other answer.
fn piece_by_piece(
    connection: &Arc<ClientConnection>,
    pieces: Pieces,
) -> BoxStream<'static, io::Result<Bytes>> {
    let (connection, work) = (connection.clone(), connection.work());
    let leaving = pieces.0.then(move |piece| {
        let _working = &work;
        let connection = connection.clone();
        async move {
            let (text, reserved) = piece?;
            let unsent = connection.sending(text, reserved).await;
            unsent.map(Bytes::from_owner).ok_or_else(|| io::Error::other(BUDGET_USED_UP))
        }
    });
    leaving.boxed()
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            BodyState::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodyState::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            BodyState::Pieces(pieces) => {
                pieces.poll_next_unpin(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, BodyState::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyState::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodyState::Pieces(_) => SizeHint::default(),
        }
    }
}

/// A message to the client of a WebSocket, other than a ping or a close frame.
pub(super) enum Outgoing {
    /// An answer or a notification.
    Text(Unsent),
    /// The response to a ping. The library has made the response itself when it read the ping; these bytes only count it until
    /// it is sent.
    Pong(Unsent),
}

/// A text for a WebSocket, after it has taken its reservation of the answer budget; [`BUDGET_USED_UP_ANSWER`] if too few bytes are free.
pub(super) async fn text(
    connection: &Arc<ClientConnection>,
    text: String,
    reserved: Reservation,
) -> Outgoing {
    let unsent = connection.sending(text, reserved).await;
    Outgoing::Text(unsent.unwrap_or_else(|| connection.sending_uncounted(BUDGET_USED_UP_ANSWER.clone())))
}

/// The response to a ping with this payload.
pub(super) fn pong(connection: &Arc<ClientConnection>, payload: Bytes) -> Outgoing {
    Outgoing::Pong(connection.sending_control(payload))
}

/// The sending side of a WebSocket. [`ClientConnection::stalled`] limits the time.
pub(super) struct Frames(SplitSink<WebSocket, Message>);

impl Frames {
    /// Takes the sending side.
    pub(super) fn new(sink: SplitSink<WebSocket, Message>) -> Self {
        Self(sink)
    }

    /// Sends a message; returns `false` if the connection is gone. The bytes count as unsent until the socket has taken them.
    pub(super) async fn send(&mut self, outgoing: Outgoing) -> bool {
        let sent = match outgoing {
            Outgoing::Pong(_counted) => self.0.flush().await,
            Outgoing::Text(mut unsent) => {
                let (text, _counted) = unsent.take();
                self.send_text(text).await
            }
        };
        sent.is_ok()
    }

    /// Sends a text message in frames of at most [`FRAME`] bytes.
    async fn send_text(&mut self, mut text: Bytes) -> Result<(), tungstenite::Error> {
        let mut kind = Data::Text;
        loop {
            let part = text.split_to(text.len().min(FRAME));
            let frame = Part::message(part, OpCode::Data(kind), text.is_empty());
            self.0.send(Message::Frame(frame)).await?;
            if text.is_empty() {
                return Ok(());
            }
            kind = Data::Continue;
        }
    }

    /// Sends a ping; returns `false` if the connection is gone.
    pub(super) async fn ping(&mut self) -> bool {
        self.0.send(Message::Ping(Bytes::new())).await.is_ok()
    }

    /// Sends a last text; gives up after [`CLOSE_TIMEOUT`].
    pub(super) async fn last(&mut self, outgoing: Outgoing) {
        let _ = timeout(CLOSE_TIMEOUT, self.send(outgoing)).await;
    }

    /// Sends a close frame and closes the connection, each within [`CLOSE_TIMEOUT`].
    pub(super) async fn close(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        let _ = timeout(CLOSE_TIMEOUT, self.0.send(Message::Close(Some(frame)))).await;
        let _ = timeout(CLOSE_TIMEOUT, self.0.close()).await;
    }
}

#[cfg(test)]
#[path = "outgoing_test.rs"]
mod tests;
