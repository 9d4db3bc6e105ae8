//! The listener for monitors of the operator (`--metrics-listen`): metrics and probes, at another address than the service.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio::net::TcpListener;
use tracing::warn;

use super::operator_server;
use super::probe;
use super::server_state::ServerState;
use crate::metrics::{self, MetricsSample};

/// Binds the listener. An address that other machines reach gets a warning.
pub(super) async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    if !address.ip().to_canonical().is_loopback() {
        warn!(
            "METRICS ON {address}: every machine that reaches this address can read the names of upstreams, the ids of API \
             keys and how much they are used"
        );
    }
    Ok(listener)
}

/// Serves metrics and probes for ever.
pub(super) async fn serve(listener: TcpListener, shared: Arc<ServerState>) {
    let counts = shared.counts.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let answered = answer(&shared, &request.map(|_| ()));
        std::future::ready(Ok::<_, Infallible>(answered))
    });
    operator_server::serve(listener, &counts, service).await;
}

/// Answers a request. Web pages are refused: those that send an `Origin` header, and those of a domain name that was changed to
/// resolve to this address (DNS rebinding), whose `Host` header has that name.
fn answer(shared: &ServerState, request: &hyper::Request<()>) -> Response {
    let named = request.headers().get(header::HOST).and_then(|name| name.to_str().ok());
    let host = named.or(request.uri().authority().map(|authority| authority.as_str()));
    let is_known = host.is_some_and(|host| shared.live.borrow().access.answers_for(host));
    if !is_known || request.headers().contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, "web pages and unknown host names are not served\n").into_response();
    }
    if *request.method() != Method::GET {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET")], "GET only\n").into_response();
    }
    match request.uri().path() {
        "/metrics" => metrics(shared),
        // Pages are refused above.
        path => probe::answer(shared, path, false).unwrap_or_else(|| {
            let text = "/metrics, /livez, /readyz and /health are here\n";
            (StatusCode::NOT_FOUND, text).into_response()
        }),
    }
}

/// The response with the metrics.
fn metrics(shared: &ServerState) -> Response {
    let keys = shared.admission.keys.as_ref().map_or_else(Vec::new, |access| access.quotas.usage());
    let sample =
        MetricsSample::new(shared.started, shared.service.health(), shared.service.chain_status(), keys);
    match metrics::render(&shared.counts.metrics, &sample, |registry| shared.service.register(registry)) {
        Ok(text) => {
            let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(failure) => (StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()).into_response(),
    }
}
