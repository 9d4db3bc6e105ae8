//! In the process of the script engine: the pipe to the program that started it, and the script that the program has sent.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use super::frame::Frame;

/// A script and its time.
#[derive(Clone, Debug)]
pub(super) struct StartedScript {
    pub(super) source: String,
    /// The options of the script, in JSON.
    pub(super) config: String,
    /// The time limit of all scripts of one JSON-RPC message, which the error about this limit states.
    pub(super) limit: Duration,
    /// When the rest of that time is over.
    pub(super) end: Instant,
}

/// The pipe to the program that started the script engine.
pub(super) struct ProgramPipe {
    input: Box<dyn Read>,
    output: Box<dyn Write>,
}

impl ProgramPipe {
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
