//! Checks that every relative link in a tracked Markdown file leads to an existing file, that the rows of each table have
//! as many cells as its head and cells below 200 characters, and that pictures belong to their text.

use std::path::Path;

use crate::draw;
use crate::shell::{StepOutput, ask, root};
use crate::steps::StepResult;

/// Checks all tracked Markdown files.
pub(crate) fn check(_log: &mut StepOutput) -> StepResult {
    let list = ask("git", &["ls-files", "*.md"]).ok_or("git is missing")?;
    let (mut dead, mut uneven, mut long) = (Vec::new(), Vec::new(), Vec::new());
    for name in list.lines() {
        let text = std::fs::read_to_string(root().join(name)).map_err(|e| format!("{name}: {e}"))?;
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        for link in relative_links(&text) {
            if !root().join(folder).join(link).exists() {
                dead.push(format!("{name}: {link}"));
            }
        }
        uneven.extend(uneven_rows(&text).into_iter().map(|line| format!("{name}:{line}")));
        long.extend(long_cells(&text).into_iter().map(|line| format!("{name}:{line}")));
    }
    expect_none("links to missing files", &dead)?;
    expect_none("rows with other cells than their table's head", &uneven)?;
    expect_none(&format!("cells of {TOO_LONG} characters or more"), &long)?;
    let pictures = draw::check()?;
    Ok(format!("{} documents, {pictures} pictures", list.lines().count()))
}

/// Fails if there are faults. `places` are their files and lines.
fn expect_none(what: &str, places: &[String]) -> Result<(), String> {
    if places.is_empty() { Ok(()) } else { Err(format!("{what}:\n    {}", places.join("\n    "))) }
}

/// The line numbers of rows of tables that have more or fewer cells than the row above.
fn uneven_rows(text: &str) -> Vec<usize> {
    let (mut uneven, mut above) = (Vec::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let here = line.starts_with('|').then(|| bars(line));
        if let (Some(above), Some(here)) = (above, here)
            && above != here
        {
            uneven.push(number);
        }
        above = here;
    }
    uneven
}

/// Number of characters from which the text of a cell is too long for a table.
const TOO_LONG: usize = 200;

/// The line numbers of rows of tables that have a cell of [`TOO_LONG`] characters or more.
fn long_cells(text: &str) -> Vec<usize> {
    let rows = (1..).zip(text.lines()).filter(|(_, line)| line.starts_with('|'));
    let long = rows.filter(|(_, row)| row.split('|').any(|cell| cell.trim().chars().count() >= TOO_LONG));
    long.map(|(number, _)| number).collect()
}

/// The number of bars between the cells of a row, without bars in code or after a backslash.
fn bars(row: &str) -> usize {
    // Every second part is outside of code.
    let text: String = row.split('`').step_by(2).collect();
    text.matches('|').count() - text.matches("\\|").count()
}

/// The targets of `[text](target)` links that are relative paths, without their anchors.
fn relative_links(text: &str) -> Vec<&str> {
    text.match_indices("](")
        .filter_map(|(at, mark)| text.get(at + mark.len()..)?.split([')', ' ', '\n']).next())
        .filter(|t| !t.contains("://") && !t.starts_with("mailto:") && !t.starts_with('#'))
        .map(|t| t.split('#').next().unwrap_or(t))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found_and_other_links_ignored() {
        let text = "see [a](docs/a.md#part), [b](https://example.org/x.md), [c](#here) and [d](LICENSE-MIT)";
        assert_eq!(relative_links(text), ["docs/a.md", "LICENSE-MIT"]);
    }

    #[test]
    fn long_cells_are_found() {
        let long = "x".repeat(TOO_LONG);
        assert_eq!(long_cells(&format!("{long}\n| a |\n| {long} | b |\n| {} |", &long[1..])), [3]);
    }

    #[test]
    fn rows_that_do_not_fit_their_table_are_found() {
        assert!(uneven_rows("| a | b |\n|---|---|\n| `x|y` | 1 \\| 2 |\n\n| other |\n|---|").is_empty());
        assert_eq!(uneven_rows("| a | b |\n|---|---|\n| 1 | 2 | 3 |\n| 4 | 5 |"), [3, 4]);
    }
}
