//! `--config FILE`: a TOML file whose keys are flags.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use rootlight_limits::files;
use rootlight_limits::io_words::of_path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::CommandError;

/// Longest configuration file that is read, in bytes; bounds memory if the path names another file by mistake.
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

/// Returns the command with the file's values as defaults. Errors name the line and do not quote the line: any part of the
/// file may be a password. While the program runs, a file without a key is an error: an editor that saves the file may empty the
/// file first, and a reload at that moment would drop settings such as the pages that may call.
pub(super) fn apply(command: Command, path: &Path, is_running: bool) -> Result<Command, CommandError> {
    let wrong = |reason: String| CommandError::Usage(format!("--config {}: {reason}", path.display()));
    let bytes = files::read(path, FILE_BYTES).map_err(|failure| wrong(of_path(&failure)))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("not UTF-8".into()))?;
    let table = DeTable::parse(&text).map_err(|failure| wrong(ConfigFault::syntax(&failure).text(&text)))?;
    if is_running && !has_key(table.get_ref()) {
        return Err(wrong("the file has no key".into()));
    }
    defaults(command, table.get_ref()).map_err(|fault| wrong(fault.text(&text)))
}

/// Warns of a file that others can change, or that others can read although it has addresses, which may hold passwords.
pub(super) fn warn_of_mode(path: &Path) {
    #[cfg(unix)]
    if let Some(mode) = exposed_mode(path) {
        tracing::warn!(
            "{}: others can use it (mode {mode:03o}), and its addresses may hold passwords: chmod 600, or 640 for a group",
            path.display()
        );
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// The mode of a file, if it gives others too much.
#[cfg(unix)]
fn exposed_mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mode = file.permissions().mode() & 0o777;
    let has_address =
        || files::read(path, FILE_BYTES).is_ok_and(|text| memchr::memmem::find(&text, b"://").is_some());
    // The bits of others: 2 is to write, 4 is to read.
    (mode & 0o002 != 0 || (mode & 0o004 != 0 && has_address())).then_some(mode)
}

/// A fault of the file, with its position in the text.
#[derive(Debug)]
struct ConfigFault {
    at: Range<usize>,
    reason: &'static str,
}

impl ConfigFault {
    fn new<T>(at: &Spanned<T>, reason: &'static str) -> Self {
        Self { at: at.span(), reason }
    }

    /// A file that is not TOML. The library's own error is not shown, because it quotes the line.
    fn syntax(error: &toml::de::Error) -> Self {
        let reason = "not TOML: a line is KEY = VALUE or [COMMAND], texts have quotes, and a key comes once";
        Self { at: error.span().unwrap_or_default(), reason }
    }

    /// The text of the error, with the line in the text of the file.
    fn text(&self, file: &str) -> String {
        let before = file.get(..self.at.start).unwrap_or(file);
        let line = before.matches('\n').count().saturating_add(1);
        format!("line {line}: {}", self.reason)
    }
}

/// Whether there is a key, at the top or in a section.
fn has_key(table: &DeTable<'_>) -> bool {
    table.values().any(|value| match value.get_ref() {
        DeValue::Table(section) => !section.is_empty(),
        _ => true,
    })
}

/// Sets the defaults of the command and its subcommands from a file.
fn defaults(mut command: Command, table: &DeTable<'_>) -> Result<Command, ConfigFault> {
    for (key, value) in table {
        let name: &str = key.get_ref();
        if let DeValue::Table(section) = value.get_ref() {
            let Some(sub) = command.find_subcommand(name) else {
                return Err(ConfigFault::new(key, "no command has the name of this section"));
            };
            let sub = set_all(sub.clone(), section)?;
            command = command.mut_subcommand(name, |_| sub);
            continue;
        }
        // A top-level key applies to every command that has the flag.
        let values = values(&command, name, value)?;
        let mut is_flag = false;
        if has_flag(&command, name) {
            command = set(command, name, &values);
            is_flag = true;
        }
        let names: Vec<String> = command
            .get_subcommands()
            .filter(|sub| has_flag(sub, name))
            .map(|sub| sub.get_name().to_owned())
            .collect();
        for sub in names {
            command = command.mut_subcommand(sub, |sub| set(sub, name, &values));
            is_flag = true;
        }
        if !is_flag {
            return Err(ConfigFault::new(key, "unknown key: no flag has its name"));
        }
    }
    Ok(command)
}

/// Sets the defaults of one command from its section.
fn set_all(mut command: Command, section: &DeTable<'_>) -> Result<Command, ConfigFault> {
    for (key, value) in section {
        if !has_flag(&command, key.get_ref()) {
            return Err(ConfigFault::new(key, "unknown key: no flag of this command has its name"));
        }
        let values = values(&command, key.get_ref(), value)?;
        command = set(command, key.get_ref(), &values);
    }
    Ok(command)
}

/// Whether a command has a flag of this name that may be a key.
fn has_flag(command: &Command, key: &str) -> bool {
    !NO_KEYS.contains(&key) && command.get_arguments().any(|arg| is_named(arg, key))
}

/// Whether a flag has this name.
fn is_named(arg: &Arg, key: &str) -> bool {
    arg.get_long().is_some_and(|long| long == key)
}

/// Sets the default of a flag. `--help` does not show the default, because addresses hold passwords and keys.
fn set(command: Command, key: &str, values: &[String]) -> Command {
    let Some(id) = command.get_arguments().find(|arg| is_named(arg, key)).map(|arg| arg.get_id().clone())
    else {
        return command;
    };
    let values = values.to_vec();
    command.mut_arg(id, move |arg| {
        let flag = matches!(arg.get_action(), ArgAction::SetTrue);
        let arg = arg.required(false);
        match flag {
            // A flag that is set or not has one value, `true` or `false`.
            true => arg.default_value(values.concat()),
            false => arg.default_values(values).hide_default_value(true),
        }
    })
}

/// The values of a key. Only a flag that may be repeated takes a list; another flag would use one value and drop the others.
fn values(command: &Command, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, ConfigFault> {
    let DeValue::Array(items) = value.get_ref() else { return Ok(vec![flag_value(value)?]) };
    let any = |is_list: bool| {
        let has = |command: &Command| {
            command.get_arguments().any(|arg| is_named(arg, key) && takes_list(arg) == is_list)
        };
        has(command) || command.get_subcommands().any(has)
    };
    // A key at the top may be a flag of several commands, of which some take a list.
    if any(false) && !any(true) {
        return Err(ConfigFault::new(value, "a list, but the flag takes one value"));
    }
    items.iter().map(flag_value).collect()
}

/// Whether a flag may be repeated, or takes several values.
fn takes_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some()
}

/// The text of one value, as the command line would have it.
fn flag_value(value: &Spanned<DeValue<'_>>) -> Result<String, ConfigFault> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|_| ConfigFault::new(value, "the number is too large")),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        _ => {
            Err(ConfigFault::new(value, "a value is a string, an integer, true or false, or a list of them"))
        }
    }
}

/// Removes values from an error of clap, unless they were written on the command line: values of a file or of the environment
/// may be passwords, and the error may go into a log. The reason of a parser stays, unless it repeats a part of the value.
pub(super) fn without_values(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let is_typed = |value: &str| {
        let typed = |argument: &OsString| {
            let argument = argument.to_string_lossy();
            argument == value || argument.split_once('=').is_some_and(|(_, given)| given == value)
        };
        arguments.iter().any(typed)
    };
    match (error.get(ContextKind::InvalidValue), error.get(ContextKind::InvalidArg)) {
        (Some(ContextValue::String(value)), Some(ContextValue::String(flag)))
            if !value.is_empty() && !is_typed(value) =>
        {
            let reason = std::error::Error::source(&error).map(|reason| unnamed(&reason.to_string(), value));
            let reason = reason.filter(|reason| !repeats(reason, value)).map(|reason| format!(": {reason}"));
            let reason = reason.unwrap_or_default();
            let text = format!(
                "{flag}: the value that the file or the environment gives is invalid{reason}; see --help\n"
            );
            clap::Error::raw(error.kind(), text)
        }
        _ => error,
    }
}

/// The reason of a parser, with a pronoun for the value with which it begins, as in "70000 is not in 0..=65535".
fn unnamed(reason: &str, value: &str) -> String {
    reason.strip_prefix(value).map_or_else(|| reason.to_owned(), |rest| format!("it{rest}"))
}

/// Most characters in a row that a text may share with a value by chance.
const CHANCE: usize = 3;

/// Whether a text has a part of a value that is longer than chance explains, or all of a shorter value.
fn repeats(text: &str, value: &str) -> bool {
    let (text, value) = (text.to_lowercase(), value.to_lowercase());
    let characters: Vec<char> = value.chars().collect();
    let length = characters.len().clamp(1, CHANCE + 1);
    characters.windows(length).any(|part| text.contains(&part.iter().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    fn applied(text: &str) -> Result<Command, CommandError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        apply(Cli::command(), file.path(), false)
    }

    #[test]
    fn an_error_in_a_file_names_the_line_and_repeats_nothing_of_it() {
        for (line, text) in [
            (2, "accounts = 1\nupstream = https://me:sesame@node.example\n"),
            (2, "accounts = 1\nupstream = \"https://me:sesame@node.example\n"),
            (3, "\n\nsesame = \"x\"\n"),
            (1, "\"https://me:sesame@node.example\" = 1\n"),
            (2, "[light]\nsesame = 1\n"),
            (1, "[sesame]\nupstream = 1\n"),
            (2, "[light]\nupstream = { sesame = 1 }\n"),
            (3, "[light]\nupstream = [\n  1.5, \"sesame\"]\n"),
            (2, "upstream = \"sesame\"\nupstream = \"sesame\"\n"),
            (1, "accounts = 99999999999999999999 # sesame"),
            (1, "upstream = sesame"),
            (1, "[sesame"),
        ] {
            let error = applied(text).unwrap_err().to_string();
            assert!(
                error.contains(&format!(": line {line}: ")) && !error.contains("sesame"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_value_that_was_not_typed_is_not_repeated() {
        let arguments = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        for (file, typed) in [
            ("metrics-listen = 'sesame'", &["rootlight"][..]),
            ("[light]\npeer = ['sesame']", &["rootlight", "light"]),
            ("[light]\ntrusted-proxy = 'sesame'", &["rootlight", "light", "--http-port", "0"]),
            ("log-level = '=sesame='", &["rootlight"]),
        ] {
            let typed = arguments(typed);
            let error = applied(file).unwrap().try_get_matches_from(&typed).unwrap_err();
            assert!(error.to_string().contains("sesame"), "{file}");
            let message = without_values(error, &typed).to_string();
            assert!(!message.contains("sesame") && message.contains("--"), "{message}");
        }
        for typed in [&["rootlight", "--unix-mode", "sesame"][..], &["rootlight", "--unix-mode=sesame"]] {
            let typed = arguments(typed);
            let error = applied("").unwrap().try_get_matches_from(&typed).unwrap_err();
            assert!(without_values(error, &typed).to_string().contains("sesame"));
        }
    }

    #[test]
    fn the_reason_stays_where_it_repeats_nothing_of_the_value() {
        let typed = [OsString::from("rootlight")];
        for (file, reason) in [
            ("http-port = 'sesame'", Some("invalid digit found in string")),
            ("http-port = 70000", Some("it is not in 0..=65535")),
            ("accounts = 'digital'", None),
        ] {
            let error = applied(file).unwrap().try_get_matches_from(&typed).unwrap_err();
            let message = without_values(error, &typed).to_string();
            let shown = message
                .split_once(" is invalid")
                .and_then(|(_, rest)| rest.trim_end().strip_suffix("; see --help"));
            assert_eq!(
                shown.map(|text| text.trim_start_matches(": ")),
                Some(reason.unwrap_or_default()),
                "{message}"
            );
        }
        assert!(repeats("no host: SESAME", "https://sesame@node") && repeats("x is wrong", "x"));
        assert!(!repeats("give seconds", "soon") && !repeats("give seconds", "x"));
    }

    #[test]
    fn help_shows_no_value_of_a_file() {
        let keys = ["upstream", "peers", "host", "node", "p2p-port", "client-version"];
        let file: Vec<String> = keys.iter().map(|key| format!("{key} = '4242'")).collect();
        let mut command = applied(&file.join("\n")).unwrap();
        let helps: Vec<String> = std::iter::once(command.render_long_help().to_string())
            .chain(command.get_subcommands_mut().map(|sub| sub.render_long_help().to_string()))
            .collect();
        assert!(helps.iter().all(|help| !help.contains("4242")), "{helps:?}");
    }

    #[test]
    fn an_empty_file_is_refused_only_while_the_program_runs() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in
            ["", "\n\n", "# cors = 'https://a.example'\n", "[dev]\n", "[dev]\n# a\n[light]\n", "dev = {}"]
        {
            std::fs::write(file.path(), text).unwrap();
            assert!(apply(Cli::command(), file.path(), false).is_ok());
            let error = apply(Cli::command(), file.path(), true).unwrap_err();
            assert!(error.to_string().contains("has no key"), "{error}");
        }
        for text in ["accounts = 3", "[dev]\naccounts = 3", "[light]\n[dev]\naccounts = 3"] {
            std::fs::write(file.path(), text).unwrap();
            assert!(apply(Cli::command(), file.path(), true).is_ok(), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_with_addresses_that_others_can_read_is_noticed() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        let exposed = |text: &str, mode| {
            std::fs::write(file.path(), text).unwrap();
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            exposed_mode(file.path()).is_some()
        };
        let (secret, plain) = ("index = 'postgres://me:word@db/x'", "accounts = 3");
        assert!(exposed(secret, 0o644) && exposed(secret, 0o604) && exposed(plain, 0o666));
        assert!(!exposed(secret, 0o600) && !exposed(secret, 0o640) && !exposed(plain, 0o644));
    }

    #[test]
    fn numbers_have_the_forms_of_toml() {
        for (text, value) in [("1_000", "1000"), ("0x10", "16"), ("0b11", "3"), ("+7", "7"), ("-7", "-7")] {
            let command = applied(&format!("accounts = {text}")).unwrap();
            let arg = command.get_arguments().find(|arg| is_named(arg, "accounts")).unwrap();
            assert_eq!(arg.get_default_values(), [value], "{text}");
        }
    }
}
