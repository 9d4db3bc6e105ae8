//! The engine's pipe to the program that started it, and the script that came over it.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use super::frame::Frame;

/// A script with its options, the time limit of all runs of its message, and when the rest of that time ends.
#[derive(Clone, Debug)]
pub(super) struct StartedScript {
    pub(super) source: String,
    pub(super) config: String,
    pub(super) limit: Duration,
    pub(super) end: Instant,
}

/// The pipe to the program that started the engine.
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
