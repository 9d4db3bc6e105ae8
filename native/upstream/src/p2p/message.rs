//! Decodes messages of peers that are responses.

use rootlight_p2p::message::{Message, Response};

use super::error::PeerError;

/// Decodes the payload of a message that must be a response.
pub(super) fn response(payload: &[u8]) -> Result<Response<'_>, PeerError> {
    match Message::decode(payload)? {
        Message::Response { response, .. } => Ok(response),
        _ => Err(PeerError::Wrong("not a response")),
    }
}
