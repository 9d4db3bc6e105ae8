//! Error texts about an upstream, with cause and advice. Callers of these functions put the upstream's name before the text.
//!
//! `docs/errors.md` lists the same texts, and `pkg/upstream-words.js` has them for the npm package. Tests compare all of them.

use std::error::Error;
use std::io;

/// No program listens at the port.
pub(crate) const REFUSED: &str = "no program listens there: start the node, or check its address";

/// The host's name does not resolve.
pub(crate) const NO_HOST: &str =
    "there is no such host: check the address, and whether this machine is online";

/// The time limit is over.
pub(crate) const TIME_OVER: &str = "the time limit is over: ask again later, or add another upstream";

/// The response is something else than JSON-RPC.
pub(crate) const NOT_JSON_RPC: &str = "not a JSON-RPC response; check that the address is that of a node";

/// The node gave this HTTP status without a JSON-RPC body.
pub(crate) fn status(status: u16) -> String {
    let advice = match status {
        401 => "check the key in its address",
        403 => "check the key in its address, or allow this client there",
        404 => "check the path of its address",
        _ => "ask again later, or add another upstream",
    };
    format!("HTTP status {status}: {advice}")
}

/// The node is of the network with the chain id `found`.
pub(crate) fn other_network(found: u64, expected: u64) -> String {
    format!(
        "it is of the network with chain id {found}, not {expected}: use an upstream of the expected network, or select the \
         network of the upstream"
    )
}

/// A connection that could not be opened.
pub(crate) fn unopened(failure: &(dyn Error + 'static)) -> String {
    let mut cause = Some(failure);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::ConnectionRefused) {
            return REFUSED.to_owned();
        }
        cause = error.source();
    }
    let text = describe(failure);
    match is_name_lookup_failure(&text) {
        true => NO_HOST.to_owned(),
        false => format!("{text}: start the node, or check its address"),
    }
}

/// Whether the host's name could not be resolved. The standard library has no kind for this error.
fn is_name_lookup_failure(text: &str) -> bool {
    text.contains("failed to lookup address") || text.contains("dns error")
}

/// Describes an error with its causes, which name the actual connection failure.
pub(crate) fn describe(failure: &dyn Error) -> String {
    let mut text = failure.to_string();
    let mut source = failure.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
