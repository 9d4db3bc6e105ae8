//! Checks that every relative link in a tracked Markdown file leads to an existing file.

use std::path::Path;

use crate::shell::{Log, ask, root};
use crate::steps::Outcome;

/// Checks all tracked Markdown files.
pub(crate) fn check(_log: &mut Log) -> Outcome {
    let list = ask("git", &["ls-files", "*.md"]).ok_or("git is missing")?;
    let mut dead = Vec::new();
    for name in list.lines() {
        let text = std::fs::read_to_string(root().join(name)).map_err(|e| format!("{name}: {e}"))?;
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        for link in relative_links(&text) {
            if !root().join(folder).join(link).exists() {
                dead.push(format!("{name}: {link}"));
            }
        }
    }
    if dead.is_empty() {
        Ok(format!("{} documents", list.lines().count()))
    } else {
        Err(format!("links to missing files:\n    {}", dead.join("\n    ")))
    }
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
}
