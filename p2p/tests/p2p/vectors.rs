//! Where the recordings are.

use std::path::PathBuf;

/// The folder of the recordings: `vectors/p2p` below `$ROOTLIGHT_SHARED` (default `../shared`). `None`, with a notice,
/// where it is absent.
pub(crate) fn folder() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let path = shared.join("vectors/p2p");
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: {} is absent", path.display());
    None
}
