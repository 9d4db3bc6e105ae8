//! Runs the server in front of a service until a signal stops it.

use std::sync::Arc;

use tokio::signal;
use tracing::info;

use super::CommandError;
use super::args::ServerArgs;
use crate::server::Server;
use crate::service::Service;

/// Addresses of the server.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    /// URL for HTTP.
    pub(super) http: String,
    /// URLs for WebSocket.
    pub(super) websockets: Vec<String>,
}

/// Binds, calls `announce`, prints the ready line, and serves until Ctrl-C or SIGTERM.
pub(super) async fn serve(
    service: Arc<impl Service>,
    args: &ServerArgs,
    announce: impl FnOnce(&Endpoints),
) -> Result<(), CommandError> {
    let opened = args.entry.open()?;
    let server =
        Server::bind(args.config(opened.entry.clone()), service).await.map_err(CommandError::failed)?;
    // Ends after the server.
    let _keys = opened.start()?;
    let address = server.address();
    let mut websockets = vec![format!("ws://{address}")];
    websockets.extend(server.second_address().map(|second| format!("ws://{second}")));
    announce(&Endpoints { http: format!("http://{address}"), websockets });
    if let Some(second) = server.second_address() {
        info!("also listening on ws://{second}");
    }
    // Scripts wait for this line.
    println!("{}", server.ready_line());
    server.run(stop_signal()).await;
    Ok(())
}

/// Waits for Ctrl-C or SIGTERM.
pub(super) async fn stop_signal() {
    #[cfg(unix)]
    {
        if let Ok(mut terminate) = signal::unix::signal(signal::unix::SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = signal::ctrl_c().await;
}
