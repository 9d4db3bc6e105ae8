//! Log lines on stderr, so that results on stdout can be piped.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::args::CommonArgs;

/// Starts logging. `RUST_LOG` sets the levels; the default is `info` for this program and `warn` for its
/// dependencies.
pub(super) fn start(args: &CommonArgs) {
    let usual = if args.silent { "error" } else { "warn,rootlight=info,rootlight_native=info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second start (several tests in one process) keeps the first logger.
    let _ = if args.json_log {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(std::io::stderr().is_terminal()).try_init()
    };
}
