//! One connection: a handshake, then frames in both directions.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::mem;

use super::error::RlpxError;
use super::frame::{Frame, MAX_FRAME_READ};
use super::handshake::{AuthForm, Finished, HandshakeSecrets, Initiator, Responder};
use super::id::NodeId;
use super::key::NodeKey;

/// The first read limit: most bytes of a frame's code and payload that are read before [`Connection::set_read_limit`]. HELLO and
/// STATUS have less than 300.
pub const READ_BEFORE_HELLO: usize = 4096;
/// Most bytes that may be fed, and not taken as frames yet, in addition to one unfinished frame of the read limit. Bounds the memory of
/// a connection.
pub const MAX_UNREAD: usize = 256 * 1024;

/// One end of a connection, as a machine: bytes of the peer in by [`feed`](Self::feed), frames out by
/// [`next_frame`](Self::next_frame), bytes for the peer out by [`take_output`](Self::take_output).
///
/// A connection holds the bytes of one unfinished frame, at most the read limit, and at most [`MAX_UNREAD`] further bytes. After an
/// error it reads and writes nothing any more.
pub struct Connection {
    state: RlpxState,
    /// Bytes that were fed; those before `start` are used.
    input: Vec<u8>,
    start: usize,
    output: Vec<u8>,
    read_limit: usize,
}

/// The state of a connection.
enum RlpxState {
    /// The initiator waits for the ack packet.
    AwaitAck(Initiator),
    /// The responder waits for the auth packet.
    AwaitAuth(Responder),
    /// The handshake is over.
    Open(Box<Finished>),
    Failed,
}

impl Connection {
    /// The end of a connection to the node with the id `remote`. The first output is the auth packet. Write it to the socket in one
    /// piece, because the reference does not join its parts.
    pub fn dial(key: &NodeKey, remote: &NodeId, secrets: &HandshakeSecrets) -> Result<Self, RlpxError> {
        Self::dial_in(AuthForm::Eip8, key, remote, secrets)
    }

    /// [`dial`](Self::dial) with a chosen form of the handshake.
    pub fn dial_in(
        form: AuthForm,
        key: &NodeKey,
        remote: &NodeId,
        secrets: &HandshakeSecrets,
    ) -> Result<Self, RlpxError> {
        let initiator = Initiator::new(key, remote, secrets, form)?;
        let output = initiator.auth().to_vec();
        Ok(Self::new(RlpxState::AwaitAck(initiator), output))
    }

    /// The end of a connection that another node has opened: waits for its auth packet.
    pub fn accept(key: &NodeKey, secrets: HandshakeSecrets) -> Result<Self, RlpxError> {
        Ok(Self::new(RlpxState::AwaitAuth(Responder::new(key, secrets)?), Vec::new()))
    }

    const fn new(state: RlpxState, output: Vec<u8>) -> Self {
        Self { state, input: Vec::new(), start: 0, output, read_limit: READ_BEFORE_HELLO }
    }

    /// Sets the most bytes of a frame's code and payload that are read from now on, at most [`MAX_FRAME_READ`]. A frame that
    /// has begun is read whole.
    pub fn set_read_limit(&mut self, bytes: usize) {
        self.read_limit = bytes.min(MAX_FRAME_READ);
    }

    /// Takes bytes of the peer, in pieces of any size, and does the handshake when its packet is complete. Frames are read by
    /// [`next_frame`](Self::next_frame), which must be called until it returns none.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), RlpxError> {
        if matches!(self.state, RlpxState::Failed) {
            return Err(RlpxError::Failed);
        }
        let unread = self.input.len().saturating_sub(self.start).saturating_add(bytes.len());
        // A frame that has begun may be longer than the present limit, see `set_read_limit`.
        let most = self.begun_frame().unwrap_or(0).max(self.read_limit).saturating_add(MAX_UNREAD);
        if unread > most {
            return self.fail(RlpxError::Unread(most));
        }
        self.compact();
        self.input.extend_from_slice(bytes);
        self.handshake().or_else(|error| self.fail(error))
    }

    /// The next whole frame, or `None` until more bytes are fed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, RlpxError> {
        let open = match &mut self.state {
            RlpxState::Open(open) => open,
            RlpxState::Failed => return Err(RlpxError::Failed),
            _ => return Ok(None),
        };
        let rest = self.input.get(self.start..).unwrap_or(&[]);
        match open.reader.read(rest, self.read_limit) {
            Ok((taken, frame)) => {
                self.start = self.start.saturating_add(taken);
                // Used bytes are removed only now and then, because this moves the rest.
                if self.start > MAX_UNREAD {
                    self.compact();
                    self.input.shrink_to(MAX_UNREAD);
                }
                Ok(frame)
            }
            Err(error) => self.fail(error),
        }
    }

    /// Number of bytes that were fed and that are no part of a frame that was taken.
    pub fn unread(&self) -> usize {
        self.input.len().saturating_sub(self.start)
    }

    /// The size of the unfinished frame whose header a call of [`next_frame`](Self::next_frame) has read: bytes of code and payload.
    pub fn begun_frame(&self) -> Option<usize> {
        match &self.state {
            RlpxState::Open(open) => open.reader.begun(),
            _ => None,
        }
    }

    /// The size of [`begun_frame`](Self::begun_frame) if all bytes of that frame have come, so that the next call of
    /// [`next_frame`](Self::next_frame) decrypts it.
    pub fn whole_frame(&self) -> Option<usize> {
        match &self.state {
            RlpxState::Open(open) => open.reader.whole(self.unread()),
            _ => None,
        }
    }

    /// Appends a frame to the output. Fails before the handshake is over, and for frames of more than
    /// [`MAX_FRAME_SENT`](super::MAX_FRAME_SENT) bytes; the connection can be used further then.
    pub fn send(&mut self, code: u64, payload: &[u8]) -> Result<(), RlpxError> {
        match &mut self.state {
            RlpxState::Open(open) => open.writer.write(code, payload, &mut self.output),
            RlpxState::Failed => Err(RlpxError::Failed),
            _ => Err(RlpxError::NotReady),
        }
    }

    /// The bytes to send to the peer that were added since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        mem::take(&mut self.output)
    }

    /// Number of bytes that wait for [`take_output`](Self::take_output).
    pub const fn output_len(&self) -> usize {
        self.output.len()
    }

    /// Whether the handshake is over, so that frames can be sent.
    pub const fn is_open(&self) -> bool {
        matches!(self.state, RlpxState::Open(_))
    }

    /// The peer's id: the one that was dialled, or the one that the auth packet has proven. `None` before that packet, and after an
    /// error.
    pub const fn remote_id(&self) -> Option<&NodeId> {
        match &self.state {
            RlpxState::AwaitAck(initiator) => Some(initiator.remote()),
            RlpxState::Open(open) => Some(&open.remote),
            RlpxState::AwaitAuth(_) | RlpxState::Failed => None,
        }
    }

    /// Does the handshake, if it is not over and its packet is complete.
    fn handshake(&mut self) -> Result<(), RlpxError> {
        let input = self.input.get(self.start..).unwrap_or(&[]);
        let (taken, finished) = match &self.state {
            RlpxState::AwaitAck(initiator) => match initiator.read(input)? {
                Some(done) => done,
                None => return Ok(()),
            },
            RlpxState::AwaitAuth(responder) => match responder.read(input)? {
                Some((taken, ack, finished)) => {
                    self.output.extend_from_slice(&ack);
                    (taken, finished)
                }
                None => return Ok(()),
            },
            RlpxState::Open(_) | RlpxState::Failed => return Ok(()),
        };
        self.start = self.start.saturating_add(taken);
        self.state = RlpxState::Open(Box::new(finished));
        Ok(())
    }

    /// Removes the used bytes.
    fn compact(&mut self) {
        self.input.drain(..self.start.min(self.input.len()));
        self.start = 0;
    }

    /// Ends the connection by an error.
    fn fail<T>(&mut self, error: RlpxError) -> Result<T, RlpxError> {
        self.state = RlpxState::Failed;
        self.input = Vec::new();
        self.start = 0;
        Err(error)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("open", &self.is_open())
            .field("remote", &self.remote_id())
            .field("read_limit", &self.read_limit)
            .finish_non_exhaustive()
    }
}
