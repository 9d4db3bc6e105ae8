//! One WebSocket connection: messages in, answers out, pings, and the end of slow consumers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{close_code, CloseFrame, Message, WebSocket};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::sync::{mpsc, Semaphore};
use tokio::time::{timeout, Instant};
use tracing::debug;
use tungstenite::error::CapacityError;

use super::listen::{stopped, Shared};
use super::subscriptions::Subscriptions;
use crate::service::Caller;

/// Close code "try again later" (RFC 6455 registry), for clients that do not read.
const TRY_AGAIN_LATER: u16 = 1013;
/// Time for a close frame to leave before the connection is cut.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a connection ends.
enum End {
    /// The client closed it or went away.
    Gone,
    /// We close it, with this code and reason.
    Close(u16, &'static str),
}

/// Serves a connection to its end.
pub(crate) async fn run(socket: WebSocket, shared: Shared, caller: Caller) {
    let (sink, stream) = socket.split();
    let (answers, queue) = mpsc::channel(shared.limits.websocket_queue);
    let mut stop = shared.stop.clone();
    let mut sink = Writer { sink, limit: shared.limits.write_timeout };
    let subscriptions = Subscriptions::new(shared.service.clone(), shared.limits.clone(), caller);
    let end = tokio::select! {
        end = read(stream, &shared, &subscriptions, answers.clone()) => end,
        reason = subscriptions.notify(answers) => End::Close(TRY_AGAIN_LATER, reason),
        end = sink.write(queue, shared.limits.ping_interval) => end,
        () = stopped(&mut stop) => End::Close(close_code::AWAY, "server is stopping"),
    };
    if let End::Close(code, reason) = end {
        debug!(code, reason, "closing websocket");
        let frame = CloseFrame { code, reason: reason.into() };
        let _ = timeout(CLOSE_TIMEOUT, sink.sink.send(Message::Close(Some(frame)))).await;
        let _ = timeout(CLOSE_TIMEOUT, sink.sink.close()).await;
    }
    subscriptions.end().await;
}

struct Writer {
    sink: SplitSink<WebSocket, Message>,
    limit: Duration,
}

impl Writer {
    /// Sends answers and pings until the client stops taking them.
    async fn write(&mut self, mut queue: mpsc::Receiver<Message>, ping_interval: Duration) -> End {
        let mut pings = tokio::time::interval_at(Instant::now() + ping_interval, ping_interval);
        loop {
            let message = tokio::select! {
                message = queue.recv() => match message {
                    Some(message) => message,
                    // The reader holds the sender as long as it runs; it decides how this ends.
                    None => return std::future::pending().await,
                },
                _ = pings.tick() => Message::Ping(Vec::new().into()),
            };
            match timeout(self.limit, self.sink.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return End::Gone,
                Err(_) => return End::Close(TRY_AGAIN_LATER, "client does not read its answers"),
            }
        }
    }
}

/// Takes messages; each is answered by its own task, as many at a time as the limits allow.
async fn read(
    mut stream: SplitStream<WebSocket>,
    shared: &Shared,
    subscriptions: &Arc<Subscriptions>,
    answers: mpsc::Sender<Message>,
) -> End {
    let slots = Arc::new(Semaphore::new(shared.limits.websocket_in_flight));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return End::Gone };
        let message = match timeout(shared.limits.websocket_silence, stream.next()).await {
            Err(_) => return End::Close(close_code::AWAY, "no sign of life"),
            Ok(None) => return End::Gone,
            Ok(Some(Err(failure))) => return failed(failure),
            Ok(Some(Ok(message))) => message,
        };
        let bytes = match message {
            Message::Text(text) => text.as_bytes().to_vec(),
            // Clients in some languages send everything as binary; the reference reads it as text.
            Message::Binary(bytes) => bytes.to_vec(),
            // The library answers pings, and echoes a close frame while the next message is awaited.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) => continue,
        };
        while tasks.try_join_next().is_some() {}
        let (subscriptions, answers) = (subscriptions.clone(), answers.clone());
        tasks.spawn(async move {
            let (body, made) = subscriptions.answer(bytes).await;
            if let Some(text) = body {
                let text = String::from_utf8_lossy(&text).into_owned();
                let _ = answers.send(Message::Text(text.into())).await;
            }
            subscriptions.begin(made);
            drop(slot);
        });
    }
}

/// The close code for a message that could not be read.
fn failed(failure: axum::Error) -> End {
    match failure.into_inner().downcast::<tungstenite::Error>().map(|inner| *inner) {
        Ok(tungstenite::Error::Capacity(CapacityError::MessageTooLong { .. })) => {
            End::Close(close_code::SIZE, "message too large")
        }
        Ok(tungstenite::Error::Utf8(_)) => End::Close(close_code::INVALID, "text frame is not UTF-8"),
        Ok(tungstenite::Error::Protocol(_)) => End::Close(close_code::PROTOCOL, "protocol error"),
        _ => End::Gone,
    }
}
