//! The progress of the command, as one line on stderr.

use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

use rootlight_limits::sanitize::{cell, sanitize};
use serde_json::Value;

use super::sources::{SourceNotes, short_name};
use crate::service_call::quantity;

/// Least time between two lines where stderr is no terminal.
const LINES_APART: Duration = Duration::from_secs(3);

/// Most characters of a line on a terminal. A line that the terminal wraps could not be replaced.
const COLUMNS: usize = 100;

/// The progress on stderr. On a terminal, each change replaces the line; elsewhere, further lines follow at intervals.
pub(super) struct ProgressLine<W: Write> {
    out: W,
    /// Whether the output is a terminal, whose line is replaced.
    rewrites: bool,
    is_silent: bool,
    /// The line that was written last, and when.
    shown: Option<(Instant, String)>,
}

impl ProgressLine<io::Stderr> {
    pub(super) fn to_stderr(is_silent: bool) -> Self {
        let out = io::stderr();
        Self { rewrites: out.is_terminal(), out, is_silent, shown: None }
    }
}

impl<W: Write> ProgressLine<W> {
    /// Shows the progress. A failure to write does not stop the command.
    pub(super) fn show(&mut self, text: &str) {
        let text: String = sanitize(text).to_string();
        let is_new = self.shown.as_ref().is_none_or(|(_, shown)| *shown != text);
        if self.is_silent || !is_new {
            return;
        }
        if self.rewrites {
            let line: String = text.chars().take(COLUMNS).collect();
            let _ = write!(self.out, "\r\x1b[2K{line}").and_then(|()| self.out.flush());
        } else if self.shown.as_ref().is_none_or(|(at, _)| at.elapsed() >= LINES_APART) {
            let _ = writeln!(self.out, "{text}");
        } else {
            return;
        }
        self.shown = Some((Instant::now(), text));
    }

    /// Removes the line from a terminal.
    pub(super) fn clear(&mut self) {
        if self.rewrites && self.shown.take().is_some() {
            let _ = write!(self.out, "\r\x1b[2K").and_then(|()| self.out.flush());
        }
    }
}

/// The progress of a light client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientProgress {
    /// The number of sources that have announced their newest block, and of all sources.
    pub(super) sources: (usize, usize),
    /// The numbers of the first block, of the newest verified block, and of the newest known block.
    pub(super) blocks: [u64; 3],
    /// Whether the head was reached.
    pub(super) is_synced: bool,
    /// Headers per second.
    rate: u64,
    seconds_left: Option<u64>,
}

impl ClientProgress {
    /// Reads the answers of `rootlight_syncStatus` and `rootlight_upstreams`.
    pub(super) fn read(status: &Value, upstreams: &Value) -> Self {
        let all = upstreams.as_array().map_or(&[][..], Vec::as_slice);
        let blocks = ["startingBlock", "currentBlock", "highestBlock"];
        Self {
            sources: (all.iter().filter(|upstream| upstream["announced"].is_string()).count(), all.len()),
            blocks: blocks.map(|name| quantity(&status[name]).unwrap_or_default()),
            is_synced: status["synced"] == true,
            rate: status["headersPerSecond"].as_u64().unwrap_or_default(),
            seconds_left: status["secondsLeft"].as_u64(),
        }
    }

    /// The number of headers that are verified, and of all headers from the first block to the newest one.
    pub(super) const fn headers(&self) -> (u64, u64) {
        let [start, head, newest] = self.blocks;
        (head.saturating_sub(start), newest.saturating_sub(start))
    }
}

/// The text of the line: the step that the command waits for.
pub(super) fn waited_for(reached: &ClientProgress, finds_nodes: bool, notes: &SourceNotes) -> String {
    let (answering, sources) = reached.sources;
    let (verified, headers) = reached.headers();
    if reached.is_synced {
        let [_, head, _] = reached.blocks;
        return match notes.asked() {
            Some(name) => format!("state at block {head}: asking {}", cell(short_name(&name))),
            None => format!("state at block {head}: waiting for a source, {answering} of {sources} answer"),
        };
    }
    if headers > 0 {
        let left = reached.seconds_left.map(|left| format!(", about {left} s left")).unwrap_or_default();
        let rate = reached.rate;
        return format!(
            "headers: {verified} of {headers} verified, {rate} a second{left}; {answering} of {sources} sources answer"
        );
    }
    let what = if finds_nodes { "finding nodes" } else { "connecting" };
    format!("{what}: {answering} of {sources} sources answer")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(rewrites: bool) -> ProgressLine<Vec<u8>> {
        ProgressLine { out: Vec::new(), rewrites, is_silent: false, shown: None }
    }

    #[test]
    fn a_terminal_has_one_line_that_is_written_over() {
        let mut progress = line(true);
        for text in ["one", "one", "a\nb", &"x".repeat(200)] {
            progress.show(text);
        }
        progress.clear();
        let erase = "\r\x1b[2K";
        let expected = format!("{erase}one{erase}a\\nb{erase}{}{erase}", "x".repeat(COLUMNS));
        assert_eq!(String::from_utf8(progress.out).unwrap(), expected);
    }

    #[test]
    fn elsewhere_lines_are_seconds_apart() {
        let mut progress = line(false);
        for text in ["one", "two", "three"] {
            progress.show(text);
        }
        progress.clear();
        assert_eq!(progress.out, b"one\n");
        let long_ago = Instant::now().checked_sub(LINES_APART).unwrap();
        progress.shown = Some((long_ago, "one".into()));
        progress.show("one");
        progress.show("four");
        assert_eq!(progress.out, b"one\nfour\n");
        let mut silent = ProgressLine { is_silent: true, ..line(true) };
        silent.show("one");
        silent.clear();
        assert_eq!(silent.out, b"");
    }

    #[test]
    fn each_stage_says_what_is_waited_for() {
        let notes = SourceNotes::default();
        let upstreams = json!([{ "announced": "0x64" }, { "announced": null }]);
        let at = |status: Value| waited_for(&ClientProgress::read(&status, &upstreams), true, &notes);
        assert_eq!(at(json!({ "synced": false })), "finding nodes: 1 of 2 sources answer");
        let mut status = json!({
            "synced": false, "startingBlock": "0xa", "currentBlock": "0x14", "highestBlock": "0x64",
            "headersPerSecond": 5, "secondsLeft": 16,
        });
        assert_eq!(
            at(status.clone()),
            "headers: 10 of 90 verified, 5 a second, about 16 s left; 1 of 2 sources answer"
        );
        status["synced"] = json!(true);
        assert_eq!(at(status), "state at block 20: waiting for a source, 1 of 2 answer");
        let none = ClientProgress::read(&Value::Null, &Value::Null);
        assert_eq!(waited_for(&none, false, &notes), "connecting: 0 of 0 sources answer");
    }
}
