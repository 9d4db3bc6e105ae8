//! The server as a whole: binding its listeners, changing its settings while it runs, and graceful shutdown. `connections.rs`
//! serves the connections.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures::future::join_all;
use rootlight_limits::io_words::{of_connection, of_path};
use rootlight_limits::runs::RunQueue;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{error, info, warn};

use super::connection_slots::ConnectionSlots;
use super::connections::Connections;
use super::key_sockets::KeySockets;
use super::server_state::{ReloadableSettings, ServerState};
use super::sockets::{Inherited, Listen, Listener};
use super::tls::{Certificates, TlsError};
use super::{Access, AdmissionRules, Operations, Origins, Proxies, ServerLimits, observer};
use crate::bans::HostBans;
use crate::metrics::Started;
use crate::service::{Counts, SharedService};

/// Configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Host name or address to bind. The host and `http_port` do not count if `operations` has addresses to listen on, or if
    /// the server takes over sockets.
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
    pub limits: ServerLimits,
    /// Profile, base path and API keys.
    pub admission: AdmissionRules,
    /// Settings for operators.
    pub operations: Operations,
}

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum ServerError {
    /// The address is in use, does not belong to this machine, or is not valid.
    #[error("cannot listen on {address}: {}", bind_failure(address, .source))]
    Bind { address: String, source: io::Error },
    /// The certificate cannot be used.
    #[error("TLS (--tls-cert, --tls-key): {0}")]
    Tls(#[from] TlsError),
}

/// A server that has bound its ports and does not accept connections yet.
pub struct Server {
    /// All listeners but that for metrics.
    listeners: Vec<Listener>,
    /// The address of the listener at `ServerConfig::ws_port`, which is one of `listeners`.
    second: Option<SocketAddr>,
    /// The listener for metrics and probes.
    metrics: Option<TcpListener>,
    tls: Option<TlsAcceptor>,
    shared: ServerState,
    control: Control,
    /// Tells all connections to stop.
    stop: watch::Sender<bool>,
}

impl Server {
    /// Binds the ports.
    pub async fn bind(config: ServerConfig, service: SharedService) -> Result<Self, ServerError> {
        Self::bind_with(config, service, Vec::new()).await
    }

    /// Does what [`Self::bind`] does, and also serves listening sockets that the process was started with (`inherited`).
    pub async fn bind_with(
        config: ServerConfig,
        service: SharedService,
        inherited: Vec<Inherited>,
    ) -> Result<Self, ServerError> {
        let operations = &config.operations;
        let certificates = operations.tls.as_ref().map(Certificates::load).transpose()?;
        let tls = certificates.as_ref().map(Certificates::acceptor).transpose()?;
        let (listeners, second) = listeners(&config, inherited).await?;
        warn_of_exposure(&config, &listeners);
        let metrics = match operations.metrics {
            Some(address) => Some(observer::bind(address).await.map_err(failed(address))?),
            None => None,
        };
        let (stop, stopped) = watch::channel(false);
        let mut hosts = config.hosts;
        hosts.push(config.host.to_ascii_lowercase());
        let access = Access { origins: config.origins, hosts };
        let bans = service.bans();
        if let Some(bans) = &bans {
            bans.trust(config.operations.proxies.networks.clone());
        }
        let settings = ReloadableSettings { access, proxies: config.operations.proxies };
        let live = watch::Sender::new(Arc::new(settings));
        let shared = ServerState {
            bans: bans.clone(),
            counts: service.counts(),
            service,
            live: live.clone(),
            admission: Arc::new(config.admission),
            page: config.operations.page,
            sourcify: config.operations.sourcify,
            websockets: ConnectionSlots::new(config.limits.websockets),
            limits: Arc::new(config.limits),
            key_sockets: KeySockets::default(),
            reads: RunQueue::for_work_without_pauses(),
            compressions: RunQueue::for_work_without_pauses(),
            rests: Arc::default(),
            started: Started::now(),
            stop: stopped,
        };
        let control = Control { live, certificates, host: config.host, bans };
        Ok(Self { listeners, second, metrics, tls, shared, control, stop })
    }

    /// The state that connections of this server would share.
    #[cfg(test)]
    pub(super) fn into_shared(self) -> ServerState {
        self.shared
    }

    /// The limits and metrics that the service and the connections share.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// The address of the first TCP listener; 0.0.0.0 with port 0 if there are only Unix sockets.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let first = self.listeners.iter().find_map(Listener::address);
        first.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
    }

    /// The address of the second port; `None` if there is none.
    #[must_use]
    pub fn second_address(&self) -> Option<SocketAddr> {
        self.second
    }

    /// The address of the listener for metrics; `None` if there is none.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// The URLs of a listener: for HTTP and for WebSocket, or the path of a Unix socket.
    fn urls(&self, listener: &Listener) -> String {
        let tls = if self.has_tls() { "s" } else { "" };
        match (listener.address(), listener.path()) {
            (Some(address), _) => format!("http{tls}://{address} ws{tls}://{address}"),
            (None, Some(path)) => format!("unix:{}", path.display()),
            (None, None) => "unix:".to_owned(),
        }
    }

    /// The line that the program prints when it accepts connections; scripts wait for it. It names the first listener.
    #[must_use]
    pub fn ready_line(&self) -> String {
        let first = self.listeners.first().map(|listener| self.urls(listener));
        format!("listening {}", first.unwrap_or_default())
    }

    /// The URLs of all listeners but the first.
    #[must_use]
    pub fn further(&self) -> Vec<String> {
        self.listeners.iter().skip(1).map(|listener| self.urls(listener)).collect()
    }

    /// Whether connections over TCP use TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.control.certificates.is_some()
    }

    /// Changes settings while the server runs.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Serves until `stop` completes, then waits for open requests to finish.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listeners, metrics, tls, shared, control, stop: stopping, .. } = self;
        let shared = Arc::new(shared);
        let slots = ConnectionSlots::new(shared.limits.connections);
        let connections = Connections { shared: shared.clone(), slots, tls };
        // The tasks of this set end with this function, because dropping the set aborts them.
        let mut tasks = JoinSet::new();
        if let Some(listener) = metrics {
            tasks.spawn(observer::serve(listener, shared.clone()));
        }
        if let Some(certificates) = control.certificates {
            tasks.spawn(certificates.watch());
        }
        tokio::select! {
            () = stop => {}
            // Accepting never ends.
            _ = join_all(listeners.iter().map(|listener| connections.accept(listener))) => {}
        }
        info!("stopping: no new connections, open requests may finish");
        drop(listeners);
        let _ = stopping.send(true);
        let drained = tokio::time::timeout(shared.limits.drain_timeout, async {
            connections.slots.empty().await;
            shared.websockets.empty().await;
        });
        if drained.await.is_err() {
            warn!("some connections did not finish in time");
        }
    }
}

/// Changes the settings of a running server.
#[derive(Debug, Clone)]
pub struct Control {
    /// The settings of the running server.
    live: watch::Sender<Arc<ReloadableSettings>>,
    /// The TLS certificate; `None` without TLS.
    certificates: Option<Arc<Certificates>>,
    /// The configured host name, to which requests may always be addressed.
    host: String,
    /// The bans, which never cover a trusted proxy.
    bans: Option<Arc<HostBans>>,
}

impl Control {
    /// Replaces the pages, host names and proxies. Open WebSockets that would not be admitted with the same rights end.
    pub fn set_rules(&self, origins: Origins, mut hosts: Vec<String>, proxies: Proxies) {
        hosts.push(self.host.to_ascii_lowercase());
        if let Some(warning) = origins.warning() {
            warn!("{warning}");
        }
        if let Some(bans) = &self.bans {
            bans.trust(proxies.networks.clone());
        }
        let settings = ReloadableSettings { access: Access { origins, hosts }, proxies };
        self.live.send_replace(Arc::new(settings));
    }

    /// Reads the files of the certificate again. New connections get the new certificate; if it cannot be used, the log says
    /// why, and the old certificate stays.
    pub fn reload_certificate(&self) {
        match self.certificates.as_ref().map(|certificates| certificates.reload()) {
            Some(Ok(true)) => info!("the TLS certificate was replaced"),
            Some(Err(failure)) => error!("the old TLS certificate stays in use: {failure}"),
            Some(Ok(false)) | None => {}
        }
    }
}

/// Binds the configured addresses and takes over sockets. Returns the address of the second port apart.
async fn listeners(
    config: &ServerConfig,
    inherited: Vec<Inherited>,
) -> Result<(Vec<Listener>, Option<SocketAddr>), ServerError> {
    let operations = &config.operations;
    let mut addresses = operations.listen.clone();
    if addresses.is_empty() && inherited.is_empty() {
        addresses.push(Listen::Tcp(config.host.clone(), config.http_port));
    }
    let mut listeners = Vec::new();
    for address in &addresses {
        let bound = Listener::bind(address, operations.unix_mode).await;
        listeners.push(bound.map_err(failed(address))?);
    }
    for socket in inherited {
        listeners
            .push(Listener::adopt(socket).map_err(failed("a socket of the process that started this one"))?);
    }
    let mut second = None;
    if let Some(port) = config.ws_port {
        let address = Listen::Tcp(config.host.clone(), port);
        let bound = Listener::bind(&address, operations.unix_mode).await.map_err(failed(&address))?;
        second = bound.address();
        listeners.push(bound);
    }
    Ok((listeners, second))
}

/// Warns of ports that other machines reach without a key, and of web pages that may call.
fn warn_of_exposure(config: &ServerConfig, listeners: &[Listener]) {
    for address in listeners.iter().filter_map(Listener::address) {
        if !is_loopback(address.ip()) && config.admission.keys.is_none() {
            warn!("{}", exposed(address));
        }
    }
    if let Some(warning) = config.origins.warning() {
        warn!("{warning}");
    }
}

/// Makes the error of an address that could not be bound.
fn failed(address: impl ToString) -> impl FnOnce(io::Error) -> ServerError {
    move |source| ServerError::Bind { address: address.to_string(), source }
}

/// Why an address cannot be bound, and what to do.
fn bind_failure(address: &str, failure: &io::Error) -> String {
    let words = match failure.kind() {
        _ if address.starts_with("unix:") => return of_path(failure),
        io::ErrorKind::AddrInUse => {
            "it is in use: end the other program, or choose another address (--http-port, --ws-port, --listen, \
             --metrics-listen)"
        }
        io::ErrorKind::AddrNotAvailable => "it is no address of this machine: choose one of its own (--host)",
        io::ErrorKind::PermissionDenied => {
            "this user may not listen there: choose a port from 1024 on (--http-port)"
        }
        _ => return of_connection(failure),
    };
    words.to_owned()
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
