//! Frames: the messages between the program and the process of an engine, over the engine's standard input and output. The program
//! sends reports; the engine answers each with `Done` or `Failed`, and may send queries before.

use std::io::{self, Read, Write};
use std::time::Duration;

/// Most bytes of a message: more than the largest result and than the memory of any call.
const MAX_FRAME: usize = 16 << 20;

/// The exit code of an engine whose time is over.
pub(super) const OUT_OF_TIME: u8 = 124;

/// The error that a caller reads after the time of a script is over.
pub(super) fn out_of_time(limit: Duration) -> String {
    format!("the script took longer than {} ms", limit.as_millis())
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    /// The script, its options, the time that is left of the message's time, and the whole time, both in milliseconds.
    Begin,
    /// A transaction begins.
    Start,
    /// An instruction.
    Step,
    /// The instruction failed.
    Fault,
    /// An inner call begins.
    Enter,
    /// An inner call ends.
    Exit,
    /// The transaction has ended.
    Result,
    /// The engine has taken the report before.
    Done,
    /// The script failed; the text is the reason.
    Failed,
    /// A query of the script about the present instruction or state ([`query`]).
    Query,
    /// The program's answer to a query.
    Answer,
    /// The reason why the program does not answer a query.
    Refusal,
}

impl Tag {
    /// In the order of their numbers, so that a byte is an index.
    const ALL: [Self; 12] = [
        Self::Begin,
        Self::Start,
        Self::Step,
        Self::Fault,
        Self::Enter,
        Self::Exit,
        Self::Result,
        Self::Done,
        Self::Failed,
        Self::Query,
        Self::Answer,
        Self::Refusal,
    ];
}

/// The kinds of queries, the first number of a query.
pub(super) mod query {
    /// Whether an account exists (one byte, 1 or 0), its nonce (8 bytes) and its balance (32), both big-endian.
    pub(in crate::scripts) const ACCOUNT: u64 = 1;
    /// The code of an account.
    pub(in crate::scripts) const CODE: u64 = 2;
    /// A storage word.
    pub(in crate::scripts) const WORD: u64 = 3;
    /// A range of the memory.
    pub(in crate::scripts) const MEMORY: u64 = 4;
    /// The caller, the address and the value of the running contract, and its input.
    pub(in crate::scripts) const CONTRACT: u64 = 5;
    /// Whether an address is that of a native contract.
    pub(in crate::scripts) const NATIVE: u64 = 6;
}

/// A message: numbers and bytes, in the order in which its reader takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) tag: Tag,
    body: Vec<u8>,
    /// Position up to which the body was read.
    read: usize,
}

impl Frame {
    pub(super) fn new(tag: Tag) -> Self {
        Self { tag, body: Vec::new(), read: 0 }
    }

    /// Appends a number.
    pub(super) fn number(mut self, number: u64) -> Self {
        self.body.extend(number.to_le_bytes());
        self
    }

    /// Appends bytes with their length.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.body.extend((bytes.len() as u64).to_le_bytes());
        self.body.extend_from_slice(bytes);
        self
    }

    /// Appends a text in UTF-8 as bytes.
    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Appends a value that may be missing: the number 1 and the value, or the number 0.
    pub(super) fn optional(self, bytes: Option<&[u8]>) -> Self {
        match bytes {
            Some(bytes) => self.number(1).bytes(bytes),
            None => self.number(0),
        }
    }

    /// Reads the next `count` bytes.
    fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        let start = self.read;
        let end = start.saturating_add(count);
        let taken = self.body.get(start..end).ok_or(io::ErrorKind::InvalidData)?;
        self.read = end;
        Ok(taken)
    }

    pub(super) fn take_number(&mut self) -> io::Result<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn take_bytes(&mut self) -> io::Result<Vec<u8>> {
        let count = usize::try_from(self.take_number()?).map_err(|_| io::ErrorKind::InvalidData)?;
        self.take(count).map(<[u8]>::to_vec)
    }

    /// Bytes of a fixed number.
    pub(super) fn take_array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take_bytes()?.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    pub(super) fn take_text(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.take_bytes()?).into_owned())
    }

    pub(super) fn take_optional(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.take_number()? == 0 { Ok(None) } else { self.take_bytes().map(Some) }
    }

    /// Sends the message: the length of the body (8 bytes, little-endian), the tag and the body.
    pub(super) fn send(&self, to: &mut dyn Write) -> io::Result<()> {
        if self.body.len() > MAX_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut whole = Vec::with_capacity(self.body.len().saturating_add(9));
        whole.extend((self.body.len() as u64).to_le_bytes());
        whole.push(self.tag as u8);
        whole.extend_from_slice(&self.body);
        to.write_all(&whole)?;
        to.flush()
    }

    /// Waits for a message.
    pub(super) fn receive(from: &mut dyn Read) -> io::Result<Self> {
        let mut head = [0; 9];
        from.read_exact(&mut head)?;
        let [len @ .., tag] = head;
        let len = usize::try_from(u64::from_le_bytes(len)).ok().filter(|len| *len <= MAX_FRAME);
        let tag = Tag::ALL.get(usize::from(tag)).copied();
        let (Some(len), Some(tag)) = (len, tag) else { return Err(io::ErrorKind::InvalidData.into()) };
        let mut body = vec![0; len];
        from.read_exact(&mut body)?;
        Ok(Self { tag, body, read: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_as_it_was_sent() {
        let sent = Frame::new(Tag::Enter).number(7).text("CALL").optional(None).optional(Some(&[1, 2]));
        let mut bytes = Vec::new();
        sent.send(&mut bytes).unwrap();
        let mut got = Frame::receive(&mut &bytes[..]).unwrap();
        assert_eq!(got, sent);
        assert_eq!((got.take_number().unwrap(), got.take_text().unwrap().as_str()), (7, "CALL"));
        assert_eq!((got.take_optional().unwrap(), got.take_optional().unwrap()), (None, Some(vec![1, 2])));
        assert!(got.take_number().is_err(), "nothing is left");
        for (index, tag) in Tag::ALL.into_iter().enumerate() {
            assert_eq!(tag as usize, index);
        }
    }

    #[test]
    fn messages_that_are_cut_too_long_or_unknown_are_errors() {
        let mut bytes = Vec::new();
        Frame::new(Tag::Done).text("all of it").send(&mut bytes).unwrap();
        for end in 0..bytes.len() {
            assert!(Frame::receive(&mut &bytes[..end]).is_err(), "{end}");
        }
        let long = [&(MAX_FRAME as u64 + 1).to_le_bytes()[..], &[0]].concat();
        assert!(Frame::receive(&mut &long[..]).is_err());
        assert!(Frame::receive(&mut &[0, 0, 0, 0, 0, 0, 0, 0, 12][..]).is_err());
        let mut wrong = Frame::new(Tag::Answer).number(u64::MAX);
        assert!(wrong.take_bytes().is_err(), "a length beyond the end");
    }
}
