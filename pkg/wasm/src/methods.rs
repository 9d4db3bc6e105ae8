//! The core's method table as JSON. The package's JavaScript reads from it which level an answer has, which block a call is about, and how
//! a filter ends.

use alloc::string::String;

use rootlight::rpc::{Method, methods as rows};
use serde::{Serialize, Serializer};
use wasm_bindgen::prelude::wasm_bindgen;

/// A row of the table.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MethodRow {
    /// The level of a complete answer.
    level: &'static str,
    /// The position, from 0, of the parameter with the block that the method is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
    /// The method that ends the filter or subscription which this one makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_by: Option<&'static str>,
}

impl MethodRow {
    fn of(method: &Method) -> Self {
        let end = rows().find(|other| other.ends(method));
        Self { level: method.level.name(), block: method.block(), ended_by: end.map(|end| end.name) }
    }
}

/// The rows of all methods by name.
struct Rows;

impl Serialize for Rows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names =
            |method: &'static Method| core::iter::once(method.name).chain(method.aliases.iter().copied());
        serializer
            .collect_map(rows().flat_map(|method| names(method).map(|name| (name, MethodRow::of(method)))))
    }
}

/// The methods of this module by name, as JSON: see the type `Methods` in `pkg/verification.js`.
#[wasm_bindgen]
#[must_use]
pub fn methods() -> String {
    // Texts and numbers always serialize.
    serde_json::to_string(&Rows).unwrap_or_default()
}
