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

/// Reads a JSON file of the recordings.
pub(crate) fn json(name: &str) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(folder()?.join(name)).expect(name);
    Some(serde_json::from_str(&text).expect(name))
}

/// The bytes of a field in hexadecimal digits.
pub(crate) fn bytes(value: &serde_json::Value) -> Vec<u8> {
    hex::decode(value.as_str().expect("text")).expect("hexadecimal")
}

/// [`bytes`] of a field of fixed length.
pub(crate) fn array<const N: usize>(value: &serde_json::Value) -> [u8; N] {
    bytes(value).try_into().expect("length")
}
