//! Runs steps and prints a line with the time for each, then a summary with the number of tests.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use crate::shell::Log;

/// The number of lines shown of a failed step's output. All of it is in the log.
const TAIL_LINES: usize = 60;

/// Numbers of tests in the output of a test runner.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Count {
    /// Reads the summary lines of `cargo test` and wasm-bindgen's runner (`test result: ok. 3 passed; ...`), of
    /// Node.js (`# pass 3`) and of Python (`Ran 3 tests in`; a failure there fails the step). Skipped tests are those
    /// that cargo reports as ignored.
    pub(crate) fn read(output: &str) -> Self {
        let mut count = Self::default();
        for line in output.lines() {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("test result: ") {
                count.passed += before(rest, " passed");
                count.failed += before(rest, " failed");
                count.skipped += before(rest, " ignored");
            } else if line.starts_with("Ran ") && line.contains(" in ") {
                count.passed += before(line, " test");
            } else if let Some(rest) = line.strip_prefix("# pass ") {
                count.passed += rest.trim().parse().unwrap_or(0);
            } else if let Some(rest) = line.strip_prefix("# fail ") {
                count.failed += rest.trim().parse().unwrap_or(0);
            }
        }
        count
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// The number right before a word.
fn before(text: &str, word: &str) -> u32 {
    text.split(word)
        .next()
        .and_then(|t| t.rsplit([' ', '.']).next())
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// The result of a step: a note for its line, or the reason of the failure.
pub(crate) type Outcome = Result<String, String>;

/// The results of the steps so far.
pub(crate) struct Run {
    verbose: bool,
    started: Instant,
    failed: Vec<String>,
    steps: u32,
    tests: Count,
}

impl Run {
    /// A run without steps.
    pub(crate) fn new(verbose: bool) -> Self {
        Self { verbose, started: Instant::now(), failed: Vec::new(), steps: 0, tests: Count::default() }
    }

    /// Runs one step and prints its name, result and time on one line. Returns whether it succeeded.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce(&mut Log) -> Outcome) -> bool {
        self.steps += 1;
        print!("{name:<28} ");
        let _ = std::io::stdout().flush();
        let started = Instant::now();
        let mut log = match Log::create(name, self.verbose) {
            Ok(log) => log,
            Err(e) => return self.close(name, started, None, Err(format!("no log: {e}"))),
        };
        let outcome = work(&mut log);
        self.close(name, started, Some(log), outcome)
    }

    fn close(&mut self, name: &str, started: Instant, log: Option<Log>, outcome: Outcome) -> bool {
        let seconds = started.elapsed().as_secs_f64();
        let text = log.as_ref().and_then(|l| std::fs::read_to_string(l.path()).ok()).unwrap_or_default();
        let count = Count::read(&text);
        self.tests.add(count);
        let tests =
            if count == Count::default() { String::new() } else { format!(", {} tests", count.passed) };
        match outcome {
            Ok(note) => {
                let gap = if note.is_empty() { "" } else { ", " };
                println!("ok     {seconds:7.1} s{tests}{gap}{note}");
                true
            }
            Err(why) => {
                println!("FAILED {seconds:7.1} s");
                let lines: Vec<&str> = text.lines().collect();
                for line in lines.iter().skip(lines.len().saturating_sub(TAIL_LINES)) {
                    println!("    {line}");
                }
                println!("    {why}");
                if let Some(log) = log {
                    println!("    complete output: {}", log.path().display());
                }
                self.failed.push(name.to_owned());
                false
            }
        }
    }

    /// As [`Self::finish`], for a run with further work after its steps.
    pub(crate) fn finish_with(self, outcome: Result<(), String>) -> ExitCode {
        let code = self.finish();
        match outcome {
            Ok(()) => code,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        }
    }

    /// Prints the summary and returns the exit code. The last line has the numbers of tests in the format of test
    /// runners.
    pub(crate) fn finish(self) -> ExitCode {
        let seconds = self.started.elapsed().as_secs();
        let good = self.steps as usize - self.failed.len();
        println!("\n{good} of {} steps ok in {} min {:02} s", self.steps, seconds / 60, seconds % 60);
        if !self.failed.is_empty() {
            println!("failed: {}", self.failed.join(", "));
        }
        let Count { passed, failed, skipped } = self.tests;
        if passed + failed > 0 {
            println!("tests: {passed} passed, {failed} failed, {skipped} skipped");
        }
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_lines_of_test_runners_are_counted() {
        let cargo =
            "running 2 tests\ntest result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out\n\
                     test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured";
        assert_eq!(Count::read(cargo), Count { passed: 16, failed: 2, skipped: 1 });
        assert_eq!(Count::read("# pass 5\n# fail 1"), Count { passed: 5, failed: 1, skipped: 0 });
        assert_eq!(Count::read("Ran 6 tests in 1.2s\n\nOK").passed, 6);
        assert_eq!(Count::read("10 passed, nothing else"), Count::default());
    }
}
