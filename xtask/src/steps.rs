//! Runs steps and prints a line with the time for each, then the times and a summary with the number of tests.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::shell::StepOutput;

/// Most lines of the end of a failed step's output that are printed. The log has all of them.
const TAIL_LINES: usize = 30;

/// Most lines that are printed of each failed test.
const TEST_LINES: usize = 12;

/// Most failed tests whose lines are printed.
const SHOWN_TESTS: usize = 10;

/// The numbers of tests in the output of test runners.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestCounts {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl TestCounts {
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

/// The failed tests in the output of test runners: the name of each, and the first lines of its output. `cargo test` prints a header before the
/// output of a test, Node.js a line `not ok`.
fn failures(output: &str) -> Vec<(&str, Vec<&str>)> {
    let lines: Vec<&str> = output.lines().collect();
    let failed = lines.iter().enumerate().filter_map(|(at, line)| {
        let cargo = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        let node = || {
            line.trim_start().strip_prefix("not ok ").map(|rest| rest.trim_start_matches(char::is_numeric))
        };
        let name = cargo.or_else(node)?.trim_start_matches(" - ");
        Some((name, lines[at..].iter().take(TEST_LINES).copied().collect()))
    });
    failed.collect()
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
pub(crate) type StepResult = Result<String, String>;

/// A step that prepares a measurement: its name and its function.
pub(crate) type NamedStep = (&'static str, fn(&mut StepOutput) -> StepResult);

/// The exit code of a task; its error is printed.
pub(crate) fn exit_code(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The result of a step.
struct EndedStep {
    name: String,
    time: Duration,
    /// Whether the step succeeded.
    good: bool,
    /// The names of its failed tests.
    failed_tests: Vec<String>,
}

/// The results of the steps so far. Steps may run in several threads.
pub(crate) struct SuiteRun {
    /// Whether the output of commands is printed.
    verbose: bool,
    started: Instant,
    results: Mutex<(Vec<EndedStep>, TestCounts)>,
}

impl SuiteRun {
    /// A run without steps.
    pub(crate) fn new(verbose: bool) -> Self {
        Self { verbose, started: Instant::now(), results: Mutex::default() }
    }

    /// Runs one step and prints its name, result and time on one line when it has ended. Returns whether it succeeded.
    pub(crate) fn step(&self, name: &str, work: impl FnOnce(&mut StepOutput) -> StepResult) -> bool {
        let started = Instant::now();
        match StepOutput::create(name, self.verbose) {
            Ok(mut log) => {
                let outcome = work(&mut log);
                self.close(name, started, Some(log), outcome)
            }
            Err(e) => self.close(name, started, None, Err(format!("no log: {e}"))),
        }
    }

    /// Prints and stores the result of a step. Returns whether it succeeded.
    fn close(&self, name: &str, started: Instant, log: Option<StepOutput>, outcome: StepResult) -> bool {
        let time = started.elapsed();
        let text = log.as_ref().and_then(|l| std::fs::read_to_string(l.path()).ok()).unwrap_or_default();
        let count = TestCounts::read(&text);
        let good = outcome.is_ok();
        // The lock is held while the lines are printed, so that those of another step do not come between them.
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, tests) = &mut *results;
        tests.add(count);
        let failures = if good { Vec::new() } else { failures(&text) };
        let failed_tests = failures.iter().map(|(name, _)| (*name).to_owned()).collect();
        done.push(EndedStep { name: name.to_owned(), time, good, failed_tests });
        let seconds = time.as_secs_f64();
        match outcome {
            Ok(note) => {
                let ran = if count == TestCounts::default() {
                    String::new()
                } else {
                    format!(", {} tests", count.passed)
                };
                let gap = if note.is_empty() { "" } else { ", " };
                println!("{name:<28} ok     {seconds:7.1} s{ran}{gap}{note}");
            }
            Err(why) => {
                println!("{name:<28} FAILED {seconds:7.1} s");
                let lines: Vec<&str> = text.lines().collect();
                let end = &lines[lines.len().saturating_sub(TAIL_LINES)..];
                let shown = failures.iter().take(SHOWN_TESTS).flat_map(|(_, lines)| lines);
                for line in shown.chain(end) {
                    println!("    {line:.300}");
                }
                println!("    {why}");
                if let Some(log) = log {
                    println!("    complete output: {}", log.path().display());
                }
            }
        }
        good
    }

    /// Does what [`Self::finish`] does, for a run with further work after its steps.
    pub(crate) fn finish_with(self, outcome: Result<(), String>) -> ExitCode {
        let code = self.finish();
        if outcome.is_ok() { code } else { exit_code(outcome) }
    }

    /// Prints the steps by their times and the summary, and returns the exit code. The last line has the numbers of
    /// tests in the format of test runners.
    pub(crate) fn finish(self) -> ExitCode {
        let seconds = self.started.elapsed().as_secs();
        let (mut done, tests) = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let failed: Vec<String> =
            done.iter().filter(|step| !step.good).map(|step| step.name.clone()).collect();
        let failed_tests: Vec<String> = done.iter().flat_map(|step| step.failed_tests.clone()).collect();
        let steps = done.len();
        done.sort_by_key(|step| std::cmp::Reverse(step.time));
        println!("\nsteps of a second or more, the longest first:");
        for step in done.iter().filter(|step| step.time >= Duration::from_secs(1)) {
            println!("{:7.1} s  {}", step.time.as_secs_f64(), step.name);
        }
        let used = cpu_seconds().map(|used| format!(", {used} s of processor time")).unwrap_or_default();
        let good = steps - failed.len();
        println!("\n{good} of {steps} steps ok in {} min {:02} s{used}", seconds / 60, seconds % 60);
        if !failed.is_empty() {
            println!("failed: {}", failed.join(", "));
        }
        for test in failed_tests {
            println!("failed test: {test}");
        }
        let TestCounts { passed, failed: bad, skipped } = tests;
        if passed + bad > 0 {
            println!("tests: {passed} passed, {bad} failed, {skipped} skipped");
        }
        if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Returns the processor time that commands have used, in seconds; `None` if the system has no `/proc`.
fn cpu_seconds() -> Option<u64> {
    child_seconds(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Reads the processor time of ended child processes, in seconds, from a line of `/proc/PID/stat`: the 16th and 17th fields, in
/// hundredths of a second. The second field, the program's name in parentheses, may contain spaces.
fn child_seconds(line: &str) -> Option<u64> {
    let mut fields = line.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some((next()? + next()?) / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_lines_of_test_runners_are_counted() {
        let cargo = "running 2 tests\ntest result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out\n\
                     test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured";
        assert_eq!(TestCounts::read(cargo), TestCounts { passed: 16, failed: 2, skipped: 1 });
        assert_eq!(TestCounts::read("# pass 5\n# fail 1"), TestCounts { passed: 5, failed: 1, skipped: 0 });
        assert_eq!(TestCounts::read("Ran 6 tests in 1.2s\n\nOK").passed, 6);
        assert_eq!(TestCounts::read("10 passed, nothing else"), TestCounts::default());
    }

    #[test]
    fn failed_tests_are_named_with_what_they_said() {
        let cargo =
            "test a::b ... FAILED\nok\n\n---- a::b stdout ----\nthread panicked\n\nfailures:\n    a::b";
        let node = "ok 1 - fine\nnot ok 2 - a client goes on\n  error: none";
        let named =
            |output| failures(output).into_iter().map(|(name, said)| (name, said[1])).collect::<Vec<_>>();
        assert_eq!(named(cargo), [("a::b", "thread panicked")]);
        assert_eq!(named(node), [("a client goes on", "  error: none")]);
        assert!(failures("test a ... ok\nok 1 - not ok").is_empty());
    }

    #[test]
    fn processor_time_is_that_of_ended_children() {
        let line = "7 (a b) c) S 1 7 7 0 -1 4194560 900 80000 0 3 11 22 1250 350 20 0 4 0 100 1000 2";
        assert_eq!(child_seconds(line), Some(16));
        assert_eq!(child_seconds("7 (a) S 1"), None);
    }
}
