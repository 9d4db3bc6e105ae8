//! Frames: a message code and a payload, encrypted and authenticated.
//!
//! A frame is a header (16 bytes: size of code and payload in 3 bytes, header data as an RLP list, zeros), the header's MAC (16), a body
//! padded to a multiple of 16 bytes, and the body's MAC (16). The frames of one direction are encrypted as one AES-256-CTR stream,
//! whose iv is zero.

use alloc::vec::Vec;

use aes::Aes256;
use aes::cipher::{KeyIvInit, StreamCipher};
use ctr::Ctr128BE;
use k256::elliptic_curve::subtle::ConstantTimeEq;
use rootlight::types::rlp::{RlpReader, put_u64, uint63};

use super::error::RlpxError;
use super::mac::{FrameMac, MAC_BYTES};

/// Most bytes of code and payload that a frame can state: the size has 3 bytes.
pub const MAX_FRAME_READ: usize = 0xff_ffff;
/// Most bytes of code and payload that are sent in a frame. The reference reads frames below 8 MiB and closes the
/// connection at 8 MiB; a kilobyte is left for bytes that it may count besides.
pub const MAX_FRAME_SENT: usize = (8 << 20) - 1024;

const HEADER_BYTES: usize = 16;
/// Bytes of a header and its MAC.
const HEAD_BYTES: usize = HEADER_BYTES + MAC_BYTES;
/// Header data as the reference writes it: an RLP list of the number 0, the protocol type.
const HEADER_DATA: [u8; 2] = [0xc1, 0x80];

/// A message: its code on the wire and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The message code, with the offset that the protocol has on this connection.
    pub code: u64,
    /// The bytes after the code: the RLP of a message, not checked.
    pub payload: Vec<u8>,
}

/// Decrypts the frames of one direction.
pub(super) struct FrameReader {
    cipher: Ctr128BE<Aes256>,
    mac: FrameMac,
    /// Size of the frame whose header was read and whose body was not.
    size: Option<usize>,
}

impl FrameReader {
    pub(super) fn new(key: &[u8; 32], mac: FrameMac) -> Self {
        Self { cipher: Ctr128BE::new(key.into(), &[0; 16].into()), mac, size: None }
    }

    /// Reads the next frame from the start of `input`. Returns the number of used bytes, and the frame if it is complete. An incomplete
    /// frame uses no bytes but those of its header and the header's MAC, once they have come. A frame longer than `limit` is an error.
    pub(super) fn read(&mut self, input: &[u8], limit: usize) -> Result<(usize, Option<Frame>), RlpxError> {
        let (taken, rest, size) = match self.size {
            Some(size) => (0, input, size),
            None => {
                let Some((head, rest)) = input.split_first_chunk::<HEAD_BYTES>() else {
                    return Ok((0, None));
                };
                (HEAD_BYTES, rest, self.header(head, limit)?)
            }
        };
        self.size = Some(size);
        let padded = size.next_multiple_of(HEADER_BYTES);
        let Some((body, rest)) = rest.split_at_checked(padded) else { return Ok((taken, None)) };
        let Some(mac) = rest.first_chunk() else { return Ok((taken, None)) };
        let frame = self.body(body, mac, size)?;
        self.size = None;
        Ok((taken.saturating_add(padded).saturating_add(MAC_BYTES), Some(frame)))
    }

    /// The size of the frame whose header was read and whose body was not.
    pub(super) const fn begun(&self) -> Option<usize> {
        self.size
    }

    /// As [`begun`](Self::begun), if the rest of the frame has come: `unread` is the number of unread bytes.
    pub(super) fn whole(&self, unread: usize) -> Option<usize> {
        let rest = |size: &usize| size.next_multiple_of(HEADER_BYTES).saturating_add(MAC_BYTES);
        self.size.filter(|size| unread >= rest(size))
    }

    /// Checks and decrypts a header; returns the size of code and payload.
    fn header(&mut self, head: &[u8; HEAD_BYTES], limit: usize) -> Result<usize, RlpxError> {
        let (header, mac) = head.split_first_chunk::<HEADER_BYTES>().ok_or(RlpxError::HeaderMac)?;
        if !same(&self.mac.header(header), mac) {
            return Err(RlpxError::HeaderMac);
        }
        let mut header = *header;
        self.cipher.apply_keystream(&mut header);
        let [a, b, c, data @ ..] = header;
        let size = usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX);
        if size == 0 || size > limit {
            return Err(RlpxError::FrameSize { size, limit });
        }
        check_unsplit(&data)?;
        Ok(size)
    }

    /// Checks and decrypts a padded body of `size` bytes.
    fn body(&mut self, body: &[u8], mac: &[u8; MAC_BYTES], size: usize) -> Result<Frame, RlpxError> {
        if !same(&self.mac.body(body), mac) {
            return Err(RlpxError::BodyMac);
        }
        let mut body = body.to_vec();
        self.cipher.apply_keystream(&mut body);
        body.truncate(size);
        let mut reader = RlpReader::new(&body);
        let code = reader
            .next_str("frame.code")
            .and_then(|code| uint63(code, "frame.code"))
            .map_err(RlpxError::FrameContent)?;
        let start = body.len().saturating_sub(reader.remaining());
        body.drain(..start);
        Ok(Frame { code, payload: body })
    }
}

/// Refuses the header data of a frame that is a part of a message: its second item, the context id, is not 0.
fn check_unsplit(data: &[u8]) -> Result<(), RlpxError> {
    const FIELD: &str = "frame.headerData";
    let mut items = RlpReader::new(data).next_list(FIELD).map_err(RlpxError::FrameContent)?;
    items.next_str(FIELD).map_err(RlpxError::FrameContent)?;
    if items.is_empty() || items.next_str(FIELD).map_err(RlpxError::FrameContent)?.is_empty() {
        return Ok(());
    }
    Err(RlpxError::Chunked)
}

/// Compares two MACs in a time that does not depend on the position of a difference.
fn same(expected: &[u8; MAC_BYTES], found: &[u8]) -> bool {
    expected.as_slice().ct_eq(found).into()
}

/// Encrypts the frames of one direction.
pub(super) struct FrameWriter {
    cipher: Ctr128BE<Aes256>,
    mac: FrameMac,
}

impl FrameWriter {
    pub(super) fn new(key: &[u8; 32], mac: FrameMac) -> Self {
        Self { cipher: Ctr128BE::new(key.into(), &[0; 16].into()), mac }
    }

    /// Appends a frame to `output`.
    pub(super) fn write(&mut self, code: u64, payload: &[u8], output: &mut Vec<u8>) -> Result<(), RlpxError> {
        let mut body = Vec::with_capacity(payload.len().saturating_add(2 * HEADER_BYTES));
        put_u64(&mut body, code);
        body.extend_from_slice(payload);
        let size = body.len();
        let too_large = RlpxError::FrameSize { size, limit: MAX_FRAME_SENT };
        if size > MAX_FRAME_SENT {
            return Err(too_large);
        }
        let [_, a, b, c] = u32::try_from(size).map_err(|_| too_large)?.to_be_bytes();
        let [data0, data1] = HEADER_DATA;
        let mut header = [a, b, c, data0, data1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        self.cipher.apply_keystream(&mut header);
        body.resize(size.next_multiple_of(HEADER_BYTES), 0);
        self.cipher.apply_keystream(&mut body);
        output.extend_from_slice(&header);
        output.extend_from_slice(&self.mac.header(&header));
        output.extend_from_slice(&body);
        output.extend_from_slice(&self.mac.body(&body));
        Ok(())
    }
}
