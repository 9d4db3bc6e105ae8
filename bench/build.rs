//! WebAssembly cannot read files, so the recorded headers are built in, or an empty list if the recordings
//! are missing.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ROOTLIGHT_SHARED");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("wasm32") {
        return;
    }
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let shared = env::var_os("ROOTLIGHT_SHARED").map_or_else(default, PathBuf::from);
    let source = shared.join("realdata/headers/mainnet_4479841_iris_run1200.json");
    println!("cargo::rerun-if-changed={}", source.display());
    let text = fs::read_to_string(&source).unwrap_or_default();
    // In each object, the header is the string after the key "rlp".
    let rlps = text.split("\"rlp\"").skip(1).filter_map(|rest| rest.split('"').nth(1));
    let lines: Vec<&str> = rlps.map(|hex| hex.trim_start_matches("0x")).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("headers.txt");
    fs::write(out, lines.join("\n")).expect("output folder");
}
