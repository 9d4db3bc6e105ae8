//! What the engine knows of the program that started it.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use super::frame::Frame;

/// A script with its options, the time of all runs of its message, and the end of what is left of it.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) source: String,
    pub(super) config: String,
    pub(super) limit: Duration,
    pub(super) end: Instant,
}

/// The other side.
pub(super) struct Peer {
    input: Box<dyn Read>,
    output: Box<dyn Write>,
}

impl Peer {
    pub(super) fn new(input: impl Read + 'static, output: impl Write + 'static) -> Self {
        Self { input: Box::new(input), output: Box::new(output) }
    }

    pub(super) fn receive(&mut self) -> io::Result<Frame> {
        Frame::receive(&mut *self.input)
    }

    pub(super) fn send(&mut self, frame: &Frame) -> io::Result<()> {
        frame.send(&mut *self.output)
    }
}
