//! Calls of every method of the table, with given transactions and an account as parameters.

use rootlight::rpc::{Method, Param};
use serde_json::{Value, json};

/// What the calls ask about.
pub struct CallSubjects {
    pub hash: Value,
    pub account: Value,
    pub filter: Value,
}

/// Parameters of a method: all of them, and the required ones alone.
pub fn params(method: &Method, about: &CallSubjects) -> [Value; 2] {
    let of = |param: &Param| value(param, about);
    let all: Vec<Value> = method.params.iter().map(of).collect();
    let required = method.params.iter().filter(|param| param.required).map(of).collect();
    [Value::Array(all), Value::Array(required)]
}

/// A value of a parameter's kind; for a block the pending one.
fn value(param: &Param, about: &CallSubjects) -> Value {
    let has = |word: &str| param.kind.contains(word);
    match param.kind {
        _ if param.name.ends_with("ilterId") || param.name == "subscriptionId" => about.filter.clone(),
        "array of HASH" => json!([about.hash]),
        "array of one QUANTITY" => json!(["0x0"]),
        "LOG_FILTER" | "TRACE_FILTER" => json!({"fromBlock": "earliest", "toBlock": "pending"}),
        "object" | "OVERRIDE" | "BLOCK_OVERRIDE" | "TRACE_OPTIONS" => json!({}),
        "boolean" | "BOOLEAN" => json!(true),
        _ if has("newPendingTransactions") => json!("newPendingTransactions"),
        _ if has("CALL") || has("TRANSACTION") => json!({"from": about.account, "to": about.account}),
        _ if has("BLOCK") => json!("pending"),
        _ if has("HASH") => about.hash.clone(),
        _ if has("ADDRESS") => about.account.clone(),
        _ => json!("0x0"),
    }
}
