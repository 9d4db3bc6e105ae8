//! Running other programs: where they are, what they print, how long they may take.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No command of a test run takes longer on two cores; one that does hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// How often a running command is looked at.
const POLL: Duration = Duration::from_millis(20);

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// Where this repository keeps the tools that it installs for itself.
pub(crate) fn tools_dir() -> PathBuf {
    target_dir().join("tools")
}

/// Cargo's output folder.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |d| root().join(d))
}

/// A program in our own tools folder or on PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&search_path()).map(|d| d.join(program)).find(|p| p.is_file())
}

/// PATH with our own tools first: they are installed only where the machine's have the wrong version.
fn search_path() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = [tools_dir().join("bin")];
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).unwrap_or(path)
}

/// What a program prints about itself, or `None` where it cannot be run.
pub(crate) fn ask(program: &str, args: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(args).env("PATH", search_path()).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// One command to run, from the workspace's folder unless told otherwise.
pub(crate) struct Cmd {
    command: Command,
    shown: String,
    limit: Duration,
}

impl Cmd {
    /// A command line of words without spaces.
    pub(crate) fn new(line: &str) -> Self {
        let mut words = line.split_whitespace();
        let program = Self::program(Path::new(words.next().unwrap_or_default()));
        words.fold(program, Self::arg)
    }

    /// A program without arguments.
    pub(crate) fn program(path: &Path) -> Self {
        let mut command = Command::new(path);
        command.current_dir(root()).env("PATH", search_path());
        Self { command, shown: path.display().to_string(), limit: PATIENCE }
    }

    /// Adds an argument as it is.
    pub(crate) fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.shown.push(' ');
        self.shown.push_str(&arg.as_ref().to_string_lossy());
        self.command.arg(arg);
        self
    }

    /// Adds arguments as they are.
    pub(crate) fn args(self, args: &[&str]) -> Self {
        args.iter().fold(self, |cmd, a| cmd.arg(a))
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, key: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Runs in a folder of the workspace.
    pub(crate) fn within(mut self, folder: &str) -> Self {
        self.command.current_dir(root().join(folder));
        self
    }

    /// Ends the command and what it started when it takes longer.
    pub(crate) fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs with the terminal's own input and output.
    pub(crate) fn run_attached(mut self) -> Result<(), String> {
        let status = self.command.status().map_err(|e| format!("{}: {e}", self.shown))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{}: {status}", self.shown))
        }
    }
}

/// Where the output of one step's commands goes.
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    shown: bool,
}

impl Log {
    /// An empty log below the target folder.
    pub(crate) fn create(name: &str, shown: bool) -> io::Result<Self> {
        let folder = target_dir().join("xtask");
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.log", name.replace(' ', "-")));
        let file = File::options().create(true).read(true).write(true).truncate(true).open(&path)?;
        Ok(Self { file, path, shown })
    }

    /// The file behind it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a command to its end; its output, or what went wrong.
    pub(crate) fn run(&mut self, cmd: Cmd) -> Result<String, String> {
        let _ = writeln!(self.file, "$ {}", cmd.shown);
        let start = self.file.stream_position().map_err(|e| e.to_string())?;
        let outcome = self.wait(cmd);
        let output = self.read_from(start).unwrap_or_default();
        if self.shown {
            println!("\n{output}");
        }
        outcome.map(|()| output)
    }

    fn wait(&mut self, mut cmd: Cmd) -> Result<(), String> {
        let out = self.file.try_clone().map_err(|e| e.to_string())?;
        let err = self.file.try_clone().map_err(|e| e.to_string())?;
        // A group of its own, so that a browser which outlives its driver is ended with it.
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
                    return Err(format!("{}: no end after {} s", cmd.shown, cmd.limit.as_secs()));
                }
                None => std::thread::sleep(POLL),
            }
        }
    }

    fn read_from(&mut self, start: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(start))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
