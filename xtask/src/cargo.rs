//! Cargo commands that several steps use: the tests of this machine's crates, and the build of the program.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use crate::shell::{Cmd, StepOutput};
use crate::steps::StepResult;
use crate::tools;

/// Set once this run has built the program `rootlight`, with the tests that start it.
static PROGRAM: OnceLock<()> = OnceLock::new();

/// Crates without tests for this machine; the step `lint` compiles them.
const WITHOUT_TESTS: [&str; 2] = ["rootlight-wasm", "rootlight-bench"];

/// A cargo command over the crates that have tests on this machine. Commands for fewer of them would choose other
/// features of some dependencies, and so compile these once more.
pub(crate) fn host_crates(command: &str) -> Cmd {
    let cmd = Cmd::new("cargo").arg(command).args(&["--locked", "--workspace"]);
    with_rocksdb(WITHOUT_TESTS.iter().fold(cmd, |cmd, name| cmd.args(&["--exclude", name])))
}

/// The test programs that take longest: `cluster`, `postgres` and `service` start servers of PostgreSQL or Redis, and `budgets` fills every
/// memory budget.
const LONGEST: [&str; 4] = ["budgets", "cluster", "postgres", "service"];

/// Runs the tests of the core, of the native host and of the tasks. Examples are left out: the step `examples` runs those of the core, and
/// `lint` compiles all.
pub(crate) fn host_tests(log: &mut StepOutput) -> StepResult {
    let programs = test_programs(log)?;
    run_programs(log, programs)
}

/// Runs what [`host_tests`] runs, without the [`LONGEST`] test programs.
pub(crate) fn quick_tests(log: &mut StepOutput) -> StepResult {
    let mut programs = test_programs(log)?;
    programs.retain(|program| !LONGEST.contains(&program.name.as_str()));
    run_programs(log, programs)
}

/// A compiled test program: the unit tests of a library or binary, or a folder of `tests/`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TestProgram {
    /// The folder of its crate, in which it runs.
    folder: PathBuf,
    name: String,
    file: PathBuf,
}

impl TestProgram {
    /// Reads a message of cargo; `None` if the message is about something other than a test program.
    fn read(message: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        message["profile"]["test"].as_bool().filter(|is_test| *is_test)?;
        let manifest = PathBuf::from(message["manifest_path"].as_str()?);
        Some(Self {
            name: text(&message["target"]["name"])?,
            file: PathBuf::from(text(&message["executable"])?),
            folder: manifest.parent()?.to_path_buf(),
        })
    }

    /// Runs all tests of the program. Returns their output, and an error if a test fails or the program cannot run.
    fn run(&self) -> (String, StepResult) {
        let run = || {
            // The library `rootlight` and the program `rootlight` share a name, but not the name of their test programs.
            let file = self.file.file_name().unwrap_or_default().to_string_lossy();
            let mut log = StepOutput::create(&format!("tests {file}"), false).map_err(|e| e.to_string())?;
            let outcome = log.run(Cmd::program(&self.file).inside(&self.folder));
            let output = std::fs::read_to_string(log.path()).map_err(|e| e.to_string())?;
            Ok((output, outcome.map(|_| String::new())))
        };
        run().unwrap_or_else(|why: String| (String::new(), Err(why)))
    }
}

/// Builds all test programs, and the program `rootlight`, with one invocation of cargo, so that dependencies are built once. Returns the test
/// programs sorted by the folder of their crate.
fn test_programs(log: &mut StepOutput) -> Result<Vec<TestProgram>, String> {
    let tests = host_crates("test").args(&["--no-run", "--lib", "--bins", "--tests"]);
    // On a slow machine, building all tests takes longer than running them.
    let messages = log.read(tests.arg("--message-format=json-render-diagnostics").limit(60 * 60))?;
    let _ = PROGRAM.set(());
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut programs: Vec<_> = messages.filter_map(|message| TestProgram::read(&message)).collect();
    programs.sort();
    if programs.is_empty() { Err("cargo has named no test program".into()) } else { Ok(programs) }
}

/// Runs test programs in two threads. The first thread starts with the core's test programs, which compute. The second thread
/// starts at the other end, with those of the native host, which mostly wait for servers, peers and deadlines.
fn run_programs(log: &mut StepOutput, programs: Vec<TestProgram>) -> StepResult {
    let left = Mutex::new(VecDeque::from(programs));
    let log = Mutex::new((log, Vec::new()));
    // Takes programs from one end of the list, and runs them until none is left.
    let lane = |next: fn(&mut VecDeque<TestProgram>) -> Option<TestProgram>| loop {
        let Some(program) = next(&mut left.lock().unwrap_or_else(PoisonError::into_inner)) else {
            return;
        };
        let (output, outcome) = program.run();
        let (log, failed) = &mut *log.lock().unwrap_or_else(PoisonError::into_inner);
        log.add(&output);
        failed.extend(outcome.err());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| lane(VecDeque::pop_back));
        lane(VecDeque::pop_front);
    });
    let (_, failed) = log.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(String::new()) } else { Err(failed.join("\n    ")) }
}

/// Builds the program with the tests that start it, unless [`host_tests`] has built it in this run: cargo would wait for
/// its lock, which a check that runs at the same time may hold.
pub(crate) fn program(log: &mut StepOutput) -> Result<(), String> {
    if PROGRAM.get().is_some() {
        return Ok(());
    }
    log.run(host_crates("test").args(&["--no-run", "--test", "program"])).map(|_| ())
}

/// Adds the features that need system libraries or a C compiler to a cargo command. Programs are linked to the system's RocksDB: compiling the
/// copy in the RocksDB crate takes a quarter of an hour.
pub(crate) fn with_rocksdb(cmd: Cmd) -> Cmd {
    let cmd = cmd
        .args(&["--features", "rootlight-cli/rskj-store,rootlight-cli/js-tracers"])
        .env("ROCKSDB_INCLUDE_DIR", tools::ROCKSDB_INCLUDE);
    match tools::rocksdb() {
        Some(folder) => cmd.env("ROCKSDB_LIB_DIR", folder),
        None => cmd,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn test_programs_are_read_from_the_messages_of_cargo() {
        let message = |test: bool, executable: Value| {
            json!({"manifest_path": "/r/native/cli/Cargo.toml", "target": {"name": "server"},
                "profile": {"test": test}, "executable": executable})
        };
        let server = TestProgram {
            name: "server".into(),
            file: "/r/target/server-1".into(),
            folder: "/r/native/cli".into(),
        };
        assert_eq!(TestProgram::read(&message(true, json!("/r/target/server-1"))), Some(server));
        assert_eq!(TestProgram::read(&message(false, json!("/r/target/rootlight"))), None, "a program");
        assert_eq!(TestProgram::read(&message(true, Value::Null)), None, "no program");
        assert_eq!(TestProgram::read(&json!({"reason": "build-finished", "success": true})), None);
    }

    #[test]
    fn every_program_runs_and_each_failure_is_named() {
        // Each program has a log that is named after its file, so no two of these have one file.
        let program =
            |file: &str| TestProgram { name: "any".into(), file: file.into(), folder: std::env::temp_dir() };
        let mut log = StepOutput::create("lanes", false).unwrap();
        let good = ["/bin/pwd", "/bin/true", "/bin/date"];
        let all = good.iter().chain(&["/bin/false"]).map(|file| program(file));
        let outcome = run_programs(&mut log, all.collect());
        assert!(outcome.unwrap_err().starts_with("/bin/false: exit status: 1"));
        let text = std::fs::read_to_string(log.path()).unwrap();
        for file in good {
            assert_eq!(text.matches(&format!("$ {file}\n")).count(), 1, "{text}");
        }
        assert_eq!(run_programs(&mut log, vec![program(good[0])]), Ok(String::new()));
    }
}
