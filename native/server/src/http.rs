//! Answers HTTP requests: methods, content types, sizes, CORS, status codes. A POST request carries a JSON-RPC message, which the
//! service answers; a GET request asks for a probe, a file of the page, or the upgrade to a WebSocket.

use std::future::poll_fn;
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rootlight::rpc::Caller;
use rootlight::rpc::envelope::{Id, write_error};
use rootlight_limits::caller_id::CallerId;
use tracing::{Instrument as _, Span, debug, debug_span};

use super::access::{AccessRefusal, AllowedOrigin};
use super::body::{self, UnreadBody};
use super::compress;
use super::connection_slots::ClientConnection;
use super::handshake::{self, Handshake};
use super::outgoing::{CountedBody, JSON, OutgoingResponse, count_until_sent, write};
use super::page::Page;
use super::presented_key::PresentedKey;
use super::probe::{self, Probed};
use super::proxies::{REQUEST_ID, request_id};
use super::refusal::{self, INVALID_REQUEST};
use super::request_source::RequestSource;
use super::server_state::ServerState;
use super::upgrade_terms::UpgradeTerms;
use super::ws;
use crate::metrics::GaugeGuard;
use crate::service::{INTERNAL_ERROR, LIMIT_EXCEEDED, ReservedReply};

/// The HTTP methods named in `Allow` headers and in preflight answers.
const VERBS: HeaderValue = HeaderValue::from_static("GET, POST, OPTIONS");

/// The answer to a request for `/metrics`. The text says neither whether the server has metrics nor at which address.
const NO_METRICS: &str =
    "no metrics here: --metrics-listen ADDRESS:PORT serves GET /metrics on an address of its own";

/// Answers any request. The path of a POST matters only if the server has a base path or keys. The request is borrowed, here and
/// below, because moving it from future to future takes time.
pub(crate) async fn handle(
    shared: &ServerState,
    connection: &Arc<ClientConnection>,
    request: &mut Request,
) -> axum::http::Response<CountedBody> {
    let (source, admitted) = check_origin(shared, connection, request);
    let id = request_id(request.headers(), source.proxied);
    // The path is not logged, because it may contain a key.
    let span = debug_span!("request", id = id.to_str().unwrap_or_default());
    connection.count_for(source.id);
    // A POST takes time before there is a response: its body is read and its message answered.
    let work = (*request.method() == Method::POST).then(|| connection.work());
    let mut reply = match admitted {
        Ok(cors) => {
            // `Instrumented` would move this future once more, which takes as long as reading a short message.
            let mut routed = pin!(route(shared, connection, source, request));
            let mut reply = poll_fn(|context| span.in_scope(|| routed.as_mut().poll(context))).await;
            if let Some((origin, varies)) = cors {
                add_cors(reply.headers_mut(), origin, varies);
            }
            reply
        }
        Err(refused) => refused.into(),
    };
    let is_probe = reply.head().extensions.get::<Probed>().is_some();
    reply.headers_mut().insert(REQUEST_ID, id);
    let response = count_until_sent(connection, reply).await;
    // From here on the unsent response marks the connection as working.
    drop(work);
    let status = response.status().as_u16();
    if !is_probe {
        shared.counts.metrics.responded(status);
    }
    debug!(parent: &span, status, "response");
    response
}

/// Checks a request by the present rules. Returns the source of the request with the header that lets a page read the answer, or
/// with the response to a banned client, an unknown host or a page that may not call.
fn check_origin(
    shared: &ServerState,
    connection: &ClientConnection,
    request: &Request,
) -> (RequestSource, Result<Option<AllowedOrigin>, Response>) {
    let rules = shared.live.borrow();
    let mut source = rules.proxies.source(connection, request.headers());
    if shared.is_banned(source.id.address) {
        return (source, Err(refusal::banned()));
    }
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let checked = rules.access.check(request.headers(), authority, &mut source);
    let refused =
        |refusal: AccessRefusal| error(StatusCode::FORBIDDEN, INVALID_REQUEST, &refusal.to_string());
    (source, checked.map_err(refused))
}

/// Answers a request whose host and origin are allowed, by its method, path and headers.
async fn route(
    shared: &ServerState,
    connection: &Arc<ClientConnection>,
    source: RequestSource,
    request: &mut Request,
) -> OutgoingResponse {
    // Most requests are POSTs, whose headers need not be searched for an upgrade.
    let websocket = *request.method() != Method::POST && wants_websocket(request.headers());
    if *request.method() == Method::GET
        && !websocket
        && let Some(probed) = probe::answer(shared, request.uri().path(), source.foreign_page.is_some())
    {
        return probed.into();
    }
    if !websocket && let Some(shown) = page(shared, request) {
        return OutgoingResponse::free(shown);
    }
    match *request.method() {
        Method::OPTIONS => return preflight(request.headers()).into(),
        Method::GET if websocket => {}
        Method::POST => {}
        _ => return not_allowed(shared, request.uri().path()).into(),
    }
    let path = request.uri().path();
    let admitted = shared.admission.admit(path, request.headers(), &source, shared.limits.batch).await;
    let (caller, key) = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => return Box::pin(refusal.response_to(take(request))).await.into(),
    };
    connection.count_for(CallerId::of(&caller));
    match *request.method() {
        // Only over HTTP can an answer be made while it is sent.
        Method::POST => post(shared, &Arc::new(caller.taking_pieces()), key, request).await,
        _ => {
            connection.assign_to(source.id);
            let operator = shared.admission.is_operator(key.as_deref(), request.headers(), &source);
            let terms = UpgradeTerms::new(request, source, operator);
            Box::pin(upgrade(shared, connection, caller, (terms, key), take(request))).await.into()
        }
    }
}

/// Reads the JSON-RPC message of a POST request, and answers it by the service.
async fn post(
    shared: &ServerState,
    caller: &Arc<Caller>,
    key: Option<Arc<PresentedKey>>,
    request: &mut Request,
) -> OutgoingResponse {
    if !is_json(request.headers()) {
        let text = "content type must be application/json";
        return error(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST, text).into();
    }
    let caller_id = CallerId::of(caller);
    let (body, reserved) = match body::read(request, caller_id.quota_owner(), shared).await {
        Ok(read) => read,
        Err(refusal) => return refused_body(refusal, shared.limits.message_bytes).into(),
    };
    let began = Instant::now();
    let Some(message) = body::read_message(shared, caller, body).await else {
        return error(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR, "Internal server error").into();
    };
    let mut limit_status = None;
    if let Some(key) = key {
        limit_status = match Box::pin(key.charge(&message)).await {
            Ok(limit_status) => limit_status,
            Err(refused) => return refused.response().into(),
        };
    }
    let timer = shared.counts.metrics.messages.start(&message, began);
    let answered = shared.service.answer_message(caller, message).await;
    timer.end(answered.reply.as_ref());
    // The message is answered, so that its bytes count no longer.
    drop(reserved);
    let mut reply = answer(shared, caller_id, answered, request.headers()).await;
    if let Some(limit_status) = limit_status {
        refusal::add_limit_status(reply.headers_mut(), &limit_status);
    }
    reply
}

/// The response with an answer of the service, compressed as the headers of the request (`asked`) allow.
async fn answer(
    shared: &ServerState,
    caller_id: CallerId,
    answered: ReservedReply,
    asked: &HeaderMap,
) -> OutgoingResponse {
    let ReservedReply { reply, reserved, pieces, .. } = answered;
    if let Some(pieces) = pieces {
        return OutgoingResponse::in_pieces(pieces);
    }
    let nothing = || StatusCode::NO_CONTENT.into_response().into();
    let Some(reply) = reply else { return nothing() };
    let status = if reply.is_unusable() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let work = shared.counts.limits.work();
    let Some(text) = write(reply, caller_id.quota_owner(), work).await else {
        return nothing();
    };
    let plain = text.into_bytes();
    let is_long = plain.len() >= compress::LEAST_BYTES;
    let (body, coding) = match is_long.then(|| compress::preferred(asked)).flatten() {
        Some(coding) => {
            match Box::pin(compress::encode(coding, (&shared.compressions, work), caller_id, plain)).await {
                Ok(body) => (body, Some(coding.name())),
                Err(plain) => (plain, None),
            }
        }
        None => (plain, None),
    };
    let mut reply = OutgoingResponse::answer(status, body.into(), reserved);
    reply.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(coding) = coding {
        reply.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    reply
}

/// The response to a request whose body was not read. `limit` is the longest body, in bytes.
fn refused_body(refusal: UnreadBody, limit: usize) -> Response {
    let text = refusal.to_string();
    let mut response = match refusal {
        UnreadBody::TooLong => {
            let text = format!("Request size limit of {limit} bytes exceeded");
            error(StatusCode::PAYLOAD_TOO_LARGE, LIMIT_EXCEEDED, &text)
        }
        UnreadBody::TooSlow => error(StatusCode::REQUEST_TIMEOUT, INVALID_REQUEST, &text),
        UnreadBody::BudgetUsedUp => error(StatusCode::SERVICE_UNAVAILABLE, LIMIT_EXCEEDED, &text),
        UnreadBody::Broken => error(StatusCode::BAD_REQUEST, INVALID_REQUEST, &text),
    };
    // The rest of the body may be unread, so the connection cannot be used again.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Upgrades to WebSocket on `/` and `/websocket`, where the reference node and most tools expect it.
async fn upgrade(
    shared: &ServerState,
    connection: &Arc<ClientConnection>,
    caller: Caller,
    (terms, key): (UpgradeTerms, Option<Arc<PresentedKey>>),
    request: Request,
) -> Response {
    let path = shared.admission.below_base_path(request.uri().path());
    // A path with a key was checked with the key.
    if key.is_none() && !matches!(path, Some("" | "/" | "/websocket")) {
        return error(StatusCode::NOT_FOUND, INVALID_REQUEST, "the WebSocket is at / and /websocket");
    }
    let (mut parts, _) = request.into_parts();
    let handshake = match Handshake::read(&mut parts).await {
        Ok(handshake) => handshake,
        Err(response) => return response,
    };
    let most = shared.limits.websockets_per_key;
    let counted = key.as_ref().map(|key| shared.key_sockets.enter(key.owner(), most)).transpose();
    let counted = match counted {
        Ok(counted) => counted,
        Err(refusal) => return refusal.response(&Id::Unknown),
    };
    let Some(slot) = shared.websockets.enter_or_refuse(connection).await else {
        return error(StatusCode::SERVICE_UNAVAILABLE, LIMIT_EXCEEDED, "too many WebSocket connections");
    };
    let (shared, connection) = (shared.clone(), connection.clone());
    let (response, upgrade) = handshake.accept();
    let run = async move {
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(failure) => return debug!(%failure, "websocket upgrade failed"),
        };
        let socket = handshake::open(upgraded, &shared.limits).await;
        let open = GaugeGuard::one(&shared.counts.metrics.websockets);
        connection.count_messages();
        ws::run(socket, shared, connection, Arc::new(caller), (terms, key)).await;
        drop((slot, counted, open));
    };
    tokio::spawn(run.instrument(Span::current()));
    response
}

/// Answers `OPTIONS` with 204 and the headers that a browser requires before it lets a page POST JSON.
///
/// tower-http's `CorsLayer` would not replace this: it answers every `OPTIONS` request before `Host` and `Origin` are
/// checked, with 200 and without `Allow`, and the rules for origins would still be ours.
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

/// Adds the headers that let a page read the answer. Upgrades do not need them.
fn add_cors(headers: &mut HeaderMap, origin: HeaderValue, varies: bool) {
    if headers.contains_key(header::UPGRADE) {
        return;
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed = "retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-request-id";
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
    if varies {
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// Answers a browser that asks for a file of the page. Files need no key, because all clients get the same ones.
fn page(shared: &ServerState, request: &Request) -> Option<Response> {
    let path = shared.admission.below_base_path(request.uri().path())?;
    let page = shared.page.as_ref()?;
    if path.is_empty() {
        // The page names its files relative to its own address, which must end with a slash.
        page.answer(request.method(), "/", request.headers())?;
        let location = HeaderValue::try_from(format!("{}/", shared.admission.base_path)).ok()?;
        return Some((StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, location)]).into_response());
    }
    let mut answer = page.answer(request.method(), path, request.headers())?;
    if let Some(sourcify) = &shared.sourcify {
        super::page::allow(answer.headers_mut(), sourcify);
    }
    Some(answer)
}

/// Answers a request that is neither a POST nor one for a probe, a file of the page or a WebSocket.
fn not_allowed(shared: &ServerState, path: &str) -> Response {
    let below = shared.admission.below_base_path(path);
    if path == "/metrics" || below == Some("/metrics") {
        return error(StatusCode::NOT_FOUND, INVALID_REQUEST, NO_METRICS);
    }
    let hint = Page::hint(shared.page.as_ref(), below.unwrap_or(path));
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, INVALID_REQUEST, hint);
    response.headers_mut().insert(header::ALLOW, VERBS);
    response
}

/// An HTTP error with a JSON-RPC error response as its body, so that clients that read bodies see the reason.
fn error(status: StatusCode, code: i32, message: &str) -> Response {
    json(status, write_error(&Id::Unknown, code, message))
}

fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = (status, body.into()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// Whether the content type is `application/json` or `application/json-rpc`, ignoring case and parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = text.split_once(';').map_or(text, |(kind, _)| kind).trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("application/json-rpc")
}

fn wants_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or("");
    upgrade.split(',').any(|token| token.trim().eq_ignore_ascii_case("websocket"))
}
