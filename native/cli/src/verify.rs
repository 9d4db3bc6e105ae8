//! `rootlight verify`, which checks a file offline; also reads the networks and JSON files that other commands name.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rootlight::consensus::Network;
use rootlight::verify::{MAX_INPUT_BYTES, verify};
use rootlight_limits::files;
use rootlight_limits::io_words::of_path;

use super::args::VerifyArgs;
use super::error::CommandError;
use super::print::{say, write};

/// Longest network file, in bytes; bounds memory.
const NETWORK_BYTES: u64 = 1024 * 1024;

/// Checks a file and prints the report. Fails with [`CommandError::Refused`] if a check fails.
pub(super) fn run(args: &VerifyArgs) -> Result<(), CommandError> {
    let network = network(&args.network)?;
    let report = verify(args.subject, &read(&args.file)?, &network);
    if args.json {
        say!("{}", serde_json::to_string_pretty(&report).map_err(CommandError::failed)?);
    } else {
        write(format_args!("{report}"));
    }
    if report.verified() { Ok(()) } else { Err(CommandError::Refused) }
}

/// Returns a built-in network, or one from a file (docs/networks.md describes the format).
pub(super) fn network(name: &str) -> Result<Network, CommandError> {
    if let Some(network) = Network::by_name(name) {
        return Ok(network);
    }
    let text = network_text(name)?;
    Network::from_json(&text).map_err(|error| CommandError::Usage(format!("--network {name:?}: {error}")))
}

/// Reads a network file.
pub(super) fn network_text(name: &str) -> Result<String, CommandError> {
    let path = Path::new(name);
    let usage = |reason: String| CommandError::Usage(format!("--network {name:?}: {reason}"));
    if !path.exists() {
        return Err(usage("neither mainnet, testnet, testnet2, devnet, regtest nor a file".into()));
    }
    let bytes = files::read(path, NETWORK_BYTES).map_err(|error| usage(of_path(&error)))?;
    json_text(bytes).map_err(usage)
}

/// The text of a file, if it is JSON of any structure.
pub(super) fn json_text(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|_| "not JSON: it is not text".to_owned())?;
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

/// Reads the file to verify; `-` is the standard input.
fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    if path.as_os_str() == "-" {
        return limited(std::io::stdin().lock(), MAX_INPUT_BYTES as u64).map_err(CommandError::failed);
    }
    // The file may be a pipe, as a shell makes it for the output of another program, so its length is not known in advance.
    File::open(path)
        .and_then(|file| limited(file, MAX_INPUT_BYTES as u64))
        .map_err(|error| CommandError::Failed(format!("{}: {}", path.display(), of_path(&error))))
}

/// Reads to the end; an error if that is more than `limit` bytes.
fn limited(from: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(std::io::Error::other(format!("longer than {limit} bytes")));
    }
    Ok(bytes)
}
