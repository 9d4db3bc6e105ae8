//! `rootlight methods`: lists the JSON-RPC methods from the method table, as text or as JSON.

use rootlight::rpc::{Method, Mode};
use rootlight_server::methods::Profile;
use rootlight_server::methods::methods;
use serde_json::{Value, json};

use super::error::CommandError;
use super::print::say;

/// Prints the table.
pub(super) fn run(as_json: bool) -> Result<(), CommandError> {
    let mut rows: Vec<&Method> = methods().collect();
    rows.sort_by_key(|method| method.name);
    if as_json {
        let rows: Vec<Value> = rows.into_iter().map(row).collect();
        say!("{}", serde_json::to_string_pretty(&rows).map_err(CommandError::failed)?);
        return Ok(());
    }
    for method in rows {
        let params: Vec<String> = method
            .params
            .iter()
            .map(|param| if param.required { param.name.to_owned() } else { format!("[{}]", param.name) })
            .collect();
        say!("{}({}) -> {}\n    {}", method.name, params.join(", "), method.result, method.doc);
        if !method.aliases.is_empty() {
            say!("    also {}", method.aliases.join(", "));
        }
    }
    Ok(())
}

/// A method as a JSON object.
fn row(method: &Method) -> Value {
    let params: Vec<Value> = method
        .params
        .iter()
        .map(|param| json!({"name": param.name, "kind": param.kind, "required": param.required}))
        .collect();
    json!({
        "name": method.name,
        "aliases": method.aliases,
        "params": params,
        "result": method.result,
        "level": method.level.name(),
        "cost": method.cost,
        "pages": method.pages.name(),
        "doc": method.doc,
        "modes": modes(method),
        "profiles": {"node": true, "hosted": Profile::Hosted.has(method)},
    })
}

/// How each kind of chain, by the name of its mode, supports the method.
fn modes(method: &Method) -> Value {
    Mode::ALL.map(|mode| (mode.name().to_owned(), json!(method.support(mode)))).into_iter().collect()
}
