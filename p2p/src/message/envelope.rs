//! The form of all messages: `[[type, body]]`, where the body is a string that contains the RLP list of the message.

use alloc::vec::Vec;

use rootlight::types::rlp::{self, RlpReader, put_list, put_str, put_u64};

use super::error::MessageError;
use super::field;
use super::push::Push;
use super::request::Request;
use super::response::Response;

/// Code of the frames that carry these messages.
pub const RSK_MESSAGE: u64 = 0x18;

/// A message of code [`RSK_MESSAGE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// A message without an id.
    Push(Push<'a>),
    /// A request.
    Request {
        /// Chosen by the sender; the response repeats it.
        id: u64,
        /// The request.
        request: Request,
    },
    /// A response.
    Response {
        /// The id of the request.
        id: u64,
        /// The response.
        response: Response<'a>,
    },
}

impl<'a> Message<'a> {
    /// The type byte.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Push(push) => push.kind(),
            Self::Request { request, .. } => request.kind(),
            Self::Response { response, .. } => response.kind(),
        }
    }

    /// Decodes the payload of a frame: the bytes after its code. Only the bytes that [`Self::encode`] writes are
    /// accepted.
    ///
    /// # Errors
    /// [`MessageError`]: the type is not known, or the bytes break a rule or exceed a limit.
    pub fn decode(payload: &'a [u8]) -> Result<Self, MessageError> {
        let mut outer = RlpReader::list(payload, "message")?;
        let mut pair = outer.next_list("message")?;
        outer.finish("message")?;
        let [kind] = rlp::fixed::<1>(pair.next_str("message.type")?, "message.type")?;
        let body = pair.next_str("message.body")?;
        pair.finish("message")?;
        let mut body = RlpReader::list(body, "message.body")?;
        if let Some(push) = Push::decode(kind, body)? {
            return Ok(Self::Push(push));
        }
        let (id, fields) = read_id(kind, &mut body)?;
        if let Some(request) = Request::decode(kind, fields)? {
            return Ok(Self::Request { id, request });
        }
        match Response::decode(kind, fields)? {
            Some(response) => Ok(Self::Response { id, response }),
            None => Err(MessageError::UnknownType(kind)),
        }
    }

    /// Encodes the payload of a frame: the bytes after its code.
    pub fn encode(&self) -> Vec<u8> {
        let body = match self {
            Self::Push(push) => push.body(),
            Self::Request { id, request } => with_id(*id, &|out| request.put_fields(out)),
            Self::Response { id, response } => with_id(*id, &|out| response.put_fields(out)),
        };
        let mut pair = Vec::with_capacity(body.len().saturating_add(8));
        put_str(&mut pair, &[self.kind()]);
        put_str(&mut pair, &body);
        let mut inner = Vec::with_capacity(pair.len().saturating_add(8));
        put_list(&mut inner, &pair);
        let mut out = Vec::with_capacity(inner.len().saturating_add(8));
        put_list(&mut out, &inner);
        out
    }
}

/// Reads the id and the fields of a request or response.
fn read_id<'a>(kind: u8, body: &mut RlpReader<'a>) -> Result<(u64, RlpReader<'a>), MessageError> {
    // The types of all requests and responses. Others are refused first, so that their error is the unknown type.
    if !matches!(kind, 8..=16 | 18 | 20..=25) {
        return Err(MessageError::UnknownType(kind));
    }
    let id = field::u64(body, "message.id")?;
    let fields = body.next_list("message.fields")?;
    body.finish("message.body")?;
    Ok((id, fields))
}

/// The body of a message with an id, whose fields `put` writes.
fn with_id(id: u64, put: &dyn Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut fields = Vec::new();
    put(&mut fields);
    let mut pair = Vec::with_capacity(fields.len().saturating_add(16));
    put_u64(&mut pair, id);
    put_list(&mut pair, &fields);
    let mut body = Vec::with_capacity(pair.len().saturating_add(8));
    put_list(&mut body, &pair);
    body
}

#[cfg(test)]
mod tests {
    use super::super::limits::{MAX_ANNOUNCED, MAX_HEADERS, MAX_SKELETON};
    use super::super::{ChunkRequest, Items, Parent, Status, list_payload};
    use super::*;
    use alloy_primitives::{B256, U256};
    use rootlight::types::BlockRef;

    fn of(hash: u8, number: u64) -> BlockRef {
        BlockRef { number, hash: B256::repeat_byte(hash) }
    }

    /// The encoding decodes to the same message.
    fn round(message: &Message<'_>) -> Vec<u8> {
        let bytes = message.encode();
        assert_eq!(Message::decode(&bytes).as_ref(), Ok(message));
        bytes
    }

    #[test]
    fn messages_that_no_recording_has_are_read() {
        round(&Message::Push(Push::NewBlockHash(B256::repeat_byte(7))));
        round(&Message::Push(Push::Status(Status { best: of(1, 5), parent: None })));
        for total_difficulty in [U256::ZERO, U256::from(0x7f), U256::from(0x80), U256::MAX] {
            let parent = Some(Parent { hash: B256::ZERO, total_difficulty });
            round(&Message::Push(Push::Status(Status { best: of(1, 0), parent })));
        }
        let request = Request::Chunk(ChunkRequest::new(u64::MAX, u64::MAX));
        round(&Message::Request { id: u64::MAX, request });
    }

    #[test]
    fn lists_above_their_limits_are_refused() {
        let too_many = |bytes: &[u8]| matches!(Message::decode(bytes), Err(MessageError::TooMany { .. }));
        let announced = |count: usize| Push::NewBlockHashes(alloc::vec![of(3, 9); count]);
        round(&Message::Push(announced(MAX_ANNOUNCED)));
        assert!(too_many(&Message::Push(announced(MAX_ANNOUNCED + 1)).encode()));
        let response = |response| Message::Response { id: 1, response };
        let skeleton = |count: usize| response(Response::Skeleton(alloc::vec![of(3, 9); count]));
        round(&skeleton(MAX_SKELETON));
        assert!(too_many(&skeleton(MAX_SKELETON + 1).encode()));
        let payload = list_payload(core::iter::repeat_n([0xc1, 0x05], MAX_HEADERS + 1));
        let headers =
            |bytes| response(Response::Headers(Items::lists(bytes, usize::MAX, "headers").unwrap()));
        round(&headers(&payload[2..]));
        assert!(too_many(&headers(&payload).encode()));
    }

    #[test]
    fn other_types_and_shapes_are_refused() {
        for kind in [0u8, 4, 5, 19, 26, 0x7f, 0xff] {
            let mut pair = Vec::new();
            put_str(&mut pair, &[kind]);
            put_str(&mut pair, &[0xc2, 0x01, 0xc0]);
            let (mut inner, mut outer) = (Vec::new(), Vec::new());
            put_list(&mut inner, &pair);
            put_list(&mut outer, &inner);
            assert_eq!(Message::decode(&outer), Err(MessageError::UnknownType(kind)));
        }
        // The body as a list instead of a string: the reference node reads it, but never writes it.
        assert!(Message::decode(&[0xc6, 0xc5, 22, 0xc3, 0xc2, 0x01, 0xc0]).is_err());
        assert!(Message::decode(&[]).is_err());
        assert!(Message::decode(&[0xc0]).is_err());
    }
}
