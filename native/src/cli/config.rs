//! `--config FILE`: a TOML file whose keys are flags.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};
use toml::{Table, Value};

use super::CommandError;
use super::verify::read_file;

/// Longest configuration file read, bytes.
const FILE_BYTES: u64 = 1024 * 1024;
/// Arguments that cannot be keys: the file itself and clap's own.
const NO_KEYS: [&str; 3] = ["config", "help", "version"];

/// Returns the file named on the command line or in the environment. Clap cannot find it, because the file's
/// values are defaults that clap must have before it parses.
pub(super) fn path(arguments: &[OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter().skip(1);
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(path) = text.strip_prefix("--config=") {
            return Some(PathBuf::from(path));
        }
    }
    std::env::var_os("ROOTLIGHT_CONFIG").map(PathBuf::from)
}

/// Returns the command with the file's values as defaults.
pub(super) fn apply(command: Command, path: &Path) -> Result<Command, CommandError> {
    let wrong = |reason: String| CommandError::Usage(format!("{}: {reason}", path.display()));
    // The size that the system reports is not trusted: a device reports 0 and never ends.
    let bytes = read_file(path, FILE_BYTES).map_err(|failure| wrong(failure.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("not UTF-8".into()))?;
    let table: Table = text.parse().map_err(|failure: toml::de::Error| wrong(failure.to_string()))?;
    defaults(command, &table).map_err(wrong)
}

fn defaults(mut command: Command, table: &Table) -> Result<Command, String> {
    for (key, value) in table {
        if let Value::Table(section) = value {
            if command.find_subcommand(key).is_none() {
                return Err(format!("no command is called {key:?}"));
            }
            let mut bad = None;
            command = command.mut_subcommand(key, |sub| match set_all(sub.clone(), section) {
                Ok(sub) => sub,
                Err(reason) => {
                    bad = Some(format!("[{key}] {reason}"));
                    sub
                }
            });
            if let Some(reason) = bad {
                return Err(reason);
            }
            continue;
        }
        // A top-level key applies to every command that has the flag.
        let values = values(key, value)?;
        let mut known = false;
        if has(&command, key) {
            command = set(command, key, &values);
            known = true;
        }
        let names: Vec<String> = command
            .get_subcommands()
            .filter(|sub| has(sub, key))
            .map(|sub| sub.get_name().to_owned())
            .collect();
        for name in names {
            command = command.mut_subcommand(name, |sub| set(sub, key, &values));
            known = true;
        }
        if !known {
            return Err(format!("unknown key {key:?}"));
        }
    }
    Ok(command)
}

fn set_all(mut command: Command, section: &Table) -> Result<Command, String> {
    for (key, value) in section {
        if !has(&command, key) {
            return Err(format!("unknown key {key:?}"));
        }
        let values = values(key, value)?;
        command = set(command, key, &values);
    }
    Ok(command)
}

fn has(command: &Command, key: &str) -> bool {
    !NO_KEYS.contains(&key) && command.get_arguments().any(|arg| is(arg, key))
}

fn is(arg: &Arg, key: &str) -> bool {
    arg.get_long().is_some_and(|long| long == key)
}

fn set(command: Command, key: &str, values: &[String]) -> Command {
    let Some(id) = command.get_arguments().find(|arg| is(arg, key)).map(|arg| arg.get_id().clone()) else {
        return command;
    };
    let values = values.to_vec();
    command.mut_arg(id, move |arg| {
        let flag = matches!(arg.get_action(), ArgAction::SetTrue);
        let arg = arg.required(false);
        if flag { arg.default_value(values.concat()) } else { arg.default_values(values) }
    })
}

fn values(key: &str, value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(items) => items.iter().map(|item| one(key, item)).collect(),
        other => Ok(vec![one(key, other)?]),
    }
}

fn one(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        _ => Err(format!("{key}: must be a string, an integer, true or false, or a list of them")),
    }
}
