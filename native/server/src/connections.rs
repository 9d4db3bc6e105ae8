//! Accepts connections, gives each a slot, and serves each until it ends: TLS handshake, then requests of HTTP/1.1, which
//! `http.rs` answers. A WebSocket continues in `ws.rs`.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::{Sleep, Timer};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rootlight_limits::processors;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use super::connection_slots::{ClientConnection, ConnectionSlots};
use super::http;
use super::metered::{Metered, Stream};
use super::server_state::{ServerState, stopped};
use super::sockets::Listener;
use crate::metrics::{GaugeGuard, Rejection};

/// Pause after a failed `accept`, such as for lack of file descriptors, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The number of bytes buffered for a connection besides bodies; also the longest request head.
const BUFFER_BYTES: usize = 16 * 1024;

/// The parts that serve the connections of all listeners.
#[derive(Clone)]
pub(super) struct Connections {
    pub(super) shared: Arc<ServerState>,
    pub(super) slots: Arc<ConnectionSlots>,
    pub(super) tls: Option<TlsAcceptor>,
}

/// A reason for the server to end a connection.
enum Signal {
    /// The server stops: the connection ends after the request that is being answered.
    Stop,
    /// The client does not read its answers.
    Stalled,
    /// Another connection needs the slot.
    Close,
}

impl Connections {
    /// Accepts connections for ever, and serves each one once there is a slot for it.
    pub(super) async fn accept(&self, listener: &Listener) {
        // This thread serves connections.
        processors::join_serving_threads();
        loop {
            match listener.accept().await {
                // The connection of a banned client is closed without a word, and takes no slot.
                Ok((_, Some(address))) if self.shared.is_banned(address) => {}
                Ok((stream, address)) => {
                    let connection = ClientConnection::new(address, &self.shared.counts);
                    let slot = self.slots.enter(&connection).await;
                    let connections = self.clone();
                    tokio::spawn(async move {
                        let open = GaugeGuard::one(&connections.shared.counts.metrics.connections);
                        if let Some(stream) = connections.secured(stream, &connection).await {
                            connections.serve(stream, connection).await;
                        }
                        drop((slot, open));
                    });
                }
                Err(failure) => {
                    debug!(%failure, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Does the TLS handshake, if the server has a certificate and the client does not use a Unix socket. It has the same
    /// time limit as the head of a request.
    async fn secured(
        &self,
        stream: Box<dyn Stream>,
        connection: &ClientConnection,
    ) -> Option<Box<dyn Stream>> {
        let Some(acceptor) = self.tls.as_ref().filter(|_| !connection.is_unix) else { return Some(stream) };
        let mut stop = self.shared.stop.clone();
        // Boxed, because connections without TLS need not keep memory for it.
        let shaken = tokio::select! {
            shaken = timeout(self.shared.limits.head_timeout, Box::pin(acceptor.accept(stream))) => shaken,
            () = connection.close_requested() => return None,
            () = stopped(&mut stop) => return None,
        };
        match shaken {
            Ok(Ok(stream)) => return Some(Box::new(stream)),
            Ok(Err(failure)) => debug!(%failure, "TLS handshake failed"),
            Err(_) => debug!("TLS handshake took too long"),
        }
        self.shared.counts.metrics.rejected(Rejection::Handshake);
        None
    }

    /// Answers the requests of a connection until it ends or becomes a WebSocket.
    async fn serve(&self, stream: Box<dyn Stream>, connection: Arc<ClientConnection>) {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(HeadTimer::default()).header_read_timeout(self.shared.limits.head_timeout);
        // A client may end its side after its last request, and wait for the answer.
        builder.max_buf_size(BUFFER_BYTES).half_close(true);
        let (shared, client) = (self.shared.clone(), connection.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (shared, client) = (shared.clone(), client.clone());
            let mut request = request.map(Body::new);
            // Boxed, because hyper keeps the memory for this future as long as the connection is open.
            Box::pin(async move { Ok::<_, Infallible>(http::handle(&shared, &client, &mut request).await) })
        });
        let io = TokioIo::new(Metered::new(stream, connection.clone()));
        let exchange = builder.serve_connection(io, service).with_upgrades();
        tokio::pin!(exchange);
        // The set polls a signal only when that signal has come, and not with each request.
        let mut signals = FuturesUnordered::from_iter([self.signal(&connection, false)]);
        loop {
            tokio::select! {
                biased;
                ended = exchange.as_mut() => {
                    return if let Err(failure) = ended {
                        debug!(%failure, "connection ended");
                    };
                }
                Some(signal) = signals.next() => match signal {
                    Signal::Stop => {
                        exchange.as_mut().graceful_shutdown();
                        signals.push(self.signal(&connection, true));
                    }
                    Signal::Stalled => return debug!("a client does not read its answers"),
                    Signal::Close => return,
                },
            }
        }
    }

    /// Completes when the server has a reason to end a connection. While the server stops, only a client that does not read its
    /// answers is such a reason: the connection ends by itself after the request that is being answered.
    async fn signal(&self, connection: &ClientConnection, is_stopping: bool) -> Signal {
        let mut stop = self.shared.stop.clone();
        tokio::select! {
            () = stopped(&mut stop), if !is_stopping => Signal::Stop,
            () = connection.stalled(self.shared.limits.write_timeout) => Signal::Stalled,
            () = connection.close_requested(), if !is_stopping => Signal::Close,
        }
    }
}

/// The timer of one connection. Hyper makes a sleep for each request and drops it when the head has come. All sleeps of the
/// connection share one entry of the runtime's timers, because making and removing an entry takes the lock of all timers. The
/// entry fires at the end of the earliest sleep, and is then moved to the end of the present one.
#[derive(Clone, Default)]
pub(super) struct HeadTimer(Arc<Mutex<Option<Pin<Box<tokio::time::Sleep>>>>>);

/// One sleep of hyper, until `end`.
struct HeadSleep {
    end: Instant,
    timer: HeadTimer,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, end: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HeadSleep { end, timer: self.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let end = self.end.into();
        let mut entry = self.timer.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entry.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if entry.deadline() > end {
            entry.as_mut().reset(end);
        }
        while entry.as_mut().poll(context).is_ready() {
            // The entry may have fired for an earlier request, whose limit comes sooner.
            if entry.deadline() >= end {
                return Poll::Ready(());
            }
            entry.as_mut().reset(end);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_sleep_ends_at_its_own_time() {
        let timer = HeadTimer::default();
        let start = timer.now();
        let elapsed = || timer.now() - start;
        let second = Duration::from_secs(1);
        let first = timer.sleep(20 * second);
        assert!(tokio::time::timeout(15 * second, first).await.is_err());
        timer.sleep(20 * second).await;
        assert_eq!(elapsed(), 35 * second, "it does not end with the first");
        timer.sleep_until(start + 36 * second).await;
        let longer = timer.sleep(20 * second);
        assert!(tokio::time::timeout(second, longer).await.is_err());
        timer.sleep(2 * second).await;
        assert_eq!(elapsed(), 39 * second, "an earlier end than the one before");
    }
}
