//! The answers to the requests of the admin page, as JSON: results, and refusals with their HTTP status.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rootlight_server::keys::KeyError;
use serde::Serialize;

use crate::keys::ClusterKeyError;

/// Seconds after which another token may be sent: the rate of wrong tokens is one per second.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Why a request is not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdminError {
    /// The `Host` header is not a name of this machine, or there is none.
    #[error("host not allowed: this page answers for 127.0.0.1, [::1] and localhost")]
    Host,
    /// The `Origin` header is not the page's own.
    #[error("origin not allowed: only this page may send requests")]
    Origin,
    /// The URL has a query.
    #[error(
        "an address has no parameters here: send JSON in the body, and the token in the Authorization header"
    )]
    Parameters,
    #[error("send the token: Authorization: Bearer TOKEN")]
    NoToken,
    #[error("the token is wrong")]
    WrongToken,
    #[error("too many wrong tokens came: try again in a second")]
    TooManyTokens,
    #[error("content type must be application/json")]
    ContentType,
    #[error("the request cannot be read: {0}")]
    Body(String),
    /// The command failed.
    #[error(transparent)]
    Keys(#[from] ClusterKeyError),
    /// Nothing is at this address.
    #[error("not found")]
    NotFound,
}

/// Longest reason in an answer, in characters: it may repeat parts of the body.
const MAX_REASON: usize = 300;

impl AdminError {
    /// The error of a body that does not decode.
    pub(super) fn body(error: &serde_json::Error) -> Self {
        Self::Body(error.to_string().chars().take(MAX_REASON).collect())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::TooManyTokens => StatusCode::TOO_MANY_REQUESTS,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotFound | Self::Keys(ClusterKeyError::Key(KeyError::Unknown(_))) => StatusCode::NOT_FOUND,
            Self::Keys(ClusterKeyError::Key(KeyError::Revoked(_))) => StatusCode::CONFLICT,
            Self::Parameters | Self::Body(_) | Self::Keys(ClusterKeyError::Key(KeyError::Invalid(_))) => {
                StatusCode::BAD_REQUEST
            }
            Self::Keys(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[derive(Serialize)]
struct ErrorBody {
    error: String,
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        let mut response = json(self.status(), &ErrorBody { error: self.to_string() });
        let headers = response.headers_mut();
        match self {
            Self::NoToken | Self::WrongToken => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::TooManyTokens => {
                headers.insert(header::RETRY_AFTER, RETRY_SECONDS);
            }
            _ => {}
        }
        response
    }
}

/// The response with a result, or with the reason why there is none.
pub(super) fn answer<T: Serialize>(result: Result<T, AdminError>) -> Response {
    match result {
        Ok(value) => json(StatusCode::OK, &value),
        Err(refusal) => refusal.into_response(),
    }
}

/// A response with a JSON body.
fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = match serde_json::to_vec(value) {
        Ok(body) => Body::from(body),
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let mut response = (status, body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
