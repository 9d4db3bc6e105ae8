//! Reads the headings, tables and paragraphs of a Markdown page.

/// A heading with the text below it, up to the next heading.
pub(super) struct Section<'a> {
    /// The heading without `#`.
    pub(super) title: &'a str,
    lines: Vec<&'a str>,
}

/// Splits a page at its headings. Text before the first heading is dropped.
pub(super) fn sections(page: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in page.lines() {
        if line.starts_with('#') {
            sections.push(Section { title: line.trim_start_matches('#').trim(), lines: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            section.lines.push(line);
        }
    }
    sections
}

impl<'a> Section<'a> {
    /// The rows of the table with these column names; empty if the section has no such table.
    pub(super) fn table(&self, columns: &[&str]) -> Vec<Vec<&'a str>> {
        let mut lines = self.lines.iter().skip_while(|line| cells(line) != columns);
        if lines.next().is_none() {
            return Vec::new();
        }
        // The line below the column names draws a rule.
        lines.skip(1).take_while(|line| line.starts_with('|')).map(|line| cells(line)).collect()
    }

    /// The first line that starts with these words.
    pub(super) fn line(&self, start: &str) -> Option<&'a str> {
        self.lines.iter().copied().find(|line| line.starts_with(start))
    }

    /// All lines.
    pub(super) fn lines(&self) -> &[&'a str] {
        &self.lines
    }
}

fn cells(line: &str) -> Vec<&str> {
    let Some(inner) = line.trim().strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) else {
        return Vec::new();
    };
    inner.split('|').map(str::trim).collect()
}

/// Splits a text at separators outside parentheses, brackets and quotes.
pub(super) fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let (mut pieces, mut depth, mut quoted, mut start) = (Vec::new(), 0_u32, false, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '`' => quoted = !quoted,
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 && !quoted && separators.contains(&letter) => {
                pieces.push(text[start..at].trim());
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(text[start..].trim());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The texts between back quotes.
pub(super) fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The decimal numbers of a text; `K` after a number means thousand.
pub(super) fn numbers(text: &str) -> Vec<u64> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter_map(|word| match word.strip_suffix('K') {
            Some(thousands) => Some(thousands.parse::<u64>().ok()? * 1_000),
            None => word.parse().ok(),
        })
        .collect()
}
