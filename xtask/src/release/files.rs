//! The folder of a release's files, and the version and time that they have.

use std::path::PathBuf;

use crate::shell::{ask, target_dir};

/// The version of all crates and of the npm package, which is that of the tasks too.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The folder of a release's files.
pub(super) fn folder() -> PathBuf {
    target_dir().join("release-artifacts")
}

/// Seconds since 1970 of the commit, for archives.
pub(super) fn commit_time() -> String {
    ask("git", &["log", "-1", "--format=%ct"]).unwrap_or_else(|| "0".into())
}
