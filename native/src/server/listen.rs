//! Listening, connections and graceful shutdown.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::key_sockets::KeySockets;
use super::metered::Metered;
use super::places::{ClientConnection, Places, Ticket};
use super::shared::{Shared, stopped};
use super::{Access, Entry, Limits, Origins, http};
use crate::processors;
use crate::runs::Runs;
use crate::service::{Peer, SharedService};

/// Pause after a failed `accept` (out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The number of bytes buffered for a connection besides bodies; also the longest request head.
const BUFFER_BYTES: usize = 16 * 1024;

/// Configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Host name or address to bind.
    pub host: String,
    /// Port for HTTP and WebSocket; 0 picks a free one.
    pub http_port: u16,
    /// A second port for the same service. Tools made for the reference node expect WebSocket on port 4445.
    pub ws_port: Option<u16>,
    /// The web pages that may call.
    pub origins: Origins,
    /// Host names, in lower case, that the `Host` header may contain besides `localhost`, IP addresses and `host`.
    pub hosts: Vec<String>,
    /// Limits of sizes, counts and times.
    pub limits: Limits,
    /// Profile, base path and API keys.
    pub entry: Entry,
}

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is in use, does not belong to this machine, or is not valid.
    #[error("cannot listen on {host}:{port}: {source}")]
    Bind {
        /// The configured host.
        host: String,
        /// The configured port.
        port: u16,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A server that has bound its ports and does not accept connections yet.
pub struct Server {
    main: TcpListener,
    second: Option<TcpListener>,
    address: SocketAddr,
    shared: Shared,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Binds the ports.
    pub async fn bind(config: ServerConfig, service: SharedService) -> Result<Self, ServerError> {
        let (main, address) = bind(&config.host, config.http_port).await?;
        let second = match config.ws_port {
            Some(port) => Some(bind(&config.host, port).await?.0),
            None => None,
        };
        let (stop, stopped) = watch::channel(false);
        if !is_loopback(address.ip()) && config.entry.keys.is_none() {
            warn!("{}", exposed(address));
        }
        let mut hosts = config.hosts;
        hosts.push(config.host.to_ascii_lowercase());
        let access = Access { origins: config.origins, hosts };
        let shared = Shared {
            service,
            access: Arc::new(access),
            entry: Arc::new(config.entry),
            websockets: Places::new(config.limits.websockets),
            limits: Arc::new(config.limits),
            key_sockets: KeySockets::default(),
            compressions: Runs::without_pauses(),
            stop: stopped,
        };
        Ok(Self { main, second, address, shared, stop })
    }

    /// The address of the port for HTTP and WebSocket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the second port; `None` if there is none.
    #[must_use]
    pub fn second_address(&self) -> Option<SocketAddr> {
        self.second.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// The line that the program prints when it accepts connections; scripts wait for it.
    #[must_use]
    pub fn ready_line(&self) -> String {
        format!("listening http://{0} ws://{0}", self.address)
    }

    /// Serves until `stop` completes, then waits for open requests to finish.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { main, second: second_listener, shared, stop: stopping, .. } = self;
        let router = Router::new().fallback(http::handle).with_state(shared.clone());
        let connections = Connections {
            router,
            places: Places::new(shared.limits.connections),
            limits: shared.limits.clone(),
            stop: shared.stop.clone(),
        };
        let second = second_listener.as_ref();
        tokio::select! {
            () = stop => {}
            () = connections.accept(&main) => {}
            () = connections.accept_second(second) => {}
        }
        info!("stopping: no new connections, open requests may finish");
        drop(main);
        drop(second_listener);
        let _ = stopping.send(true);
        let drained = tokio::time::timeout(shared.limits.drain_timeout, async {
            connections.places.empty().await;
            shared.websockets.empty().await;
        });
        if drained.await.is_err() {
            warn!("some connections did not finish in time");
        }
    }
}

struct Connections {
    router: Router,
    places: Arc<Places>,
    limits: Arc<Limits>,
    stop: watch::Receiver<bool>,
}

impl Connections {
    /// Accepts connections and serves each one once there is a place for it.
    async fn accept(&self, listener: &TcpListener) {
        processors::join();
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    let connection = ClientConnection::new(Peer::new(address.ip()));
                    let ticket = self.places.enter(&connection).await;
                    self.serve(stream, connection, ticket);
                }
                Err(failure) => {
                    debug!(%failure, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn accept_second(&self, listener: Option<&TcpListener>) {
        match listener {
            Some(listener) => self.accept(listener).await,
            None => std::future::pending().await,
        }
    }

    fn serve(&self, stream: TcpStream, connection: Arc<ClientConnection>, ticket: Ticket) {
        // Disables Nagle's algorithm, because answers are small and latency matters. A failure only costs speed.
        let _ = stream.set_nodelay(true);
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(self.limits.head_timeout);
        builder.max_buf_size(BUFFER_BYTES);
        let service = TowerToHyperService::new(self.router.clone().layer(Extension(connection.clone())));
        let io = TokioIo::new(Metered::new(stream, connection.clone()));
        let exchange = builder.serve_connection(io, service).with_upgrades();
        let (mut stop, write_timeout) = (self.stop.clone(), self.limits.write_timeout);
        tokio::spawn(async move {
            tokio::pin!(exchange);
            let ended = tokio::select! {
                ended = exchange.as_mut() => ended,
                () = stopped(&mut stop) => {
                    exchange.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = exchange => ended,
                        () = connection.stalled(write_timeout) => Ok(()),
                    }
                }
                () = connection.stalled(write_timeout) => {
                    debug!("a client does not read its answers");
                    Ok(())
                }
                () = connection.close_requested() => Ok(()),
            };
            if let Err(failure) = ended {
                debug!(%failure, "connection ended");
            }
            drop(ticket);
        });
    }
}

async fn bind(host: &str, port: u16) -> Result<(TcpListener, SocketAddr), ServerError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let failed = |source| ServerError::Bind { host: host.to_owned(), port, source };
    let listener = TcpListener::bind((bare, port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// The warning for addresses that other machines can reach.
fn exposed(address: SocketAddr) -> String {
    format!(
        "LISTENING ON {address}: every machine that reaches this address may call every method without a \
         password, and may use the keys of a development chain. The Host header of requests must be an IP address or \
         a name given by --allow-host."
    )
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
