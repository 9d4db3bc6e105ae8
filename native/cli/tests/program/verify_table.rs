//! `rootlight verify` and the package's verification module give the same reports. The documents and the
//! expected reports are in `tests/vectors/verify.json`; `pkg/test/verify.test.mjs` runs the same table in
//! JavaScript.

use crate::common::run_with;

use rootlight_wasm::verify;
use serde_json::{Value, json};

fn table() -> Value {
    serde_json::from_str(include_str!("../../../../tests/vectors/verify.json")).unwrap()
}

/// Returns what `rootlight verify --json` prints.
fn program(subject: &str, document: &str, network: &str) -> Value {
    let arguments = ["verify", subject, "-", "--network", network, "--json"];
    let output = run_with(&arguments, document);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(if report["verified"] == true { 0 } else { 1 }), "{report}");
    report
}

/// Returns the report of the program, which is that of the function behind `pkg/verify.js`.
fn both(subject: &str, document: &Value, network: &str) -> Value {
    let text = document.to_string();
    let program = program(subject, &text, network);
    let package: Value = serde_json::from_str(&verify(subject, &text, network).unwrap()).unwrap();
    assert_eq!(program, package, "{subject} {document}");
    program
}

/// Sets the value at a JSON pointer, or removes it.
fn put(document: &mut Value, pointer: &str, value: Option<Value>) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        *document = value.unwrap();
        return;
    };
    match (document.pointer_mut(parent).unwrap(), value) {
        (Value::Object(members), Some(value)) => drop(members.insert(name.into(), value)),
        (Value::Object(members), None) => drop(members.remove(name).unwrap()),
        (list, value) => list[name.parse::<usize>().unwrap()] = value.unwrap(),
    }
}

fn changed(table: &Value, case: &Value) -> Value {
    let mut document = table["documents"][case["document"].as_str().unwrap()].clone();
    for change in case["changes"].as_array().into_iter().flatten() {
        let pointer = change["at"].as_str().unwrap();
        let old = document.pointer(pointer).cloned();
        let new = match change {
            change if change.get("value").is_some() => Some(change["value"].clone()),
            change if change["document"].is_string() => {
                Some(table["documents"][change["document"].as_str().unwrap()].clone())
            }
            change if change["wrap"].is_object() => {
                let mut response = change["wrap"].clone();
                response["result"] = old.unwrap();
                Some(response)
            }
            change if change["members"].is_string() => {
                document.pointer(change["members"].as_str().unwrap()).cloned()
            }
            change if change["list"] == true => Some(json!([old.unwrap()])),
            _ => None,
        };
        put(&mut document, pointer, new);
    }
    document
}

#[test]
fn the_program_and_the_package_give_the_reports_of_the_table() {
    let table = table();
    let cases = table["cases"].as_array().unwrap();
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let document = changed(&table, case);
        let network = case["network"].as_str().unwrap_or("regtest");
        let report = both(case["subject"].as_str().unwrap(), &document, network);
        assert_eq!(report["verified"], case["rule"].is_null(), "{name}: {report}");
        if case["rule"].is_string() {
            let failed = &report["failed"];
            assert_eq!(
                (&failed["rule"], &failed["what"]),
                (&case["rule"], &case["what"]),
                "{name}: {failed}"
            );
            let reason = failed["reason"].as_str().unwrap();
            assert!(reason.contains(case["reason"].as_str().unwrap_or("")), "{name}: {reason}");
        }
        for (fact, value) in case["facts"].as_object().into_iter().flatten() {
            assert_eq!(&report["facts"][fact], value, "{name}: {fact}");
        }
    }
    assert!(cases.len() > 40);
}

/// Collects the JSON pointers of all strings in a document.
fn strings(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at),
        Value::Array(members) => {
            members
                .iter()
                .zip(0..)
                .for_each(|(member, index)| strings(member, format!("{at}/{index}"), found));
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| strings(member, format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

/// Changes each string in several ways: one digit, its length, its prefix, its type.
#[test]
fn the_program_and_the_package_agree_on_changed_documents() {
    let table = table();
    let (mut verified, mut refused) = (0, 0);
    for (subject, name) in
        [("header", "header"), ("receipt", "receipt"), ("account", "account"), ("account", "absentAccount")]
    {
        let document = &table["documents"][name];
        let mut places = Vec::new();
        strings(document, String::new(), &mut places);
        for (place, index) in places.iter().zip(0_usize..) {
            let text = document.pointer(place).unwrap().as_str().unwrap().to_owned();
            let mut digit = text.clone().into_bytes();
            let at = digit.len() - 1 - index % 3.min(digit.len() - 2);
            digit[at] = if digit[at] == b'1' { b'2' } else { b'1' };
            let forms = [
                json!(String::from_utf8(digit).unwrap()),
                json!(&text[..text.len() - 1]),
                json!(text.trim_start_matches("0x")),
                json!(index),
                Value::Null,
            ];
            for form in forms.into_iter().skip(index % 2).step_by(2).chain([json!([])]) {
                let mut copy = document.clone();
                put(&mut copy, place, Some(form));
                let report = both(subject, &copy, "regtest");
                *(if report["verified"] == true { &mut verified } else { &mut refused }) += 1;
            }
        }
    }
    assert!(verified > 20 && refused > 200, "{verified} verified, {refused} refused");
}
