//! HTTP: verbs, content types, sizes, CORS, status codes.

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State, WebSocketUpgrade};
use axum::http::{header, HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use futures::StreamExt;
use tracing::debug;

use super::access::Sender;
use super::listen::Shared;
use super::ws;
use crate::service::{Caller, Outcome, Peer};

/// JSON-RPC code of an invalid request (JSON-RPC 2.0).
const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC code of a limit (EIP-1474).
const LIMIT_EXCEEDED: i32 = -32005;
/// Bytes of a too long request that are read and dropped before the connection is closed.
const SURPLUS_BYTES: usize = 64 * 1024 * 1024;
/// Methods named in `allow` and in preflight answers.
const VERBS: HeaderValue = HeaderValue::from_static("GET, POST, OPTIONS");

/// Answers any request: the path does not matter to POST.
pub(crate) async fn handle(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Response {
    let origin = request.headers().get(header::ORIGIN).is_some();
    let authority = request.uri().authority().map(|a| a.as_str().to_owned());
    let sender = match shared.access.check(request.headers(), authority.as_deref()) {
        Ok(sender) => sender,
        Err(refusal) => return error(StatusCode::FORBIDDEN, INVALID_REQUEST, &refusal.to_string()),
    };
    let cors = if origin { shared.access.allow_origin(request.headers()) } else { None };
    let foreign_page = match sender {
        Sender::Trusted => None,
        Sender::Foreign(origin) => Some(origin),
    };
    let caller = Caller { peer, foreign_page, notified: false };
    let mut response = route(&shared, caller, request).await;
    if let Some((origin, varies)) = cors {
        add_cors(&mut response, origin, varies);
    }
    response
}

async fn route(shared: &Shared, caller: Caller, request: Request) -> Response {
    match *request.method() {
        Method::POST => post(shared, &caller, request).await,
        Method::OPTIONS => preflight(request.headers()),
        Method::GET if wants_websocket(request.headers()) => upgrade(shared, caller, request).await,
        Method::GET if request.uri().path() == "/health" => health(shared),
        _ => not_allowed(),
    }
}

async fn post(shared: &Shared, caller: &Caller, request: Request) -> Response {
    if !is_json(request.headers()) {
        let text = "content type must be application/json";
        return error(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST, text);
    }
    let limit = shared.limits.message_bytes;
    let body = match tokio::time::timeout(shared.limits.body_timeout, read_body(request, limit)).await {
        Err(_) => return error(StatusCode::REQUEST_TIMEOUT, INVALID_REQUEST, "request body took too long"),
        Ok(Err(response)) => return *response,
        Ok(Ok(body)) => body,
    };
    let answer = shared.service.answer_to(caller, body).await;
    match (answer.outcome, answer.body) {
        (Outcome::Served, None) => StatusCode::NO_CONTENT.into_response(),
        (Outcome::Served, Some(body)) => json(StatusCode::OK, body),
        (Outcome::Unusable, body) => json(StatusCode::BAD_REQUEST, body.unwrap_or_default()),
    }
}

/// Reads a body up to the limit. The rest of a longer one is thrown away, up to a point: closing
/// while a client still sends would take the error away from it (TCP reset).
async fn read_body(request: Request, limit: usize) -> Result<Vec<u8>, Box<Response>> {
    let mut body = Vec::new();
    let mut surplus = 0_usize;
    let mut chunks = request.into_body().into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else {
            let text = "request body ended early";
            return Err(Box::new(error(StatusCode::BAD_REQUEST, INVALID_REQUEST, text)));
        };
        if surplus == 0 && body.len().saturating_add(chunk.len()) <= limit {
            body.extend_from_slice(&chunk);
            continue;
        }
        body = Vec::new();
        surplus = surplus.saturating_add(chunk.len());
        if surplus > SURPLUS_BYTES {
            break;
        }
    }
    if surplus > 0 {
        return Err(Box::new(too_large(limit)));
    }
    Ok(body)
}

fn health(shared: &Shared) -> Response {
    let health = shared.service.health();
    let status = if health.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, serde_json::to_vec(&health).unwrap_or_default())
}

/// The WebSocket is on `/` and `/websocket`, where the reference and most tools expect it.
async fn upgrade(shared: &Shared, caller: Caller, request: Request) -> Response {
    if !matches!(request.uri().path(), "/" | "/websocket") {
        return error(StatusCode::NOT_FOUND, INVALID_REQUEST, "the WebSocket is at / and /websocket");
    }
    let (mut parts, _) = request.into_parts();
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let Ok(permit) = shared.websockets.clone().try_acquire_owned() else {
        return error(StatusCode::SERVICE_UNAVAILABLE, LIMIT_EXCEEDED, "too many WebSocket connections");
    };
    let shared = shared.clone();
    upgrade
        .max_frame_size(shared.limits.frame_bytes)
        .max_message_size(shared.limits.message_bytes)
        .on_failed_upgrade(|failure| debug!(%failure, "websocket upgrade failed"))
        .on_upgrade(move |socket| async move {
            ws::run(socket, shared, caller).await;
            drop(permit);
        })
}

/// `OPTIONS`: 204, with what a browser asks before it lets a page POST JSON.
fn preflight(request: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, VERBS);
    if request.contains_key(header::ORIGIN) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, VERBS);
        headers
            .insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type, accept"));
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        // Chrome asks before a public page may reach a private address.
        if request.contains_key("access-control-request-private-network") {
            headers.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
        }
    }
    response
}

/// Lets the page read the answer; one to an upgrade it reads anyway.
fn add_cors(response: &mut Response, origin: HeaderValue, varies: bool) {
    let headers = response.headers_mut();
    if headers.contains_key(header::UPGRADE) {
        return;
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed = "retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset";
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
    if varies {
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

fn not_allowed() -> Response {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, INVALID_REQUEST, "send JSON-RPC by POST");
    response.headers_mut().insert(header::ALLOW, VERBS);
    response
}

fn too_large(limit: usize) -> Response {
    let text = format!("Request size limit of {limit} bytes exceeded");
    let mut response = error(StatusCode::PAYLOAD_TOO_LARGE, LIMIT_EXCEEDED, &text);
    // The rest of the body may be unread, so the connection cannot be used again.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// An HTTP error with a JSON-RPC error envelope, so that clients that read bodies see the reason.
fn error(status: StatusCode, code: i32, message: &str) -> Response {
    json(status, crate::envelope::error(code, message))
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = (status, Body::from(body)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// `application/json` or `application/json-rpc`, in any case, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = text.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("application/json-rpc")
}

fn wants_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or("");
    upgrade.split(',').any(|token| token.trim().eq_ignore_ascii_case("websocket"))
}
