//! The facts in the cells of the specification: types, parameters and results.

use serde_json::{Map, Value, json};

use super::markdown::{quoted, split};

/// The words for types, each before the words it starts with, and the names they get in the table.
const TYPES: &[(&str, &str)] = &[
    ("array of numbers", "array of number"),
    ("array of strings", "array of string"),
    ("array of hex strings", "array of DATA"),
    ("array of HASH", "array of HASH"),
    ("array of DATA", "array of DATA"),
    ("array of ADDRESS", "array of ADDRESS"),
    ("array of log objects", "array of log"),
    ("array of transaction objects", "array of transaction"),
    ("array of trace objects", "array of trace"),
    ("array of transaction HASH", "array of HASH"),
    ("array of block HASH", "array of HASH"),
    ("array of RLP-serialized", "array of DATA"),
    ("array of objects", "array of object"),
    ("array of three HASH", "array of three HASH"),
    ("all log objects", "array of log"),
    ("array", "array"),
    ("sync status object or `false`", "sync status or false"),
    ("block object", "block"),
    ("block-shaped uncle without transactions", "uncle"),
    ("transaction object", "transaction"),
    ("receipt object", "transaction receipt"),
    ("account proof object", "account proof"),
    ("map of hex slot to hex value", "map of slots"),
    ("JSON number", "number"),
    ("number", "number"),
    ("object", "object"),
    ("QUANTITY or TAG", "BLOCK"),
    ("QUANTITY", "QUANTITY"),
    ("ADDRESS or array of ADDRESS", "ADDRESS or array of ADDRESS"),
    ("ADDRESS or array", "ADDRESS or array of ADDRESS"),
    ("string or array of ADDRESS", "ADDRESS or array of ADDRESS"),
    ("ADDRESS", "ADDRESS"),
    ("HASH", "HASH"),
    ("DATA", "DATA"),
    ("hex string", "DATA"),
    ("32-byte hex string", "DATA"),
    ("boolean", "boolean"),
    ("string", "string"),
];

/// The type that a text starts with. `DATA` gets its length if the text has it.
fn type_at(text: &str) -> Option<String> {
    let (_, name) = TYPES.iter().find(|(words, _)| {
        text.strip_prefix(words)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
    })?;
    let bytes = |words: &str| words.split_once(" bytes")?.0.rsplit(' ').next()?.parse::<u64>().ok();
    let length = bytes(text).or_else(|| text.split_once("-byte")?.0.rsplit(' ').next()?.parse().ok());
    Some(match length {
        Some(length) if *name == "DATA" => format!("DATA {length} bytes"),
        _ => (*name).to_owned(),
    })
}

/// The first type named in a text, with the text before it.
fn first_type(text: &str) -> Option<(&str, String)> {
    let starts =
        core::iter::once(0).chain(text.match_indices([' ', '(']).map(|(at, separator)| at + separator.len()));
    for start in starts {
        let rest = text.get(start..)?;
        // `array of objects` is no field of type `object`, and words like "object" follow names of objects.
        if let Some(found) = type_at(rest) {
            return Some((text.get(..start)?.trim(), found));
        }
    }
    None
}

/// A row of a table of fields.
pub(super) fn field(name: &str, kind: &str, notes: &str) -> Result<Value, String> {
    let mut fact = Map::new();
    fact.insert("name".into(), json!(name));
    let named = first_type(kind).ok_or_else(|| format!("field {name}: no type in {kind:?}"))?.1;
    fact.insert("type".into(), json!(named));
    if kind.contains("or null") || notes.contains("`null`") {
        fact.insert("null".into(), json!(null_when(notes)));
    }
    for (words, mark) in [
        ("not supported", "unsupported"),
        ("present in one description", "optional"),
        ("optional", "optional"),
        ("is present", "optional"),
        ("present in filter-poll and subscription logs", "notified"),
        ("pre-Byzantium", "optional"),
        ("present when", "optional"),
    ] {
        if notes.contains(words) {
            fact.insert(mark.into(), json!(true));
        }
    }
    let inner = inner_fields(notes);
    if named == "object" || named == "array of object" {
        fact.insert("fields".into(), json!(inner));
    }
    Ok(Value::Object(fact))
}

/// Under which circumstance a field is null, in one word.
fn null_when(notes: &str) -> &'static str {
    [
        ("(any)", "any"),
        ("pending", "pending"),
        ("contract creation", "creation"),
        ("otherwise `null`", "no creation"),
    ]
    .into_iter()
    .find_map(|(words, name)| notes.contains(words).then_some(name))
    .unwrap_or("failure")
}

/// Fields that a text lists as `` `name` TYPE `` or `` `name`, `name` (all TYPE) ``.
pub(super) fn inner_fields(text: &str) -> Vec<Value> {
    let all = text.split_once("(all ").and_then(|(_, rest)| type_at(rest.trim_end_matches([')', '.'])));
    split(text, &[',', ';', ':'])
        .into_iter()
        .flat_map(|piece| piece.split(" and "))
        .filter_map(|piece| {
            let (before, rest) = piece.split_once('`').map(|(before, rest)| (before.trim(), rest))?;
            let (name, rest) = rest.split_once('`')?;
            let rest = rest.trim().trim_start_matches('(');
            let named = match &all {
                Some(all) => all.clone(),
                None => type_at(rest)?,
            };
            (name != "null" && (before.is_empty() || before == "each has"))
                .then(|| json!({"name": name, "type": named}))
        })
        .collect()
}

/// A parameter that is being read.
#[derive(Default)]
struct Param {
    name: String,
    text: String,
    fields: Vec<Value>,
    values: Vec<String>,
}

/// The parameters of a method. `None` if the specification does not show them.
pub(super) fn params(cell: &str) -> Result<Vec<Value>, String> {
    if cell == "none" {
        return Ok(Vec::new());
    }
    let inner = cell.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.ok_or_else(|| format!("parameters without brackets: {cell:?}"))?;
    let mut params: Vec<Param> = Vec::new();
    for piece in split(inner, &[',', ';']) {
        if let Some(param) = begun(piece) {
            params.push(param);
        } else {
            continued(params.last_mut().ok_or_else(|| format!("no parameter name in {piece:?}"))?, piece);
        }
    }
    params.into_iter().map(Param::fact).collect()
}

/// Parameters that the specification names by their kind.
const NAMED: &[(&str, &str)] = &[
    ("transaction call object", "call"),
    ("stateOverride set", "stateOverride"),
    ("filter options", "filter"),
    ("filter object required", "filter"),
    ("block", "block"),
];

/// The parameter that begins with this piece, if one does.
fn begun(piece: &str) -> Option<Param> {
    let text = piece.to_owned();
    for (words, name) in NAMED {
        let Some(rest) =
            piece.strip_prefix(words).filter(|rest| !rest.starts_with(|l: char| l.is_alphanumeric()))
        else {
            continue;
        };
        let mut param = Param { name: (*name).into(), text, ..Param::default() };
        if let (Some(first), true) = (rest.strip_prefix(": "), *name == "filter") {
            continued(&mut param, first);
        }
        return Some(param);
    }
    let (name, rest) = piece.split_once(": ")?;
    if !name.chars().all(|letter| letter.is_ascii_alphanumeric()) {
        return None;
    }
    // `eth_sendTransaction` takes one object; its first field follows the colon.
    if name == "object" {
        let mut param =
            Param { name: "transaction".into(), text: "object required".into(), ..Param::default() };
        continued(&mut param, rest);
        return Some(param);
    }
    Some(Param { name: name.into(), text: rest.into(), ..Param::default() })
}

/// Adds a piece to the parameter that it belongs to: a field, an allowed value, a default, or more forms.
fn continued(param: &mut Param, piece: &str) {
    let holds_fields = param.text.starts_with("object") || param.text.starts_with("filter object");
    let value = piece.strip_prefix("one of ").unwrap_or(piece);
    let fields = inner_fields(piece);
    if !fields.is_empty() {
        param.fields.extend(fields);
    } else if holds_fields
        && !piece.starts_with("default ")
        && !piece.starts_with("may ")
        && !piece.starts_with("for ")
    {
        let (name, kind) = match first_type(piece) {
            Some((before, kind)) => (before.trim_end_matches(['(', ' ']), json!(kind)),
            None => (piece, Value::Null),
        };
        param.fields.push(json!({"name": name, "type": kind, "required": piece.contains(" required")}));
    } else if value.starts_with('`') {
        param.values.extend(quoted(value).into_iter().map(str::to_owned));
    } else if let (Some(default), Some(Value::Object(field))) =
        (piece.strip_prefix("default "), param.fields.last_mut())
    {
        field.insert("default".into(), json!(default));
    } else {
        param.text.push_str(", ");
        param.text.push_str(piece);
    }
}

impl Param {
    fn fact(self) -> Result<Value, String> {
        let mut fact = Map::new();
        let words: Vec<&str> = self.text.split([' ', ',', '(', ')']).collect();
        let kind = match self.name.as_str() {
            "block" => "BLOCK".to_owned(),
            "call" => "transaction call".into(),
            "stateOverride" => "state override".into(),
            "filter" if self.text.starts_with("filter options") => "filter options".into(),
            "filter" | "transaction" => "object".into(),
            name => {
                first_type(&self.text)
                    .ok_or_else(|| format!("parameter {name}: no type in {:?}", self.text))?
                    .1
            }
        };
        if kind == "BLOCK" {
            let named = |form: &&str| words.iter().any(|word| word.eq_ignore_ascii_case(form));
            let more: Vec<&str> = ["hash", "map"].into_iter().filter(named).collect();
            fact.insert("also".into(), json!(more));
        }
        let optional = words.contains(&"optional");
        fact.insert("name".into(), json!(self.name));
        fact.insert("type".into(), json!(kind));
        fact.insert("required".into(), json!(!optional));
        if let Some((_, default)) = self.text.split_once("default ").filter(|_| optional) {
            let default = default.split([',', ';', ' ']).next().unwrap_or_default();
            fact.insert("default".into(), json!(default));
        }
        if !self.values.is_empty() {
            fact.insert("values".into(), json!(self.values));
        }
        if !self.fields.is_empty() {
            fact.insert("fields".into(), json!(self.fields));
        }
        Ok(Value::Object(fact))
    }
}

/// The result of a method: its type, whether it may be null, and values that the text names.
pub(super) fn result(name: &str, cell: &str) -> Result<Value, String> {
    let mut fact = Map::new();
    let types: Vec<String> = if cell.starts_with("block filter: ") {
        split(cell, &[';', ':']).into_iter().filter_map(type_at).collect()
    } else {
        type_at(cell).into_iter().collect()
    };
    if types.is_empty() {
        return Err(format!("{name}: no type in {cell:?}"));
    }
    fact.insert("type".into(), json!(types.join(" | ")));
    fact.insert("null".into(), json!(cell.contains("`null`")));
    let values: Vec<&str> =
        quoted(cell).into_iter().filter(|value| value.parse::<u64>().is_ok() || value.len() == 4).collect();
    let values: Vec<&str> = values.into_iter().filter(|value| *value != "null" && *value != "true").collect();
    if !values.is_empty() {
        fact.insert("networks".into(), json!(values));
    }
    if cell.contains("always empty") {
        fact.insert("empty".into(), json!("hosted"));
    }
    Ok(Value::Object(fact))
}
