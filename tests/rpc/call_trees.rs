//! The trees of `callTracer` on recorded blocks. Each agrees with the list of `trace_block`, which is compared with that of
//! the reference node, and its logs are those of the receipt.

use crate::support;

use serde_json::{Value, json};
use support::executed::Executed;

/// An entry of a tree with its position.
type Entry<'a> = (Vec<u64>, &'a Value);

/// The entries of a tree, each before its inner ones.
fn entries<'a>(tree: &'a Value, position: Vec<u64>, all: &mut Vec<Entry<'a>>) {
    all.push((position.clone(), tree));
    for (index, inner) in list(&tree["calls"]).iter().enumerate() {
        entries(inner, [&position[..], &[index as u64]].concat(), all);
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// An entry of the list in the form of the tree, without what the list does not show of a failed one.
fn of_list(entry: &Value) -> Value {
    let (action, result) = (&entry["action"], &entry["result"]);
    let mut call = json!({ "from": action["from"], "value": action["value"], "gas": action["gas"] });
    match entry["type"].as_str().unwrap() {
        "suicide" => {
            return json!({
                "type": "SELFDESTRUCT", "from": action["address"], "to": action["refundAddress"],
                "value": action["balance"],
            });
        }
        "create" => {
            let kind = action["creationMethod"].as_str().unwrap_or("create");
            call["type"] = kind.to_uppercase().into();
            call["input"] = action["init"].clone();
            (call["to"], call["output"]) = (result["address"].clone(), result["code"].clone());
        }
        _ => {
            call["type"] = action["callType"].as_str().unwrap().to_uppercase().into();
            (call["to"], call["input"]) = (action["to"].clone(), action["input"].clone());
            call["output"] = result["output"].clone();
        }
    }
    call["gasUsed"] = result["gasUsed"].clone();
    let members = call.as_object_mut().unwrap();
    members.retain(|name, value| !(value.is_null() || name == "output" && value == "0x"));
    call
}

fn compare(position: &[u64], tree: &Value, entry: &Value, at: &str) {
    let at = format!("{at}, entry {position:?}");
    assert_eq!(json!(position), entry["traceAddress"], "{at}");
    assert_eq!(list(&tree["calls"]).len() as u64, entry["subtraces"].as_u64().unwrap(), "{at}");
    let mut tree = tree.clone();
    let members = tree.as_object_mut().unwrap();
    for name in ["calls", "logs", "revertReason"] {
        members.remove(name);
    }
    let error = members.remove("error");
    assert_eq!(error.is_some(), entry["error"].is_string(), "{at}: {error:?}");
    assert_eq!(error == Some(json!("execution reverted")), entry["error"] == "Reverted", "{at}: {error:?}");
    if error.is_some() {
        members.remove("gasUsed");
        members.remove("output");
    }
    assert_eq!(tree, of_list(entry), "{at}");
}

/// Compares the trees of all blocks with the lists, and their logs with the receipts. Returns the number of entries.
pub(crate) fn compare_with_trace_block(chain: &Executed) -> usize {
    let (mut compared, mut logs) = (0, 0);
    let options = json!({ "tracer": "callTracer", "tracerConfig": { "withLog": true } });
    for number in 1..chain.recording.blocks.len() {
        let block = format!("{number:#x}");
        let trees = match chain.call("debug_traceBlockByNumber", &json!([block, options])) {
            Ok(trees) => trees,
            Err(error) => {
                assert_eq!(error["code"], -32005, "block {number}: {error}");
                continue;
            }
        };
        let entries_of_block = chain.call("trace_block", &json!([block])).unwrap();
        let mut flat = list(&entries_of_block).iter();
        for (index, tree) in list(&trees).iter().enumerate() {
            let at = format!("block {number}, transaction {index}");
            let hash = &tree["txHash"];
            let mut all = Vec::new();
            entries(&tree["result"], Vec::new(), &mut all);
            for (position, tree) in &all {
                let entry = flat.next().unwrap_or_else(|| panic!("{at}: the list ends early"));
                assert_eq!(hash, &entry["transactionHash"], "{at}");
                compare(position, tree, entry, &at);
            }
            compared += all.len();
            logs += compare_logs(chain, (number, index), &all, &at);
        }
        assert!(flat.next().is_none(), "block {number}: the list has more entries");
    }
    println!("{compared} entries and {logs} logs agree");
    compared
}

fn compare_logs(chain: &Executed, (number, index): (usize, usize), all: &[Entry<'_>], at: &str) -> usize {
    let mut shown: Vec<&Value> = all.iter().flat_map(|(_, call)| list(&call["logs"])).collect();
    shown.sort_by_key(|log| log["index"].as_u64());
    let expected = &chain.receipt(number, index).logs;
    assert_eq!(shown.len(), expected.len(), "{at}: logs");
    for (shown, log) in shown.iter().zip(expected) {
        let log = json!({ "address": log.address, "topics": log.topics, "data": log.data });
        for field in ["address", "topics", "data"] {
            assert_eq!(shown[field], log[field], "{at}: {field} of a log");
        }
    }
    expected.len()
}
