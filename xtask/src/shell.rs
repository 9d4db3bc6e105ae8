//! Runs other programs: finds them, writes their output into the log of a step, and limits their time.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The default time limit of a command. On two cores every command of a test run takes less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// The interval at which a running command is polled.
const POLL: Duration = Duration::from_millis(20);

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// The folder of the tools that the tasks install.
pub(crate) fn tools_dir() -> PathBuf {
    target_dir().join("tools")
}

/// Cargo's output folder.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |d| root().join(d))
}

/// The path of a program in the tools folder or on PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&search_path()).map(|d| d.join(program)).find(|p| p.is_file())
}

/// PATH with the tools folder first. Tools are installed there only if the machine has none of the right version.
fn search_path() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = [tools_dir().join("bin")];
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).unwrap_or(path)
}

/// The standard output of a program, or `None` if it cannot be run or fails.
pub(crate) fn ask(program: &str, args: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(args).env("PATH", search_path()).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A command. It runs in the workspace's folder by default.
pub(crate) struct Cmd {
    command: Command,
    /// The command line, for logs and errors.
    shown: String,
    /// The time limit.
    limit: Duration,
}

impl Cmd {
    /// Makes a command from a line whose words have no spaces in them.
    pub(crate) fn new(line: &str) -> Self {
        let mut words = line.split_whitespace();
        let program = Self::program(Path::new(words.next().unwrap_or_default()));
        words.fold(program, Self::arg)
    }

    /// Makes a command without arguments.
    pub(crate) fn program(path: &Path) -> Self {
        let mut command = Command::new(path);
        command.current_dir(root()).env("PATH", search_path());
        Self { command, shown: path.display().to_string(), limit: PATIENCE }
    }

    /// Adds an argument unchanged.
    pub(crate) fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.shown.push(' ');
        self.shown.push_str(&arg.as_ref().to_string_lossy());
        self.command.arg(arg);
        self
    }

    /// Adds arguments unchanged.
    pub(crate) fn args(self, args: &[&str]) -> Self {
        args.iter().fold(self, |cmd, a| cmd.arg(a))
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, key: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Sets the folder of the workspace in which the command runs.
    pub(crate) fn within(self, folder: &str) -> Self {
        self.inside(&root().join(folder))
    }

    /// Sets the folder in which the command runs.
    pub(crate) fn inside(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets the time limit, after which the command and the processes it started are killed.
    pub(crate) fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs the command with the input and output of the terminal.
    pub(crate) fn run_attached(mut self) -> Result<(), String> {
        let status = self.command.status().map_err(|e| format!("{}: {e}", self.shown))?;
        if status.success() { Ok(()) } else { Err(format!("{}: {status}", self.shown)) }
    }
}

/// The log of one step, with the output of its commands.
pub(crate) struct StepOutput {
    file: File,
    path: PathBuf,
    /// Whether the output is printed too (`-v`).
    shown: bool,
}

impl StepOutput {
    /// Creates an empty log below the target folder.
    pub(crate) fn create(name: &str, shown: bool) -> io::Result<Self> {
        let folder = target_dir().join("xtask");
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.log", name.replace(' ', "-")));
        let file = File::options().create(true).read(true).write(true).truncate(true).open(&path)?;
        Ok(Self { file, path, shown })
    }

    /// The path of the log.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the output of a command that ran with a log of its own.
    pub(crate) fn add(&mut self, output: &str) {
        let _ = self.file.write_all(output.as_bytes());
        if self.shown {
            println!("\n{output}");
        }
    }

    /// Runs a command until it ends. Returns its standard output and standard error in the order of writing, or the reason of the failure.
    pub(crate) fn run(&mut self, cmd: Cmd) -> Result<String, String> {
        let out = self.file.try_clone().map_err(|e| e.to_string())?;
        self.run_into(cmd, out)
    }

    /// Runs a command until it ends. Returns its standard output alone, for commands whose output is parsed: cargo
    /// reports downloads and waiting on standard error.
    pub(crate) fn read(&mut self, cmd: Cmd) -> Result<String, String> {
        let path = self.path.with_extension("stdout");
        let out = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        self.run_into(cmd, out)?;
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Runs a command with its standard output in `out`. Returns the part of the log that the command has written.
    fn run_into(&mut self, cmd: Cmd, out: File) -> Result<String, String> {
        let _ = writeln!(self.file, "$ {}", cmd.shown);
        let start = self.file.stream_position().map_err(|e| e.to_string())?;
        let outcome = self.wait(cmd, out);
        let output = self.read_from(start).unwrap_or_default();
        if self.shown {
            println!("\n{output}");
        }
        outcome.map(|()| output)
    }

    /// Starts a command, and waits until it ends or its time limit is over.
    fn wait(&mut self, mut cmd: Cmd, out: File) -> Result<(), String> {
        let err = self.file.try_clone().map_err(|e| e.to_string())?;
        // A process group of its own, so that a browser which outlives its driver is killed too.
        cmd.command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        let mut child = cmd.command.spawn().map_err(|e| format!("{}: {e}", cmd.shown))?;
        let started = Instant::now();
        loop {
            match child.try_wait().map_err(|e| e.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{}: {status}", cmd.shown)),
                None if started.elapsed() > cmd.limit => {
                    let group = format!("-{}", child.id());
                    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
                    let _ = child.wait();
                    return Err(format!("{}: still running after {} s", cmd.shown, cmd.limit.as_secs()));
                }
                None => std::thread::sleep(POLL),
            }
        }
    }

    /// The log from a position on.
    fn read_from(&mut self, start: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(start))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cargo writes "Downloaded .." to standard error on a machine with an empty registry.
    #[test]
    fn output_that_is_parsed_has_no_messages_in_it() {
        let mut log = StepOutput::create("output and messages", false).unwrap();
        let command = || Cmd::new("sh -c").arg("echo Downloaded >&2; echo [1]");
        assert_eq!(log.read(command()).unwrap(), "[1]\n");
        let both = log.run(command()).unwrap();
        assert!(both.contains("Downloaded") && both.contains("[1]"), "{both}");
        assert!(log.read(Cmd::new("sh -c").arg("exit 1")).is_err());
    }
}
