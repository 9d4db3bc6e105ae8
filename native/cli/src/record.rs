//! `rootlight record`: turns the flags into a plan, and writes a recording of an upstream by it.

use rootlight_upstream as upstream;
use rootlight_upstream::record::{RecordError, RecordPlan, record};

use super::args::RecordArgs;
use super::error::CommandError;
use super::print::{say, write_error};
use super::runtime::runtime;

/// Records an upstream, and prints what was written.
pub(super) fn run(args: &RecordArgs, silent: bool) -> Result<(), CommandError> {
    if args.to.is_some_and(|to| to < args.from) {
        return Err(CommandError::Usage("--to is below --from".into()));
    }
    let source =
        upstream::open(&args.upstream).map_err(|error| CommandError::of_upstream("--upstream", error))?;
    let plan = RecordPlan {
        from: args.from,
        to: args.to,
        accounts: args.account.clone(),
        slots: args.slot.clone(),
        gzip: args.gzip,
    };
    let progress = |line: &str| {
        if !silent {
            write_error(format_args!("{line}"));
        }
    };
    let written = runtime()?.block_on(record(source.as_ref(), &plan, &args.out, &progress)).map_err(
        |error| match error {
            RecordError::Write { .. } => CommandError::of_flag("--out", error),
            other => CommandError::failed(other),
        },
    )?;
    if !silent {
        say!(
            "recorded blocks {} to {}: {} responses in {}",
            written.from,
            written.to,
            written.answers,
            args.out.display()
        );
    }
    Ok(())
}
