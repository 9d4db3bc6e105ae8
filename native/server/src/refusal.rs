//! The responses that refuse a request before the service gets it: for its path, its API key, the limits of the key, or a ban.

use std::time::Duration;

use axum::body::{HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rootlight::rpc::Message;
use rootlight::rpc::envelope::Id;
use serde_json::json;
use tokio::time::timeout;

use super::outgoing::JSON;
use crate::keys::{Exceeded, LimitPeriod, LimitStatus, NotAllowed};
use crate::methods::dispatcher;
use crate::metrics::Rejection;
use crate::service::{INTERNAL_ERROR, LIMIT_EXCEEDED};

/// JSON-RPC code of a request that the client may not send: without a valid key, against the rules of its key, or from a banned
/// address. JSON-RPC 2.0 leaves codes from -32099 to -32000 to servers.
const UNAUTHORIZED: i32 = -32016;
/// JSON-RPC code of an invalid request (JSON-RPC 2.0).
pub(super) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC code of invalid parameters (JSON-RPC 2.0).
const INVALID_PARAMS: i32 = -32602;

/// Longest body of a refused request that is read for its id, in bytes.
const READ_FOR_ID: u64 = 4 * 1024;
/// Time limit for reading such a body.
const READ_FOR_ID_TIME: Duration = Duration::from_secs(1);

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestRefusal {
    #[error("Unauthorized: missing API key")]
    Missing,
    /// The key does not exist, or is revoked.
    #[error("Unauthorized: invalid API key")]
    Invalid,
    #[error("Unauthorized: the API key has expired")]
    Expired,
    /// The key may not be used by this page.
    #[error("Forbidden: the origin is not allowed for this key")]
    Origin,
    /// The key may not be used from this address.
    #[error("Forbidden: the client address is not allowed for this key")]
    Address,
    /// The key does not allow a call of the message.
    #[error("Forbidden: {0}")]
    Method(NotAllowed),
    /// The key does not allow state overrides.
    #[error("{}", NotAllowed::StateOverride)]
    StateOverride,
    /// The message exceeds a limit of the key.
    #[error("{}", limit_text(.0))]
    Limit(Exceeded),
    /// The key has as many WebSockets as it may have.
    #[error("Limit exceeded: {0} WebSocket connections of this key")]
    Sockets(usize),
    /// The operator has banned the client's address.
    #[error("Forbidden: the client address is banned")]
    Banned,
    /// The rights of the key have changed since the connection was opened.
    #[error("Forbidden: the rights of the key have changed, connect again")]
    Changed,
    /// No service is at the path of the request; the field is the path of the service.
    #[error("no service at this path: send JSON-RPC by POST to {0}")]
    NotFound(String),
    /// The store of the keys cannot be reached.
    #[error("Service unavailable: API keys cannot be checked at the moment")]
    Unavailable,
}

/// The error text of an exceeded limit.
fn limit_text(exceeded: &Exceeded) -> &'static str {
    match exceeded.window {
        LimitPeriod::Second => "Limit exceeded: too many requests per second",
        LimitPeriod::Day => "Daily quota exceeded",
    }
}

impl RequestRefusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Missing | Self::Invalid | Self::Expired => StatusCode::UNAUTHORIZED,
            Self::Origin | Self::Address | Self::Method(_) | Self::Banned | Self::Changed => {
                StatusCode::FORBIDDEN
            }
            // An error of the call, as the reference node gives it.
            Self::StateOverride => StatusCode::OK,
            Self::Limit(_) | Self::Sockets(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The reason for metrics.
    pub(crate) fn rejection(&self) -> Rejection {
        match self {
            Self::Missing | Self::Invalid | Self::Expired => Rejection::Unauthorized,
            Self::Origin
            | Self::Address
            | Self::Method(_)
            | Self::Banned
            | Self::Changed
            | Self::StateOverride => Rejection::Forbidden,
            Self::Limit(_) | Self::Sockets(_) => Rejection::Limit,
            Self::NotFound(_) => Rejection::Path,
            Self::Unavailable => Rejection::Unavailable,
        }
    }

    fn code(&self) -> i32 {
        match self {
            Self::StateOverride => INVALID_PARAMS,
            Self::Limit(_) | Self::Sockets(_) => LIMIT_EXCEEDED,
            Self::NotFound(_) => INVALID_REQUEST,
            Self::Unavailable => INTERNAL_ERROR,
            Self::Missing
            | Self::Invalid
            | Self::Expired
            | Self::Origin
            | Self::Address
            | Self::Method(_)
            | Self::Banned
            | Self::Changed => UNAUTHORIZED,
        }
    }

    /// The JSON-RPC response, under an id as received.
    pub(crate) fn body(&self, id: &Id) -> String {
        let message = format!("{self}{}", id.remark());
        let mut error = json!({"code": self.code(), "message": message});
        if let (Self::Limit(exceeded), Some(members)) = (self, error.as_object_mut()) {
            let Exceeded { window, status, retry_after } = exceeded;
            let window = if *window == LimitPeriod::Second { "second" } else { "day" };
            let data = json!({"limit": status.limit, "window": window, "retryAfter": retry_after});
            members.insert("data".to_owned(), data);
        }
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.as_json())
    }

    /// The HTTP response, under an id as received.
    pub(crate) fn response(&self, id: &Id) -> Response {
        let mut response = (self.status(), self.body(id)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, JSON);
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("ApiKey"));
        }
        if let Self::Sockets(_) | Self::Unavailable = self {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Self::Limit(exceeded) = self {
            headers.insert(header::RETRY_AFTER, exceeded.retry_after.into());
            add_limit_status(headers, &exceeded.status);
        }
        response
    }

    /// The HTTP response to a request whose body has not been read. A short body is read for the id of its call.
    pub(crate) async fn response_to(&self, request: Request) -> Response {
        let length = request.body().size_hint().exact();
        let reads = *request.method() == Method::POST && length.is_some_and(|length| length <= READ_FOR_ID);
        let limit = usize::try_from(READ_FOR_ID).unwrap_or(usize::MAX);
        let read = match reads {
            true => timeout(READ_FOR_ID_TIME, to_bytes(request.into_body(), limit)).await.ok(),
            false => None,
        };
        let Some(Ok(body)) = read else {
            let mut response = self.response(&Id::Unknown);
            // The rest of the body is unread, so the connection cannot be used again.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return response;
        };
        // No call of a batch is read (0): a batch has no single id.
        self.response(&Message::read(&body, dispatcher(), 0).single_id())
    }
}

/// The response to a banned client, whose connection ends.
pub(crate) fn banned() -> Response {
    let mut response = RequestRefusal::Banned.response(&Id::Unknown);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Adds the headers that say how much of a limit is left.
pub(crate) fn add_limit_status(headers: &mut HeaderMap, limit_status: &LimitStatus) {
    const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
    const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
    const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
    for (name, value) in
        [(LIMIT, limit_status.limit), (REMAINING, limit_status.remaining), (RESET, limit_status.reset)]
    {
        headers.insert(name, value.into());
    }
}
