//! `cargo xtask instructions`: counts the instructions of hot paths and compares them with the counts in `bench/instructions.txt`.
//!
//! Callgrind counts them, which simulates the processor, so that neither the speed nor the load of the machine matters. Another compiler or C
//! library may change the counts; then the file is written again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;

use crate::shell::{Cmd, StepOutput, root, target_dir};
use crate::steps::{StepResult, SuiteRun};
use crate::tools;

/// Most instructions, in percent, that a path may take above the count in the file.
const ALLOWED: u64 = 3;

/// Instructions by the name of the path.
type InstructionCounts = BTreeMap<String, u64>;

/// Runs `cargo xtask instructions [--write]`: counts and compares, or counts and writes the file.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let run = SuiteRun::new(false);
    let step = match args {
        [] => run.step("instructions", check),
        ["--write"] => run.step("instructions", write),
        _ => return ExitCode::from(2),
    };
    if step {
        print!("{}", std::fs::read_to_string(table()).unwrap_or_default());
    }
    run.finish()
}

/// Compares the counts of this tree with those in the file. The step is skipped where the recordings are missing.
pub(crate) fn check(log: &mut StepOutput) -> StepResult {
    let Some(counted) = count(log)? else { return Ok("skipped: the recordings are missing".into()) };
    let text = std::fs::read_to_string(file()).map_err(|e| format!("{}: {e}", file().display()))?;
    let (table_text, faults) = compare(&read(&text)?, &counted);
    std::fs::write(table(), &table_text).map_err(|e| format!("{}: {e}", table().display()))?;
    if faults.is_empty() {
        return Ok(format!("{} paths", counted.len()));
    }
    Err(format!(
        "{table_text}{}\nA change that is worth more instructions writes them with `cargo xtask instructions --write` and \
         gives the reason in its commit.",
        faults.join("\n")
    ))
}

/// Writes the counts of this tree into the file.
fn write(log: &mut StepOutput) -> StepResult {
    let counted = count(log)?.ok_or("the recordings are missing")?;
    let lines: String = counted.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
    std::fs::write(file(), &lines).map_err(|e| format!("{}: {e}", file().display()))?;
    std::fs::write(table(), lines).map_err(|e| format!("{}: {e}", table().display()))?;
    Ok(format!("{} paths", counted.len()))
}

/// The file with the counts: a line with the name and the number for each path.
fn file() -> PathBuf {
    root().join("bench/instructions.txt")
}

/// The file with the comparison of the last run.
fn table() -> PathBuf {
    target_dir().join("instructions.txt")
}

/// Runs the paths under callgrind; `None` if the recordings that they work on are missing.
fn count(log: &mut StepOutput) -> Result<Option<InstructionCounts>, String> {
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    if !shared.join("vectors/chain/blocks.jsonl").exists() {
        return Ok(None);
    }
    let runner = tools::gungraun_runner(log)?;
    let bench = Cmd::new("cargo bench --locked --profile release --package rootlight-bench");
    let bench = bench.args(&["--features", "instructions", "--bench", "instructions"]);
    let home = target_dir().join("gungraun");
    // Without results of earlier runs, with which gungraun would compare.
    let _ = std::fs::remove_dir_all(&home);
    let bench = bench.env("GUNGRAUN_RUNNER", runner).env("GUNGRAUN_HOME", home);
    parse(&log.read(bench.args(&["--", "--output-format=json"]))?).map(Some)
}

/// Reads the summaries that gungraun prints: one JSON object a line.
fn parse(output: &str) -> Result<InstructionCounts, String> {
    let mut counts = InstructionCounts::new();
    for line in output.lines().filter(|line| line.starts_with('{')) {
        let summary: Value = serde_json::from_str(line).map_err(|e| format!("a summary: {e}"))?;
        let function = summary["function_name"].as_str().ok_or("a summary has no function_name")?;
        // Benchmarks without variants have the id `of`.
        let name = match summary["id"].as_str() {
            Some("of") | None => function.to_owned(),
            Some(id) => format!("{function}_{id}"),
        };
        let count = instructions(&summary).ok_or_else(|| format!("{name} has no number of instructions"))?;
        counts.insert(name, count);
    }
    if counts.is_empty() { Err("gungraun printed no summary".into()) } else { Ok(counts) }
}

/// The number of instructions of a summary, its member `Ir` (instructions read), which may be at any depth.
fn instructions(summary: &Value) -> Option<u64> {
    match summary {
        Value::Object(members) => match members.get("Ir") {
            Some(found) => first_number(found),
            None => members.values().find_map(instructions),
        },
        Value::Array(items) => items.iter().find_map(instructions),
        _ => None,
    }
}

/// The first number at any depth of a value, which is that of this run.
fn first_number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::Object(members) => members.values().find_map(first_number),
        Value::Array(items) => items.iter().find_map(first_number),
        _ => None,
    }
}

/// Reads the file with the counts.
fn read(text: &str) -> Result<InstructionCounts, String> {
    let line = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    let lines = text.lines().filter(|text| !text.is_empty());
    lines.map(|text| line(text).ok_or_else(|| format!("{}: {text}", file().display()))).collect()
}

/// The comparison as text, with a line for each path, and the faults.
fn compare(written: &InstructionCounts, counted: &InstructionCounts) -> (String, Vec<String>) {
    let (mut text, mut faults) = (String::new(), Vec::new());
    for (name, count) in counted {
        let Some(before) = written.get(name) else {
            faults.push(format!("{name}: not written down"));
            continue;
        };
        let change = (*count as f64 / *before as f64 - 1.0) * 100.0;
        let _ = writeln!(text, "{name:<28} {count:>12} {change:>+7.2} %");
        if count * 100 > before * (100 + ALLOWED) {
            faults.push(format!("{name}: {change:.2} % more instructions, {ALLOWED} % allowed"));
        }
    }
    let gone = written.keys().filter(|name| !counted.contains_key(*name));
    faults.extend(gone.map(|name| format!("{name}: written down, but not counted")));
    (text, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> InstructionCounts {
        of.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn more_instructions_than_allowed_are_a_fault() {
        let written = counts(&[("a", 1_000), ("b", 1_000)]);
        let faults = |a, b| compare(&written, &counts(&[("a", a), ("b", b)])).1.len();
        assert_eq!(faults(1_000, 1_030), 0);
        assert_eq!(faults(1_031, 500), 1);
        assert_eq!(faults(1_031, 2_000), 2);
    }

    #[test]
    fn paths_that_are_missing_on_either_side_are_faults() {
        let both = counts(&[("a", 1), ("b", 1)]);
        assert_eq!(compare(&both, &counts(&[("a", 1)])).1.len(), 1);
        assert_eq!(compare(&counts(&[("a", 1)]), &both).1.len(), 1);
    }

    #[test]
    fn counts_are_written_and_read() {
        let written = counts(&[("a", 1), ("message_one_call", 123_456)]);
        assert_eq!(read("a 1\nmessage_one_call 123456\n"), Ok(written));
        assert!(read("a").is_err() && read("a x").is_err());
    }

    #[test]
    fn summaries_name_the_path_and_its_instructions() {
        let line = r#"{"function_name":"message","id":"one_call","profiles":[{"metrics":{"Ir":{"Left":{"Int":7}}}}]}"#;
        let of = line.replace("one_call", "of");
        assert_eq!(parse(line), Ok(counts(&[("message_one_call", 7)])));
        assert_eq!(parse(&format!("noise\n{of}")), Ok(counts(&[("message", 7)])));
        assert!(parse("").is_err() && parse(&line.replace("Ir", "Dr")).is_err());
    }
}
