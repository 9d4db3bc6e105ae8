//! Runs the server in front of a service until a signal stops it.

use std::future::Future;
use std::sync::Arc;

use rootlight_server::keys;
use rootlight_server::service::Service;
use rootlight_server::{Control, KeyAccess, Server};
use tracing::info;

use super::admission::OpenedAdmission;
use super::error::CommandError;
use super::print::say;
#[cfg(unix)]
use super::reload::Hangups;
use super::server_args::ServerArgs;
use super::stop_signal::StopSignal;
use super::systemd;

/// Addresses of the server.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    /// URL for HTTP.
    pub(super) http: String,
    /// URLs for WebSocket.
    pub(super) websockets: Vec<String>,
}

/// A server that listens, and the background tasks of its key database.
pub(super) struct BoundServer {
    server: Server,
    // Fields are dropped in order, so the tasks of the key database end after the server.
    _keys: Option<keys::KeyTasks>,
}

/// Binds, calls `announce`, prints the ready line, and serves until Ctrl-C or SIGTERM.
pub(super) async fn serve(
    service: Arc<impl Service>,
    args: &ServerArgs,
    stop: StopSignal,
    announce: impl FnOnce(&Endpoints),
) -> Result<(), CommandError> {
    let bound = bind(service, args, args.admission.open()?).await?;
    announce(&bound.endpoints());
    bound.run(std::future::ready(()), stop).await;
    Ok(())
}

/// Binds the server. The key database is `opened` before the service starts, because another server may have it open.
pub(super) async fn bind(
    service: Arc<impl Service>,
    args: &ServerArgs,
    opened: OpenedAdmission,
) -> Result<BoundServer, CommandError> {
    bind_with(service, args, opened, None).await
}

/// Binds the server, with keys from elsewhere instead of a file.
pub(super) async fn bind_with(
    service: Arc<impl Service>,
    args: &ServerArgs,
    mut opened: OpenedAdmission,
    keys: Option<KeyAccess>,
) -> Result<BoundServer, CommandError> {
    opened.rules.keys = keys.or(opened.rules.keys.take());
    let (mut config, sockets) = (args.config(opened.rules.clone()), systemd::sockets());
    if !sockets.is_empty() {
        // systemd decides where the program listens, so the default second port for WebSocket is left out.
        config.ws_port = args.ws_port;
    }
    let server = Server::bind_with(config, service, sockets).await.map_err(CommandError::failed)?;
    Ok(BoundServer { server, _keys: opened.start()? })
}

impl BoundServer {
    /// The URLs of the server, for the banner.
    fn endpoints(&self) -> Endpoints {
        // The ready line is a word and the URLs of the first listener.
        let line = self.server.ready_line();
        let mut urls = line.split(' ').skip(1).map(str::to_owned);
        let http = urls.next().unwrap_or_default();
        // A Unix socket has one URL for HTTP and WebSocket, and so none here.
        let mut websockets: Vec<_> = urls.collect();
        let tls = if self.server.has_tls() { "s" } else { "" };
        websockets.extend(self.server.second_address().map(|second| format!("ws{tls}://{second}")));
        Endpoints { http, websockets }
    }

    /// Prints the ready line after `ready`, and serves until Ctrl-C or SIGTERM.
    pub(super) async fn run(self, ready: impl Future<Output = ()>, mut stop: StopSignal) {
        for further in self.server.further() {
            info!("also listening on {further}");
        }
        if let Some(address) = self.server.metrics_address() {
            info!("metrics on http://{address}/metrics");
        }
        let (line, control) = (self.server.ready_line(), self.server.control());
        let reloads = reloads(control);
        let announce = async {
            ready.await;
            // Scripts wait for this line.
            say!("{line}");
            systemd::ready();
            std::future::pending::<()>().await;
        };
        let stop = async {
            stop.received().await;
            systemd::stopping();
        };
        tokio::select! {
            () = self.server.run(stop) => {}
            () = announce => {}
            () = reloads => {}
        }
    }
}

/// Reads the configuration again at each SIGHUP, for ever. Signals count from the call of this function on.
#[cfg(unix)]
fn reloads(control: Control) -> impl Future<Output = ()> {
    Hangups::listen().follow(control)
}

/// Systems other than Unix have no SIGHUP.
#[cfg(not(unix))]
async fn reloads(_: Control) {
    std::future::pending().await
}
