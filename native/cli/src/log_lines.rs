//! Writes the lines of the log: text from outside is cut and escaped, and lines of one kind are limited so that they do not fill
//! the disk. `logging.rs` installs the writer.

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rootlight_limits::sanitize::{LINE, output, sanitize};
use serde_json::Value;
use tracing::callsite::Identifier;
use tracing::field::Field;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;

/// Lines of one kind that are written without a pause. A kind is the place in the program that writes the line.
const BURST: u32 = 200;

/// Time after which one more line of a kind is written, so that a kind has at most 20 lines per second after its burst.
const LINE_INTERVAL: Duration = Duration::from_millis(50);

/// Longest line of JSON, in bytes, that is written without cutting its long texts. Two texts of the longest length fit.
const JSON_LINE: usize = 2 * LINE;

/// Writes one field of a line of text, escaped, because any field may contain text from outside.
pub(super) fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(writer, "{}", sanitize(format_args!("{value:?}"))),
        name => write!(writer, "{name}={}", sanitize(format_args!("{value:?}"))),
    }
}

/// Writes log lines to the standard error.
pub(super) struct LogLines {
    is_json: bool,
    kinds: Mutex<HashMap<Identifier, CallsiteQuota>>,
}

/// The recent lines of one kind.
struct CallsiteQuota {
    /// Lines that may still be written without a pause.
    left: u32,
    /// Time up to which `left` was raised by one per interval.
    since: Instant,
    /// Lines that were left out since the last one that was written.
    left_out: u64,
}

impl LogLines {
    pub(super) fn new(is_json: bool) -> Self {
        Self { is_json, kinds: Mutex::default() }
    }

    /// Counts a line. Returns the number of lines of its kind that were left out before it; `None` if it is left out too.
    fn admit(&self, kind: Identifier, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        // The map has at most one entry for each place in the program that writes a line.
        let kind = kinds.entry(kind).or_insert(CallsiteQuota { left: BURST, since: now, left_out: 0 });
        let pauses = now.saturating_duration_since(kind.since).as_nanos() / LINE_INTERVAL.as_nanos();
        let more = u32::try_from(pauses).unwrap_or(u32::MAX);
        if more > 0 {
            kind.left = kind.left.saturating_add(more).min(BURST);
            kind.since = if kind.left == BURST { now } else { kind.since + LINE_INTERVAL * more };
        }
        match kind.left.checked_sub(1) {
            Some(left) => {
                kind.left = left;
                Some(std::mem::take(&mut kind.left_out))
            }
            None => {
                kind.left_out = kind.left_out.saturating_add(1);
                None
            }
        }
    }

    /// The line as it is written, with the number of lines that were left out before it.
    fn shown(&self, line: &str, left_out: u64) -> String {
        let mut text = if self.is_json { json(line) } else { line.trim_end_matches('\n').to_owned() };
        if left_out > 0 && self.is_json {
            text.truncate(text.strip_suffix('}').unwrap_or(&text).len());
            text.push_str(&format!(r#","left_out":{left_out}}}"#));
        } else if left_out > 0 {
            text.push_str(&format!(" (before it {left_out} more lines of this kind, which were left out)"));
        }
        text.push('\n');
        text
    }
}

/// A line of JSON with long texts cut and invisible characters escaped.
fn json(line: &str) -> String {
    let line = line.trim_end_matches('\n');
    let cut = (line.len() > JSON_LINE).then(|| serde_json::from_str(line).ok()).flatten();
    match cut {
        None => output(line).to_string(),
        Some(mut value) => {
            shorten(&mut value);
            output(value).to_string()
        }
    }
}

/// Cuts the long texts of a value.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LINE => *text = sanitize(&text).to_string(),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { lines: self, left_out: Some(0) }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter<'a> {
        // An operator turns lines of `debug` and `trace` on for a short time and wants all of them, so they have no limit.
        let is_counted = *metadata.level() <= Level::INFO;
        let left_out = if is_counted { self.admit(metadata.callsite(), Instant::now()) } else { Some(0) };
        LineWriter { lines: self, left_out }
    }
}

/// Writes one line, which the logger passes in one call.
pub(super) struct LineWriter<'a> {
    lines: &'a LogLines,
    /// Lines that were left out before this one; `None` if this one is left out too.
    left_out: Option<u64>,
}

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(left_out) = self.left_out {
            let shown = self.lines.shown(&String::from_utf8_lossy(line), left_out);
            io::stderr().lock().write_all(shown.as_bytes())?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use rootlight_limits::sanitize::is_unseen;
    use tracing::callsite::DefaultCallsite;
    use tracing::{debug, info, metadata};
    use tracing_subscriber::field::MakeExt as _;
    use tracing_subscriber::fmt::format;
    use tracing_subscriber::fmt::{self as log};

    use super::*;

    const HOSTILE: &str = "\n2026-11-25T00:00:00Z ERROR forged\r\u{1b}[2J\u{202e}\u{2028}";

    /// The lines that `LogLines` has written, in memory.
    #[derive(Clone)]
    struct MemoryLog(std::sync::Arc<(LogLines, Mutex<String>)>);

    struct MemoryLine<'a>(&'a MemoryLog, Option<u64>);

    impl Write for MemoryLine<'_> {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let (lines, text) = &*self.0.0;
            if let Some(left_out) = self.1 {
                text.lock().unwrap().push_str(&lines.shown(std::str::from_utf8(line).unwrap(), left_out));
            }
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for MemoryLog {
        type Writer = MemoryLine<'a>;

        fn make_writer(&'a self) -> MemoryLine<'a> {
            MemoryLine(self, Some(0))
        }

        fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> MemoryLine<'a> {
            MemoryLine(self, self.0.0.make_writer_for(metadata).left_out)
        }
    }

    /// The log of some work.
    fn logged(is_json: bool, work: impl FnOnce()) -> String {
        let kept = MemoryLog(std::sync::Arc::new((LogLines::new(is_json), Mutex::default())));
        let lines = log::fmt().with_max_level(Level::TRACE).with_writer(kept.clone()).with_ansi(false);
        if is_json {
            tracing::subscriber::with_default(lines.json().flatten_event(true).finish(), work);
        } else {
            let lines = lines.fmt_fields(format::debug_fn(field).delimited(" "));
            tracing::subscriber::with_default(lines.finish(), work);
        }
        kept.0.1.lock().unwrap().clone()
    }

    #[test]
    fn text_from_outside_forges_no_line_wherever_it_stands_in_an_event() {
        for is_json in [false, true] {
            let text = logged(is_json, || {
                info!("reverted: {HOSTILE}");
                info!(error = %HOSTILE, "failed");
                info!(reason = HOSTILE, "failed");
                info!(what = ?HOSTILE, "failed");
                let _span = tracing::info_span!("request", agent = %HOSTILE).entered();
                debug!("inside a span");
            });
            assert_eq!(text.lines().count(), 5, "{text}");
            assert!(!text.chars().any(|c| c != '\n' && is_unseen(c)), "{text:?}");
            // JSON names a span twice.
            assert_eq!(text.matches("forged").count(), if is_json { 6 } else { 5 }, "{text}");
            if is_json {
                assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
            }
        }
    }

    #[test]
    fn a_line_has_a_bounded_length() {
        let long = "x\u{202e}".repeat(2_000_000);
        for is_json in [false, true] {
            let text = logged(is_json, || {
                info!("{long}");
                info!(error = %long, "failed");
                let _span = tracing::info_span!("request", agent = %long).entered();
                info!(also = %long, "inside a span");
            });
            assert_eq!(text.lines().count(), 3);
            assert!(
                text.lines().all(|line| line.len() < 4_500),
                "{:?}",
                text.lines().map(str::len).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_kind_of_line_that_comes_too_often_is_left_out_and_hides_no_other() {
        for is_json in [false, true] {
            let text = logged(is_json, || {
                for number in 0..10_000 {
                    info!("call {number} failed");
                }
                info!("another line");
            });
            let calls = text.matches("failed").count();
            assert!((BURST as usize..2_000).contains(&calls), "{calls}");
            assert!(text.contains("another line"));
        }
    }

    #[test]
    fn lines_come_again_after_a_pause_and_say_how_many_were_left_out() {
        static SITE: DefaultCallsite = DefaultCallsite::new(&META);
        static META: Metadata<'static> = tracing::metadata! {
            name: "line", target: "test", level: Level::INFO, fields: &[], callsite: &SITE, kind: metadata::Kind::EVENT,
        };
        let kind = META.callsite();
        let (lines, start) = (LogLines::new(false), Instant::now());
        for _ in 0..BURST {
            assert_eq!(lines.admit(kind.clone(), start), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(lines.admit(kind.clone(), start + LINE_INTERVAL / 2), None);
        }
        assert_eq!(lines.admit(kind.clone(), start + LINE_INTERVAL), Some(7));
        assert_eq!(lines.admit(kind.clone(), start + LINE_INTERVAL), None);
        assert_eq!(lines.admit(kind, start + LINE_INTERVAL * 1_000), Some(1));
        assert!(lines.shown("a line\n", 3).starts_with("a line (before it 3 more"));
        let shown = LogLines::new(true).shown("{\"message\":\"a\",\"span\":{\"b\":\"}\"}}\n", 3);
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["left_out"], 3);
    }
}
