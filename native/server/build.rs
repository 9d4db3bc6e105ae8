//! Lists the files of the built page for browsers (`www/dist`, or the folder that `ROOTLIGHT_PAGE` names), so that the program
//! embeds them (`src/page.rs`). `cargo xtask build` builds the page; without its files, and in the published crate, the
//! program has no page.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Extensions of the page's files, and their media types. The build fails for other files: browsers are told not to guess.
const KINDS: [(&str, &str); 5] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("wasm", "application/wasm"),
];

/// The macro that embeds a file; the path is an absolute one on the machine that builds. The check of the published packages
/// (`xtask/src/packages.rs`) reports each call of this macro in a source file whose path is not a literal, so that its name and
/// its parenthesis may not stand together here.
const EMBED: &str = "include_bytes!";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ROOTLIGHT_PAGE");
    let usual = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../www/dist");
    let folder = env::var("ROOTLIGHT_PAGE").map_or(usual, PathBuf::from);
    let mut files = Vec::new();
    if folder.is_dir() {
        // Cargo compares the times of all files in this folder, so new ones count too.
        println!("cargo:rerun-if-changed={}", folder.display());
        list(&folder.canonicalize()?, "", &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for (path, source) in &files {
        let _ = writeln!(table, "{},", entry(path, source)?);
    }
    table.push(']');
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    fs::write(out.join("page.rs"), table)
}

/// Collects the files below a folder that have a compressed copy (`.br`). Each gets its path in an address, which begins with
/// `prefix`, and its path on disk without `.br`.
fn list(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            list(&path, &format!("{prefix}/{name}"), files)?;
        } else if let Some(plain) = name.strip_suffix(".br") {
            files.push((format!("{prefix}/{plain}"), path.with_extension("")));
        }
    }
    Ok(())
}

/// The Rust expression of one file (`PageFile`), whose Brotli and gzip copies lie beside it. `/index.html` has the address `/`.
fn entry(path: &str, source: &Path) -> io::Result<String> {
    let extension = source.extension().unwrap_or_default().to_string_lossy().into_owned();
    let kind = KINDS.iter().find(|(known, _)| *known == extension).map(|(_, kind)| *kind);
    let kind =
        kind.ok_or_else(|| io::Error::other(format!("{path}: no media type for .{extension} in build.rs")))?;
    let address = if path == "/index.html" { "/" } else { path };
    let (brotli, gzip) = (format!("{}.br", source.display()), format!("{}.gz", source.display()));
    Ok(format!(
        "PageFile {{ path: {address:?}, kind: {kind:?}, brotli: {EMBED}({brotli:?}), gzip: {EMBED}({gzip:?}) }}"
    ))
}
