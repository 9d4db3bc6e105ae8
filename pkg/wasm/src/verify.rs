//! Verification of documents. Documents and reports are JSON texts; `pkg/verify.js` converts them to and from objects.
//! `rootlight verify --json` prints the same reports.

use rootlight::verify::{self, Report};
use wasm_bindgen::prelude::wasm_bindgen;

fn json(report: &Report) -> String {
    // Strings and lists always serialize.
    serde_json::to_string(report).unwrap_or_default()
}

/// Verifies a receipt under a receipts root.
#[wasm_bindgen(js_name = verifyReceipt)]
#[must_use]
pub fn verify_receipt(document: &str) -> String {
    json(&verify::verify_receipt(document.as_bytes(), None))
}

/// Verifies an account and its storage under a state root.
#[wasm_bindgen(js_name = verifyAccount)]
#[must_use]
pub fn verify_account(document: &str) -> String {
    json(&verify::verify_account(document.as_bytes(), None))
}

/// Keccak-256.
#[wasm_bindgen]
#[must_use]
pub fn keccak256(bytes: &[u8]) -> Vec<u8> {
    alloy_primitives::keccak256(bytes).to_vec()
}
