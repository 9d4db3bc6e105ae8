//! Accepts connections, and serves each until it ends.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rootlight_limits::processors;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use super::connection_slots::{ClientConnection, ConnectionSlot, ConnectionSlots};
use super::head_timer::HeadTimer;
use super::http;
use super::metered::Metered;
use super::server_state::{ServerState, stopped};
use super::sockets::Listener;
use super::stream::Stream;
use crate::metrics::{GaugeGuard, Rejection};

/// Pause after a failed `accept` (out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The number of bytes buffered for a connection besides bodies; also the longest request head.
const BUFFER_BYTES: usize = 16 * 1024;

/// What serves the connections of all listeners.
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
    /// Another connection needs the place.
    Close,
}

impl Connections {
    /// Accepts connections for ever, and serves each one once there is a place for it.
    pub(super) async fn accept(&self, listener: &Listener) {
        processors::join();
        loop {
            match listener.accept().await {
                // A banned client learns nothing, and takes no place.
                Ok((_, Some(address))) if self.is_banned(address) => {}
                Ok((stream, address)) => {
                    let connection = match address {
                        Some(address) => ClientConnection::from(address, &self.shared.counts),
                        None => ClientConnection::over_unix(&self.shared.counts),
                    };
                    let slot = self.slots.enter(&connection).await;
                    self.spawn(stream, connection, slot);
                }
                Err(failure) => {
                    debug!(%failure, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn is_banned(&self, address: IpAddr) -> bool {
        self.shared.bans.as_ref().is_some_and(|bans| bans.is_banned(address))
    }

    fn spawn(&self, stream: Stream, connection: Arc<ClientConnection>, slot: ConnectionSlot) {
        let connections = self.clone();
        tokio::spawn(async move {
            let open = GaugeGuard::one(&connections.shared.counts.metrics.connections);
            if let Some(stream) = connections.secured(stream, &connection).await {
                connections.serve(stream, connection).await;
            }
            drop((slot, open));
        });
    }

    /// Does the TLS handshake, if the server has a certificate and the client does not use a Unix socket. It has the same
    /// time limit as the head of a request.
    async fn secured(&self, stream: Stream, connection: &ClientConnection) -> Option<Stream> {
        let (stream, acceptor) = match (stream, &self.tls) {
            (Stream::Tcp(stream), Some(acceptor)) => (stream, acceptor),
            (stream, _) => return Some(stream),
        };
        let mut stop = self.shared.stop.clone();
        // Boxed, because connections without TLS need not keep memory for it.
        let shaken = tokio::select! {
            shaken = timeout(self.shared.limits.head_timeout, Box::pin(acceptor.accept(stream))) => shaken,
            () = connection.close_requested() => return None,
            () = stopped(&mut stop) => return None,
        };
        match shaken {
            Ok(Ok(stream)) => return Some(Stream::Tls(Box::new(stream))),
            Ok(Err(failure)) => debug!(%failure, "TLS handshake failed"),
            Err(_) => debug!("TLS handshake took too long"),
        }
        self.shared.counts.metrics.rejected(Rejection::Handshake);
        None
    }

    async fn serve(&self, stream: Stream, connection: Arc<ClientConnection>) {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(HeadTimer::default()).header_read_timeout(self.shared.limits.head_timeout);
        // A client may end its side after its last request, and wait for the answer.
        builder.max_buf_size(BUFFER_BYTES).half_close(true);
        let (shared, client) = (self.shared.clone(), connection.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (shared, client) = (shared.clone(), client.clone());
            // Boxed, because hyper keeps the room for this future as long as the connection is open.
            Box::pin(async move {
                let mut request = request.map(Body::new);
                Ok::<_, Infallible>(http::handle(&shared, &client, &mut request).await)
            })
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

    /// Completes when something else than the client ends a connection.
    async fn signal(&self, connection: &ClientConnection, is_stopping: bool) -> Signal {
        let mut stop = self.shared.stop.clone();
        tokio::select! {
            () = stopped(&mut stop), if !is_stopping => Signal::Stop,
            () = connection.stalled(self.shared.limits.write_timeout) => Signal::Stalled,
            () = connection.close_requested(), if !is_stopping => Signal::Close,
        }
    }
}
