//! Answers to `eth_getLogs` that are too long for one text: they are written while they are sent.

use alloc::{boxed::Box, string::String};

use serde_json::value::RawValue;

use super::{
    error::RpcError,
    exchange::Answer,
    logs::{shown, watch},
    params::Params,
};
use crate::engine::{LogBlocks, View, Watch};

/// The method whose answers may be streamed.
pub(super) const METHOD: &str = "eth_getLogs";

/// Least bytes of a piece. A block with more makes a longer piece.
const PIECE: usize = 256 * 1024;

/// The answer to a message, or the means to write it piece by piece.
#[derive(Debug)]
pub enum Reply {
    /// A whole answer; `None` when nothing is to be sent.
    Whole(Option<Answer>),
    /// An answer without errors that is longer than one text may be.
    Logs(LogStream),
}

/// The answer to one `eth_getLogs`. It has one block of logs, or a few small ones, in memory at a time.
pub struct LogStream {
    /// What comes before the next log; the start of the answer at first.
    before: String,
    blocks: LogBlocks,
    is_done: bool,
}

impl core::fmt::Debug for LogStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LogStream").finish_non_exhaustive()
    }
}

impl LogStream {
    /// Opens the answer to a call of [`METHOD`] with these parameters; `start` is the answer up to the first log.
    /// Returns `None` if the answer is an error.
    pub(super) fn open(view: &dyn View, values: &[Box<RawValue>], start: String) -> Option<Self> {
        let blocks = match watch(view, 0, Params::new(values, 1, 1).ok()?).ok()? {
            Watch::Logs { filter, from, to } => {
                LogBlocks::of_range(view, from, to.unwrap_or(u64::MAX), filter).ok()?
            }
            Watch::BlockLogs { filter, block } => LogBlocks::of_block(view, block, filter).ok()?,
            Watch::Blocks | Watch::Heads | Watch::Pending | Watch::Syncing => return None,
        };
        Some(Self { before: start, blocks, is_done: false })
    }

    /// Approximate bytes of the next piece.
    #[must_use]
    pub fn next_bytes(&self) -> usize {
        self.blocks.next_bytes(PIECE)
    }

    /// The next piece of the answer; `None` after the last one.
    ///
    /// # Errors
    /// A log cannot be written as JSON, which is a defect.
    pub fn next_piece(&mut self) -> Result<Option<String>, RpcError> {
        if self.is_done {
            return Ok(None);
        }
        let mut text = String::new();
        for log in self.blocks.take_next(PIECE) {
            text.push_str(&self.before);
            text.push_str(&serde_json::to_string(&shown(&log, false))?);
            self.before = ",".into();
        }
        if self.blocks.is_empty() {
            if self.before.len() > 1 {
                text.push_str(&self.before);
            }
            text.push_str("]}");
            self.is_done = true;
        }
        Ok(Some(text))
    }
}

/// Whether the only call of a message failed because its logs are too long for one text.
pub(super) fn is_too_long(answer: Option<&Answer>) -> bool {
    let failed = answer.and_then(|answer| answer.failed.as_deref());
    matches!(failed, Some((METHOD, RpcError::LogsTooLong { .. } | RpcError::ResponseSize(_))))
}
