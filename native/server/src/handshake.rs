//! The handshake by which an HTTP connection becomes a WebSocket (RFC 6455).

use axum::body::Body;
use axum::extract::{FromRequestParts as _, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};

use super::limits::ServerLimits;

/// The read buffer of a WebSocket, in bytes. The default of 128 KiB would be most of the memory of an idle connection.
const READ_BUFFER: usize = 4 * 1024;

/// Longest WebSocket frame of a client, in bytes. The reference node closes the connection above 64 KiB, which large batches of
/// contract deployments exceed.
const CLIENT_FRAME: usize = 1024 * 1024;

pub(super) type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// A connection that becomes a WebSocket when its response is sent.
pub(super) struct Handshake {
    accept: HeaderValue,
    upgrade: OnUpgrade,
}

impl Handshake {
    /// Checks a request.
    ///
    /// # Errors
    /// The response to a request that is no handshake.
    pub(super) async fn read(parts: &mut Parts) -> Result<Self, Response> {
        // Taken before axum looks at the request, because axum removes the upgrade from it.
        let (upgrade, key) = (
            parts.extensions.get::<OnUpgrade>().cloned(),
            parts.headers.get(header::SEC_WEBSOCKET_KEY).cloned(),
        );
        // axum checks the headers. Its socket is not used, because it sends each message as one frame, and keeps a buffer
        // of that size until the connection ends.
        let checked = WebSocketUpgrade::from_request_parts(parts, &()).await;
        drop(checked.map_err(IntoResponse::into_response)?);
        let accept = key.map(|key| HeaderValue::try_from(derive_accept_key(key.as_bytes())));
        match (accept, upgrade) {
            (Some(Ok(accept)), Some(upgrade)) => Ok(Self { accept, upgrade }),
            _ => Err(StatusCode::BAD_REQUEST.into_response()),
        }
    }

    /// The response that accepts, and the connection, which is a WebSocket once the response is sent.
    pub(super) fn accept(self) -> (Response, OnUpgrade) {
        let mut response = (StatusCode::SWITCHING_PROTOCOLS, Body::empty()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept);
        (response, self.upgrade)
    }
}

/// Makes the WebSocket of a connection whose response to the handshake was sent.
pub(super) async fn open(upgraded: Upgraded, limits: &ServerLimits) -> WebSocket {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_frame_size(Some(CLIENT_FRAME))
        .max_message_size(Some(limits.message_bytes));
    WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await
}
