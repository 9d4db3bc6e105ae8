//! `rpc.discover`: the method table as an OpenRPC document. Schemas are derived from the kinds of parameters and results, which
//! rows give as text.

use alloc::{format, string::String, vec::Vec};

use serde_json::{Map, Value, json};

use super::{
    method::{HandlerResult, Method, done},
    mode::Mode,
};
use crate::engine::{Level, View};

/// Version of the OpenRPC specification.
const OPENRPC: &str = "1.3.2";

/// The answer that describes these rows as an OpenRPC document: `rpc.discover` of a host with other rows.
///
/// # Errors
/// None in practice: the document is JSON.
pub fn described(view: &dyn View, rows: impl Iterator<Item = &'static Method>) -> HandlerResult {
    done(&document(view.policy().version, rows), Level::Local)
}

/// The OpenRPC document of these rows, with an entry for each name and alias.
fn document<'a>(version: &str, methods: impl Iterator<Item = &'a Method>) -> Value {
    let mut listed: Vec<(&str, &Method)> =
        methods.flat_map(|row| row.aliases.iter().chain([&row.name]).map(move |name| (*name, row))).collect();
    listed.sort_by_key(|(name, _)| *name);
    let methods: Vec<Value> = listed.into_iter().map(|(name, row)| method(name, row)).collect();
    json!({
        "openrpc": OPENRPC,
        "info": {
            "title": "Rootlight",
            "description": "JSON-RPC of Rootstock",
            "version": version,
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "methods": methods,
        "components": {"schemas": schemas()},
    })
}

/// The entry of a method under one of its names.
fn method(name: &str, row: &Method) -> Value {
    let params: Vec<Value> = row
        .params
        .iter()
        .map(|param| {
            let schema = schema(param.kind);
            json!({"name": param.name, "description": param.kind, "required": param.required, "schema": schema})
        })
        .collect();
    json!({
        "name": name,
        "summary": row.doc,
        "paramStructure": "by-position",
        "params": params,
        "result": {"name": "result", "description": row.result, "schema": schema(row.result)},
        "x-level": row.level.name(),
        "x-cost": row.cost,
        "x-modes": modes(row),
        "x-pages": row.pages.name(),
    })
}

/// The modes in which the method answers, with the error of those in which it does not.
fn modes(row: &Method) -> Value {
    let answers = Mode::ALL.map(|mode| (String::from(mode.name()), json!(row.support(mode))));
    Value::Object(answers.into_iter().collect())
}

/// The regular expressions of the basic kinds.
const PATTERNS: [(&str, &str); 4] = [
    ("QUANTITY", "^0x(0|[1-9a-f][0-9a-f]*)$"),
    ("DATA", "^0x([0-9a-fA-F]{2})*$"),
    ("ADDRESS", "^0x[0-9a-fA-F]{40}$"),
    ("HASH", "^0x[0-9a-fA-F]{64}$"),
];

/// The schemas that methods refer to.
fn schemas() -> Value {
    let mut all = Map::new();
    for (name, pattern) in PATTERNS {
        all.insert(name.into(), json!({"type": "string", "pattern": pattern}));
    }
    let tags = ["latest", "earliest", "pending", "safe", "finalized"];
    let map = json!({
        "type": "object",
        "properties": {"blockHash": reference("HASH"), "blockNumber": reference("QUANTITY")},
    });
    all.insert(
        "BLOCK".into(),
        json!({"anyOf": [reference("QUANTITY"), reference("HASH"), {"type": "string", "enum": tags}, map]}),
    );
    Value::Object(all)
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The schema of a kind of parameter or result. Kinds that are described in words alone accept every value.
fn schema(kind: &str) -> Value {
    for ending in [" or null", ", or null"] {
        if let Some(kind) = kind.strip_suffix(ending) {
            return json!({"anyOf": [schema(kind), {"type": "null"}]});
        }
    }
    if let Some(item) = kind.strip_prefix("array of ") {
        // The kind of the items may be in the plural, such as `HASHes`.
        return json!({"type": "array", "items": schema(item.trim_end_matches("es"))});
    }
    let word: String = kind.chars().take_while(char::is_ascii_alphanumeric).collect();
    if word == "BLOCK" || PATTERNS.iter().any(|(name, _)| *name == word && !kind.contains(" or ")) {
        return reference(&word);
    }
    match kind {
        "boolean" | "BOOLEAN" => json!({"type": "boolean"}),
        "string" | "hashes separated by spaces" | "hex number" | "IP address or range" => {
            json!({"type": "string"})
        }
        "null" => json!({"type": "null"}),
        "JSON integer" => json!({"type": "integer"}),
        "object" | "CALL" | "TRANSACTION" | "LOG_FILTER" | "TRACE_FILTER" | "TRACE_OPTIONS" | "OVERRIDE"
        | "BLOCK_OVERRIDE" | "SIMULATION" | "TRACE_CALL_OPTIONS" | "CELLS" => json!({"type": "object"}),
        "BUNDLES" | "TRACED_CALLS" => json!({"type": "array"}),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::table::methods;

    #[test]
    fn kinds_have_schemas() {
        let quantity = json!({"$ref": "#/components/schemas/QUANTITY"});
        assert_eq!(schema("QUANTITY, wei"), quantity);
        assert_eq!(schema("QUANTITY or null"), json!({"anyOf": [quantity, {"type": "null"}]}));
        assert_eq!(schema("array of three HASHes"), json!({"type": "array", "items": {}}));
        assert_eq!(schema("array of DATA")["items"], json!({"$ref": "#/components/schemas/DATA"}));
        assert_eq!(schema("sync status or false"), json!({}));
    }

    #[test]
    fn every_name_of_every_method_is_listed_once() {
        let document = document("v", methods());
        let names: Vec<&str> =
            document["methods"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "sorted, and no name twice");
        let all = methods().map(|row| row.aliases.len() + 1).sum::<usize>();
        assert_eq!(names.len(), all);
        assert!(names.contains(&"rpc.discover") && names.contains(&"rsk_protocolVersion"));
    }
}
