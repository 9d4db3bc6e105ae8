//! An API key as the database stores it.

use std::fmt;

use alloy_primitives::B256;
use serde::{Deserialize, Serialize};

use super::rules::KeyRules;

/// A key without its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRecord {
    /// The id.
    pub id: String,
    /// A number that no other key of the database has or had.
    pub number: u32,
    /// The key's name for the operator.
    pub name: String,
    /// SHA-256 of the secret.
    pub hash: B256,
    /// When the key was made, in seconds since 1970.
    pub created: u64,
    /// When the key was revoked, in seconds since 1970; `None` if it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
    /// The key's rights and limits.
    #[serde(default)]
    pub rules: KeyRules,
}

impl fmt::Debug for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRecord").field("id", &self.id).field("rules", &self.rules).finish_non_exhaustive()
    }
}
