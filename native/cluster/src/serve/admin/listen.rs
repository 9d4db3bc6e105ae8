//! The server of the admin page: its port, its routes and their checks.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::response::IntoResponse as _;
use axum::{Router, middleware};
use hyper_util::service::TowerToHyperService;
use rootlight_server::operator_server;
use rootlight_server::service::Counts;
use tokio::net::TcpListener;

use super::reply::AdminError;
use super::state::AdminState;
use super::{AdminParts, api, files, guard};

/// The server of the admin page, bound to a port.
#[derive(Debug)]
pub struct AdminPage {
    listener: TcpListener,
    router: Router,
    counts: Counts,
}

impl AdminPage {
    /// Takes a port of 127.0.0.1, which other machines cannot reach; 0 picks a free one. To be called inside a runtime.
    ///
    /// # Errors
    /// The port is in use.
    pub async fn bind(port: u16, parts: AdminParts) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let state = Arc::new(AdminState::from(parts));
        let counts = state.service.counts();
        let router = api::routes(&state)
            .merge(files::routes())
            .fallback(|| std::future::ready(AdminError::NotFound.into_response()))
            .layer(middleware::from_fn(guard::sender))
            .with_state(state);
        Ok(Self { listener, router, counts })
    }

    /// The address on which the page is served.
    ///
    /// # Errors
    /// None in practice: the operating system returns the address of every open socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves for ever. Requests end with this future.
    pub async fn serve(self) {
        operator_server::serve(self.listener, &self.counts, TowerToHyperService::new(self.router)).await;
    }
}
