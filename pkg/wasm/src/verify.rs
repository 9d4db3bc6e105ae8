//! Offline verification of documents: a header, a receipt or an account, with the data that proves it. Documents and reports are JSON
//! texts; `pkg/verify.js` converts them to and from objects.
//! `rootlight verify --json` prints the same reports.

use alloc::string::String;
use alloc::vec::Vec;

use rootlight::consensus::Network;
use rootlight::verify::{Report, verify_account, verify_header, verify_receipt};
use wasm_bindgen::prelude::wasm_bindgen;

/// Verifies a document about a `subject`, which is `header`, `receipt` or `account`, by the rules of the network with this
/// name. Returns the report as JSON; nothing if the network or the subject is not known.
///
/// The result is an `Option` and not a `Result`: an error would be a JavaScript value, and the table of such values would make the module
/// larger.
#[wasm_bindgen]
#[must_use]
pub fn verify(subject: &str, document: &str, network: &str) -> Option<String> {
    let network = Network::by_name(network)?;
    let document = document.as_bytes();
    // Receipts and accounts are also verified without a network, if the document has no header; here the name always gives one.
    let report: Report = match subject {
        "header" => verify_header(document, &network),
        "receipt" => verify_receipt(document, Some(&network)),
        "account" => verify_account(document, Some(&network)),
        _ => return None,
    };
    // Always `Some`: strings and lists always serialize.
    serde_json::to_string(&report).ok()
}

/// Keccak-256.
#[wasm_bindgen]
#[must_use]
pub fn keccak256(bytes: &[u8]) -> Vec<u8> {
    alloy_primitives::keccak256(bytes).to_vec()
}
