//! The bar that long work shows on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// Work on fewer blocks than this is not worth a bar.
pub(crate) const WORTH_A_BAR: u64 = 64;

/// A bar from a first block to a target, with rate and time left.
pub(crate) fn progress_bar(first: u64, target: u64, unit: &str) -> ProgressBar {
    let template = format!("{{bar:30}} block {{pos}} of {{len}}, {{per_sec}} {unit}, about {{eta}} left");
    let bar = ProgressBar::new(target).with_position(first);
    bar.reset_eta();
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
