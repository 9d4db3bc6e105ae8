//! Probes of load balancers and container hosts: `/livez`, `/readyz` and `/health`.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::outgoing::JSON;
use super::server_state::ServerState;

/// The body of the response to `/readyz` while the server stops.
const STOPPING: &str = r#"{"ready":false,"reason":"the server is stopping"}"#;

/// Marks a response to a probe, so that metrics do not count it among the responses of the service.
#[derive(Debug, Clone)]
pub(super) struct Probed;

/// Answers a GET request for one of the probes; `None` for other paths. Programs that probe need no key, and may leave out the
/// base path. A page of another origin (`for_page`) does not learn why there is no head: the reason may repeat text of an
/// upstream.
pub(super) fn answer(shared: &ServerState, path: &str, for_page: bool) -> Option<Response> {
    let name = match path {
        "/livez" | "/readyz" | "/health" => path,
        _ => shared.admission.below_base_path(path)?,
    };
    match name {
        "/livez" => Some(json(StatusCode::OK, r#"{"live":true}"#)),
        "/readyz" if *shared.stop.borrow() => Some(json(StatusCode::SERVICE_UNAVAILABLE, STOPPING)),
        "/readyz" | "/health" => Some(health(shared, for_page)),
        _ => None,
    }
}

/// The state of the service; the status is 503 while it is not ready.
fn health(shared: &ServerState, for_page: bool) -> Response {
    let mut health = shared.service.health();
    health.reason.take_if(|_| for_page);
    let status = if health.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, serde_json::to_string(&health).unwrap_or_default())
}

fn json(status: StatusCode, body: impl IntoResponse) -> Response {
    let mut response = (status, body).into_response();
    response.extensions_mut().insert(Probed);
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}
