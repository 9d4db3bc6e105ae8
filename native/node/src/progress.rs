//! The progress bar of header synchronization and of imports on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// The smallest number of blocks for which a progress bar is shown.
pub(crate) const WORTH_A_BAR: u64 = 64;

/// Makes a progress bar from a first block to a target, with rate and remaining time.
pub(crate) fn progress_bar(first: u64, target: u64, unit: &str) -> ProgressBar {
    let template = format!("{{bar:30}} block {{pos}} of {{len}}, {{per_sec}} {unit}, about {{eta}} left");
    let bar = ProgressBar::new(target).with_position(first);
    bar.reset_eta();
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
