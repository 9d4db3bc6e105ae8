//! The `rootlight` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    rootlight_cli::main(std::env::args_os())
}
