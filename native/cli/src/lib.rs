//! The command line of the program `rootlight`. Scripts rely on its exit codes: 0 ok, 1 failed, 2 wrong usage.
//!
//! Features: `cluster` (default) has `rootlight serve`, `rootlight index` and keys in PostgreSQL; `rskj-store` lets `rootlight sidecar`
//! read a node's store; `js-tracers` runs tracers in JavaScript.
//!
//! The program runs [`main`]; `cargo install rootlight-cli` installs it. The crates below it serve the core, `rootlight`, to
//! other processes. A development chain with an HTTP port inside a test:
//!
//! ```
//! use std::sync::Arc;
//!
//! use rootlight::dev::{DevAccounts, DevConfig};
//! use rootlight::engine::DevNode;
//! use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
//! use rootlight_server::{AdmissionRules, Operations, Origins, Server, ServerConfig, ServerLimits};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let entropy = Entropy::from_system()?;
//! let node = DevNode::new(DevConfig::new(&DevAccounts::default()), host_input(&entropy))?;
//! let service = Arc::new(LocalService::new(Box::new(node), LocalOptions::default(), entropy, None));
//!
//! let config = ServerConfig {
//!     host: "127.0.0.1".into(),
//!     http_port: 0, // 0: the system picks a free port
//!     ws_port: None,
//!     origins: Origins::Unnamed,
//!     hosts: Vec::new(),
//!     limits: ServerLimits::default(),
//!     admission: AdmissionRules::default(),
//!     operations: Operations::default(),
//! };
//! let server = Server::bind(config, service.clone()).await?;
//! println!("http://{}", server.address());
//!
//! // The server runs until this future ends; a test sends its requests meanwhile.
//! let test = tokio::time::sleep(std::time::Duration::from_millis(10));
//! server.run(test).await;
//! service.stop();
//! # Ok(())
//! # }
//! ```

mod admission;
mod args;
mod balance;
mod banner;
mod bitcoin;
mod calls;
#[cfg(feature = "cluster")]
mod cluster_keys;
mod command_line;
mod config;
mod dev;
mod discovery;
pub mod doctor;
mod error;
mod find_args;
mod follow;
mod fork;
mod fork_block;
mod header_folder;
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
mod rbtc;
mod record;
mod reload;
mod run_server;
mod runtime;
#[cfg(feature = "cluster")]
mod serve;
#[cfg(feature = "cluster")]
mod serve_args;
mod server_args;
mod service_call;
mod sidecar;
mod source_args;
mod stop_signal;
mod systemd;
mod usage_words;
mod utc;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use command_line::{NoCommand, read};
use rootlight_limits::io_words::of_path;

pub use admission::{AdmissionArgs, OpenedAdmission};
pub use args::{
    Cli, Command, CommonArgs, DevArgs, FollowArgs, LightArgs, RecordArgs, SidecarArgs, VerifyArgs,
};
pub use balance::{BalanceArgs, BlockChoice, BlockChoiceError};
pub use error::CommandError;
pub use find_args::{CrawlArgs, DoctorArgs, FindArgs, PeersArgs};
pub use keys::{KeysAction, KeysArgs, LimitArgs, Switch};
pub use operations::OperationArgs;
pub use server_args::ServerArgs;
pub use source_args::SourceArgs;

/// Runs the program. Everything is here except the `main` function, so that tests can call it.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // A server starts this program with the argument `ENGINE` for each tracer in JavaScript.
    #[cfg(feature = "js-tracers")]
    if arguments.get(1).is_some_and(|first| first == rootlight_node::scripts::ENGINE) {
        return rootlight_node::scripts::run_engine_process();
    }
    #[cfg(unix)]
    systemd::take_over();
    // `false`: the program starts, as opposed to a reload of its configuration.
    let outcome = match read(arguments.clone(), false) {
        Ok((cli, values)) => {
            reload::remember(arguments, values);
            run(cli)
        }
        Err(NoCommand::Clap(message)) => {
            // Clap prints help and version to stdout with code 0, and mistakes to stderr with code 2.
            let (code, printed) = (u8::try_from(message.exit_code()).unwrap_or(2), message.print());
            if code != 0 {
                return ExitCode::from(code);
            }
            print::note(printed);
            Ok(())
        }
        Err(NoCommand::Config(error)) => Err(error),
    };
    let printed =
        print::failure().map_or(Ok(()), |error| Err(CommandError::of_flag("output", of_path(&error))));
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

fn run(cli: Cli) -> Result<(), CommandError> {
    // `rootlight balance` shows its progress and the faults of its sources itself.
    logging::start(&cli.common, matches!(cli.command, Some(Command::Balance(_))));
    if let Some(file) = &cli.common.config {
        config::warn_of_mode(file);
    }
    match cli.command {
        None => dev::run(&cli.dev, cli.common.silent),
        Some(Command::Dev(args)) => dev::run(&args, cli.common.silent),
        Some(Command::Follow(args)) => follow::run(&args),
        Some(Command::Light(args)) => light::run(&args),
        Some(Command::Balance(args)) => balance::run(&args, cli.common.silent),
        Some(Command::Peers(args)) => nodes::peers(&args),
        Some(Command::Crawl(args)) => nodes::crawl(&args),
        Some(Command::Doctor(args)) => doctor::command::run(&args),
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
