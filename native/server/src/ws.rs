//! One WebSocket connection: reads messages, sends answers and pings, and closes when the client reads too slowly.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::close_code;
use futures::StreamExt;
use futures::stream::SplitStream;
use rootlight::rpc::Effect;
use rootlight::rpc::envelope::Id;
use rootlight_limits::budget::Reservation;
use rootlight_limits::caller_id::CallerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::debug;
use tungstenite::Message;
use tungstenite::error::CapacityError;

use super::body::read_message;
use super::connection_slots::ClientConnection;
use super::handshake::WebSocket;
use super::outgoing::{self, Frames, Outgoing, pong, text};
use super::presented_key::{PresentedKey, RefusedMessage};
use super::server_state::{ServerState, stopped};
use super::subscriptions::Subscriptions;
use super::upgrade_terms::UpgradeTerms;
use crate::service::{Caller, INTERNAL_ERROR, ReservedReply};

/// Pause before the refusal of a message that exceeds the limits of its key. During the pause the message counts in
/// [`IN_FLIGHT`], so that a client which sends messages without end does not use up processor time.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Messages of one connection that are answered at the same time. Beyond them the server stops reading, so that a client that
/// sends too many is slowed down and its messages are not buffered.
const IN_FLIGHT: usize = 16;

/// Most messages in the queue of the sending side. Beyond them, tasks with an answer and polls of subscriptions wait.
const QUEUED: usize = 64;

/// Close code "try again later" (RFC 6455 registry), for limits that the connection exceeded.
const TRY_AGAIN_LATER: u16 = 1013;
/// The time between two checks whether a client has received enough of its answers to read its next message.
const UNSENT_PAUSE: Duration = Duration::from_millis(20);
/// The time between two checks whether a client has received all of its answers, while the server stops.
const LAST_PAUSE: Duration = Duration::from_millis(2);

/// The reason why a connection ends.
enum End {
    /// The client closed the connection or is gone.
    Gone,
    /// The server closes the connection with this code and reason.
    Close(u16, &'static str),
    /// The client lost the right to use the connection, for this reason; the text is the last message to the client.
    Refuse(&'static str, String),
}

/// Serves a connection until it ends.
pub(crate) async fn run(
    socket: WebSocket,
    shared: ServerState,
    connection: Arc<ClientConnection>,
    caller: Arc<Caller>,
    (terms, key): (UpgradeTerms, Option<Arc<PresentedKey>>),
) {
    let (sink, stream) = socket.split();
    let (answers, queue) = mpsc::channel(QUEUED);
    let mut frames = Frames::new(sink);
    let limits = &shared.limits;
    let subscriptions =
        Subscriptions::new(shared.service.clone(), limits.subscriptions, connection.clone(), &caller);
    let served = async {
        tokio::select! {
            end = read(stream, &shared, &connection, &subscriptions, &key, answers.clone()) => end,
            reason = subscriptions.notify(answers) => End::Close(TRY_AGAIN_LATER, reason),
            end = write(&mut frames, queue, limits.ping_interval) => end,
            () = connection.stalled(limits.write_timeout) => {
                End::Close(TRY_AGAIN_LATER, "client does not read its answers")
            }
            () = connection.message_overdue(limits.body_timeout) => {
                End::Close(TRY_AGAIN_LATER, "message took too long")
            }
            () = connection.close_requested() => {
                End::Close(TRY_AGAIN_LATER, "idle while other connections need the place")
            }
        }
    };
    // Biased, so that events that end a right are seen first: no message that is read after a change is answered by the rules
    // before the change.
    let end = tokio::select! {
        biased;
        end = rights_end(&terms, key.as_deref(), &shared, &connection) => end,
        end = served => end,
    };
    let close = match end {
        End::Gone => None,
        End::Close(code, reason) => Some((code, reason)),
        End::Refuse(reason, last) => {
            frames.last(text(&connection, last, Reservation::default()).await).await;
            Some((close_code::POLICY, reason))
        }
    };
    if let Some((code, reason)) = close {
        debug!(code, reason, "closing websocket");
        frames.close(code, reason).await;
    }
    subscriptions.end().await;
}

/// Completes when the client loses the right to use the connection: by new rules, by its API key, or by a ban.
async fn rights_end(
    terms: &UpgradeTerms,
    key: Option<&PresentedKey>,
    shared: &ServerState,
    connection: &Arc<ClientConnection>,
) -> End {
    tokio::select! {
        text = terms.revoked(shared, connection, key) => {
            End::Refuse("the rules for pages, hosts or proxies have changed", text)
        }
        text = revoked(key) => End::Refuse("the API key may not be used", text),
        () = banned(shared, connection) => End::Close(close_code::POLICY, "the client address is banned"),
    }
}

/// Completes when the client's API key may not be used any more.
async fn revoked(key: Option<&PresentedKey>) -> String {
    match key {
        Some(key) => key.revoked().await,
        None => std::future::pending().await,
    }
}

/// Completes when the client's address is banned.
async fn banned(shared: &ServerState, connection: &ClientConnection) {
    match &shared.bans {
        Some(bans) => bans.banned(connection.client().address).await,
        None => std::future::pending().await,
    }
}

/// Sends answers and pings until sending fails.
async fn write(frames: &mut Frames, mut queue: mpsc::Receiver<Outgoing>, ping_interval: Duration) -> End {
    let mut pings = tokio::time::interval_at(tokio::time::Instant::now() + ping_interval, ping_interval);
    loop {
        let sent = tokio::select! {
            outgoing = queue.recv() => match outgoing {
                Some(outgoing) => frames.send(outgoing).await,
                // The reader has ended and dropped its sender; its result decides how the connection ends.
                None => return std::future::pending().await,
            },
            _ = pings.tick() => frames.ping().await,
        };
        if !sent {
            return End::Gone;
        }
    }
}

/// Reads messages and answers each in its own task, as many at the same time as the limits allow.
async fn read(
    mut stream: SplitStream<WebSocket>,
    shared: &ServerState,
    connection: &Arc<ClientConnection>,
    subscriptions: &Arc<Subscriptions>,
    key: &Option<Arc<PresentedKey>>,
    answers: mpsc::Sender<Outgoing>,
) -> End {
    let slots = Arc::new(Semaphore::new(IN_FLIGHT));
    let mut tasks = JoinSet::new();
    let mut stop = shared.stop.clone();
    loop {
        let next = tokio::select! {
            next = next_frame(&mut stream, &slots, shared, connection) => next,
            () = stopped(&mut stop) => return finish(tasks, connection, shared.limits.drain_timeout).await,
        };
        let (slot, bytes) = match next {
            Ok((slot, Message::Text(text))) => (slot, Bytes::from(text).into()),
            // Some client libraries send binary frames; the reference node reads them as text.
            Ok((slot, Message::Binary(bytes))) => (slot, bytes.into()),
            Ok((_, control)) => {
                respond_to_control(control, connection, &answers).await;
                continue;
            }
            Err(end) => return end,
        };
        // Removes the tasks that have ended.
        while tasks.try_join_next().is_some() {}
        let (subscriptions, key, answers) = (subscriptions.clone(), key.clone(), answers.clone());
        let shared = shared.clone();
        let (connection, reserved, work) = (connection.clone(), connection.message(), connection.work());
        tasks.spawn(async move {
            let answered = answer(&shared, &subscriptions, key.as_deref(), bytes).await;
            drop(reserved);
            let (body, budget, effects) = written(answered, &shared, &subscriptions).await;
            if let Some(body) = body {
                let _ = answers.send(text(&connection, body, budget).await).await;
            }
            subscriptions.begin(&effects);
            drop(work);
            drop(slot);
        });
    }
}

/// Reads a message or a control frame, once fewer than [`IN_FLIGHT`] messages are being answered and the client has received
/// enough of its answers. Returns it with one of these slots.
async fn next_frame(
    stream: &mut SplitStream<WebSocket>,
    slots: &Arc<Semaphore>,
    shared: &ServerState,
    connection: &ClientConnection,
) -> Result<(OwnedSemaphorePermit, Message), End> {
    let slot = slots.clone().acquire_owned().await.map_err(|_| End::Gone)?;
    while connection.unsent() > shared.limits.websocket_unsent {
        tokio::time::sleep(UNSENT_PAUSE).await;
    }
    match timeout(shared.limits.websocket_silence, stream.next()).await {
        Err(_) => Err(End::Close(close_code::AWAY, "no sign of life")),
        Ok(None) => Err(End::Gone),
        Ok(Some(Err(failure))) => Err(failed(failure)),
        Ok(Some(Ok(message))) => Ok((slot, message)),
    }
}

/// Counts a control frame, and answers a ping. The library answers close frames while the next message is awaited.
async fn respond_to_control(
    frame: Message,
    connection: &Arc<ClientConnection>,
    answers: &mpsc::Sender<Outgoing>,
) {
    match frame {
        // The queue limits the pings of a client that does not read: the library stores the response to each ping until it is sent.
        Message::Ping(payload) => {
            connection.control_frame(payload.len());
            let _ = answers.send(pong(connection, payload)).await;
        }
        Message::Pong(payload) => connection.control_frame(payload.len()),
        _ => {}
    }
}

/// Writes an answer. Returns its text, the reservation of the answer budget for it, and the effects of the message, such as new
/// subscriptions.
async fn written(
    answered: Result<ReservedReply, RefusedMessage>,
    shared: &ServerState,
    subscriptions: &Subscriptions,
) -> (Option<String>, Reservation, Vec<Effect>) {
    match answered {
        Ok(ReservedReply { reply: Some(reply), reserved, .. }) => {
            let effects = reply.effects().collect();
            let owner = CallerId::of(subscriptions.caller()).quota_owner();
            (outgoing::write(reply, owner, shared.counts.limits.work()).await, reserved, effects)
        }
        // Answers in pieces are made for HTTP only.
        Ok(ReservedReply { reply: None, .. }) => (None, Reservation::default(), Vec::new()),
        Err(refused) => (Some(refused.body()), Reservation::default(), Vec::new()),
    }
}

/// Waits until the messages that have been read are answered and their answers are sent, because the server stops. A
/// tenth of the time that the server gives to open requests is left for the close frame.
async fn finish(mut tasks: JoinSet<()>, connection: &ClientConnection, limit: Duration) -> End {
    let finished = async {
        while tasks.join_next().await.is_some() {}
        while connection.unsent() > 0 {
            tokio::time::sleep(LAST_PAUSE).await;
        }
    };
    let _ = timeout(limit - limit / 10, finished).await;
    End::Close(close_code::AWAY, "server is stopping")
}

/// Answers a message, if the client's API key allows it.
async fn answer(
    shared: &ServerState,
    subscriptions: &Subscriptions,
    key: Option<&PresentedKey>,
    message: Vec<u8>,
) -> Result<ReservedReply, RefusedMessage> {
    let began = Instant::now();
    let Some(message) = read_message(shared, subscriptions.caller(), message).await else {
        return Ok(ReservedReply::failed(Id::Unknown, INTERNAL_ERROR, "Internal server error"));
    };
    let timer = shared.counts.metrics.messages.start(&message, began);
    if let Some(key) = key
        && let Err(refused) = key.charge(&message).await
    {
        shared.counts.metrics.rejected(refused.rejection());
        timer.refused();
        tokio::time::sleep(REFUSED_PAUSE).await;
        return Err(refused);
    }
    let answered = subscriptions.answer(message).await;
    timer.end(answered.reply.as_ref());
    Ok(answered)
}

/// The close code for a message that could not be read.
fn failed(failure: tungstenite::Error) -> End {
    match failure {
        tungstenite::Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            End::Close(close_code::SIZE, "message too large")
        }
        tungstenite::Error::Utf8(_) => End::Close(close_code::INVALID, "text frame is not UTF-8"),
        tungstenite::Error::Protocol(_) => End::Close(close_code::PROTOCOL, "protocol error"),
        _ => End::Gone,
    }
}
