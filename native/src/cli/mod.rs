//! The command line. Scripts rely on its exit codes: 0 ok, 1 failed, 2 wrong usage.

mod args;
mod banner;
mod calls;
#[cfg(feature = "cluster")]
mod cluster_keys;
mod config;
mod dev;
mod discovery;
mod doctor;
mod entry;
mod find_args;
mod follow;
#[cfg(feature = "cluster")]
mod index;
#[cfg(feature = "cluster")]
mod index_args;
mod keys;
mod light;
mod log_lines;
mod logging;
mod manual;
mod methods;
mod nodes;
mod operations;
mod peers;
mod print;
mod record;
mod reload;
#[cfg(feature = "cluster")]
mod serve;
#[cfg(feature = "cluster")]
mod serve_args;
mod server_args;
mod serving;
mod sidecar;
mod systemd;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::upstream::OpenError;

pub use args::{
    Cli, Command, CommonArgs, DevArgs, FollowArgs, LightArgs, RecordArgs, SidecarArgs, VerifyArgs,
};
pub use entry::{EntryArgs, Opened};
pub use find_args::{CrawlArgs, DoctorArgs, FindArgs, PeersArgs};
pub use keys::{KeysAction, KeysArgs, LimitArgs, Switch};
pub use operations::OperationArgs;
pub use server_args::ServerArgs;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The command line or the configuration file is wrong.
    #[error("{0}")]
    Usage(String),
    /// The command failed for another reason.
    #[error("{0}")]
    Failed(String),
    /// A check of `rootlight verify` failed; the printed report says which.
    #[error("verification failed")]
    Refused,
}

impl CommandError {
    /// Wraps an error's text as a failure.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) | Self::Refused => ExitCode::from(1),
        }
    }
}

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Scheme(_) => Self::Usage(error.to_string()),
            other => Self::failed(other),
        }
    }
}

/// Runs the program. Everything is here except the `main` function, so that tests can call it.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    #[cfg(unix)]
    systemd::take_over();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let outcome = match read(arguments.clone(), false) {
        Ok((cli, values)) => {
            reload::remember(arguments, values);
            run(cli)
        }
        Err(Stop::Clap(message)) => {
            // Clap prints help and version to stdout with code 0, and mistakes to stderr with code 2.
            let code = u8::try_from(message.exit_code()).unwrap_or(2);
            let _ = message.print();
            return ExitCode::from(code);
        }
        Err(Stop::Config(error)) => Err(error),
    };
    let printed =
        print::failure().map_or(Ok(()), |error| Err(CommandError::Failed(format!("output: {error}"))));
    match outcome.and(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !matches!(error, CommandError::Refused) {
                print::write_error(format_args!("error: {error}"));
            }
            error.code()
        }
    }
}

enum Stop {
    Clap(clap::Error),
    Config(CommandError),
}

/// Parses the arguments. Values of a configuration file become defaults, so flags and environment variables
/// take precedence. Returns also the values of all flags as text.
fn read(arguments: Vec<OsString>, is_running: bool) -> Result<(Cli, reload::Values), Stop> {
    let command = with_environment(Cli::command());
    let command = match config::path(&arguments) {
        Some(path) => config::apply(command, &path, is_running).map_err(Stop::Config)?,
        None => command,
    };
    let wrong = |error| Stop::Clap(config::without_values(error, &arguments));
    let matches = command.clone().try_get_matches_from(&arguments).map_err(wrong)?;
    let values = reload::values(&command, &matches);
    Cli::from_arg_matches(&matches).map(|cli| (cli, values)).map_err(wrong)
}

/// Lets every flag come from the environment: `--http-port` from `ROOTLIGHT_HTTP_PORT`.
fn with_environment(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_long() {
        Some(long) => {
            let name = format!("ROOTLIGHT_{}", long.to_uppercase().replace('-', "_"));
            arg.env(name).hide_env(true)
        }
        None => arg,
    });
    command.mut_subcommands(with_environment)
}

fn run(cli: Cli) -> Result<(), CommandError> {
    logging::start(&cli.common);
    if let Some(file) = &cli.common.config {
        config::warn_of_mode(file);
    }
    match cli.command {
        None => dev::run(&cli.dev, cli.common.silent),
        Some(Command::Dev(args)) => dev::run(&args, cli.common.silent),
        Some(Command::Follow(args)) => follow::run(&args),
        Some(Command::Light(args)) => light::run(&args),
        Some(Command::Peers(args)) => nodes::peers(&args),
        Some(Command::Crawl(args)) => nodes::crawl(&args),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Sidecar(args)) => sidecar::run(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Serve(args)) => serve::run(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Index(args)) => index::run(&args),
        #[cfg(feature = "cluster")]
        Some(Command::Keys(args)) if args.index.is_some() || !args.cluster.is_empty() => {
            cluster_keys::run(args)
        }
        Some(Command::Keys(args)) => keys::run(args),
        Some(Command::Methods { json }) => methods::run(json),
        Some(Command::Completions { shell }) => manual::completions(shell),
        Some(Command::Man { out_dir }) => manual::man(out_dir.as_deref()),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Record(args)) => record::run(&args, cli.common.silent),
    }
}

/// The number of tasks that a thread runs before it looks for new data on the sockets. Long bodies are moved in
/// pieces, one for each turn of a task; with tokio's default of 61 a new request would wait for 61 pieces.
const EVENT_INTERVAL: u32 = 8;

/// Creates a runtime for commands that wait on sockets.
fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    // Short messages are answered on these threads. With at least two, one busy thread does not block the
    // others' clients.
    let workers = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(workers)
        .event_interval(EVENT_INTERVAL)
        .on_thread_start(crate::processors::join)
        .enable_all()
        .build()
        .map_err(CommandError::failed)
}
