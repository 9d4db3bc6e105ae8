//! Checks of data at hand. Documents go in as JSON text, reports come out as JSON text; `pkg/verify.js` gives them a
//! shape. What a document looks like: `rootlight::light::offline`.

use rootlight::light::offline::{check_account, check_receipt, Failure, Report};
use wasm_bindgen::prelude::wasm_bindgen;

/// `{"report"}` or `{"failure"}`, so that a refusal is a value and a thrown error is a bug.
fn outcome(result: Result<Report, Failure>) -> String {
    let text = match &result {
        Ok(report) => serde_json::to_string(report).map(|text| format!("{{\"report\":{text}}}")),
        Err(failure) => serde_json::to_string(failure).map(|text| format!("{{\"failure\":{text}}}")),
    };
    // Strings and lists always serialize.
    text.unwrap_or_default()
}

/// A receipt under a receipts root.
#[wasm_bindgen(js_name = verifyReceipt)]
#[must_use]
pub fn verify_receipt(document: &str) -> String {
    outcome(check_receipt(document))
}

/// An account and its storage under a state root.
#[wasm_bindgen(js_name = verifyAccount)]
#[must_use]
pub fn verify_account(document: &str) -> String {
    outcome(check_account(document))
}

/// Keccak-256.
#[wasm_bindgen]
#[must_use]
pub fn keccak256(bytes: &[u8]) -> Vec<u8> {
    alloy_primitives::keccak256(bytes).to_vec()
}
