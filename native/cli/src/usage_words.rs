//! Rewords errors of clap where its own words are about Rust or would repeat an address.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::config;

/// Texts of the standard library's parsers, and their replacements.
const PHRASES: [(&str, &str); 4] = [
    ("invalid digit found in string", "it is not a whole number from 0 on"),
    ("cannot parse integer from empty string", "it is not a number"),
    ("number too large to fit in target type", "the number is too large"),
    ("invalid socket address syntax", "it is not ADDRESS:PORT, such as 127.0.0.1:4446"),
];

/// The error as users read it. Addresses are removed, because they may contain passwords and the error may go into a log.
pub(super) fn reworded(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let error = config::without_values(error, arguments);
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return error;
    }
    let original = error.to_string();
    let mut text = original.clone();
    for address in addresses(&error) {
        for found in ["unexpected argument", "unrecognized subcommand"] {
            let found = format!("{found} '{address}'");
            text =
                text.replace(&found, "an address stands alone: write its flag before it, such as --upstream");
        }
        text = text.replace(&address, "…");
    }
    for (phrase, words) in PHRASES {
        text = text.replace(phrase, words);
    }
    match text == original {
        true => error,
        // clap adds the prefix again.
        false => clap::Error::raw(error.kind(), text.strip_prefix("error: ").unwrap_or(&text)),
    }
}

/// The arguments in the error's text that look like addresses, which may hold passwords.
fn addresses(error: &clap::Error) -> Vec<String> {
    let kinds = [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) if text.contains("://") || text.contains('@') => Some(text.clone()),
        _ => None,
    };
    kinds.into_iter().filter_map(text).filter(|text| !text.starts_with("--")).collect()
}
