//! Limits of messages, connections and times for the clients of a server. Limits of logs and filters are in `src/engine` of the
//! core, those of memory in `native/limits/src/limits.rs`, those of long runs in `native/limits/src/runs.rs`.

use std::time::Duration;

use rootlight::rpc::envelope::BATCH_LIMIT;

/// The limits of sizes, counts and times for clients.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Longest request body and longest assembled WebSocket message, in bytes. The reference node's default is 5 MiB
    /// too.
    pub message_bytes: usize,
    /// Most calls of a batch. The work of a batch is limited by time and its results by bytes, like those of a single call.
    pub batch: usize,
    /// Open connections that are not WebSockets. Further ones wait until another ends or an idle one is closed.
    pub connections: usize,
    /// Open WebSocket connections, which last long. Further ones get HTTP 503, unless an idle one of an address with
    /// more of them can be closed.
    pub websockets: usize,
    /// Open WebSocket connections of one API key. Further ones get HTTP 429.
    pub websockets_per_key: usize,
    /// Bytes of queued answers for one WebSocket client beyond which the server stops reading its messages.
    pub websocket_unsent: usize,
    /// Subscriptions of one WebSocket connection.
    pub subscriptions: usize,
    /// The server closes the connection of a client that receives neither all of its answers nor 256 KiB of them in
    /// this time (close code 1013). The time is one second while other clients wait for bytes of the answer budget.
    pub write_timeout: Duration,
    /// Interval of WebSocket pings.
    pub ping_interval: Duration,
    /// Time without any frame, not even a pong, after which a WebSocket connection is closed.
    pub websocket_silence: Duration,
    /// Time limit for a request's head; also how long an idle keep-alive connection stays open.
    pub head_timeout: Duration,
    /// Time limit for a request's body.
    pub body_timeout: Duration,
    /// How long open requests may continue after a stop signal.
    pub drain_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes: 5 * 1024 * 1024,
            batch: BATCH_LIMIT,
            connections: 4096,
            websockets: 1024,
            websockets_per_key: 100,
            websocket_unsent: 1024 * 1024,
            subscriptions: 100,
            write_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(30),
            websocket_silence: Duration::from_secs(90),
            head_timeout: Duration::from_secs(20),
            body_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(5),
        }
    }
}
