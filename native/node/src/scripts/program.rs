//! Names the program that is started as the engine of a script.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The argument with which [`EngineProgram::this`] starts the present program.
pub const ENGINE: &str = "--script-engine";

/// A program that is started for each script, and then calls `scripts::run_engine_process`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "js-tracers"), allow(dead_code, reason = "no script is started"))]
pub struct EngineProgram {
    pub(super) path: PathBuf,
    pub(super) argument: OsString,
}

impl EngineProgram {
    /// The program at this path, which is an engine when it is started with this argument.
    pub fn new(path: impl Into<PathBuf>, argument: impl Into<OsString>) -> Self {
        Self { path: path.into(), argument: argument.into() }
    }

    /// The present program, also after its file was replaced. Its `main` function must call `scripts::run_engine_process`
    /// before anything else if the first argument is [`ENGINE`]. Another program would be started as it usually is, once for each script.
    ///
    /// # Errors
    /// The system does not tell the program's path.
    pub fn this() -> io::Result<Self> {
        let running = PathBuf::from("/proc/self/exe");
        let path =
            if cfg!(target_os = "linux") && running.exists() { running } else { std::env::current_exe()? };
        Ok(Self::new(path, ENGINE))
    }
}
