//! `rootlight` as programs of their own.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest time until a program has done something, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A program that runs. Dropping it kills it.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The command `rootlight NAME`: the program that was built with this test, or the one that `ROOTLIGHT_PROGRAM` names.
pub(crate) fn rootlight(name: &str) -> Command {
    let program = std::env::var_os("ROOTLIGHT_PROGRAM");
    let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_rootlight").into()));
    command.arg(name).env_remove("RUST_LOG").stdin(Stdio::null());
    // As the units of systemd do.
    command.env("MALLOC_ARENA_MAX", "2");
    command
}

impl Program {
    /// Starts a program that writes its log to this file.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
        let errors = File::options().create(true).append(true).open(log).unwrap();
        let child = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        Self { child, log: log.to_owned() }
    }

    /// Waits until the program says that it listens.
    pub(crate) async fn listening(&mut self) {
        let output = self.child.stdout.take().expect("it is read once");
        let read = move || {
            BufReader::new(output).lines().map_while(Result::ok).any(|line| line.starts_with("listening "))
        };
        let said = tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(read)).await;
        assert!(matches!(said, Ok(Ok(true))), "it does not listen: {}", self.said());
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The end of its log.
    pub(crate) fn said(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(&id).status().unwrap().success());
        self.ended().await
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "it does not end: {}", self.said());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its resident memory in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }
}
