//! Installs the logger, which writes to stderr, so that results on stdout can be piped. `log_lines.rs` writes the lines.

use std::io::IsTerminal;
use std::sync::OnceLock;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::debug_fn;

use super::args::CommonArgs;
use super::log_lines::{self, LogLines};

/// Levels of most commands: `info` for this program, and `warn` for its dependencies.
const USUAL_LEVELS: &str = "warn,rootlight=info";

/// Replaces the filter of the running logger.
type FilterReplacer = Box<dyn Fn(EnvFilter) + Send + Sync>;

/// Set once the logger runs; `set_level` uses it.
static REPLACE_FILTER: OnceLock<FilterReplacer> = OnceLock::new();

/// Starts the logger. A command with its own line of progress logs neither progress nor failures of upstreams, unless
/// the user sets levels.
pub(super) fn start(args: &CommonArgs, shows_progress: bool) {
    let usual = match (args.silent, shows_progress) {
        (true, _) => "error",
        (false, true) => "warn,rootlight_node=error,rootlight_upstream=error",
        (false, false) => USUAL_LEVELS,
    };
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter(args, usual))
        .with_writer(LogLines::new(args.json_log))
        // A line that cannot be written would be reported on stderr, which panics if no process reads it any more.
        .log_internal_errors(false)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal());
    // A second start (several tests in one process) keeps the first logger.
    let _ = if args.json_log {
        let lines = lines.json().flatten_event(true).with_filter_reloading();
        let handle = lines.reload_handle();
        lines.try_init().map(|()| REPLACE_FILTER.set(Box::new(move |filter| _ = handle.reload(filter))))
    } else {
        let lines = lines.fmt_fields(debug_fn(log_lines::field).delimited(" ")).with_filter_reloading();
        let handle = lines.reload_handle();
        lines.try_init().map(|()| REPLACE_FILTER.set(Box::new(move |filter| _ = handle.reload(filter))))
    };
}

/// Changes the levels of a running logger.
pub(super) fn set_level(args: &CommonArgs) {
    if let Some(replace) = REPLACE_FILTER.get() {
        replace(filter(args, if args.silent { "error" } else { USUAL_LEVELS }));
    }
}

/// The levels: those of `--log-level`, or of `RUST_LOG`, or the usual ones.
fn filter(args: &CommonArgs, usual: &str) -> EnvFilter {
    let given = args.log_level.as_deref().and_then(|text| EnvFilter::try_new(text).ok());
    given.or_else(|| EnvFilter::try_from_default_env().ok()).unwrap_or_else(|| EnvFilter::new(usual))
}
