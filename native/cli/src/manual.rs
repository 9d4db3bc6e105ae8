//! `rootlight completions` and `rootlight man`, which are generated from the definitions of the flags.

use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;
use rootlight_limits::io_words::of_path;

use super::args::Cli;
use super::error::CommandError;
use super::print::write;

/// Prints the completion script of a shell.
pub(super) fn completions(shell: Shell) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rootlight", &mut script);
    print(&script);
    Ok(())
}

/// Prints the main manual page, or writes the pages of all commands into a folder, which is created if
/// needed.
pub(super) fn man(folder: Option<&Path>) -> Result<(), CommandError> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        // `build` adds the global flags to each command, so that the page lists them.
        let mut command = Cli::command();
        command.build();
        Man::new(command).render(&mut page).map_err(CommandError::failed)?;
        print(&page);
        return Ok(());
    };
    let wrong =
        |error: io::Error| CommandError::of_flag(&format!("--out-dir {}", folder.display()), of_path(&error));
    std::fs::create_dir_all(folder).map_err(wrong)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(wrong)
}

/// Prints a text in UTF-8.
fn print(bytes: &[u8]) {
    write(format_args!("{}", String::from_utf8_lossy(bytes)));
}
