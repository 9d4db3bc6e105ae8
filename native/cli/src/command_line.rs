//! Reads the arguments, the environment and the configuration file into [`Cli`], at the start and when a server reloads its
//! configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};

use super::args::Cli;
use super::error::CommandError;
use super::{config, usage_words};

/// The values of all flags, by name.
pub(super) type Values = BTreeMap<String, Vec<OsString>>;

/// Why the arguments gave no command to run.
pub(super) enum NoCommand {
    /// Wrong arguments, or a request for help or the version.
    Clap(clap::Error),
    /// The configuration file cannot be used.
    Config(CommandError),
}

/// Parses the arguments. Values of a configuration file become defaults, so flags and environment variables
/// take precedence. Also returns the values of all flags as text. `is_running` says that a running program reloads its
/// configuration, for which [`config::apply`] refuses an empty file.
pub(super) fn read(arguments: Vec<OsString>, is_running: bool) -> Result<(Cli, Values), NoCommand> {
    let command = with_environment(Cli::command());
    let command = match config::path(&arguments) {
        Some(path) => config::apply(command, &path, is_running).map_err(NoCommand::Config)?,
        None => command,
    };
    let wrong = |error| NoCommand::Clap(usage_words::reworded(error, &arguments));
    let matches = command.clone().try_get_matches_from(&arguments).map_err(wrong)?;
    let values = values(&command, &matches);
    Cli::from_arg_matches(&matches).map(|cli| (cli, values)).map_err(wrong)
}

/// Lets every flag come from the environment: `--http-port` from `ROOTLIGHT_HTTP_PORT`.
fn with_environment(command: Command) -> Command {
    // A negative number is a wrong value of its flag, not a flag that is not known.
    let command = command.mut_args(|arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    });
    let command = command.mut_args(|arg| match arg.get_long() {
        Some(long) => {
            let name = format!("ROOTLIGHT_{}", long.to_uppercase().replace('-', "_"));
            arg.env(name).hide_env(true)
        }
        None => arg,
    });
    command.mut_subcommands(with_environment)
}

/// The values of a command's flags and of those of its subcommand.
fn values(command: &Command, matches: &ArgMatches) -> Values {
    let mut values = Values::new();
    for argument in command.get_arguments() {
        let Some(long) = argument.get_long() else { continue };
        if let Ok(Some(raw)) = matches.try_get_raw(argument.get_id().as_str()) {
            values.insert(long.to_owned(), raw.map(ToOwned::to_owned).collect());
        }
    }
    if let Some((name, inner)) = matches.subcommand()
        && let Some(subcommand) = command.find_subcommand(name)
    {
        values.extend(self::values(subcommand, inner));
    }
    values
}
