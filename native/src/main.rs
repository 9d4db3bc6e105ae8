//! The `rootlight` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    rootlight_native::cli::main(std::env::args_os())
}
