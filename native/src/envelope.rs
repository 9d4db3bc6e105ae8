//! The few JSON-RPC envelopes the host itself writes; all others come from the core.

/// An error that belongs to no request: `id` is `null`.
#[must_use]
pub fn error(code: i32, message: &str) -> Vec<u8> {
    let value =
        serde_json::json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    serde_json::to_vec(&value).unwrap_or_default()
}
