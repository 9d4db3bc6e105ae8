//! Every limit of the server in one place.

use std::time::Duration;

/// Sizes, counts and times the server holds clients to.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest request body and longest (assembled) WebSocket message, bytes. The reference node's
    /// default, 5 MiB.
    pub message_bytes: usize,
    /// Longest WebSocket frame, bytes. The reference closes at 64 KiB, which large batches of
    /// contract deployments exceed.
    pub frame_bytes: usize,
    /// Open connections (both kinds). More wait until one of them ends, or is told to leave since it is idle.
    pub connections: usize,
    /// Open WebSocket connections, which live long; more get HTTP 503, unless an idle one of an address that has more
    /// of them can leave.
    pub websockets: usize,
    /// Requests of one WebSocket connection worked on at the same time; reading stops there, so
    /// a client that floods is slowed instead of buffered.
    pub websocket_in_flight: usize,
    /// Answers waiting for one slow WebSocket reader.
    pub websocket_queue: usize,
    /// Bytes of answers waiting for it beyond which no more of its messages are read.
    pub websocket_unsent: usize,
    /// Subscriptions of one WebSocket connection.
    pub subscriptions: usize,
    /// Interval at which subscriptions are looked after even where nothing is known to have changed: what could not
    /// be proven is tried again.
    pub subscription_interval: Duration,
    /// A client that takes less than 256 KiB of its answers in this time, and not all of them, is dropped (close code
    /// 1013). While others wait for the bytes, a second counts in place of it.
    pub write_timeout: Duration,
    /// Interval of WebSocket pings.
    pub ping_interval: Duration,
    /// A WebSocket that sent nothing, not even a pong, for this long is gone.
    pub websocket_silence: Duration,
    /// Time to send a request's head; also how long an idle kept-alive connection stays open.
    pub head_timeout: Duration,
    /// Time to send a request's body.
    pub body_timeout: Duration,
    /// How long open requests may go on after a stop signal.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 5 * 1024 * 1024,
            frame_bytes: 1024 * 1024,
            connections: 4096,
            websockets: 1024,
            websocket_in_flight: 16,
            websocket_queue: 64,
            websocket_unsent: 1024 * 1024,
            subscriptions: 100,
            subscription_interval: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(30),
            websocket_silence: Duration::from_secs(90),
            head_timeout: Duration::from_secs(20),
            body_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(5),
        }
    }
}
