//! Finds and reads the recordings.

#[cfg(not(target_arch = "wasm32"))]
use std::path::PathBuf;

/// Returns the folder of real data and recordings: `ROOTLIGHT_SHARED`, by default next to the repository.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn shared() -> PathBuf {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    std::env::var_os("ROOTLIGHT_SHARED").map_or_else(default, PathBuf::from)
}

/// Reads a recording. Prints a notice and returns `None` if it is missing.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn read(name: &str) -> Option<String> {
    let path = shared().join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("skipped: {} is missing", path.display());
    }
    text
}

/// Returns 1,200 consecutive main network headers in full RLP; `None` if the recordings are missing.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn mainnet_headers() -> Option<Vec<Vec<u8>>> {
    let text = read("realdata/headers/mainnet_4479841_iris_run1200.json")?;
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let headers = file["headers"].as_array().expect("a list");
    let rlp = |row: &serde_json::Value| {
        let text = row["rlp"].as_str().expect("hex");
        hex::decode(text.trim_start_matches("0x")).expect("hex")
    };
    Some(headers.iter().map(rlp).collect())
}

/// Returns the same headers, built in by build.rs; `None` if it found no recordings.
#[cfg(target_arch = "wasm32")]
#[must_use]
pub fn mainnet_headers() -> Option<Vec<Vec<u8>>> {
    let text = include_str!(concat!(env!("OUT_DIR"), "/headers.txt"));
    let headers: Vec<Vec<u8>> = text.lines().map(|line| hex::decode(line).expect("hex")).collect();
    (!headers.is_empty()).then_some(headers)
}
