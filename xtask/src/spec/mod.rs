//! `cargo xtask spec`: the facts of the service's specification as a table.
//!
//! The page names methods, parameters, fields, limits and error codes. This task reads them into
//! `tests/specification.json`, which holds no prose. Words that the task cannot read are an error, so that no fact is
//! lost when the page changes.

mod facts;
mod markdown;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use self::markdown::{Section, numbers, quoted, sections, split};
use crate::shell::{Log, root};
use crate::steps::Outcome;

/// Place of the table in the repository.
const TABLE: &str = "tests/specification.json";

/// Writes the table, or with `--check` compares it.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let done = if args.contains(&"--check") { compare() } else { write() };
    match done {
        Ok(note) => {
            println!("{note}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The check of `cargo xtask test`.
pub(crate) fn check(_log: &mut Log) -> Outcome {
    compare()
}

fn page_path() -> PathBuf {
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    shared.join("specification.md")
}

/// The table as the page gives it; `None` without the page.
fn extracted() -> Result<Option<String>, String> {
    let path = page_path();
    let page = match std::fs::read_to_string(&path) {
        Ok(page) => page,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let mut text = serde_json::to_string_pretty(&table(&page)?).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(Some(text))
}

fn write() -> Outcome {
    let Some(text) = extracted()? else {
        return Err(format!("{} is missing; set ROOTLIGHT_SHARED", page_path().display()));
    };
    std::fs::write(root().join(TABLE), &text).map_err(|error| format!("{TABLE}: {error}"))?;
    Ok(format!("{TABLE} written"))
}

fn compare() -> Outcome {
    let Some(text) = extracted()? else {
        return Ok(format!("skipped: {} is missing", page_path().display()));
    };
    let kept = std::fs::read_to_string(root().join(TABLE)).unwrap_or_default();
    if kept == text {
        return Ok("the table has the specification's facts".into());
    }
    let line = kept.lines().zip(text.lines()).position(|(kept, new)| kept != new);
    let line = line.unwrap_or_else(|| kept.lines().count().min(text.lines().count())) + 1;
    Err(format!(
        "{TABLE} and the specification differ from line {line} on: run `cargo xtask spec` and review the change"
    ))
}

/// All facts of the page.
fn table(page: &str) -> Result<Value, String> {
    let sections = sections(page);
    let section = |title: &str| {
        sections.iter().find(|section| section.title == title).ok_or_else(|| format!("no section {title:?}"))
    };
    let mut objects = Map::new();
    for section in &sections {
        if let Some(fields) = object(section)? {
            let fields = with_pending(section, fields);
            let name = section.title.split(" (").next().unwrap_or_default().to_lowercase();
            let name = name.trim_end_matches(" object").trim_end_matches(" set");
            objects.insert(name.to_owned(), json!(fields));
        }
    }
    let other = section("Other supported methods")?;
    let mut methods = Vec::new();
    for section in &sections {
        for row in section.table(&["Method", "Params", "Result"]) {
            methods.push(method(&row)?);
        }
    }
    methods.extend(other_methods(other)?);
    let unavailable = other.line("Not available:").ok_or("no list of methods that are not available")?;
    Ok(json!({
        "objects": objects,
        "methods": methods,
        "unavailable": quoted(unavailable),
        "traceFilter": trace_filter(section("Traces")?),
        "notifications": notifications(section("Events")?)?,
        "errors": errors(section("Errors")?),
        "limits": limits(section("Limits")?),
        "tags": tags(section("Conventions")?)?,
        "releases": releases(section("Versioning")?),
    }))
}

/// The fields of an object's section; `None` for other sections.
fn object(section: &Section<'_>) -> Result<Option<Vec<Value>>, String> {
    if section.title == "Sync status object" {
        let line = section
            .lines()
            .iter()
            .find(|line| line.contains("(all "))
            .ok_or("no fields of the sync status")?;
        let (_, listed) = line.split_once("object: ").ok_or("no list of fields of the sync status")?;
        return Ok(Some(facts::inner_fields(listed)));
    }
    let fields = |columns: &[&str], notes: usize| {
        let rows = section.table(columns);
        rows.into_iter().map(|row| facts::field(row[0], row[1], row[notes])).collect::<Result<Vec<_>, _>>()
    };
    let found = [
        fields(&["Field", "Type", "Notes"], 2)?,
        fields(&["Field", "Type", "Meaning"], 2)?,
        fields(&["Field", "Type"], 1)?,
        fields(&["Field", "Type", "Required", "Notes"], 2)?,
    ];
    Ok(found.into_iter().find(|fields| !fields.is_empty()))
}

/// Marks the fields that are null in a pending block, which a sentence names.
fn with_pending(section: &Section<'_>, mut fields: Vec<Value>) -> Vec<Value> {
    let sentence = section.lines().iter().find_map(|line| line.split_once("For a pending block,"));
    let names = sentence.map(|(_, rest)| quoted(rest)).unwrap_or_default();
    for field in fields.iter_mut().filter(|field| names.iter().any(|name| field["name"] == **name)) {
        field["null"] = json!("pending");
    }
    fields
}

fn method(row: &[&str]) -> Result<Value, String> {
    let [name, params, result] = row else { return Err(format!("a method with {} columns", row.len())) };
    Ok(json!({
        "name": name,
        "params": facts::params(params).map_err(|why| format!("{name}: {why}"))?,
        "result": facts::result(name, result)?,
        "pending": !result.contains("`pending` not yet supported"),
    }))
}

/// Methods in the paragraph and the table of modules. The specification shows few of their parameters.
fn other_methods(section: &Section<'_>) -> Result<Vec<Value>, String> {
    let listed =
        section.line("These modules").and_then(|line| line.split_once(": ")).ok_or("no list of modules")?.1;
    let mut methods = Vec::new();
    for piece in split(listed, &[',']) {
        let Some(name) = quoted(piece).first().copied() else { continue };
        let mut fact = json!({"name": name, "params": null, "result": null});
        if let Some((_, shown)) = piece.split_once(" (") {
            let shown = shown.trim_end_matches([')', '.']);
            let (params, result) =
                shown.split_once("; ").ok_or_else(|| format!("{name}: no result in {shown:?}"))?;
            let result = result.strip_prefix("result: ").unwrap_or(result);
            fact["result"] = facts::result(name, result)?;
            fact["params"] = json!(listed_params(params)?);
        }
        methods.push(fact);
    }
    for row in section.table(&["Module", "Methods"]) {
        let names = row[1].split(", ");
        methods.extend(names.map(|name| json!({"name": name, "params": null, "result": null})));
    }
    Ok(methods)
}

/// Parameters written as `[name TYPE, name TYPE]`.
fn listed_params(text: &str) -> Result<Vec<Value>, String> {
    if text == "no params" {
        return Ok(Vec::new());
    }
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    split(inner, &[','])
        .into_iter()
        .map(|piece| {
            let words: Vec<&str> = piece.split(' ').collect();
            let at = words.iter().position(|word| ["DATA", "HASH", "32-byte"].contains(word));
            let at = at.ok_or_else(|| format!("no type in {piece:?}"))?;
            let named = words[at..].join(" ").replace("32-byte hex string", "DATA 32 bytes");
            Ok(json!({"name": words[..at].join(" "), "type": named, "required": true}))
        })
        .collect()
}

/// Defaults and maxima of the fields of `trace_filter` under each profile.
fn trace_filter(section: &Section<'_>) -> Value {
    let bound = |text: &str| {
        let listed = numbers(text);
        let default =
            text.split_once("default ").map(|(_, rest)| rest.split([' ', ';', ',']).next().unwrap_or(""));
        let default = match default.map(|word| word.trim_matches('`')) {
            Some("and") => listed.last().map(|number| json!(number)),
            Some(word) => Some(word.parse::<u64>().map_or_else(|_| json!(word), |number| json!(number))),
            None => None,
        };
        let most = [", maximum", "and maximum", "at most"].iter().any(|words| text.contains(words));
        json!({"default": default, "maximum": most.then(|| listed.last().copied()).flatten()})
    };
    let rows = section.table(&["Field", "Hosted service profile", "Node configuration profile"]);
    let rows = rows
        .into_iter()
        .map(|row| (row[0].to_owned(), json!({"hosted": bound(row[1]), "node": bound(row[2])})));
    Value::Object(rows.collect())
}

/// The results of notifications, by type of subscription.
fn notifications(section: &Section<'_>) -> Result<Value, String> {
    let rows = section.table(&["Subscription type", "Emitted when", "`result` shape"]);
    let rows: Result<Map<String, Value>, String> = rows
        .into_iter()
        .map(|row| {
            let shape = match row[2].split_once("header object: ") {
                Some((_, listed)) => {
                    json!({"type": "header", "fields": listed.split(", ").collect::<Vec<_>>()})
                }
                None => json!({"type": row[2].split([' ', ',']).next().map(|word| match word {
                    "transaction" => "HASH",
                    "sync" => "sync status or false",
                    word => word,
                })}),
            };
            Ok((row[0].to_owned(), shape))
        })
        .collect();
    rows.map(Value::Object)
}

/// Errors with the methods that give them.
fn errors(section: &Section<'_>) -> Vec<Value> {
    let rows = section.table(&["Condition", "Code", "Message / data"]);
    rows.into_iter()
        .map(|row| {
            let code: Option<i64> = row[1].parse().ok();
            json!({
                "method": quoted(row[0]).first(),
                "code": code,
                "messages": quoted(row[2]).into_iter().filter(|text| text.contains(' ')).collect::<Vec<_>>(),
                "data": row[2].contains("`data`"),
            })
        })
        .collect()
}

/// The numbers in the limits of each operation.
fn limits(section: &Section<'_>) -> Value {
    let rows = section.table(&["Operation", "Limit"]);
    let rows = rows.into_iter().map(|row| {
        let name = row[0].split(' ').next().unwrap_or_default();
        (name.to_owned(), json!({"numbers": numbers(row[1]), "settings": quoted(row[1]).into_iter().filter(|word| word.contains('.')).collect::<Vec<_>>()}))
    });
    Value::Object(rows.filter(|(_, fact)| fact["numbers"] != json!([])).collect())
}

fn tags<'a>(section: &Section<'a>) -> Result<Vec<&'a str>, String> {
    let rows = section.table(&["Term", "Meaning"]);
    let row = rows.into_iter().find(|row| row[0] == "TAG").ok_or("no tags")?;
    Ok(quoted(row[1]))
}

/// Methods whose behaviour depends on the release of the reference node.
fn releases(section: &Section<'_>) -> Vec<Value> {
    let lines = section.lines().iter().filter_map(|line| line.trim().strip_prefix("- Release "));
    lines
        .filter_map(|line| {
            let (release, rest) = line.split_once(": ")?;
            Some(json!({"release": release, "method": quoted(rest).first()}))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_with_types_defaults_and_fields() {
        let cell = "[address: ADDRESS required, block: optional, default latest; number, hash, TAG or map]";
        let read = facts::params(cell).unwrap();
        assert_eq!(
            read,
            [
                json!({"name": "address", "type": "ADDRESS", "required": true}),
                json!({"name": "block", "type": "BLOCK", "required": false, "default": "latest", "also": ["hash", "map"]}),
            ]
        );
        let cell = "[object: from ADDRESS required; gas QUANTITY optional, default 90000]";
        let fields = &facts::params(cell).unwrap()[0]["fields"];
        assert_eq!(fields[0], json!({"name": "from", "type": "ADDRESS", "required": true}));
        assert_eq!(fields[1]["default"], json!("90000"));
    }

    /// A changed page must not lose facts silently.
    #[test]
    fn words_that_name_no_type_are_an_error() {
        assert!(facts::params("[thing: something new]").is_err());
        assert!(facts::result("eth_x", "something new").is_err());
        assert!(facts::field("x", "something new", "").is_err());
    }

    #[test]
    fn limits_are_read_as_numbers() {
        assert_eq!(numbers("at most 10K logs, OR a range of 2000 blocks, 2K"), [10_000, 2_000, 2_000]);
    }
}
