//! The names that scripts and systemd units rely on: commands, flags and environment variables. The file `api/commands.txt`
//! lists these names. A name that only the file or only the program has is a change that users notice.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};
use rootlight_cli::Cli;

/// Adds a line for a command and for each of its flags, arguments and subcommands.
fn names(command: &Command, path: &str, lines: &mut BTreeSet<String>) {
    lines.insert(path.to_owned());
    for argument in
        command.get_arguments().filter(|argument| !argument.is_global_set() || !path.contains(' '))
    {
        lines.insert(format!("{path} {}", name(argument)));
    }
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        names(sub, &format!("{path} {}", sub.get_name()), lines);
    }
}

/// The names of a flag: long and short forms, possible values, environment variable; or the name of an argument.
fn name(argument: &Arg) -> String {
    let long = argument.get_long().map(|long| format!("--{long}"));
    let mut name = long.unwrap_or_else(|| format!("<{}>", argument.get_id()));
    for alias in argument.get_all_aliases().unwrap_or_default() {
        name.push_str(&format!(" --{alias}"));
    }
    if let Some(short) = argument.get_short() {
        name.push_str(&format!(" -{short}"));
    }
    for value in argument.get_possible_values() {
        name.push_str(&format!(" {}", value.get_name()));
    }
    if let Some(variable) = argument.get_env() {
        name.push_str(&format!(" ${}", variable.to_string_lossy()));
    }
    name
}

#[test]
fn commands_and_flags_are_those_that_are_written_down() {
    let mut command = Cli::command();
    command.build();
    let mut lines = BTreeSet::new();
    names(&command, "rootlight", &mut lines);
    let text = lines.into_iter().map(|line| line + "\n").collect::<String>();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api/commands.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, written, "run UPDATE_DOCS=1 cargo test -p rootlight-cli --test program names");
}
